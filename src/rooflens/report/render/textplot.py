"""A Roofline in, lines of styled text out: the log-log chart that a terminal and a code fence can show.

Lines are tuples of (text, style), so that whoever prints decides about colour. Numbers stand for dots; where several
fall on one place the heaviest is drawn and the others are told below, so that every number is found somewhere.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from rooflens.report.blocks import Dot, Roof, Roofline
from rooflens.report.render.columns import columns, cut_middle, wrapped
from rooflens.report.render.escape import NAME_LIMIT, safe_prose, safe_text
from rooflens.report.render.grid import Grid, Span
from rooflens.report.render.layout import (
    BOUNDS,
    Ceiling,
    Segment,
    ceilings,
    decades,
    heaviest_first,
    number_ranges,
    place,
    ridges,
)
from rooflens.units import show

Line = tuple[Span, ...]

NARROWEST = 40
_GUTTER = 6
_NAME = 28


@dataclass(frozen=True, slots=True)
class Signs:
    """The characters that a chart is made of."""

    flat: str
    double: str
    slope: str
    minor_flat: str
    minor_slope: str
    drop: str
    axis: str
    tick: str
    corner: str
    base: str
    mark: str
    hollow: str
    cut: str
    edges: tuple[tuple[str, str], ...]


_UNICODE = Signs(
    *("─", "═", "╱", "┄", "·", "┊", "│", "┤", "└", "─", "┴", "∘", "…"),
    (("left", "←"), ("right", "→"), ("top", "↑"), ("bottom", "↓")),
)
_ASCII = Signs(
    *("-", "=", "/", ".", ".", ":", "|", "+", "+", "-", "+", "o", "~"),
    (("left", "<"), ("right", ">"), ("top", "^"), ("bottom", "v")),
)


def draw(chart: Roofline, *, width: int = 80, unicode: bool = True) -> list[Line]:
    """No line is wider than `width`; below 40 columns there is no room for a chart and the roofs are listed."""
    signs = _UNICODE if unicode else _ASCII
    if width < NARROWEST:
        return _told("Roofs: " + "; ".join(c.label for c in reversed(ceilings(chart))), width, signs)
    empty = Grid(chart, width - _GUTTER - 1)
    grid = replace(empty, chart=_thinned(empty))
    drawn = ceilings(grid.chart)
    _draw_ridges(grid, signs)
    for ceiling in drawn:
        for segment in ceiling.segments:
            _draw_segment(grid, signs, segment, ceiling)
    _draw_members(grid, signs)
    merged = _draw_dots(grid, signs)
    named = {c.label for c in reversed(drawn) if any(_draw_label(grid, c, q, signs) for q in (c.quantity, c.short))}
    bare = [c.label for c in reversed(ceilings(chart)) if c.label not in named]
    told = [line for note in _notes(chart, merged, bare, signs) for line in _told(note, width, signs)]
    return [*_framed(grid, signs), *_axis(grid, signs), *told]


def _thinned(grid: Grid) -> Roofline:
    """Minor roofs that would lie on or next to the row of another are left to the notes: rows are coarse."""
    kept: list[Roof] = []
    drawable = (r for r in grid.chart.roofs if 0 < r.flop_per_s < math.inf)
    for roof in sorted(drawable, key=lambda r: (not r.main, -r.flop_per_s)):
        row = grid.row(decades(roof.flop_per_s))
        if roof.main or all(abs(row - grid.row(decades(k.flop_per_s))) > 1 or _same(roof, k) for k in kept):
            kept.append(roof)
    return replace(grid.chart, roofs=tuple(kept))


def _same(roof: Roof, other: Roof) -> bool:
    return (roof.flop_per_s, roof.main) == (other.flop_per_s, other.main)


def _draw_ridges(grid: Grid, signs: Signs) -> None:
    """A dotted line from each main ridge down to the axis parts the chart into its zones."""
    for ridge in ridges(grid.chart):
        for row in range(grid.row(ridge.y), grid.height):
            grid.put(row, grid.column(decades(ridge.intensity)), signs.drop, "minor")


def _draw_segment(grid: Grid, signs: Signs, segment: Segment, ceiling: Ceiling) -> None:
    """A measured roof is a double line; no character is a double slope, and its label says it."""
    flat = signs.double if ceiling.measured else signs.flat
    minor, main = (signs.minor_slope, signs.slope) if ceiling.slanted else (signs.minor_flat, flat)
    left, right = grid.column(segment.x0), grid.column(segment.x1)
    rise = (segment.y1 - segment.y0) / max(1, right - left)
    for column in range(left, right + 1):
        row = grid.row(segment.y0 + (column - left) * rise)
        grid.put(row, column, main if segment.main else minor, "main" if segment.main else "minor")


def _draw_dots(grid: Grid, signs: Signs) -> dict[int, list[int]]:
    """Heaviest first; who finds the place taken is told with the one that has it: drawn number -> other numbers."""
    owners: dict[tuple[int, int], int] = {}
    merged: dict[int, list[int]] = {}
    for dot in heaviest_first(grid.chart.dots):
        row, first, text = _spot(grid, signs, dot)
        near = range(first - 1, first + len(text) + 1)  # a gap, so that 1 beside 2 is not read as 12
        owner = next((owners[row, c] for c in near if (row, c) in owners), None)
        if owner is not None:
            merged.setdefault(owner, []).append(dot.number)
            continue
        grid.put(row, first, text, dot.bound if dot.bound in BOUNDS else "unknown")
        grid.take(row, first, len(text))
        owners |= {(row, c): dot.number for c in range(first, first + len(text))}
    return merged


def _draw_members(grid: Grid, signs: Signs) -> None:
    """Where the ops that a dot was fused from would stand alone; dots and labels go over them."""
    for arrow in grid.chart.arrows:
        x, y = decades(arrow.intensity), decades(arrow.flop_per_s)
        (left, right), (low, high) = grid.chart.x_decades, grid.chart.y_decades
        if left <= x <= right and low <= y <= high:
            grid.put(grid.row(y), grid.column(x), signs.hollow, "minor")


def _spot(grid: Grid, signs: Signs, dot: Dot) -> tuple[int, int, str]:
    """Row, first column and text of a dot; outside the axes it is an arrow at the border with its number."""
    at, number = place(grid.chart, dot), str(dot.number)
    arrow = dict(signs.edges).get(at.edge, "")
    text = number + arrow if at.edge == "right" else arrow + number
    first = grid.column(at.x) - (len(text) - 1) // 2
    return grid.row(at.y), min(max(0, first), grid.width - len(text)), text


def _draw_label(grid: Grid, ceiling: Ceiling, quantity: str, signs: Signs) -> bool:
    """On or beside its own line, where neither a dot nor another label is; False where there is no such place."""
    name = cut_middle(safe_text(ceiling.name, NAME_LIMIT, ascii_only=signs is _ASCII), _NAME, signs.cut)
    text = f" {name} {quantity} "
    if not ceiling.segments or columns(text) != len(text):  # wide characters do not fit single cells
        return False
    spots = _slope_spots(grid, ceiling, len(text)) if ceiling.slanted else _flat_spots(grid, ceiling, len(text))
    for row, column, on_line in spots:
        if grid.free(row, column, len(text)) if on_line else grid.blank(row, column, len(text)):
            grid.put(row, column, text, "main" if ceiling.main else "minor")
            grid.take(row, column, len(text))
            return True
    return False


def _flat_spots(grid: Grid, ceiling: Ceiling, length: int) -> Iterator[tuple[int, int, bool]]:
    """On the line from its right end to the left, then above it, also beyond its left end, then below it."""
    segment = ceiling.segments[-1]
    row, left, right = grid.row(segment.y0), grid.column(segment.x0), grid.column(segment.x1)
    for beside, first in ((row, left + 2), (row - 1, left - length // 2), (row + 1, left + 2)):
        for column in range(right - length, first - 1, -1):
            yield beside, column, beside == row


def _slope_spots(grid: Grid, ceiling: Ceiling, length: int) -> Iterator[tuple[int, int, bool]]:
    """Left of the line, from its upper end down; then right of it."""
    segment = ceiling.segments[0]
    rows = range(grid.row(segment.y1) + 1, grid.row(segment.y0) + 1)
    at = {row: grid.column(segment.x0 + grid.height_of(row) - segment.y0) for row in rows}
    yield from ((row, column - length - 2, False) for row, column in at.items())
    yield from ((row, column + 4, False) for row, column in at.items())


def _framed(grid: Grid, signs: Signs) -> list[Line]:
    low, high = grid.chart.y_decades
    ticks = {grid.row(k): _tick(k) for k in range(low, high + 1)}
    lines: list[Line] = [(("FLOP/s", "minor"),)]
    for row, cells in enumerate(grid.cells):
        sign = signs.tick if row in ticks else signs.axis
        lines.append(((f"{ticks.get(row, ''):>{_GUTTER}}{sign}", "minor"), *_runs(cells)))
    return lines


def _tick(decade: int) -> str:
    text = show(10.0**decade, "")
    return text if len(text) <= _GUTTER else f"{10.0**decade:.0e}"


def _runs(cells: list[Span]) -> Iterator[Span]:
    for style, run in groupby(cells, key=lambda cell: cell[1]):
        yield "".join(c for c, _ in run), style


def _axis(grid: Grid, signs: Signs) -> list[Line]:
    """The lower axis, its decades, and the ridges with the unit."""
    left, right = grid.chart.x_decades
    at = {grid.column(k): f"{10.0**k:g}" for k in range(left, right + 1)}
    base = "".join(signs.mark if c in at else signs.base for c in range(grid.width))
    marks = {grid.column(decades(r.intensity)): f"{r.intensity:.3g}" for r in ridges(grid.chart)}
    unit = {grid.width - 5: "FLOP/byte"}
    rows = [" " * _GUTTER + signs.corner + base, " " * (_GUTTER + 1) + _spread(grid.width, at)]
    rows.append(f"{'ridge' if marks else '':<{_GUTTER}} " + _spread(grid.width, unit | marks))
    return [((row, "minor"),) for row in rows]


def _spread(width: int, texts: dict[int, str]) -> str:
    """Each text centred on its column, as far as there is room; the earlier ones first."""
    row = [" "] * width
    for column, text in texts.items():
        first = min(max(0, column - (len(text) - 1) // 2), width - len(text))
        if first >= 0 and all(c == " " for c in row[max(0, first - 1) : first + len(text) + 1]):
            row[first : first + len(text)] = text
    return "".join(row)


def _notes(chart: Roofline, merged: dict[int, list[int]], bare: list[str], signs: Signs) -> Iterator[str]:
    if ridges(chart):
        yield "Ridge: " + "; ".join(f"{r.intensity:.4g} FLOP/byte for {r.label}" for r in ridges(chart))
    if merged:
        yield "Same place: " + "; ".join(f"{n} also {number_ranges(merged[n])}" for n in sorted(merged))
    outside = [d.number for d in chart.dots if place(chart, d).edge]
    if outside:
        arrows = " ".join(sign for _, sign in signs.edges)
        yield f"{arrows} outside the axes: {number_ranges(outside)}"
    if bare:
        yield "Other roofs: " + "; ".join(bare)
    yield from chart.footnotes


def _told(note: str, width: int, signs: Signs) -> list[Line]:
    text = safe_prose(note, ascii_only=signs is _ASCII)
    return [((line, "minor"),) for line in wrapped(text, width)]


def plain(lines: Iterable[Line]) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines]
