"""A curve of bandwidth over size in, what it says of each memory level out: pure, and nothing is invented.

The system tells how large each level is; how fast it is comes from the data alone. The curve is cut where it steps (the
cut that leaves the least deviation, with a price on each piece), and a level has the bandwidth of the piece that lies
inside it. Where no piece does, the level has at best a lower bound.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

STEP = math.log(1.15)  # bandwidths closer than this are one plateau
PIECE_PRICE = 2 * STEP  # a piece of two points pays where it is two steps away from its neighbours
FILLED, CLEAR = 0.8, 1.5  # of a level: up to here it holds the data, from here on the level below it does not
LEAST = 2  # points that make a plateau
SAME = 0.9  # a level at least this share as fast as the one inside it was not what limited


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """`clear`: how many times the level inside it a size must be to show this one and not that one."""

    level: str
    bytes: int | None
    clear: float = CLEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """`bytes` are all that is touched, over and over."""

    bytes: int
    bandwidth_bytes_per_s: float
    spread: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """`spread`: of what lies on it, and of its own readings, the larger. `why` says what a lower bound or a missing
    value comes from."""

    level: str
    bandwidth_bytes_per_s: float | None
    lower_bound: bool
    spread: float | None = None
    points: int = 0
    why: str = ""


def plateaus(points: tuple[Point, ...], levels: tuple[Capacity, ...]) -> tuple[Plateau, ...]:
    """One for each level, innermost first; the last level holds everything."""
    ordered = tuple(sorted(points, key=lambda p: p.bytes))
    pieces = pieces_of(ordered)
    found: list[Plateau] = []
    for place, level in enumerate(levels):
        inner = levels[place - 1] if place else None
        found.append(_plateau(ordered, pieces, level, inner, found[-1] if found else None))
    return tuple(found)


def pieces_of(points: tuple[Point, ...]) -> tuple[range, ...]:
    """Where to cut the curve into level pieces: the cheapest way, each piece at its deviation and a price."""
    logs = [math.log(p.bandwidth_bytes_per_s) for p in points]
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(logs) + 1):
        best.append(min((best[start][0] + _deviation(logs[start:end]) + PIECE_PRICE, start) for start in range(end)))
    cuts, end = [len(logs)], len(logs)
    while end:
        end = best[end][1]
        cuts.append(end)
    return tuple(range(a, b) for a, b in zip(cuts[:0:-1], cuts[-2::-1], strict=True))


def _deviation(logs: list[float]) -> float:
    middle = statistics.median(logs)
    return sum(abs(x - middle) for x in logs)


def _plateau(
    points: tuple[Point, ...],
    pieces: tuple[range, ...],
    level: Capacity,
    inner: Capacity | None,
    before: Plateau | None,
) -> Plateau:
    inside = _inside(points, level, inner)
    if not inside:
        return Plateau(
            level=level.level, bandwidth_bytes_per_s=None, lower_bound=False, why="no size of the sweep lies in it"
        )
    shared = [tuple(i for i in piece if i in inside) for piece in pieces]
    longest = max(shared, key=lambda s: (len(s), -s[0] if s else 0))
    if len(longest) < LEAST or _drift([points[i] for i in longest]) > STEP:
        top = max((points[i] for i in inside), key=lambda p: p.bandwidth_bytes_per_s)
        return _bound(level, (top,), "the curve has no plateau there: the fastest size is a lower bound")
    kept = tuple(points[i] for i in longest)
    return _judged(level, kept, before)


def _drift(kept: list[Point]) -> float:
    """From one end of a piece to the other: a slope is no plateau."""
    half = max(1, len(kept) // 2)
    return abs(math.log(_middle(kept[:half]) / _middle(kept[-half:])))


def _inside(points: tuple[Point, ...], level: Capacity, inner: Capacity | None) -> frozenset[int]:
    """Sizes that this level holds and the one inside it does not."""
    low = level.clear * (inner.bytes or 0) if inner else 0.0
    high = math.inf if level.bytes is None else FILLED * level.bytes
    return frozenset(i for i, p in enumerate(points) if low <= p.bytes <= high)


def _judged(level: Capacity, kept: tuple[Point, ...], before: Plateau | None) -> Plateau:
    """The innermost level is never seen to limit: what calls it may be what is slow. Nor is one that nothing slowed."""
    if before is None:
        return _bound(level, kept, "nothing is faster: the loop may be what limits, and not this level")
    inner = before.bandwidth_bytes_per_s
    if inner is not None and _middle(kept) > SAME * inner:
        return _bound(
            level,
            kept,
            f"no slower than {before.level} in this kernel: the loop may be what limits, and not this level",
        )
    return _of(level, kept, lower_bound=False, why="")


def _bound(level: Capacity, kept: tuple[Point, ...], why: str) -> Plateau:
    return _of(level, kept, lower_bound=True, why=why)


def _of(level: Capacity, kept: tuple[Point, ...], *, lower_bound: bool, why: str) -> Plateau:
    rates = [p.bandwidth_bytes_per_s for p in kept]
    across = (max(rates) - min(rates)) / 2 / _middle(kept)
    return Plateau(
        level=level.level, bandwidth_bytes_per_s=_middle(kept), lower_bound=lower_bound,
        spread=max(across, *(p.spread for p in kept)), points=len(kept), why=why,
    )  # fmt: skip


def _middle(kept: Sequence[Point]) -> float:
    return statistics.median(p.bandwidth_bytes_per_s for p in kept)
