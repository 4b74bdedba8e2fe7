"""A Sheet in, its arrows out: from where an op would stand by itself, hollow and small, to the unit that it runs in.

Both ends often lie on one slope, so that a straight line would hide in it: arrows bend below the roof.
"""

import math

from rooflens.report.blocks import Arrow, Dot
from rooflens.report.render.layout import Place, place
from rooflens.report.render.plot_dots import COLORS, MARKERS, area, bound, marker_size
from rooflens.report.render.sheet import GREY, Sheet

_BEND = 0.22
_START = 14.0  # square points of a hollow marker
_NEAREST = 6.0  # pixels: nothing to point at within them


def draw(sheet: Sheet) -> None:
    ends = {dot.number: dot for dot in sheet.chart.dots}
    drawn: set[tuple[float, float, int]] = set()  # members of one kind often stand on one spot
    for arrow in sheet.chart.arrows:
        start, end = place_of(sheet, arrow), ends[arrow.number]
        key = (start.x, start.y, arrow.number)
        if key not in drawn and not start.edge:
            drawn.add(key)
            _draw(sheet, arrow, start, end, len(drawn))


def place_of(sheet: Sheet, arrow: Arrow) -> Place:
    alone = Dot(
        number=arrow.number, label=arrow.label, intensity=arrow.intensity, flop_per_s=arrow.flop_per_s, share=None,
        bound="unknown",
    )  # fmt: skip
    return place(sheet.chart, alone)


def _draw(sheet: Sheet, arrow: Arrow, start: Place, end: Dot, count: int) -> None:
    from matplotlib.patches import FancyArrowPatch

    at, name = place(sheet.chart, end), bound(end)
    sheet.axes.scatter(
        [start.x], [start.y], s=marker_size(name, _START), facecolors="white", edgecolors=COLORS[name], linewidths=0.8,
        marker=MARKERS[name], zorder=4.5, gid=f"alone-{arrow.number}-{count}",
    )  # fmt: skip
    if math.hypot(sheet.x(at.x) - sheet.x(start.x), sheet.y(at.y) - sheet.y(start.y)) < _NEAREST:
        return
    radius = math.sqrt(marker_size(name, area(end)) / math.pi)
    sheet.axes.add_patch(
        FancyArrowPatch(
            (start.x, start.y), (at.x, at.y), connectionstyle=f"arc3,rad={_BEND}", arrowstyle="-|>", mutation_scale=6,
            color=GREY, alpha=0.45, lw=0.7, shrinkA=2.2, shrinkB=radius, zorder=2.7, gid=f"arrow-{arrow.number}-{count}",
        )
    )  # fmt: skip
