"""What a chip is: sourced facts in, peaks, memory levels and ridges out.

A chip is a flat list of facts (`memory.hbm.bandwidth`, `peak.bf16.matrix`, …), so that a file, `with KEY=VALUE` and a
sweep all change a chip in the same way. The typed views below are derived once, when the record is built.
"""

import hashlib
from dataclasses import dataclass, field, replace

from rooflens import units
from rooflens.errors import HardwareError, SyntaxFault, nearest
from rooflens.hardware.profile import Profile

KINDS = ("gpu", "systolic", "tile", "cpu", "line-buffer")
DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4")
UNITS = ("matrix", "vector")
OFFCHIP = ("dram", "hbm", "gddr", "lpddr")
LEVELS = ("l1", "l2", "l3", "shared", "vmem", "scratchpad", *OFFCHIP)

# The last part of a key says what may stand there; `*` stands for a name from the list beside it.
SCHEMA: dict[tuple[str, ...], str] = {
    ("peak", "*", "matrix"): "flop_per_s",
    ("peak", "*", "vector"): "flop_per_s",
    ("peak", "*", "matrix_sparse"): "flop_per_s",
    ("ops_per_clock", "*", "matrix"): "number",
    ("ops_per_clock", "*", "vector"): "number",
    ("memory", "*", "capacity"): "bytes",
    ("memory", "*", "bandwidth"): "bytes_per_s",
    ("memory", "*", "instances"): "count",
    ("memory", "*", "energy"): "j_per_byte",
    ("energy", "*", "matrix"): "j_per_flop",
    ("energy", "*", "vector"): "j_per_flop",
    ("units", "count"): "count",
    ("clock", "base"): "hz",
    ("clock", "boost"): "hz",
    ("clock", "peak"): "hz",
    ("power", "tdp"): "w",
    ("power", "idle"): "w",
    ("launch", "eager"): "s",
    ("launch", "graph"): "s",
    ("links", "*", "bandwidth"): "bytes_per_s",
    ("array", "rows"): "count",
    ("array", "cols"): "count",
    ("array", "count"): "count",
    ("sm", "registers"): "count",
    ("sm", "warps"): "count",
    ("sm", "shared"): "bytes",
    ("simd", "bits"): "count",
    ("simd", "ports"): "count",
    ("cost", "hour"): "usd",
}
_NAMES = {"peak": DTYPES, "ops_per_clock": DTYPES, "energy": DTYPES, "memory": LEVELS}
SMALLEST, LARGEST = 1e-30, 1e30  # beyond these, ratios of two values leave what a float holds
ZERO_ALLOWED = ("power.idle", "launch.eager", "launch.graph", "cost.hour")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value of a chip in SI units; `value` is None where the vendor publishes none or the chip has no such unit
    (`absent`), and `source` then says why."""

    key: str
    value: float | None
    source: str
    absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLevel:
    level: str
    bandwidth_bytes_per_s: float | None
    capacity_bytes: int | None
    lower_bound: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    dtype: str
    unit: str
    flop_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    id: str
    name: str
    vendor: str
    kind: str
    facts: tuple[Fact, ...]
    year: int | None = None
    family: str = ""
    unit_name: str = "unit"
    hypothetical: bool = False
    note: str = ""
    origin: str = ""
    profile: Profile | None = None  # what classes of ops reach of its roofs
    measured: bool = False  # its roofs were found by running on it, not read in a datasheet
    measured_on: str = ""
    fingerprint: str = ""
    lower_bounds: tuple[str, ...] = ()
    peaks: tuple[Peak, ...] = field(init=False)
    memory: tuple[MemoryLevel, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "peaks", _peaks(self.facts))
        object.__setattr__(self, "memory", _memory(self.facts, self.lower_bounds))

    @property
    def calibrated(self) -> bool:
        return self.profile is not None

    def fact(self, key: str) -> Fact | None:
        return next((f for f in self.facts if f.key == key), None)

    def value(self, key: str) -> float | None:
        found = self.fact(key)
        return found.value if found else None

    @property
    def offchip(self) -> MemoryLevel | None:
        return next((m for m in self.memory if m.level in OFFCHIP), None)

    def peak(self, dtype: str, unit: str) -> float | None:
        return next((p.flop_per_s for p in self.peaks if (p.dtype, p.unit) == (dtype, unit)), None)

    def has(self, dtype: str, unit: str) -> bool:
        """Is there such a unit at all, published or not?"""
        found = self.fact(f"peak.{dtype}.{unit}")
        return found is not None and not found.absent

    def launch_s(self, execution: str) -> float | None:
        """Of one kernel, in that execution mode."""
        return self.value("launch.graph" if execution == "graph" else "launch.eager")

    def ridge(self, dtype: str, unit: str) -> float | None:
        """FLOP/byte where that unit's roof meets the slope of the off-chip memory."""
        peak, level = self.peak(dtype, unit), self.offchip
        if peak is None or level is None or level.bandwidth_bytes_per_s is None:
            return None
        return peak / level.bandwidth_bytes_per_s


