"""Times of single kernels beside what their roofs ask for in, what their class reaches of those roofs out: pure maths.

A class has an overhead, which its shortest kernels show, and a share of each roof, the median of those kernels that are
long enough to tell and are limited by it. How far its kernels lie from that is kept as a low and a high ratio.
"""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from rooflens.hardware.profile import Reach

LONG = 2.0  # times the overhead: shorter kernels say nothing about a roof
SIZES_APART = 4.0
FLOOR_SHARE = 0.9  # of the quickest time, that the overhead may at most be


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One kernel: the seconds that its work and its bytes would take at the roof, and those that it took."""

    op_class: str
    dtype: str
    layout: str
    work_s: float
    moved_s: float
    time_s: float


def reaches_of(timings: Iterable[Timing]) -> tuple[Reach, ...]:
    by_class: dict[tuple[str, str, str], list[Timing]] = {}
    for t in timings:
        by_class.setdefault((t.op_class, t.dtype, t.layout), []).append(t)
    return tuple(_reach(key, found) for key, found in sorted(by_class.items()))


def _reach(key: tuple[str, str, str], timings: list[Timing]) -> Reach:
    """The longer half says how much of a roof is reached, the shortest what comes on top, and once more without that."""
    first = _shares(sorted(timings, key=_roof)[len(timings) // 2 :], 0.0)
    overhead = _overhead(timings, first)
    work, moved = _shares(timings, overhead)
    low, high = _apart([t.time_s / max(_time(t, overhead, (work, moved)), _roof(t)) for t in timings])
    return Reach(
        op_class=key[0], dtype=key[1], layout=key[2], overhead_s=overhead, work_share=work, bytes_share=moved, low=low, high=high,
        points=len(timings),
    )  # fmt: skip


Shares = tuple[float | None, float | None]  # of the peak, of the bandwidth


def _roof(t: Timing) -> float:
    return max(t.work_s, t.moved_s)


def _time(t: Timing, overhead_s: float, shares: Shares) -> float:
    reach = Reach(
        op_class="",
        dtype="",
        layout="",
        overhead_s=overhead_s,
        work_share=shares[0],
        bytes_share=shares[1],
        low=1.0,
        high=1.0,
        points=0,
    )
    return reach.time_s(t.work_s, t.moved_s)


def _overhead(timings: list[Timing], shares: Shares) -> float:
    """Only sizes that differ can tell it from a share."""
    by_size = sorted(timings, key=_roof)
    if _roof(by_size[-1]) < SIZES_APART * _roof(by_size[0]):
        return 0.0
    spare = [t.time_s - _time(t, 0.0, shares) for t in by_size[: max(1, len(by_size) // 4)]]
    return max(0.0, min(statistics.median(spare), FLOOR_SHARE * min(t.time_s for t in timings)))


def _shares(timings: list[Timing], overhead_s: float) -> Shares:
    work = [(t.work_s, t.time_s) for t in timings if t.work_s > t.moved_s]
    moved = [(t.moved_s, t.time_s) for t in timings if t.work_s <= t.moved_s]
    return _share(work, overhead_s), _share(moved, overhead_s)


def _share(pairs: list[tuple[float, float]], overhead_s: float) -> float | None:
    """Of (seconds at the roof, seconds taken). Shorter kernels count only where there are no longer ones."""
    told = [p for p in pairs if p[1] > LONG * overhead_s] or [p for p in pairs if p[1] > overhead_s]
    shares = [roof / (taken - overhead_s) for roof, taken in told]
    return min(1.0, statistics.median(shares)) if shares else None


def _apart(ratios: list[float]) -> tuple[float, float]:
    if len(ratios) < 2:
        return min(1.0, ratios[0]), max(1.0, ratios[0])
    tenths = statistics.quantiles(ratios, n=10, method="inclusive")
    return min(1.0, tenths[0]), max(1.0, tenths[-1])
