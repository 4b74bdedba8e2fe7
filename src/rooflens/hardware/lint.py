"""Chips in, findings out: what a chip file says that no real chip, or no careful reader of a datasheet, would say.

The loader already refuses values that cannot be. These checks look for values that can be and are not: a sparse peak in
the dense row, GiB for GB, TB/s for GB/s, a number copied into the wrong row. An error is wrong, a warning wants a
second look.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from rooflens.hardware.records import OFFCHIP, UNITS, Hardware
from rooflens.units import show

BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "fp4": 0.5, "int4": 0.5}
# Ridges in operations per element moved, which depends little on the dtype; all true chips of a kind lie inside.
# The GPU's upper end is tight on purpose: 2:4 sparse peaks in the dense row often land above it.
RIDGES = {
    "gpu": (2.0, 1000.0),
    "systolic": (1.0, 20000.0),
    "tile": (1.0, 20000.0),
    "cpu": (0.5, 4000.0),
    "line-buffer": (0.1, 20000.0),
}
# Caches back each other; a software-managed memory is filled from off chip and compares with nothing else.
CHAINS = (("l1", "l2", "l3", *OFFCHIP), ("shared", *OFFCHIP), ("vmem", *OFFCHIP), ("scratchpad", *OFFCHIP))
BINARY_CACHES = ("l1", "l2", "l3", "shared")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    chip: str
    severity: str
    key: str
    message: str


def lint(chips: tuple[Hardware, ...], beside: tuple[Hardware, ...] = ()) -> tuple[Finding, ...]:
    """What every check finds, chip by chip in the order given, then what only shows between chips, these or others."""
    alone = (f for chip in chips for check in CHIP_CHECKS for f in check(chip))
    between = (f for check in SET_CHECKS for f in check(chips, (*chips, *beside)))
    return (*alone, *between)


def _sources(chip: Hardware) -> Iterator[Finding]:
    """A value that nobody can look up is a guess; a bare word is a key that [sources] lacks."""
    for fact in chip.facts:
        if not fact.source.strip():
            what = "value without a source" if fact.value is not None else "unpublished without a reason"
            yield _error(chip, fact.key, f"{what}: name the document, or say why there is none")
        elif fact.value is not None and " " not in fact.source.strip():
            yield _error(chip, fact.key, f"source '{fact.source}' names no document: add it to [sources]")


def _ridges(chip: Hardware) -> Iterator[Finding]:
    """TB/s for GB/s, TFLOP/s for GFLOP/s and sparse for dense peaks all throw the ridge out of its kind's range."""
    low, high = RIDGES[chip.kind]
    for peak in chip.peaks:
        ridge = chip.ridge(peak.dtype, peak.unit)
        per_element = None if ridge is None else ridge * BYTES[peak.dtype]
        if per_element is not None and not low <= per_element <= high:
            message = f"ridge of {per_element:.4g} operations per element moved, a {chip.kind} has {low:g} to {high:g}"
            yield _error(chip, _key(peak.dtype, peak.unit), f"{message}: check units, and dense against sparse")


def _fp32_is_not_int8(chip: Hardware) -> Iterator[Finding]:
    """A chip with int8 matrix units never runs fp32 as fast: an equal number was copied into the wrong row. A vector
    unit that widens int8 might, but those that do are seldom given an int8 rate."""
    matrix = chip.peak("int8", "matrix")
    found = _warning if matrix is None else _error
    for unit in UNITS:
        fp32 = chip.peak("fp32", unit)
        if fp32 is not None and fp32 in (matrix, chip.peak("int8", unit)):
            yield found(chip, _key("fp32", unit), f"fp32 peak equal to an int8 peak, {show(fp32, 'OP/s')}")


def _narrower_is_no_slower(chip: Hardware) -> Iterator[Finding]:
    """Half the bits never cost speed on one unit. The best rate of a width counts, as fp8 and int8 may differ."""
    for unit in UNITS:
        best = _best_by_width(chip, unit)
        widths = sorted(best, reverse=True)
        for wide, narrow in pairwise(widths):
            if best[narrow][0] < 0.98 * best[wide][0]:
                message = f"slower than the wider {best[wide][1]}: {show(best[narrow][0], 'OP/s')}"
                yield _warning(chip, _key(best[narrow][1], unit), message)


def _best_by_width(chip: Hardware, unit: str) -> dict[float, tuple[float, str]]:
    """Bytes of an element to the fastest rate of that width. No tf32: stored as 4 bytes, multiplied as 19 bits."""
    best: dict[float, tuple[float, str]] = {}
    for peak in chip.peaks:
        if peak.unit == unit and peak.flop_per_s is not None and peak.dtype != "tf32":
            width = BYTES[peak.dtype]
            best[width] = max(best.get(width, (0.0, "")), (peak.flop_per_s, peak.dtype))
    return best


def _sparse_is_twice_dense(chip: Hardware) -> Iterator[Finding]:
    """2:4 sparsity doubles the rate on every chip that has it; anything else mixes up two rows of a datasheet."""
    for fact in chip.facts:
        area, dtype, unit = (*fact.key.split("."), "", "")[:3]
        if (area, unit) != ("peak", "matrix_sparse") or fact.value is None:
            continue
        dense = chip.peak(dtype, "matrix")
        if dense is None or not _close(fact.value, 2 * dense):
            shown = f"{show(fact.value, 'OP/s')} sparse, {show(dense, 'OP/s')} dense"
            yield _error(chip, fact.key, f"sparse peak is not twice the dense one: {shown}")


