"""Rooflines in, the bytes of an SVG or PNG out, the same in every process: one chart with its dots, or an overlay.

SVG keeps text as text; both keep names from being read as mathematics, markup or control characters.
"""

import warnings
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

from rooflens.errors import needs_extra
from rooflens.report.blocks import Roofline
from rooflens.report.render import plot_arrows, plot_dots, plot_panel, plot_roofs
from rooflens.report.render.columns import wrapped
from rooflens.report.render.declutter import Room
from rooflens.report.render.escape import safe_prose, safe_text
from rooflens.report.render.sheet import DPI, GREY, HEIGHT, WIDTH, Sheet, open_sheet, text_width

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 4
_NOTE_LINES = 4
_NOTE_COLUMNS = 165
# Settings that belong to the caller's session and not to a picture.
_SESSION = ("backend", "interactive", "toolbar", "timezone", "tk.", "webagg.", "date.epoch", "docstring", "savefig.dir")
_SETTINGS = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    "svg.fonttype": "none",
    "svg.hashsalt": "rooflens",
    "text.parse_math": False,
    "text.usetex": False,
}


def draw(chart: Roofline | tuple[Roofline, ...], fmt: Literal["svg", "png"], title: str = "") -> bytes:
    """A tuple draws each chip's main roofs in a colour and line style of its own, under a title for all of them."""
    try:
        import matplotlib
    except ImportError:
        raise needs_extra("matplotlib", "plot") from None
    settings: Any = {k: v for k, v in matplotlib.rcParamsDefault.items() if not k.startswith(_SESSION)}
    with matplotlib.rc_context(settings | _SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # an SVG is shown with the viewer's fonts
        known = _font_characters() if fmt == "png" else None
        sheet = _overlay(chart, known, title) if isinstance(chart, tuple) else _single(chart, known)
        return _saved(sheet.figure, fmt, sheet.name(sheet.chart.title, 120))


def _font_characters() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())


def _single(chart: Roofline, known: frozenset[int] | None) -> Sheet:
    notes = _note_lines(chart)
    sheet = open_sheet(chart, panel=bool(chart.dots), notes=len(notes), known=known)
    room = Room(sheet.box, plot_dots.boxes(sheet))
    bare = plot_roofs.draw(sheet, room)
    plot_arrows.draw(sheet)
    plot_dots.draw(sheet, room)
    if chart.dots:
        plot_panel.key(sheet)
    _write_frame(sheet, notes, bare)
    return sheet


def _overlay(charts: tuple[Roofline, ...], known: frozenset[int] | None, title: str) -> Sheet:
    """Axes that hold every chip's."""
    x = (min(c.x_decades[0] for c in charts), max(c.x_decades[1] for c in charts))
    y = (min(c.y_decades[0] for c in charts), max(c.y_decades[1] for c in charts))
    whole = tuple(replace(c, x_decades=x, y_decades=y) for c in charts)
    few = f"Rooflines of {', '.join(c.title for c in charts)}" if len(charts) < _NAMED else f"{len(charts)} rooflines"
    footnotes = tuple(dict.fromkeys(note for c in charts for note in c.footnotes))
    joined = Roofline(title=title or few, roofs=(), slopes=(), dots=(), x_decades=x, y_decades=y, footnotes=footnotes)
    notes = _note_lines(joined)
    sheet = open_sheet(joined, panel=True, notes=len(notes), known=known)
    plot_panel.chips(sheet, whole)
    for i, chart in enumerate(whole):
        plot_roofs.outline(sheet, chart, i)
        plot_dots.scatter(sheet, chart, plot_roofs.chip_color(i))
    _write_frame(sheet, notes, [])
    return sheet


def _note_lines(chart: Roofline) -> list[str]:
    told = [line for note in chart.footnotes for line in wrapped(safe_prose(note), _NOTE_COLUMNS)]
    return told[:_NOTE_LINES]


def _write_frame(sheet: Sheet, notes: list[str], bare: list[str]) -> None:
    """The title above; below, the notes and the roofs that found no room for their label."""
    title = sheet.name(sheet.chart.title, 90)
    size = 12 if text_width(title, 15) < WIDTH - sheet.box[0] else 8.5
    sheet.write(sheet.box[0], HEIGHT - 32, title, size, weight="bold")
    lines = ([f"Without a label: {'; '.join(bare)}"] if bare else []) + notes
    for i, line in enumerate(lines):
        sheet.write(12, 6 + 12 * (len(lines) - 1 - i), safe_text(sheet.name(line, 400), 170), 6.5, GREY)


def _saved(figure: "Figure", fmt: str, title: str) -> bytes:
    """Neither date nor version, so that the bytes depend on the chart alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    out, svg = BytesIO(), {"Date": None, "Creator": None, "Title": title}
    figure.set_canvas((FigureCanvasSVG if fmt == "svg" else FigureCanvasAgg)(figure))
    figure.savefig(out, format=fmt, dpi=DPI, metadata=svg if fmt == "svg" else {"Software": None})
    return out.getvalue()
