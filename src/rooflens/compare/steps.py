"""Times of one benchmark in the order of its runs in, the levels that they lie on out, and the steps between levels.

Pure maths: why it is done this way, and how often it is wrong, is in docs/bench-history.md. Everything is judged in
logarithms, where twice as slow and twice as fast are equally far.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from statistics import median

LEAST = 3  # runs in a level: fewer are outliers
THRESHOLD = 0.05
_PENALTY = 6.0  # what a further level must explain, in typical deviations of one run
_OUTLYING = 3.0  # typical deviations
_NEAR = 50  # runs on either side that judge a step: what is long ago says little about it
_LEAST_DRIFT = 8  # runs: of fewer no slope is beyond doubt
_BETTER = 0.9  # a slope is believed where its distances are less than this share of those of two levels
# How far two draws of a normal distribution of deviation 1 are apart: the median and the mean.
_OF_PAIRS, _MEAN_OF_PAIRS = 0.9539, 1.1284
Z99, Z999 = 2.5758293, 3.2905267  # 99 % and 99.9 % of the normal distribution lie within


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Places `first` to `last`, both in it. A level that drifts has different values at its ends."""

    first: int
    last: int
    start: float
    end: float

    @property
    def drifts(self) -> bool:
        return self.start != self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From the level that ends before the place `after` to the one that begins there: new over old, with the 99 %
    interval. `sure`: all of the interval lies beyond the threshold."""

    after: int
    ratio: float
    low: float
    high: float
    sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    levels: tuple[Level, ...]
    steps: tuple[Step, ...]


def levels_of(times: Sequence[float], threshold: float = THRESHOLD, floor: float = 0.0) -> Levels:
    """`floor`: how far, as a share, one run's time is uncertain by itself; it deviates by no less."""
    raw = [math.log(t) for t in times]
    logs = _calmed(raw)
    limit = math.log1p(threshold)
    bounds = cut(logs, max(_neighbours_deviate(logs), floor, limit / 10))
    pair_at = cache(partial(_pair, raw, logs))  # most pairs stay as they are where another one is joined
    while True:
        deviation = max(_deviation(logs, bounds), floor)
        pairs = [pair_at(*around) for around in zip(bounds, bounds[1:], bounds[2:], strict=False)]
        weak = [(abs(pair.shift), pair.at) for pair in pairs if not _holds(pair, deviation, limit)]
        if not weak:
            break
        bounds.remove(min(weak)[1])
    levels = tuple(_level(logs, a, b, limit) for a, b in pairwise(bounds))
    return Levels(levels=levels, steps=tuple(_step(pair, deviation, limit) for pair in pairs))


def _calmed(logs: Sequence[float]) -> list[float]:
    """Outliers, one or two among five, are brought near to the median of the five; steps and slopes stay as they are."""
    most = _OUTLYING * _neighbours_deviate(logs)
    last = max(0, len(logs) - 5)
    middles = (median(logs[min(max(0, k - 2), last) :][:5]) for k in range(len(logs)))
    return [min(max(y, middle - most), middle + most) for y, middle in zip(logs, middles, strict=True)]


def _neighbours_deviate(logs: Sequence[float]) -> float:
    """Between neighbours there is seldom a step, and hardly any drift."""
    distances = [abs(b - a) for a, b in pairwise(logs)]
    return median(distances) / _OF_PAIRS if distances else 0.0


def cut(logs: Sequence[float], deviation: float) -> list[int]:
    """Where levels begin, and the end: least absolute deviations in all, with a price for each further level."""
    count = len(logs)
    if count < 2 * LEAST:
        return [0, count] if count else [0]
    price = _PENALTY * deviation
    best, begun = [0.0] + [math.inf] * count, [0] * (count + 1)
    for first in range(count - LEAST + 1):
        if best[first] == math.inf:
            continue
        for end, cost in enumerate(_running_cost(logs[first:]), first + 1):
            if end - first >= LEAST and best[first] + cost + price < best[end]:
                best[end], begun[end] = best[first] + cost + price, first
    bounds = [count]
    while bounds[-1]:
        bounds.append(begun[bounds[-1]])
    return bounds[::-1]


