"""Values of a series in, the axis that they are drawn on out: what the sparkline and the picture must agree on."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rooflens.report.blocks import Series
from rooflens.units import show

_ROOM = 0.1  # of the values: less than that is no mountain
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """`cut`: it does not start at 0, and must say so."""

    low: float
    high: float
    cut: bool

    def share(self, value: float) -> float:
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def scale_of(series: Series) -> Scale:
    """From 0, except where all values lie so near together that nobody would see them move: then a tenth around them at
    least, so that noise stays small."""
    values = [v for p in series.points for v in (p.value, p.low, p.high) if v is not None and math.isfinite(v)]
    least, most = min(values, default=0.0), max(values, default=0.0)
    if 0 < most < 2 * least:
        return Scale(low=least * (1 - _ROOM / 2), high=most * (1 + _ROOM / 2), cut=True)
    low, high = min(0.0, least), max(0.0, most)
    return Scale(low=low, high=high if high > low else low + 1.0, cut=False)


def ticks(scale: Scale, most: int = 6) -> tuple[float, ...]:
    """Round values within the scale, evenly apart."""
    step = _step((scale.high - scale.low) / most)
    first, last = math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9)
    return tuple(k * step for k in range(first, last + 1))


def _step(least: float) -> float:
    decade = 10.0 ** math.floor(math.log10(least))
    return next(decade * nice for nice in _NICE if decade * nice >= least * (1 - 1e-9))


def tick_texts(values: Iterable[float], unit: str) -> list[str]:
    """With as many digits as keep them apart."""
    shown = list(values)
    for digits in range(4, 16):
        texts = [show(v, unit, digits) for v in shown]
        if len(set(texts)) == len(texts):
            break
    return texts
