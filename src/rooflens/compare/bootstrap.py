"""A few numbers in, the interval that their median would lie in were they drawn again, out: the bootstrap, exactly.

Drawn again n times from n numbers, a median can only be one of them (or lie between two): how likely each is can be counted,
so that nothing has to be drawn, and the same runs always get the same verdict. With five numbers and a confidence of 99 %
or more the interval reaches from the least to the largest: five processes of either side must lie apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    middle: float
    low: float
    high: float


Chances = list[tuple[float, float]]  # value, how likely


def interval_of(values: Sequence[float], confidence: float = 0.99) -> Interval:
    return _interval(median(values), medians(values), confidence)


def ratio_interval(base: Sequence[float], new: Sequence[float], confidence: float = 0.99) -> Interval:
    """Of the medians of two sides that have nothing to do with each other."""
    below, above = medians(base), medians(new)
    chances = [(b / a, p * q) for a, p in below for b, q in above]
    return _interval(median(new) / median(base), chances, confidence)


def paired_interval(base: Sequence[float], new: Sequence[float], confidence: float = 0.99) -> Interval:
    """Of sides that were taken in turns: what the machine did to one of a pair it did to the other."""
    return interval_of([b / a for a, b in zip(base, new, strict=True)], confidence)


def medians(values: Sequence[float]) -> Chances:
    """Each median that drawing again can give, with its probability."""
    ordered, n = sorted(values), len(values)
    if n % 2:
        return [(x, p) for x, p in zip(ordered, _odd(n), strict=True)]
    return [((ordered[i] + ordered[j]) / 2, p) for (i, j), p in _even(n).items()]


def _odd(n: int) -> list[float]:
    """That the middle one of n draws is the k-th: at least half of them at most there, less what was so before."""
    half = n // 2 + 1
    reached = [_at_least(half, n, k / n) for k in range(n + 1)]
    return [b - a for a, b in pairwise(reached)]


def _even(n: int) -> dict[tuple[int, int], float]:
    """That the two in the middle are the i-th and the j-th: half of the draws at most i, the other half at least j."""
    half = n // 2
    found: dict[tuple[int, int], float] = {}
    for i in range(n):
        lower = ((i + 1) / n) ** half - (i / n) ** half
        for j in range(i + 1, n):
            upper = ((n - j) / n) ** half - ((n - j - 1) / n) ** half
            found[i, j] = math.comb(n, half) * lower * upper
    odd = [_at_least(half, n, k / n) for k in range(n + 1)]
    for i in range(n):
        # the lower of the two is i: what is left of it are the draws in which the upper one is i too
        apart = sum(p for (a, _), p in found.items() if a == i)
        found[i, i] = max(0.0, odd[i + 1] - odd[i] - apart)
    return found


def _at_least(k: int, n: int, p: float) -> float:
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


def _interval(middle: float, chances: Chances, confidence: float) -> Interval:
    tail = (1 - confidence) / 2
    rising = sorted(chances)
    low = _quantile(rising, tail)
    high = _quantile(rising[::-1], tail)
    return Interval(middle=middle, low=low, high=high)


def _quantile(chances: Chances, tail: float) -> float:
    """The first value at which more than the tail lies at or before it."""
    sums = accumulate(p for _, p in chances)
    return next((value for (value, _), s in zip(chances, sums, strict=True) if s > tail), chances[-1][0])
