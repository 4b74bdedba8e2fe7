"""What the terminal and Markdown renderers promise: widths, each dot told, lines in their place, no name that acts."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflens.report.blocks import (
    Block,
    Column,
    Dot,
    Heading,
    Level,
    Paragraph,
    Point,
    Roof,
    Roofline,
    Series,
    Slope,
    Step,
    Table,
)
from rooflens.report.render import markdown, terminal
from rooflens.report.render.columns import columns, cut_apart, cut_middle, wrapped
from rooflens.report.render.escape import safe_text
from rooflens.report.render.grid import Grid
from rooflens.report.render.layout import ceilings, number_ranges, place, ridges

PEAKS = {"bf16 matrix": 989.4e12, "fp16 matrix": 989.4e12, "fp32 vector": 66.9e12, "fp64 vector": 33.5e12}
MAIN = ("bf16 matrix", "fp32 vector")
HBM = 3.35e12
EVIL = ("\x1b[31mred", "nul\0", "\u202egnp.exe", "\ud800", "</script>", '"><img onerror>', "{{7*7}}", "tab\tnew\nline")


def dot(number: int, intensity: float, flop_per_s: float, **others: object) -> Dot:
    given = {"label": f"layer{number}", "share": 0.01, "bound": "memory"} | others
    return Dot(number=number, intensity=intensity, flop_per_s=flop_per_s, **given)  # type: ignore[arg-type]


def h100(count: int = 68, seed: int = 1) -> Roofline:
    """Dots under two roofs as they come in practice: most of them lie exactly on the slope."""
    draw = random.Random(seed)
    dots = []
    for number in range(1, count + 1):
        peak = draw.choice([PEAKS[name] for name in MAIN])
        intensity = 10 ** draw.choice([-1.08, -0.6, -0.3, draw.uniform(0, 3)])
        bound = "compute" if intensity * HBM > peak else draw.choice(["memory", "memory", "launch", "unknown"])
        rate = min(peak, intensity * HBM) * (0.1 if bound == "launch" else 1)
        dots.append(dot(number, intensity, rate, share=draw.random() / count * 2, bound=bound))
    return Roofline(
        title="resnet18 on NVIDIA H100 SXM5 80 GB",
        roofs=tuple(Roof(label=k, flop_per_s=v, main=k in MAIN) for k, v in PEAKS.items()),
        slopes=(Slope(label="hbm", bytes_per_s=HBM, main=True), Slope(label="l1", bytes_per_s=33.45e12)),
        dots=tuple(dots),
        x_decades=(-2, 4),
        y_decades=(10, 16),
        footnotes=("FLOP = 2 x MAC + ALU + special.",),
    )


def table(*rows: tuple[str, ...]) -> Table:
    names = (Column(name="#", numeric=True), Column(name="layer"), Column(name="time", numeric=True))
    return Table(columns=names, rows=rows or (("1", "conv", "2 ms"),))


def drawn(chart: Roofline, **options: object) -> list[str]:
    return terminal.render((chart,), **options).splitlines()  # type: ignore[arg-type]


def rows_of_chart(chart: Roofline) -> list[str]:
    return [line[7:] for line in drawn(chart) if len(line) > 6 and line[6] in "│┤"]


def numbers_told(lines: list[str]) -> list[int]:
    """Those on the chart, and those behind 'also'; ranges spelt out."""
    on_chart = " ".join(re.sub(r"[A-Za-z]\S* .*?[A-Z]*/s", " ", line[7:]) for line in lines if line[6:7] in ("│", "┤"))
    found = [int(n) for n in re.findall(r"\d+", on_chart)]
    text = " ".join(lines)
    merged = (
        text[text.find("Same place:") :].split("outside")[0].split("Other roofs")[0] if "Same place" in text else ""
    )
    for first, last in re.findall(r"(\d+)(?:-(\d+))?(?! also)\b", re.sub(r"\d+ also", "", merged)):
        found += range(int(first), int(last or first) + 1)
    return sorted(found)


@pytest.mark.parametrize("width", [20, 33, 40, 60, 80, 120])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_wider_than_asked(width: int, unicode: bool) -> None:
    long = table(("1", "encoder.layers.7.self_attention.out_proj" * 3, "2 ms"), ("2", "日本語" * 30, "3 ms"))
    blocks: tuple[Block, ...] = (Heading(text="h " * 99), Paragraph(text="word " * 99, tone="warning"), long, h100())
    text = terminal.render((*blocks, Paragraph(text="x" * 5000)), width=width, unicode=unicode)
    assert max(map(columns, text.splitlines())) <= width
    assert unicode or text.isascii()


@given(st.lists(st.text(max_size=300), min_size=2, max_size=2), st.integers(20, 100))
def test_no_text_breaks_the_width_or_the_line(names: list[str], width: int) -> None:
    blocks = (Heading(text=names[0]), Paragraph(text=names[1]), table(("1", names[0], names[1]), ("2", "short", "x")))
    text = terminal.render(blocks, width=width)
    assert all(columns(line) <= width and line.isprintable() for line in text.split("\n"))


def test_every_dot_is_told_once() -> None:
    chart = replace(h100(), roofs=(), slopes=(Slope(label="hbm", bytes_per_s=HBM, main=True),), footnotes=())
    assert numbers_told(drawn(chart)) == list(range(1, 69))


def test_the_heaviest_of_one_place_is_drawn() -> None:
    chart = replace(h100(0), dots=(dot(1, 1, HBM), dot(2, 1, HBM, share=0.5), dot(3, 1, HBM, share=0.2)))
    assert "2 also 1, 3" in "\n".join(drawn(chart))


def test_dots_side_by_side_do_not_read_as_one_number() -> None:
    dots = tuple(dot(n, 10 ** (n / 12), 1e11) for n in range(1, 30))
    row = next(
        line for line in rows_of_chart(replace(h100(0), dots=dots, slopes=(), roofs=())) if re.search(r"\d", line)
    )
    assert len(row.split()) > 5 and all(int(n) <= 29 for n in row.split())


def test_dots_on_the_roof_are_on_its_row() -> None:
    chart = replace(h100(0), dots=(dot(7, 3000, 66.9e12, bound="compute"), dot(8, 10, 10 * HBM)))
    rows = rows_of_chart(chart)
    assert "7" in rows[Grid(chart, 73).row(place(chart, chart.dots[0]).y)]
    row = next(row for row in rows if "fp32 vector" in row)
    assert "7" in row or "─" in row
    assert re.search(r"╱*8╱+|╱+8", next(row for row in rows if "8" in row and "989" not in row))


def test_main_roofs_look_unlike_others() -> None:
    text = "\n".join(rows_of_chart(replace(h100(0), roofs=(*h100(0).roofs, Roof(label="int8", flop_per_s=4e15)))))
    assert "─" in text and "╱" in text and "┄" in text and "·" in text
    plain = "\n".join(drawn(h100(0), unicode=False))
    assert "/" in plain and "-" in plain and "." in plain


def test_labels_keep_their_quantity_and_never_cover_a_dot() -> None:
    long = replace(h100(), roofs=(Roof(label="bf16 " + "matrix" * 40, flop_per_s=989.4e12, main=True),))
    text = "\n".join(drawn(replace(long, dots=())))
    assert "989.4 T" in text and "hbm 3.35 TB/s" in text
    assert numbers_told(drawn(replace(long, roofs=(), footnotes=())))[0] == 1


def test_every_roof_is_named_somewhere() -> None:
    for chart in (h100(), h100(300), h100(0)):
        text = " ".join(" ".join(drawn(chart)).split())
        assert all(name in text for name in ("hbm 3.35 TB/s", "bf16 matrix", "fp32 vector", "fp64 vector", "l1 33.45"))


def test_ridges_come_from_the_off_chip_memory() -> None:
    found = [(r.label, round(r.intensity, 2)) for r in ridges(h100())]
    assert found == [("fp32 vector", 19.97), ("bf16 matrix", 295.34)]
    assert "ridge" in "\n".join(drawn(h100()))


@pytest.mark.parametrize(
    ("intensity", "rate", "edge", "arrow"),
    [
        *((0.0, 0.0, "left", "←"), (float("nan"), 1e12, "left", "←"), (-3.0, 1e12, "left", "←")),
        *((1e9, 1e12, "right", "→"), (float("inf"), float("inf"), "right", "→")),
        *((1.0, 1e20, "top", "↑"), (1.0, 5.0, "bottom", "↓")),
    ],
)
def test_dots_outside_get_an_arrow_at_the_border(intensity: float, rate: float, edge: str, arrow: str) -> None:
    chart = replace(h100(0), dots=(dot(5, intensity, rate),))
    assert place(chart, chart.dots[0]).edge == edge
    text = "\n".join(rows_of_chart(chart))
    assert (f"5{arrow}" if edge == "right" else f"{arrow}5") in text


def test_roofs_join_the_slope_and_stay_inside() -> None:
    chart = h100()
    for ceiling in ceilings(chart):
        for s in ceiling.segments:
            assert chart.x_decades[0] <= s.x0 < s.x1 <= chart.x_decades[1]
            assert chart.y_decades[0] - 1e-9 <= s.y0 <= s.y1 <= chart.y_decades[1] + 1e-9
    assert {c.name for c in ceilings(chart)} == {
        "bf16 matrix",
        "fp16 matrix",
        "fp32 vector",
        "fp64 vector",
        "hbm",
        "l1",
    }


def test_charts_without_roofs_slopes_or_sense_are_still_drawn() -> None:
    bare = replace(h100(3), roofs=(), slopes=())
    odd = replace(h100(3), roofs=(Roof(label="none", flop_per_s=0.0),), x_decades=(0, 0), y_decades=(3, 3))
    wide = replace(h100(3), x_decades=(-30, 30), y_decades=(-5, 40))
    for chart in (bare, odd, wide):
        assert max(map(columns, drawn(chart))) <= 80


def test_colour_adds_codes_and_nothing_else() -> None:
    blocks = (Heading(text="h"), table(), replace(h100(), dots=()))
    painted = terminal.render(blocks, color=True)
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", painted)
    assert "\x1b[" in painted
    assert [line.rstrip() for line in stripped.splitlines()] == terminal.render(blocks).splitlines()


def test_numbers_are_right_aligned_and_names_cut_in_the_middle() -> None:
    rows = (("1", "first." + "x" * 99 + ".last", "2 ms"), ("10", "b", "12 ms"))
    lines = terminal.render((table(*rows),), width=50).splitlines()
    assert all(len(line) == 50 for line in lines[2:])
    assert re.search(r"first\.x+…x+\.last", lines[2])


def test_sentences_in_cells_are_wrapped_not_cut() -> None:
    text = terminal.render((table(("1", "weights are read once for the whole batch " * 3, "2 ms")),), width=50)
    assert "…" not in text and text.count("batch") == 3


def test_elided_rows_are_told_with_the_way_to_see_them() -> None:
    assert "42 more rows: --top 45" in terminal.render((replace(table(), elided=42, hint="--top 45"),))


@pytest.mark.parametrize("name", EVIL)
def test_no_name_acts_on_a_terminal(name: str) -> None:
    chart = replace(h100(2), title=name, footnotes=(name,), roofs=(Roof(label=name, flop_per_s=1e13, main=True),))
    text = terminal.render((Heading(text=name), Paragraph(text=name), table(("1", name, "2")), chart))
    assert all(line.isprintable() for line in text.split("\n"))
    text.encode("utf-8")


def test_long_names_are_cut_with_a_hash_that_tells_them_apart() -> None:
    one, two = safe_text("a" * 10**6, 30), safe_text("a" * 10**6 + "b", 30)
    assert re.fullmatch(r"a{22}…#[0-9a-f]{6}", one) and one != two and len(two) == 30
    assert len(terminal.render((table(("1", "a" * 10**6, "2")), Paragraph(text="b" * 10**6)))) < 1000


@pytest.mark.parametrize("limit", [1, 5, 9, 40])
def test_a_cut_never_passes_the_limit(limit: int) -> None:
    assert all(columns(safe_text(name * 20, limit)) <= limit for name in (*EVIL, "日本"))


def test_what_is_harmless_stays_as_it_is() -> None:
    assert safe_text("layer1.0.conv1 é 日本 \u00a0x", 80) == "layer1.0.conv1 é 日本  x"
    assert safe_text("5 µs – 3×", 80, ascii_only=True) == "5 us - 3x"


def test_texts_are_measured_in_columns() -> None:
    assert (columns("日本"), columns("e\u0301"), columns("abc")) == (4, 1, 3)
    assert cut_middle("layer1.0.conv1.weight", 11) == "layer…eight"
    assert wrapped("one two three", 7, "! ", "  ") == ["! one", "  two", "  three"]
    assert number_ranges([5, 1, 3, 4, 9, 8]) == "1, 3-5, 8, 9"


def test_markdown_tables_keep_their_cells() -> None:
    text = markdown.render((table(("1", "a|b `c` <script> __x__ layer_norm\\", "2")),))
    assert "| 1 | a\\|b \\`c\\` &lt;script&gt; \\_\\_x\\_\\_ layer_norm\\\\ | 2 |" in text
    assert "|---:|---|---:|" in text


@pytest.mark.parametrize(
    "name", [*EVIL, "# no heading", "1. no item", "- no item", "```", "[x](javascript:1)", "![x](y)"]
)
def test_markdown_shows_names_as_text(name: str) -> None:
    chart = replace(h100(1), title=name, footnotes=(name,))
    blocks = (Heading(text=name), Paragraph(text=name), table(("1", name, "2")), chart)
    prose = re.sub(r"(`{3,})text\n.*?\n\1", "", markdown.render(blocks), flags=re.S)
    assert "<" not in prose and not re.search(r"^(# |1\. |- )", prose, re.M) and not re.search(r"(?<!\\)[\[`]", prose)


def test_markdown_fences_the_chart_and_lists_the_ceilings() -> None:
    text = markdown.render((replace(h100(), footnotes=("````",)),))
    assert "`````text\n" in text and text.rstrip().endswith("`````")
    assert "| bf16 matrix 989.4 TFLOP/s | yes |" in text


def test_names_that_differ_differ_when_cut() -> None:
    """What the middle would hide is shown: at the end of the front part, or between two marks."""
    names = ["features.3.conv.0@backward", "features.3.conv.1@backward", "features.4.conv.0@backward", "head"]
    shown = cut_apart(names, 20)
    assert len(set(shown)) == 4 and shown[3] == "head"
    assert all(columns(name) <= 20 for name in shown)
    assert cut_apart(["layer1.0.conv1.weight"], 11) == ["layer…eight"]
    assert cut_apart(["same.long.name"] * 2, 8) == [cut_middle("same.long.name", 8)] * 2
    assert cut_apart(["aaaaaaXbbbbbbbb", "aaaaaaYbbbbbbbb"], 10) == ["aaaaaaX…bb", "aaaaaaY…bb"]
    layers = [f"encoder.layers.encoder_layer_{i}.mlp.{k}.weight@optimizer" for i in range(12) for k in (0, 3)]
    short = cut_apart(layers, 18)
    assert len(set(short)) == 24 and all(columns(name) <= 18 for name in short)
    assert all(f"{i}.mlp.{k}." in name for name, (i, k) in zip(short, product(range(12), (0, 3)), strict=True))


def test_a_table_keeps_its_names_apart() -> None:
    names = [f"features.{i}.conv.weight@optimizer" for i in (3, 13)]
    cells = tuple((name, "1" * 20, "2" * 20) for name in names)
    wide = Table(
        columns=(Column(name="layer"), Column(name="a", numeric=True), Column(name="b", numeric=True)), rows=cells
    )
    shown = [line.split()[0] for line in terminal.render((wide,), width=60).splitlines()[2:]]
    assert shown[0].startswith("features.3") and shown[1].startswith("features.1")


def series(values: Sequence[float], steps: tuple[int, ...] = (), name: str = "conv/forward") -> Series:
    """A step up at each of these places."""
    return Series(
        title=name,
        unit="s",
        points=tuple(Point(label=f"r{k}", value=v) for k, v in enumerate(values)),
        levels=(Level(first=0, last=len(values) - 1, start=1.0, end=1.2, text=f"Drifts {name}."),),
        steps=tuple(Step(after=k, short="+50 %", text=f"+50 % at r{k} {name}", up=True, sure=k != 2) for k in steps),
        notes=(f"Note {name}.",),
    )


def test_a_series_is_a_line_with_its_steps_and_numbers() -> None:
    """1 to 2 ms from 0: half the height, then all of it."""
    text = terminal.render((series([1e-3] * 3 + [2e-3] * 2, (3,)),))
    lines = text.splitlines()
    assert lines[:3] == ["conv/forward", "▅▅▅│██", "5 runs: first 1 ms, last 2 ms, least 1 ms, most 2 ms."]
    assert lines[3:] == ["Step up: +50 % at r3 conv/forward.", "Drifts conv/forward.", "Note conv/forward."]


def test_a_series_without_unicode_is_ascii() -> None:
    text = terminal.render((series([0.0, 1.0, 2.0, 4.0], (2,), name="日本 ▁"),), unicode=False)
    assert text.isascii() and text.splitlines()[1] == "_.|-^"
    assert "Step up, perhaps: +50 %" in text


@pytest.mark.parametrize("width", [20, 40, 80])
@pytest.mark.parametrize("unicode", [True, False])
def test_a_long_series_fits(width: int, unicode: bool) -> None:
    """Several runs share a sign; each step keeps its bar, and the line its shape."""
    values = [1.0] * 250 + [3.0] * 250
    lines = terminal.render((series(values, (2, 250)),), width=width, unicode=unicode).splitlines()
    assert max(map(columns, lines)) <= width
    line, bar = lines[1], "│" if unicode else "|"
    assert line.count(bar) == 2 and len(set(line.split(bar)[1])) == 1 and line[0] != line[-1]


def test_series_of_little_are_shown() -> None:
    assert "No values." in terminal.render((replace(series([]), levels=()),))
    assert "1 run: first 5 s" in terminal.render((replace(series([5.0]), levels=()),))
    text = terminal.render((series([float("nan"), 1.0, float("inf")]),))
    assert "1 run: first 1 s, last 1 s" in text and "nan" not in text


def test_noise_looks_like_noise() -> None:
    """A percent up and down is no mountain: neighbours in height at most."""
    line = terminal.render((series([1.0, 1.01, 0.99, 1.005]),)).splitlines()[1]
    heights = [" ▁▂▃▄▅▆▇█".index(c) for c in line]
    assert max(heights) - min(heights) <= 2


@pytest.mark.parametrize("name", [*EVIL, "`", "|", "# x", "<b>"])
def test_no_name_of_a_series_acts(name: str) -> None:
    found = series([1.0, 2.0], (1,), name=name)
    assert all(line.isprintable() for line in terminal.render((found,)).split("\n"))
    text = markdown.render((found,))
    prose = re.sub(r"`[▁-█│]*`", "", text)
    assert "<" not in prose and not re.search(r"(?<!\\)`", prose) and not re.search(r"^# ", prose, re.M)
    text.encode("utf-8")


def test_markdown_has_the_line_as_code_and_the_rest_as_a_list() -> None:
    text = markdown.render((series([1e-3] * 3 + [2e-3] * 2, (3,)),))
    head, line, span, told = text.rstrip("\n").split("\n\n")
    assert (head, line) == ("**conv/forward**", "`▅▅▅│██`")
    assert span == "5 runs: first 1 ms, last 2 ms, least 1 ms, most 2 ms."
    assert told.splitlines()[0] == "- Step up: +50 % at r3 conv/forward." and told.count("\n") == 2