def _peaks(facts: tuple[Fact, ...]) -> tuple[Peak, ...]:
    found = {(p[1], p[2]): f.value for f in facts if (p := f.key.split("."))[0] == "peak" and p[2] in UNITS}
    dtypes = [d for d in DTYPES if (d, "matrix") in found or (d, "vector") in found]
    return tuple(Peak(dtype=d, unit=u, flop_per_s=found.get((d, u))) for d in dtypes for u in UNITS)


def _memory(facts: tuple[Fact, ...], lower_bounds: tuple[str, ...]) -> tuple[MemoryLevel, ...]:
    values = {tuple(f.key.split(".")[1:]): f.value for f in facts if f.key.startswith("memory.")}
    return tuple(_level(name, values, name in lower_bounds) for name in LEVELS if any(k[0] == name for k in values))


def _level(name: str, values: dict[tuple[str, ...], float | None], lower_bound: bool) -> MemoryLevel:
    """`capacity` is that of one instance (an SM's L1); the level holds all of them."""
    capacity, instances = values.get((name, "capacity")), values.get((name, "instances")) or 1.0
    return MemoryLevel(
        level=name,
        bandwidth_bytes_per_s=values.get((name, "bandwidth")),
        capacity_bytes=None if capacity is None else round(capacity * instances),
        lower_bound=lower_bound,
    )


def hardware_hash(hardware: Hardware) -> str:
    """Of the values alone: a better worded source is the same chip."""
    rows = sorted((f.key, f.value, f.absent) for f in hardware.facts)
    return hashlib.sha256(repr((hardware.kind, rows)).encode()).hexdigest()[:16]


def dimension_of(key: str) -> str:
    """The dimension that a key's value has, or a HardwareError that names the nearest keys."""
    parts = tuple(key.split("."))
    for pattern, dimension in SCHEMA.items():
        if len(pattern) == len(parts) and all(p in ("*", q) for p, q in zip(pattern, parts, strict=True)):
            _check_name(key, parts)
            return dimension
    raise HardwareError(f"{key}: unknown key.{nearest(key, known_keys())}")


def _check_name(key: str, parts: tuple[str, ...]) -> None:
    names = _NAMES.get(parts[0])
    if names is not None and parts[1] not in names:
        raise HardwareError(f"{key}: '{parts[1]}' is not one of {' '.join(names)}.{nearest(parts[1], names)}")


def known_keys() -> list[str]:
    return [
        ".".join(name if p == "*" else p for p in pattern)
        for pattern in SCHEMA
        for name in (_NAMES.get(pattern[0], ("*",)) if "*" in pattern else ("",))
    ]


def checked_value(key: str, raw: str | int | float) -> float:
    """A fact's value in SI units; NaN, negative, and zero and halves where they make no sense, are refused."""
    dimension = dimension_of(key)
    try:
        value = units.parse_as(raw, dimension)
    except (SyntaxFault, OverflowError) as error:
        raise HardwareError(f"{key}: {error}") from None
    if value < 0 or (value == 0 and key not in ZERO_ALLOWED):
        raise HardwareError(f"{key}: {raw} must be above 0: {units.EXAMPLES[dimension]}")
    if dimension == "count" and value % 1:
        raise HardwareError(f"{key}: {raw} is not a whole number: {units.EXAMPLES[dimension]}")
    if value and not SMALLEST <= value <= LARGEST:
        raise HardwareError(f"{key}: {raw} is no value of a machine: {units.EXAMPLES[dimension]}")
    return value


def with_fact(hardware: Hardware, key: str, value: float, source: str) -> Hardware:
    """The same chip with one value changed or added."""
    kept = tuple(f for f in hardware.facts if f.key != key)
    return replace(hardware, facts=(*kept, Fact(key=key, value=value, source=source)))
