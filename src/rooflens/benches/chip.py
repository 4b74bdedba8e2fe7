"""Ceilings in, a chip out whose every value says how and when it was measured."""

from collections.abc import Iterator

from rooflens.benches.ceilings import Ceilings, LevelCeiling, PeakCeiling
from rooflens.hardware.records import OFFCHIP, Fact, Hardware


def chip_of(found: Ceilings) -> Hardware:
    return Hardware(
        id=f"this-{found.device}",
        name=found.name,
        vendor="measured here",
        kind="gpu" if found.device == "cuda" else "cpu",
        unit_name="SM" if found.device == "cuda" else "core",
        note=_note(found),
        facts=tuple(_facts(found)),
        measured=True,
        measured_on=found.date,
        fingerprint=found.fingerprint,
        lower_bounds=tuple(c.level for c in found.levels if c.lower_bound),
    )


def _note(found: Ceilings) -> str:
    pace = "quick measurement" if found.quick else "measurement"
    where = f"{found.threads} threads" if found.device == "cpu" else "device time"
    return f"{pace} of {found.date}, {where}; a lower bound is what was reached, and the level may do more"


def _facts(found: Ceilings) -> Iterator[Fact]:
    how = f"rooflens machine, {found.date}"
    yield Fact(key="units.count", value=float(_units(found)), source=f"{how}: {_units_source(found)}")
    for peak in found.peaks:
        yield _peak(peak, how)
    for level in found.levels:
        yield from _level(level, found, how)
    for key, value, why in (
        ("launch.eager", found.launch.eager_s, found.launch.eager_why),
        ("launch.graph", found.launch.graph_s, found.launch.graph_why),
    ):
        source = f"{how}: each of 1000 calls of something tiny" if value is not None else why
        yield Fact(key=key, value=value, source=source)


def _units(found: Ceilings) -> int:
    return found.cuda.multiprocessors if found.cuda else found.threads


def _units_source(found: Ceilings) -> str:
    return (
        "multiprocessors, from the driver" if found.cuda else "threads that ran, one a core that this process may use"
    )


def _peak(peak: PeakCeiling, how: str) -> Fact:
    key = f"peak.{peak.dtype}.{peak.unit}"
    if peak.flop_per_s is None:
        return Fact(key=key, value=None, source=peak.why, absent=peak.absent)
    return Fact(key=key, value=peak.flop_per_s, source=f"{how}: {peak.how}{_spread(peak.spread)}")


def _level(level: LevelCeiling, found: Ceilings, how: str) -> Iterator[Fact]:
    """The capacity that a process may use is a limit of its own, not always that of the board."""
    key = f"memory.{level.level}"
    source = "from the driver" if found.cuda else "from the system, of the cores that ran"
    if level.level in OFFCHIP and found.host.memory_limit_bytes is not None and not found.cuda:
        source = "the limit of this process's cgroup"
    known = level.capacity_bytes is not None
    size = float(level.capacity_bytes or 0)
    yield Fact(key=f"{key}.capacity", value=size if known else None, source=f"{how}: {source}" if known else "not told")
    if level.bandwidth_bytes_per_s is None:
        yield Fact(key=f"{key}.bandwidth", value=None, source=level.why)
        return
    bound = f"; a lower bound: {level.why}" if level.lower_bound else ""
    words = f"{how}: plateau of {level.kernel}, bytes as STREAM counts them{_spread(level.spread)}{bound}"
    yield Fact(key=f"{key}.bandwidth", value=level.bandwidth_bytes_per_s, source=words)


def _spread(spread: float | None) -> str:
    return "" if spread is None else f", spread {spread:.1%}"