def _peak_is_units_times_clock(chip: Hardware) -> Iterator[Finding]:
    """Vendors quote tensor and vector rates at different clocks, so the peak clock or the boost clock may fit."""
    count = chip.value("units.count")
    clocks = [c for c in (chip.value("clock.peak"), chip.value("clock.boost")) if c is not None]
    for peak in chip.peaks:
        ops = chip.value(f"ops_per_clock.{peak.dtype}.{peak.unit}")
        if ops is None or count is None or peak.flop_per_s is None or not clocks:
            continue
        if not any(_close(count * ops * clock, peak.flop_per_s) for clock in clocks):
            product = f"{count:g} x {ops:g} x {show(clocks[0], 'Hz')} = {show(count * ops * clocks[0], 'OP/s')}"
            yield _error(chip, _key(peak.dtype, peak.unit), f"{show(peak.flop_per_s, 'OP/s')}, but {product}")


def _offchip_in_decimal(chip: Hardware) -> Iterator[Finding]:
    """Off-chip memory is printed in GB and GB/s; a value that is round only in GiB was converted or misread, by 7 %.

    Capacities only of GPUs: Google prints the TPUs' in GiB, and DIMMs come in either.
    """
    level = chip.offchip
    if level is None:
        return
    capacity = level.capacity_bytes if chip.kind == "gpu" else None
    for part, value in (("capacity", capacity), ("bandwidth", level.bandwidth_bytes_per_s)):
        if value is not None and _round_in(value, 2**30) and not _round_in(value, 1e9):
            yield _warning(chip, f"memory.{level.level}.{part}", f"{value / 2**30:g} GiB: vendors print GB, 7 % less")


def _caches_in_binary(chip: Hardware) -> Iterator[Finding]:
    """Caches are built in powers of two, whatever the datasheet's MB says: 50 MB of L2 are 50 MiB, 5 % more."""
    for name in BINARY_CACHES:
        key = f"memory.{name}.capacity"
        capacity = chip.value(key)
        if capacity is not None and capacity >= 1e3 and capacity % 1024 and not capacity % 1e3:
            yield _warning(chip, key, f"{show(capacity, 'B')}: a cache holds KiB or MiB, write {show(capacity, '')}iB")


def _inner_is_no_slower(chip: Hardware) -> Iterator[Finding]:
    """A memory slower than what it is filled from makes no sense; often one instance's figure stands for all."""
    known = {m.level: m.bandwidth_bytes_per_s for m in chip.memory if m.bandwidth_bytes_per_s is not None}
    for chain in CHAINS:
        for inner, outer in pairwise(name for name in chain if name in known):
            if known[inner] < known[outer]:
                message = f"{show(known[inner], 'B/s')}, slower than {outer} with {show(known[outer], 'B/s')}"
                yield _warning(chip, f"memory.{inner}.bandwidth", f"{message}: is it one of several instances?")


def _newer_is_no_worse(chips: tuple[Hardware, ...], known: tuple[Hardware, ...]) -> Iterator[Finding]:
    """A later chip of a family, of no lower power, has more bandwidth or more peak; small siblings draw less."""
    for chip in chips:
        for older in known:
            if _follows(chip, older) and _bandwidth(chip) < _bandwidth(older) and _best_peak(chip) < _best_peak(older):
                yield _error(chip, "year", f"newer than {older.id}, yet with less bandwidth and less peak: check both")


def _follows(chip: Hardware, older: Hardware) -> bool:
    if not chip.family or chip.family != older.family or chip.hypothetical != older.hypothetical:
        return False
    if chip.year is None or older.year is None or chip.year <= older.year:
        return False
    power, before = chip.value("power.tdp"), older.value("power.tdp")
    known = _bandwidth(chip) and _bandwidth(older) and _best_peak(chip) and _best_peak(older)
    return bool(known) and (power is None or before is None or power >= before)


def _bandwidth(chip: Hardware) -> float:
    return (chip.offchip.bandwidth_bytes_per_s or 0.0) if chip.offchip else 0.0


def _best_peak(chip: Hardware) -> float:
    return max((p.flop_per_s for p in chip.peaks if p.flop_per_s is not None), default=0.0)


def _close(value: float, expected: float) -> bool:
    """Within 5 %: datasheets round, but never that far."""
    return abs(value - expected) <= 0.05 * expected


def _round_in(value: float, unit: float) -> bool:
    """A whole multiple of a unit, or one with up to two decimals, as a datasheet prints it."""
    hundredths = value / unit * 100
    return abs(hundredths - round(hundredths)) < 1e-6


def _key(dtype: str, unit: str) -> str:
    return f"peak.{dtype}.{unit}"


def _error(chip: Hardware, key: str, message: str) -> Finding:
    return Finding(chip=chip.id, severity="error", key=key, message=message)


def _warning(chip: Hardware, key: str, message: str) -> Finding:
    return Finding(chip=chip.id, severity="warning", key=key, message=message)


CHIP_CHECKS: tuple[Callable[[Hardware], Iterator[Finding]], ...] = (
    _sources,
    _ridges,
    _fp32_is_not_int8,
    _narrower_is_no_slower,
    _sparse_is_twice_dense,
    _peak_is_units_times_clock,
    _offchip_in_decimal,
    _caches_in_binary,
    _inner_is_no_slower,
)
SET_CHECKS: tuple[Callable[[tuple[Hardware, ...], tuple[Hardware, ...]], Iterator[Finding]], ...] = (
    _newer_is_no_worse,
)
