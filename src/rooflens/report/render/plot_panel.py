"""A Sheet in, the key at its right side out: what shapes and areas mean and who the heaviest dots are, or the chips.

A picture travels without its table, so it says which numbers are which layers.
"""

import math
from typing import Any

from rooflens.report.blocks import Dot, Roofline
from rooflens.report.render.columns import columns, cut_apart
from rooflens.report.render.escape import NAME_LIMIT
from rooflens.report.render.layout import BOUNDS, heaviest_first
from rooflens.report.render.plot_dots import AREA, COLORS, MARKERS, bound, marker_size
from rooflens.report.render.plot_roofs import BROADER, CHIP_LINES, chip_color, chip_lines
from rooflens.report.render.sheet import DPI, GREY, HEIGHT, WIDTH, Sheet

_LISTED = 20
_NAME = 28
_SHORTEST = 6
_STEP = 15
_TOP = HEIGHT - 62


def key(sheet: Sheet) -> None:
    left = sheet.box[2] + 18
    y = _bounds(sheet, left, float(_TOP), sheet.chart.dots)
    if any(d.share is not None for d in sheet.chart.dots):
        y = _sizes(sheet, left, y - 24)
    _heaviest(sheet, left, y - 24)


def _bounds(sheet: Sheet, left: float, y: float, dots: tuple[Dot, ...], color: str = "") -> float:
    """What the shapes mean; `color` where colours mean something else."""
    sheet.write(left, y, "Bound by", 8, weight="bold")
    for name in (b for b in BOUNDS if any(bound(d) == b for d in dots)):
        y -= _STEP
        _marker(sheet, left + 8, y + 4, name, 45, color)
        sheet.write(left + 22, y, f"{name} ({sum(bound(d) == name for d in dots)})", 8)
    return y


def _sizes(sheet: Sheet, left: float, y: float) -> float:
    sheet.write(left, y, "Area: share of time", 8, weight="bold")
    x = left + 8.0
    for share in (0.01, 0.05, 0.2):
        radius = math.sqrt(AREA * share / math.pi) * DPI / 72
        _marker(sheet, x + radius - 5, y - 24, "memory", AREA * share, "#999999")
        sheet.write(x + 2 * radius, y - 28, f"{share:.0%}", 8)
        x += 2 * radius + 36
    return y - 36


def _marker(sheet: Sheet, x: float, y: float, name: str, square_points: float, color: str = "") -> None:
    from matplotlib.lines import Line2D

    size = math.sqrt(marker_size(name, square_points))
    style: dict[str, Any] = {"marker": MARKERS[name], "markersize": size, "color": color or COLORS[name], "ls": ""}
    sheet.figure.add_artist(Line2D([x / WIDTH], [y / HEIGHT], markeredgecolor="white", markeredgewidth=0.6, **style))


def _heaviest(sheet: Sheet, left: float, y: float) -> None:
    """As many as there is room for, by weight; the rest is in the table."""
    dots = heaviest_first(sheet.chart.dots)
    listed = dots[: min(_LISTED, int((y - 30) // _STEP))]
    shares = any(d.share is not None for d in dots)
    sheet.write(left, y, "Heaviest" if shares and len(listed) < len(dots) else "Dots", 8, weight="bold")
    for dot, name in zip(listed, _named(sheet, [dot.label for dot in listed]), strict=True):
        y -= _STEP
        _entry(sheet, left, y, dot, name)
    if len(listed) < len(dots):
        sheet.write(left, y - _STEP, f"and {len(dots) - len(listed)} more", 7.5, GREY)


def _entry(sheet: Sheet, left: float, y: float, dot: Dot, name: str) -> None:
    sheet.write(left + 20, y, str(dot.number), 7.5, COLORS[bound(dot)], ha="right", weight="bold")
    sheet.write(left + 26, y, name, 7.5)
    if dot.share is not None:
        sheet.write(WIDTH - 14, y, f"{dot.share:.1%}", 7.5, ha="right")


def _named(sheet: Sheet, labels: list[str]) -> list[str]:
    """Of a unit the name, which tells it from others, before its pattern."""
    names = [label.partition(" ")[0] for label in labels]
    shown = cut_apart([sheet.name(name, NAME_LIMIT) for name in names], _NAME)
    return [_with_pattern(sheet, name, label.partition(" ")[2]) for name, label in zip(shown, labels, strict=True)]


def _with_pattern(sheet: Sheet, name: str, pattern: str) -> str:
    room = _NAME - columns(name) - 1
    return f"{name} {sheet.middle(pattern, room)}" if pattern and room >= _SHORTEST else name


def chips(sheet: Sheet, charts: tuple[Roofline, ...]) -> None:
    """Each chip's line, its name and its main roofs, and the shapes of their dots where there is room."""
    left, y = sheet.box[2] + 18, float(_TOP)
    for i, chart in enumerate(charts):
        roofs = chip_lines(chart)
        if y - 12 * len(roofs) < 20:
            sheet.write(left, y, f"and {len(charts) - i} more", 7.5, GREY)
            return
        _sample(sheet, left, y + 4, i, any(c.measured for c in roofs))
        sheet.write(left + 34, y, sheet.middle(chart.title, _NAME + 2), 8, weight="bold")
        for roof in roofs:
            y -= 12
            sheet.write(left + 34, y, sheet.middle(roof.label, _NAME + 12), 7, GREY)
        y -= 20
    dots = tuple(d for chart in charts for d in chart.dots)
    if dots and y - _STEP * len(BOUNDS) > 20:
        _bounds(sheet, left, y, dots, "#777777")


def _sample(sheet: Sheet, left: float, y: float, index: int, measured: bool) -> None:
    from matplotlib.lines import Line2D

    line: dict[str, Any] = {"color": chip_color(index), "ls": CHIP_LINES[index % len(CHIP_LINES)], "lw": 1.8}
    ends = [left / WIDTH, (left + 28) / WIDTH], [y / HEIGHT, y / HEIGHT]
    sheet.figure.add_artist(Line2D(*ends, **line | ({"lw": 1.8 + BROADER} if measured else {})))
    if measured:
        sheet.figure.add_artist(Line2D(*ends, color="white", lw=1.8))
