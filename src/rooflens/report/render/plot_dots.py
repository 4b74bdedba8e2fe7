"""A Sheet in, its dots out: area is the share of time, shape and colour are the bound, numbers are the table's."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rooflens.report.blocks import Dot, Roofline
from rooflens.report.render.declutter import Box, Room, Spot, centred
from rooflens.report.render.layout import BOUNDS, Place, heaviest_first, place
from rooflens.report.render.sheet import DPI, GREY, HEIGHT, INK, WIDTH, Sheet, text_height, text_width

# Okabe and Ito's colours; the shape says the same once more.
COLORS = {"memory": "#0072B2", "compute": "#D55E00", "launch": "#009E73", "unknown": "#CC79A7"}
MARKERS = {"memory": "o", "compute": "s", "launch": "^", "unknown": "D"}
_ARROWS = {"left": "<", "right": ">", "top": "^", "bottom": "v"}
# What a marker must be scaled by so that equal numbers have equal areas.
_AREAS = {"memory": 4 / math.pi, "compute": 1.0, "launch": 2.0, "unknown": 1.0}

AREA = 3000.0  # square points for all of the time
_SMALLEST, _LARGEST, _PLAIN = 16.0, 900.0, 30.0
_NUMBERED = 20
_SIZE = 7.0
_BADGE_GAP = 14.0


@dataclass(frozen=True, slots=True)
class Badge:
    """Dots outside the axes that share one arrow at the border: the heaviest gives its number."""

    at: Place
    dots: tuple[Dot, ...]


def area(dot: Dot) -> float:
    """Proportional to the share, but never invisible and never all of the chart."""
    return _PLAIN if dot.share is None else min(max(AREA * dot.share, _SMALLEST), _LARGEST)


def bound(dot: Dot) -> str:
    return dot.bound if dot.bound in BOUNDS else "unknown"


def marker_size(name: str, square_points: float) -> float:
    return square_points * _AREAS[name]


def boxes(sheet: Sheet) -> list[Box]:
    """The pixels that dots fill, which labels avoid."""
    inside = [(d, place(sheet.chart, d)) for d in sheet.chart.dots]
    return [centred(sheet.x(at.x), sheet.y(at.y), 2 * _radius(d), 2 * _radius(d)) for d, at in inside if not at.edge]


def draw(sheet: Sheet, room: Room) -> None:
    scatter(sheet, sheet.chart)
    for badge in _badges(sheet):
        _draw_badge(sheet, room, badge)
    for dot in heaviest_first(sheet.chart.dots)[:_NUMBERED]:
        at = place(sheet.chart, dot)
        if not at.edge:
            _draw_number(sheet, room, dot, at)


def scatter(sheet: Sheet, chart: Roofline, color: str = "") -> None:
    """The heaviest first, so that small dots lie on large ones."""
    for i, dot in enumerate(heaviest_first(chart.dots)):
        at, name = place(chart, dot), bound(dot)
        if at.edge and not color:
            continue
        look: dict[str, Any] = {"c": color or COLORS[name], "marker": _ARROWS.get(at.edge, MARKERS[name])}
        look |= {"alpha": 0.85, "edgecolors": "white", "linewidths": 0.6, "zorder": 3 + i / 1e4, "clip_on": False}
        gid = None if color else f"dot-{dot.number}"
        sheet.axes.scatter([at.x], [at.y], s=marker_size(name, area(dot)), gid=gid, **look)


def _radius(dot: Dot) -> float:
    return math.sqrt(area(dot) / math.pi) * DPI / 72


def _draw_number(sheet: Sheet, room: Room, dot: Dot, at: Place) -> None:
    """In the dot where it fits, else beside it, far off with a thin line."""
    x, y, text = sheet.x(at.x), sheet.y(at.y), str(dot.number)
    width, height = text_width(text, _SIZE), text_height(_SIZE)
    fits = math.hypot(width, height) / 2 <= _radius(dot) * 1.05
    inside = Spot(x, y, (centred(x, y, width, height),), -1.5)
    spot = room.settle([*([inside] if fits else []), *_around(x, y, _radius(dot), width, height)])
    if spot is None:
        return
    if math.hypot(spot.x - x, spot.y - y) > _radius(dot) + 16:
        _line(sheet, (x, y), (spot.x, spot.y))
    color = "white" if (spot.x, spot.y) == (x, y) else INK
    sheet.write(spot.x, spot.y, text, _SIZE, color, ha="center", va="center_baseline", zorder=6, weight="bold")


def _around(x: float, y: float, radius: float, width: float, height: float) -> Iterator[Spot]:
    """Eight directions, nearest first; the dot itself is always a little covered, which is the same for all."""
    for ring, gap in enumerate((2.0, 10.0, 20.0, 32.0)):
        for i in range(16):
            angle = math.pi * (0.25 + i / 8)
            dx = (radius + gap + width / 2) * math.cos(angle)
            dy = (radius + gap + height / 2) * math.sin(angle)
            yield Spot(x + dx, y + dy, (centred(x + dx, y + dy, width + 4, height),), 0.8 * ring + 0.02 * i)


def _line(sheet: Sheet, start: tuple[float, float], end: tuple[float, float]) -> None:
    from matplotlib.lines import Line2D

    xs, ys = (start[0] / WIDTH, end[0] / WIDTH), (start[1] / HEIGHT, end[1] / HEIGHT)
    sheet.figure.add_artist(Line2D(xs, ys, color=GREY, lw=0.5, zorder=2))


def _badges(sheet: Sheet) -> list[Badge]:
    """Neighbours at one border share a badge."""
    found: list[Badge] = []
    for dot in heaviest_first(sheet.chart.dots):
        at = place(sheet.chart, dot)
        if not at.edge:
            continue
        near = next((i for i, b in enumerate(found) if b.at.edge == at.edge and _near(sheet, b.at, at)), None)
        if near is None:
            found.append(Badge(at, (dot,)))
        else:
            found[near] = Badge(found[near].at, (*found[near].dots, dot))
    return found


def _near(sheet: Sheet, a: Place, b: Place) -> bool:
    return math.hypot(sheet.x(a.x) - sheet.x(b.x), sheet.y(a.y) - sheet.y(b.y)) < _BADGE_GAP


def _draw_badge(sheet: Sheet, room: Room, badge: Badge) -> None:
    first, at = badge.dots[0], badge.at
    marker, color = _ARROWS[at.edge], COLORS[bound(first)]
    sheet.axes.scatter([at.x], [at.y], s=60, c=color, marker=marker, clip_on=False, zorder=5, gid=f"dot-{first.number}")
    text = f"{first.number}" + (f" +{len(badge.dots) - 1}" if len(badge.dots) > 1 else "")
    x, y = sheet.x(at.x), sheet.y(at.y)
    room.texts.append(centred(x, y, 12, 12))
    spot = room.settle(_around(x, y, 6.0, text_width(text, _SIZE), text_height(_SIZE)))
    if spot:
        sheet.write(spot.x, spot.y, text, _SIZE, INK, ha="center", va="center_baseline", zorder=6, weight="bold")
