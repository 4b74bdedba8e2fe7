"""Readings in, the ceilings of a machine out: the record that the report, the chip file and the picture are made of.

A point is one thing that was run, with its raw samples; a ceiling is what the points say of a level or a unit. Where
there is none, `why` says what for.
"""

from dataclasses import dataclass

from rooflens.benches.gpu import Clocks, DeviceFacts
from rooflens.benches.host import HostFacts
from rooflens.benches.rounds import quick_s
from rooflens.benches.sampling import Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthPoint:
    """A pass of a kernel over arrays of `bytes` in all, which is also what it moves, as STREAM counts: each read and
    each write that the program names; lines that a cache fetches before it overwrites them are not counted."""

    kernel: str
    bytes: int
    threads: int | None  # None on a device
    samples: Samples

    @property
    def bandwidth_bytes_per_s(self) -> float | None:
        quick = quick_s(self.samples)
        return self.bytes / quick if quick else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmPoint:
    """A product of an m x k and a k x n matrix: 2 m n k operations."""

    dtype: str
    library: str
    m: int
    n: int
    k: int
    threads: int | None  # None on a device
    samples: Samples

    @property
    def flop_per_s(self) -> float | None:
        quick = quick_s(self.samples)
        return 2 * self.m * self.n * self.k / quick if quick else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelCeiling:
    """`capacity_bytes` and the bandwidth are of all threads together."""

    level: str
    bandwidth_bytes_per_s: float | None
    one_core_bandwidth_bytes_per_s: float | None
    capacity_bytes: int | None
    lower_bound: bool
    spread: float | None
    kernel: str | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakCeiling:
    """`absent`: there is no such unit at all, as opposed to one that was not measured."""

    dtype: str
    unit: str
    flop_per_s: float | None
    one_core_flop_per_s: float | None = None
    spread: float | None = None
    how: str = ""
    why: str = ""
    absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Seconds for each launch of something too small to take time itself."""

    eager_s: float | None = None
    graph_s: float | None = None
    eager_why: str = ""
    graph_why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Everything that a run of `rooflens machine` found; `date` is in UTC."""

    device: str  # cpu | cuda
    name: str
    date: str
    quick: bool
    fingerprint: str
    host: HostFacts
    cuda: DeviceFacts | None
    clocks: tuple[Clocks, ...]
    threads: int
    cpus: tuple[int, ...]
    levels: tuple[LevelCeiling, ...]
    peaks: tuple[PeakCeiling, ...]
    launch: Launch
    sweep: tuple[BandwidthPoint, ...]
    gemm: tuple[GemmPoint, ...]
    versions: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def fastest(points: tuple[GemmPoint, ...]) -> GemmPoint | None:
    """The point with the highest rate: of the quicker readings of each, never the luckiest one."""
    timed = [p for p in points if p.flop_per_s is not None]
    return max(timed, key=lambda p: p.flop_per_s or 0.0, default=None)


def rejected_share(samples: tuple[Samples, ...]) -> float:
    """Of all readings taken, how many did not count."""
    lost = sum(len(s.rejected) for s in samples)
    return lost / max(1, lost + sum(len(s.times_s) for s in samples))
