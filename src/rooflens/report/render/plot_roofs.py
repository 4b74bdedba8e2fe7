"""A Sheet in, its roofs drawn and labelled along their lines out; or the outline of one chip among several."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rooflens.report.blocks import Roofline
from rooflens.report.render.declutter import Box, Room, Spot, along, centred
from rooflens.report.render.layout import Ceiling, Segment, ceilings, decades, ridges
from rooflens.report.render.sheet import FAINT, GREY, INK, Sheet, text_height, text_width

# Okabe and Ito's colours without the yellow, which is too light for a line.
CHIP_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
CHIP_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)))
BROADER = 2.0  # points: a line of one at each side of the white one
_NAME = 30


def chip_color(index: int) -> str:
    return CHIP_COLORS[index % len(CHIP_COLORS)]


def draw(sheet: Sheet, room: Room) -> list[str]:
    """Returns the labels that found no room on the chart."""
    drawn = ceilings(sheet.chart)
    for ceiling in drawn:
        for s in ceiling.segments:
            style: dict[str, Any] = (
                {"color": INK, "lw": 1.6} if s.main else {"color": FAINT, "lw": 0.8, "ls": (0, (4, 2))}
            )
            line(sheet, s, 2.5 if s.main else 2, ceiling.measured, **style)
    _draw_ridges(sheet, room)
    slopes, flats = ([c for c in reversed(drawn) if c.slanted is slanted] for slanted in (True, False))
    bare = [c for c in slopes if not _label(sheet, room, c)]
    room.dots += lines(sheet)  # after the slopes' labels, which lie along them
    bare += [c for c in flats if not _label(sheet, room, c)]
    return [_text(sheet, c) for c in bare]


def line(sheet: Sheet, s: Segment, order: float, measured: bool, **style: Any) -> None:
    """Of a measured roof a double line: a broad one with the paper's colour inside, whatever its own style."""
    sheet.axes.plot(
        (s.x0, s.x1), (s.y0, s.y1), zorder=order, **style | ({"lw": style["lw"] + BROADER} if measured else {})
    )
    if measured:
        sheet.axes.plot((s.x0, s.x1), (s.y0, s.y1), color="white", lw=style["lw"], zorder=order)


def lines(sheet: Sheet) -> list[Box]:
    """The pixels of slopes and ridges as small boxes, so that texts keep off them; flat roofs carry their labels."""
    strokes = [s for c in ceilings(sheet.chart) if c.slanted for s in c.segments]
    for ridge in ridges(sheet.chart):
        x = decades(ridge.intensity)
        strokes.append(Segment(x, sheet.chart.y_decades[0], x, ridge.y, False))
    return [box for stroke in strokes for box in _stroke(sheet, stroke)]


def _stroke(sheet: Sheet, s: Segment) -> tuple[Box, ...]:
    x, y = sheet.x(s.x0), sheet.y(s.y0)
    dx, dy = sheet.x(s.x1) - x, sheet.y(s.y1) - y
    return along(x, y, math.hypot(dx, dy), 4.0, math.atan2(dy, dx))


def _text(sheet: Sheet, ceiling: Ceiling) -> str:
    """Minor ones leave the unit to the axis, because they are many."""
    return f"{sheet.middle(ceiling.name, _NAME)} {ceiling.quantity if ceiling.main else ceiling.short}"


def _draw_ridges(sheet: Sheet, room: Room) -> None:
    """A dotted line down from each main ridge, with its intensity at the axis."""
    for ridge in ridges(sheet.chart):
        x, text = decades(ridge.intensity), f"ridge {ridge.intensity:.3g}"
        sheet.axes.plot((x, x), (sheet.chart.y_decades[0], ridge.y), color=GREY, lw=0.7, ls=":", zorder=1.9)
        width, height = text_width(text, 7), text_height(7)
        left = sheet.x(x) + 3
        spot = room.settle(
            Spot(left, y, (centred(left + width / 2, y + height / 2, width, height),)) for y in _rising(sheet)
        )
        if spot:
            sheet.write(spot.x, spot.y, text, 7, GREY)


def _rising(sheet: Sheet) -> list[float]:
    return [sheet.box[1] + 4 + 12 * i for i in range(4)]


def _label(sheet: Sheet, room: Room, ceiling: Ceiling) -> bool:
    if not ceiling.segments:
        return False
    size, color = (8, INK) if ceiling.main else (7, GREY)
    text = _text(sheet, ceiling)
    angle = _angle(sheet) if ceiling.slanted else 0.0
    spot = room.settle((_slope_spots if ceiling.slanted else _flat_spots)(sheet, ceiling, text, size))
    if spot:
        turned: dict[str, Any] = {"rotation": math.degrees(angle), "rotation_mode": "anchor"}
        turned["ha"] = "left" if ceiling.slanted else "right"
        sheet.write(spot.x, spot.y, text, size, color, **turned)
    return spot is not None


def _angle(sheet: Sheet) -> float:
    """Of one decade up in one decade right, on this sheet."""
    return math.atan2(sheet.y(1) - sheet.y(0), sheet.x(1) - sheet.x(0))


def _flat_spots(sheet: Sheet, ceiling: Ceiling, text: str, size: float) -> Iterator[Spot]:
    """Above the line from its right end to the left, then below it."""
    segment, width, height = ceiling.segments[-1], text_width(text, size), text_height(size)
    right, start = sheet.x(segment.x1) - 4, sheet.x(segment.x0)
    for side, y in enumerate((sheet.y(segment.y0) + 4, sheet.y(segment.y0) - height - 2)):
        for step in range(max(1, int((right - start) // 20))):
            x = right - 20 * step
            yield Spot(x, y, (centred(x - width / 2, y + height / 2, width, height),), 0.05 * step + 2.5 * side)


def _slope_spots(sheet: Sheet, ceiling: Ceiling, text: str, size: float) -> Iterator[Spot]:
    """Above the line, from its lower end up; then below it."""
    segment, angle = ceiling.segments[0], _angle(sheet)
    width, height = text_width(text, size), text_height(size)
    x0, y0 = sheet.x(segment.x0), sheet.y(segment.y0)
    length = math.hypot(sheet.x(segment.x1) - x0, sheet.y(segment.y1) - y0)
    for side, off in enumerate((4.0, -height - 3)):
        for step in range(max(1, int((length - width) // 15))):
            d = 12 + 15 * step
            x = x0 + d * math.cos(angle) - off * math.sin(angle)
            y = y0 + d * math.sin(angle) + off * math.cos(angle)
            middle = (x - height / 2 * math.sin(angle), y + height / 2 * math.cos(angle))
            yield Spot(x, y, along(*middle, width, height, angle), 0.02 * step + 0.3 * side)


def chip_lines(chart: Roofline) -> list[Ceiling]:
    """A chip's main roofs; all of them where none is marked."""
    if not any(roof.main for roof in chart.roofs):
        chart = replace(chart, roofs=tuple(replace(roof, main=True) for roof in chart.roofs))
    return [c for c in reversed(ceilings(chart)) if c.main]


def outline(sheet: Sheet, chart: Roofline, index: int) -> None:
    for ceiling in chip_lines(chart):
        for s in (s for s in ceiling.segments if s.main):
            style = CHIP_LINES[index % len(CHIP_LINES)]
            line(sheet, s, 2, ceiling.measured, color=chip_color(index), lw=1.8, ls=style)
