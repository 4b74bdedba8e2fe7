"""A Roofline in, lines and places in decades out: what the text plot and the picture must agree on.

Coordinates are log10 of FLOP/byte and FLOP/s. A flat roof starts where the main memory's slope reaches it; the main
slope ends at the highest main roof. What goes beyond is drawn faint: every line joins another, none hangs in the air.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rooflens.report.blocks import Dot, Roof, Roofline, Slope
from rooflens.units import show

BOUNDS = ("memory", "compute", "launch", "unknown")


@dataclass(frozen=True, slots=True)
class Segment:
    x0: float
    y0: float
    x1: float
    y1: float
    main: bool


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One roof or slope; no segments where it lies outside the axes. `short` has no unit: the axis tells it."""

    name: str
    quantity: str
    short: str
    main: bool
    slanted: bool
    segments: tuple[Segment, ...]
    measured: bool = False

    @property
    def label(self) -> str:
        return f"{self.name} {self.quantity}"


@dataclass(frozen=True, slots=True)
class Ridge:
    label: str
    intensity: float
    y: float


@dataclass(frozen=True, slots=True)
class Place:
    """Where a dot goes; `edge` says at which border it is shown because it lies outside: left, right, top, bottom."""

    x: float
    y: float
    edge: str


def decades(value: float) -> float:
    """log10 that sends zero and NaN to the far left and infinity to the far right."""
    if not value > 0:
        return -math.inf
    return math.log10(value) if math.isfinite(value) else math.inf


def place(chart: Roofline, dot: Dot) -> Place:
    x, y = decades(dot.intensity), decades(dot.flop_per_s)
    (left, right), (low, high) = chart.x_decades, chart.y_decades
    edge = "left" if x < left else "right" if x > right else "bottom" if y < low else "top" if y > high else ""
    return Place(min(max(x, left), right), min(max(y, low), high), edge)


def heaviest_first(dots: Iterable[Dot]) -> list[Dot]:
    return sorted(dots, key=lambda d: (-(d.share or 0.0), d.number))


def main_slope(chart: Roofline) -> Slope | None:
    """The off-chip memory; where none is marked, the slowest."""
    usable = [s for s in chart.slopes if 0 < s.bytes_per_s < math.inf]
    return min(usable, key=lambda s: (not s.main, s.bytes_per_s), default=None)


def ridges(chart: Roofline) -> list[Ridge]:
    """Where each main roof meets the main memory's slope, left to right, as far as it lies inside the axes."""
    slope = main_slope(chart)
    if slope is None:
        return []
    levels = [(merge_labels(g), g[0].flop_per_s) for g in _levels(chart.roofs) if g[0].main]
    found = [Ridge(label, peak / slope.bytes_per_s, decades(peak)) for label, peak in levels]
    (left, right), (low, high) = chart.x_decades, chart.y_decades
    return [r for r in found if left <= decades(r.intensity) <= right and low <= r.y <= high]


def ceilings(chart: Roofline) -> list[Ceiling]:
    """Main ones last, so that whoever draws in this order has them on top."""
    found = [_flat(chart, level) for level in _levels(chart.roofs)]
    found += [_slanted(chart, s) for s in chart.slopes if 0 < s.bytes_per_s < math.inf]
    return sorted(found, key=lambda c: c.main)


def merge_labels(roofs: Iterable[Roof]) -> str:
    """Roofs of one height share one label: 'bf16 matrix', 'fp16 matrix' is 'bf16, fp16 matrix'."""
    by_unit: dict[str, list[str]] = {}
    for roof in roofs:
        first, _, rest = roof.label.partition(" ")
        by_unit.setdefault(rest, []).append(first)
    return ", ".join(f"{', '.join(dict.fromkeys(firsts))} {rest}".strip() for rest, firsts in by_unit.items())


def number_ranges(numbers: Iterable[int]) -> str:
    """1 3 4 5 is '1, 3-5'."""
    runs: list[list[int]] = []
    for n in sorted(numbers):
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}{'-' if len(r) > 2 else ', '}{r[-1]}" for r in runs)


def _levels(roofs: Iterable[Roof]) -> list[list[Roof]]:
    """Roofs by height, lowest first; a main one and a minor one of one height stay apart."""
    levels: dict[tuple[float, bool], list[Roof]] = {}
    for roof in roofs:
        if 0 < roof.flop_per_s < math.inf:
            levels.setdefault((roof.flop_per_s, roof.main), []).append(roof)
    return [levels[key] for key in sorted(levels)]


def _tops(chart: Roofline) -> tuple[float, float]:
    """Heights of the highest main roof and of the highest roof; the top of the axes where there is none."""
    heights = [decades(level[0].flop_per_s) for level in _levels(chart.roofs)]
    main = [decades(level[0].flop_per_s) for level in _levels(chart.roofs) if level[0].main]
    highest = max(heights, default=float(chart.y_decades[1]))
    return max(main, default=highest), highest


def _flat(chart: Roofline, level: list[Roof]) -> Ceiling:
    y, right = decades(level[0].flop_per_s), float(chart.x_decades[1])
    slope, fastest = main_slope(chart), max((s.bytes_per_s for s in chart.slopes), default=0.0)
    start = y - decades(slope.bytes_per_s) if slope else -math.inf
    parts = [Segment(start, y, right, y, level[0].main)]
    if level[0].main and slope and fastest > slope.bytes_per_s:
        parts.insert(0, Segment(y - decades(fastest), y, start, y, False))
    quantity, short = (show(level[0].flop_per_s, unit) for unit in ("FLOP/s", ""))
    return Ceiling(merge_labels(level), quantity, short, level[0].main, False, _clip(chart, parts), level[0].measured)


def _slanted(chart: Roofline, slope: Slope) -> Ceiling:
    rise, main = decades(slope.bytes_per_s), slope is main_slope(chart)
    top, highest = _tops(chart)
    start = min(float(chart.x_decades[0]), chart.y_decades[0] - rise)
    parts = [Segment(start, start + rise, top - rise, top, main)]
    if main and highest > top:
        parts.append(Segment(top - rise, top, highest - rise, highest, False))
    quantity = show(slope.bytes_per_s, "B/s")
    return Ceiling(slope.label, quantity, quantity, main, True, _clip(chart, parts), slope.measured)


def _clip(chart: Roofline, parts: list[Segment]) -> tuple[Segment, ...]:
    """Segments are flat or rise one decade in one decade, so that cutting is a shift."""
    (left, right), (low, high) = chart.x_decades, chart.y_decades
    kept = []
    for s in parts:
        flat = s.y0 == s.y1
        rise = s.y1 - s.x1
        x0 = max(s.x0, left) if flat else max(s.x0, left, low - rise)
        x1 = min(s.x1, right) if flat else min(s.x1, right, high - rise)
        if x0 < x1 and (not flat or low <= s.y0 <= high):
            kept.append(Segment(x0, s.y0, x1, s.y1, s.main) if flat else Segment(x0, x0 + rise, x1, x1 + rise, s.main))
    return tuple(kept)
