"""A Series in, a line of signs and what must be said beside it out: what a terminal and Markdown can show of it."""

import math
from collections.abc import Iterator
from statistics import median_low

from rooflens.report.blocks import Point, Series
from rooflens.report.render.scale import scale_of
from rooflens.units import show

_SIGNS, _PLAIN = "▁▂▃▄▅▆▇█", "_.-^"


def sparkline(series: Series, width: int, *, unicode: bool = True) -> str:
    """A sign a point, or the middle of several where there are more than fit; a bar where a step is."""
    signs, bar = (_SIGNS, "│") if unicode else (_PLAIN, "|")
    scale, begun = scale_of(series), {step.after for step in series.steps}
    each = max(1, math.ceil(len(series.points) / max(1, width - len(begun))))
    drawn = ""
    for first in range(0, len(series.points), each):
        places = range(first, min(first + each, len(series.points)))
        values = finite([series.points[k] for k in places])
        share = scale.share(median_low(values)) if values else 0.0
        sign = signs[min(len(signs) - 1, int(share * len(signs)))] if values else " "
        drawn += (bar if begun & set(places) else "") + sign
    return drawn


def sentences(series: Series) -> Iterator[str]:
    """The numbers behind the line, then what moved."""
    values = finite(series.points)
    if not values:
        yield "No values."
        return
    count = f"{len(values)} run{'s' * (len(values) != 1)}"
    ends = f"first {shown(series, values[0])}, last {shown(series, values[-1])}"
    yield f"{count}: {ends}, least {shown(series, min(values))}, most {shown(series, max(values))}."
    yield from told(series)


def told(series: Series) -> Iterator[str]:
    """Steps and slopes in words, and the notes."""
    for step in series.steps:
        yield f"Step {'up' if step.up else 'down'}{'' if step.sure else ', perhaps'}: {step.text}."
    yield from (level.text for level in series.levels if level.text)
    yield from series.notes


def finite(points: tuple[Point, ...] | list[Point]) -> list[float]:
    return [p.value for p in points if math.isfinite(p.value)]


def shown(series: Series, value: float) -> str:
    return show(value, series.unit)


def span_text(series: Series, point: Point) -> str:
    """What its bar spans; empty without one."""
    if point.low is None or point.high is None:
        return ""
    return f"{shown(series, point.low)} to {shown(series, point.high)}"
