"""Axes bounds in, a matplotlib figure of 900 x 600 pixels out, with the scales that place things on it in pixels.

The axes are linear in decades: the logarithm is taken once, in `layout`, so that no value can break a log scale. Text
from outside goes through `Sheet.name`, and nothing here touches pyplot or the caller's settings.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflens.report.blocks import Roofline
from rooflens.report.render.columns import columns, cut_middle
from rooflens.report.render.declutter import Box
from rooflens.report.render.escape import safe_text
from rooflens.units import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT, DPI = 900, 600, 100
INK, GREY, FAINT = "#222222", "#666666", "#a0a0a0"
_LEFT, _TOP, _PANEL = 76, 546, 270


@dataclass(frozen=True, slots=True)
class Sheet:
    figure: "Figure"
    axes: "Axes"
    box: Box  # of the axes, in pixels from the lower left corner
    chart: Roofline
    known: frozenset[int] | None  # characters that the font can draw; None where the viewer's fonts do it

    def x(self, decade: float) -> float:
        low, high = self.chart.x_decades
        return self.box[0] + (decade - low) / max(1, high - low) * (self.box[2] - self.box[0])

    def y(self, decade: float) -> float:
        low, high = self.chart.y_decades
        return self.box[1] + (decade - low) / max(1, high - low) * (self.box[3] - self.box[1])

    def name(self, text: str, limit: int) -> str:
        """Safe to show; where the font has no such sign, spelt as an escape rather than as an empty box."""
        shown = safe_text(" ".join(text.split(" ")), limit)
        if self.known is None:
            return shown
        return safe_text("".join(c if ord(c) in self.known else _spelt(c) for c in shown), limit)

    def middle(self, text: str, width: int) -> str:
        """A name cut in the middle, as in the tables."""
        return cut_middle(self.name(text, 200), width)

    def write(self, x: float, y: float, text: str, size: float, color: str = INK, **options: Any) -> None:
        """Text at a pixel of the sheet."""
        self.figure.text(x / WIDTH, y / HEIGHT, text, fontsize=size, color=color, **options)


def _spelt(c: str) -> str:
    return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"


def text_width(text: str, size: float) -> float:
    """Pixels, rather too many than too few: the viewer of an SVG may have another font."""
    return columns(text) * 0.6 * size * DPI / 72


def text_height(size: float) -> float:
    return size * DPI / 72


def open_sheet(chart: Roofline, *, panel: bool, notes: int, known: frozenset[int] | None) -> Sheet:
    """`panel` leaves room on the right for the key, `notes` lines of it below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI)
    box = (_LEFT, 52 + 12 * notes, WIDTH - (_PANEL if panel else 18), _TOP)
    place = (box[0] / WIDTH, box[1] / HEIGHT, (box[2] - box[0]) / WIDTH, (box[3] - box[1]) / HEIGHT)
    sheet = Sheet(figure, figure.add_axes(place), box, chart, known)
    _scale(sheet)
    return sheet


def _scale(sheet: Sheet) -> None:
    axes, chart = sheet.axes, sheet.chart
    (left, right), (low, high) = chart.x_decades, chart.y_decades
    axes.set(xlim=(left, max(right, left + 1)), ylim=(low, max(high, low + 1)))
    axes.set_xticks(range(left, right + 1), [f"{10.0**k:g}" for k in range(left, right + 1)])
    axes.set_yticks(range(low, high + 1), [show(10.0**k, "").strip() for k in range(low, high + 1)])
    axes.set_xticks([k + math.log10(m) for k in range(left, right) for m in range(2, 10)], minor=True)
    axes.set_yticks([k + math.log10(m) for k in range(low, high) for m in range(2, 10)], minor=True)
    axes.set_xlabel("Operational intensity, FLOP/byte", fontsize=9, color=INK)
    axes.set_ylabel("Performance, FLOP/s", fontsize=9, color=INK)
    axes.tick_params(labelsize=8, colors=INK)
    axes.grid(True, which="major", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_color("#cccccc")