def _running_cost(logs: Sequence[float]) -> Iterator[float]:
    """Sum of the distances from the median, of the first, the first two, and so on: a heap for either half."""
    below: list[float] = []
    above: list[float] = []
    below_sum = above_sum = 0.0
    for y in logs:
        moved = -heapq.heappushpop(below, -y)
        heapq.heappush(above, moved)
        below_sum, above_sum = below_sum + y - moved, above_sum + moved
        if len(above) > len(below):
            moved = heapq.heappop(above)
            heapq.heappush(below, -moved)
            below_sum, above_sum = below_sum + moved, above_sum - moved
        middle = -below[0]
        yield max(0.0, (above_sum - middle * len(above)) + (middle * len(below) - below_sum))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two levels side by side: how far they are apart, by how much the deviation of a run makes that uncertain, and whether
    their runs look like two levels at all."""

    at: int
    shift: float
    error: float
    degrees: int
    believable: bool


def _pair(raw: Sequence[float], logs: Sequence[float], first: int, at: int, end: int) -> _Pair:
    before, behind = logs[max(first, at - _NEAR) : at], logs[at : min(end, at + _NEAR)]
    return _Pair(
        at=at,
        shift=median(b - a for a in before for b in behind),
        error=math.sqrt(1 / len(before) + 1 / len(behind)),
        degrees=len(before) + len(behind) - 2,
        believable=_apart(raw[first:at], raw[at:end]) and not _is_line(before, behind),
    )


def _holds(pair: _Pair, deviation: float, limit: float) -> bool:
    """The place was sought among all others, so that what chance does once in a hundred times is no proof."""
    return pair.believable and abs(pair.shift) >= max(limit, student(pair.degrees, Z999) * deviation * pair.error)


def _step(pair: _Pair, deviation: float, limit: float) -> Step:
    room = student(pair.degrees, Z99) * deviation * pair.error
    ratio, low, high = (math.exp(pair.shift + r) for r in (0, -room, room))
    return Step(after=pair.at, ratio=ratio, low=low, high=high, sure=abs(pair.shift) - room > limit)


def _apart(before: Sequence[float], behind: Sequence[float]) -> bool:
    """As many runs as make a level lie on its side of the middle, on both sides: two outliers and a bystander are none."""
    old, new = median(before), median(behind)
    middle, up = (old + new) / 2, new > old
    return all(sum((y > middle) == side for y in part) >= LEAST for part, side in ((before, not up), (behind, up)))


def _deviation(logs: Sequence[float], bounds: Sequence[int]) -> float:
    """Of one run from its level, by how far two runs of one level are apart on average: no step moves it, and outliers
    have been calmed."""
    near = [
        abs(logs[k] - logs[j])
        for first, end in pairwise(bounds)
        for j in range(first, end)
        for k in range(j + 1, min(end, j + _NEAR))
    ]
    return sum(near) / len(near) / _MEAN_OF_PAIRS if near else 0.0


def student(degrees: int, z: float) -> float:
    """Of Student's t as many lie within plus and minus this as of the normal distribution within `z`: Abramowitz and
    Stegun 26.7.5, which from 4 degrees on is within 2 %."""
    v = degrees
    terms = (
        (z**3 + z) / (4 * v),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3),
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4),
    )
    return z + sum(terms)


def _is_line(before: Sequence[float], behind: Sequence[float]) -> bool:
    """A slope explains both sides better than two levels do: what creeps has no step."""
    both = [*before, *behind]
    return _line(both)[2] < _BETTER * (_cost(before) + _cost(behind))


def _cost(logs: Sequence[float]) -> float:
    middle = median(logs)
    return sum(abs(y - middle) for y in logs)


def _line(logs: Sequence[float]) -> tuple[float, float, float]:
    """Theil and Sen's: slope, value at the first place, and the sum of the distances from it."""
    count = len(logs)
    slope = median((logs[k] - logs[j]) / (k - j) for j in range(count) for k in range(j + 1, count))
    rests = [y - slope * k for k, y in enumerate(logs)]
    start = median(rests)
    return slope, start, sum(abs(r - start) for r in rests)


def _level(logs: Sequence[float], first: int, end: int, limit: float) -> Level:
    inside = logs[first:end]
    middle = math.exp(median(inside))
    ends = _drift(inside, limit) or (middle, middle)
    return Level(first=first, last=end - 1, start=ends[0], end=ends[1])


def _drift(logs: Sequence[float], limit: float) -> tuple[float, float] | None:
    """The values at both ends where a slope is beyond doubt, matters, and explains more than one step would."""
    if len(logs) < _LEAST_DRIFT or abs(_trend(logs)) < Z999:
        return None
    slope, start, cost = _line(logs)
    if abs(slope) * (len(logs) - 1) < limit or cost >= _BETTER * _best_split(logs):
        return None
    return math.exp(start), math.exp(start + slope * (len(logs) - 1))


def _trend(logs: Sequence[float]) -> float:
    """Kendall's test: how many more pairs rise than fall, in deviations of that number where nothing moves."""
    count = len(logs)
    signs = sum((b > a) - (b < a) for j, a in enumerate(logs) for b in logs[j + 1 :])
    return signs / math.sqrt(count * (count - 1) * (2 * count + 5) / 18)


def _best_split(logs: Sequence[float]) -> float:
    ahead = list(_running_cost(logs))
    back = list(_running_cost(logs[::-1]))[::-1]
    return min(a + b for a, b in zip(ahead[LEAST - 1 :], back[LEAST:], strict=False))
