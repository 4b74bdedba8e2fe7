"""A process's cgroups in, what they let it have out: CPUs as a number (2.5 is allowed), bytes of memory.

Limits hold at the process's own group and at every parent that can be seen, and the tightest one counts. Both versions
are read, because hosts exist that mount both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rooflens.hardware.identity import ROOT, number, text

UNLIMITED = 2**60  # version 1 writes 'no limit' as the largest whole number of pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """None: no limit, or none that can be seen."""

    cpus: float | None = None
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None


def limits(root: Path = ROOT) -> Limits:
    cpu = [q for folder in _folders(root, "cpu") if (q := _cpus(folder)) is not None]
    memory = [m for folder in _folders(root, "memory") if (m := _memory(folder)) is not None]
    return Limits(
        cpus=min(cpu, default=None),
        memory_bytes=min((limit for limit, _ in memory), default=None),
        memory_free_bytes=min((max(0, limit - used) for limit, used in memory if used is not None), default=None),
    )


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The process's groups, from its own up to where they are mounted, for the version-1 controller and version 2."""
    for controllers, path in _groups(root):
        if controllers and controller not in controllers.split(","):
            continue
        for mount, top in _mounts(root, controllers):
            parts = _below(path, top)
            yield from (mount.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))


def _groups(root: Path) -> list[tuple[str, str]]:
    """(controllers, path) of each hierarchy; version 2 names no controllers."""
    lines = [line.split(":", 2) for line in (text(root / "proc/self/cgroup") or "").splitlines()]
    return [(line[1], line[2]) for line in lines if len(line) == 3]


def _mounts(root: Path, controllers: str) -> Iterator[tuple[Path, str]]:
    """Where that hierarchy is mounted, and which group is seen there as the top."""
    for line in (text(root / "proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        version_1 = kind[0] == "cgroup" and set(controllers.split(",")) <= set(kind[2].split(","))
        if version_1 if controllers else kind[0] == "cgroup2":
            yield root / fields[4].lstrip("/"), fields[3]


def _below(path: str, top: str) -> list[str]:
    """A container may see its own group as the top of the mount while its path is told from the host's top."""
    inside = path.removeprefix(top) if top != "/" else path
    outside = top != "/" and inside == path
    return [] if outside else [p for p in inside.split("/") if p and p != ".."]


def _cpus(folder: Path) -> float | None:
    quota, period = _quota(folder)
    return quota / period if quota is not None and quota > 0 and period else None


def _quota(folder: Path) -> tuple[int | None, int | None]:
    both = (text(folder / "cpu.max") or "").split()
    if len(both) == 2:
        return (int(both[0]) if both[0].isdecimal() else None), (int(both[1]) if both[1].isdecimal() else None)
    return number(folder / "cpu.cfs_quota_us"), number(folder / "cpu.cfs_period_us")


def _memory(folder: Path) -> tuple[int, int | None] | None:
    """The limit, and what is used of it beside file pages that would be given back."""
    for limit_name, used_name, cached in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        limit, used = number(folder / limit_name), number(folder / used_name)
        if limit is not None and limit < UNLIMITED:
            return limit, None if used is None else max(0, used - _statistic(folder, cached))
    return None


def _statistic(folder: Path, name: str) -> int:
    rows = [line.split() for line in (text(folder / "memory.stat") or "").splitlines()]
    return next((int(r[1]) for r in rows if len(r) == 2 and r[0] == name and r[1].isdecimal()), 0)
