"""A system's own files in, what of this computer stays the same between two runs out: who measured a chip file.

The least that tells two computers apart, so that a chip file is checked without a framework and in a millisecond.
Nothing is guessed: what no file tells is None.
"""

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")
CPUS = "sys/devices/system/cpu"
GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """One kind of cache: the bytes of one instance, and the CPUs that share each instance."""

    level: int
    bytes: int
    instances: tuple[frozenset[int], ...]

    def usable(self, cpus: frozenset[int]) -> int:
        return sum(bool(sharers & cpus) for sharers in self.instances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """`cores` are the CPUs of each physical core. Clocks, load and limits are left out: they change."""

    cpu_model: str | None
    cores: tuple[frozenset[int], ...] | None
    caches: tuple[Cache, ...]
    memory_bytes: int | None


def identity(root: Path = ROOT) -> Identity:
    cpus = tuple(sorted(listed(text(root / CPUS / "online") or "")))
    return Identity(
        cpu_model=_model(cpuinfo(root)),
        cores=_cores(root, cpus),
        caches=_caches(root, cpus),
        memory_bytes=_memory(root),
    )


def fingerprint(machine: Identity, devices: tuple[str, ...] = ()) -> str:
    """Memory in whole GiB: kernels keep a little more or less of it to themselves."""
    caches = [(c.level, c.bytes, len(c.instances)) for c in machine.caches]
    memory = None if machine.memory_bytes is None else round(machine.memory_bytes / GIB)
    told = (platform.machine(), machine.cpu_model, len(machine.cores or ()), caches, memory, devices)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def text(path: Path) -> str | None:
    """A file of the system, or None: containers hide some, and no two kernels show the same ones."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number(path: Path) -> int | None:
    found = text(path)
    return int(found) if found is not None and found.lstrip("-").isdecimal() else None


def listed(ranges: str) -> frozenset[int]:
    """`0-3,8` as the kernel writes sets of CPUs."""
    pieces = [p.split("-") for p in ranges.split(",") if p.replace("-", "").isdecimal()]
    return frozenset(n for p in pieces if p[0] and p[-1] for n in range(int(p[0]), int(p[-1]) + 1))


def cpuinfo(root: Path = ROOT) -> dict[str, str]:
    """Fields of the first CPU, and what comes after the last (some boards name themselves there)."""
    found: dict[str, str] = {}
    for line in (text(root / "proc/cpuinfo") or "").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


def _model(fields: dict[str, str]) -> str | None:
    """Arm cores give numbers for a name: who designed them, and which design."""
    if fields.get("model name"):
        return " ".join(fields["model name"].split())
    arm = [fields.get(k) for k in ("CPU implementer", "CPU part")]
    return f"Arm implementer {arm[0]} part {arm[1]}" if all(arm) else None


def _cores(root: Path, cpus: tuple[int, ...]) -> tuple[frozenset[int], ...] | None:
    """Logical CPUs that are siblings are one core."""
    folder = [root / CPUS / f"cpu{n}/topology" for n in cpus]
    siblings = [text(f / "core_cpus_list") or text(f / "thread_siblings_list") for f in folder]
    found = {listed(s) for s in siblings if s}
    return tuple(sorted(found, key=sorted)) if found and all(siblings) else None


def _caches(root: Path, cpus: tuple[int, ...]) -> tuple[Cache, ...]:
    """Data and unified caches; a hybrid chip has several sizes of a level."""
    found: dict[tuple[int, int], set[frozenset[int]]] = {}
    for folder in (f for n in cpus for f in sorted((root / CPUS / f"cpu{n}/cache").glob("index*"))):
        level, size = number(folder / "level"), _size(text(folder / "size"))
        sharers = listed(text(folder / "shared_cpu_list") or "")
        if level and size and sharers and text(folder / "type") in ("Data", "Unified"):
            found.setdefault((level, size), set()).add(sharers)
    return tuple(Cache(level=k[0], bytes=k[1], instances=tuple(sorted(found[k], key=sorted))) for k in sorted(found))


def _size(shown: str | None) -> int | None:
    """`48K`, as the kernel writes it."""
    factors = {"K": 2**10, "M": 2**20, "G": GIB}
    digits = (shown or "").rstrip("KMG")
    return int(digits) * factors.get((shown or "")[-1], 1) if digits.isdecimal() else None


def _memory(root: Path) -> int | None:
    return meminfo(root).get("MemTotal")


def meminfo(root: Path = ROOT) -> dict[str, int]:
    """Bytes by name; the kernel's kB are KiB."""
    rows = [line.replace(":", " ").split() for line in (text(root / "proc/meminfo") or "").splitlines()]
    return {r[0]: int(r[1]) * 1024 for r in rows if len(r) == 3 and r[1].isdecimal()}
