"""A Series in, a small SVG out that stands in a page: points with their bars, levels, steps, an axis that says where it
starts. Colours and fonts are the page's; what they tell is told by shape and text too.
"""

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass

from rooflens.report.blocks import Point, Series
from rooflens.report.render.columns import columns, cut_middle
from rooflens.report.render.escape import NAME_LIMIT, safe_text
from rooflens.report.render.scale import Scale, scale_of, tick_texts, ticks
from rooflens.report.render.sparkline import shown, span_text
from rooflens.units import show

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 88, 620, 28, 208
_COLUMN = 7.0  # pixels that a character takes at most, on average, at 12 px
_LABEL = 14
_GAP = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    scale: Scale
    count: int

    @property
    def apart(self) -> float:
        return (RIGHT - LEFT) / self.count

    def x(self, place: float) -> float:
        return LEFT + (place + 0.5) * self.apart

    def y(self, value: float) -> float:
        return BOTTOM - self.scale.share(value) * (BOTTOM - TOP)


def draw(series: Series, name: str, title: str, description: str) -> str:
    """`title` and `description` are markup already; `name` begins the ids and is the page's own."""
    frame = _Frame(scale=scale_of(series), count=max(1, len(series.points)))
    parts = [*_axes(series, frame), *_levels(series, frame), *_points(series, frame), *_steps(series, frame)]
    drawn = "\n".join(parts)
    head = f'<title id="{name}-title">{title}</title>\n<desc id="{name}-desc">{description}</desc>'
    known = f'role="img" aria-labelledby="{name}-title {name}-desc"'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" {known}>\n{head}\n{drawn}\n</svg>'


def _axes(series: Series, frame: _Frame) -> Iterator[str]:
    values = ticks(frame.scale)
    for value, text in zip(values, tick_texts(values, series.unit), strict=True):
        yield _stroke("grid", LEFT, frame.y(value), RIGHT, frame.y(value))
        yield _write(text, LEFT - 8, frame.y(value) + 4, "end")
    yield from _foot(series, frame)
    yield from _labels(series, frame)


def _foot(series: Series, frame: _Frame) -> Iterator[str]:
    """An axis that does not start at 0 is broken, and says so."""
    turns = f"M{LEFT} {TOP}V{BOTTOM}" + ("m-5 -6l10 -4m-10 0l10 -4" if frame.scale.cut else "")
    yield f'<path class="axis" d="{turns}"/>'
    yield _stroke("axis", LEFT, BOTTOM, RIGHT, BOTTOM)
    if frame.scale.cut:
        yield _write(f"axis starts at {show(frame.scale.low, series.unit, 3)}, not at 0", 4, HEIGHT - 8, "start")
    yield _write("oldest first", RIGHT, HEIGHT - 8, "end")


def _labels(series: Series, frame: _Frame) -> Iterator[str]:
    """The newest run has its label, and others as far as they stay apart from it and from each other."""
    names = [cut_middle(safe_text(p.label, NAME_LIMIT), _LABEL) for p in series.points]
    widest = _COLUMN * max(map(columns, names), default=0)
    stride = max(1, math.ceil((widest + _GAP) / frame.apart))
    half, end = widest / 2, float(WIDTH)
    for place in range(len(names) - 1, -1, -stride):
        x = min(max(frame.x(place), half + 2), WIDTH - half - 2)
        if x + half <= end:
            yield _stroke("axis", frame.x(place), BOTTOM, frame.x(place), BOTTOM + 4)
            yield _write(names[place], x, BOTTOM + 18, "middle")
            end = x - half - _GAP


def _levels(series: Series, frame: _Frame) -> Iterator[str]:
    for level in series.levels:
        left, right = frame.x(level.first - 0.35), frame.x(level.last + 0.35)
        yield _stroke("level", left, frame.y(level.start), right, frame.y(level.end))


def _points(series: Series, frame: _Frame) -> Iterator[str]:
    there = [(place, p) for place, p in enumerate(series.points) if math.isfinite(p.value)]
    path = " ".join(f"{_number(frame.x(place))},{_number(frame.y(p.value))}" for place, p in there)
    yield f'<polyline class="path" points="{path}"/>'
    radius = _number(min(3.5, max(1.5, frame.apart * 0.3)))
    for place, p in there:
        yield from _bar(frame, place, p)
        x, y = _number(frame.x(place)), _number(frame.y(p.value))
        yield f'<circle class="dot" cx="{x}" cy="{y}" r="{radius}"><title>{_told(series, p)}</title></circle>'


def _bar(frame: _Frame, place: int, p: Point) -> Iterator[str]:
    if p.low is not None and p.high is not None and math.isfinite(p.low) and math.isfinite(p.high):
        yield _stroke("bar", frame.x(place), frame.y(p.low), frame.x(place), frame.y(p.high))


def _told(series: Series, p: Point) -> str:
    span = span_text(series, p)
    parts = (p.label, shown(series, p.value) + (f" ({span})" if span else ""), p.note)
    return html.escape(", ".join(safe_text(part, NAME_LIMIT) for part in parts if part))


def _steps(series: Series, frame: _Frame) -> Iterator[str]:
    """How much, above each, as far as they stay apart; all of them are told below the chart."""
    end = 0.0
    for step in series.steps:
        x, way = frame.x(step.after - 0.5), "up" if step.up else "down"
        yield _stroke(f"step {way}{'' if step.sure else ' guess'}", x, TOP - 6, x, BOTTOM)
        sign = f"{'▲' if step.up else '▼'} {safe_text(step.short, _LABEL)}{'' if step.sure else '?'}"
        half = _COLUMN * columns(sign) / 2 + _GAP / 2
        middle = min(x, WIDTH - half)
        if middle - half >= end:
            yield _write(sign, middle, TOP - 11, "middle", way)
            end = middle + half


def _stroke(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    at = " ".join(f'{k}="{_number(v)}"' for k, v in (("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)))
    return f'<line class="{kind}" {at}/>'


def _write(text: str, x: float, y: float, anchor: str, kind: str = "") -> str:
    own = f' class="{kind}"' if kind else ""
    return f'<text{own} x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
