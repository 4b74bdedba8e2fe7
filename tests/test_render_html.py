"""What the page of Blocks promises: it needs nothing, nothing in it acts, everyone can read it, and its charts are sound."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from rooflens.report.blocks import (
    Block,
    Code,
    Column,
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
    Words,
)
from rooflens.report.render.columns import columns
from rooflens.report.render.html import render
from rooflens.report.render.scale import scale_of, tick_texts, ticks
from rooflens.report.render.series_svg import HEIGHT, WIDTH

EVIL = (
    "</script><script>x</script>", '"><img src=x onerror=x>', "{{7*7}}", "</title></svg></style>", "\x1b[31mred", "nul\0",
    "\u202egnp.exe", "\ud800", "javascript:x", "' onmouseover='x", "<!-- ", "&lt;", "a" * 10**6,
)  # fmt: skip
VOID = {"meta", "line", "path", "polyline"}
KNOWN = {
    "html", "head", "meta", "title", "style", "body", "main", "nav", "ul", "li", "a", "h1", "h2", "p", "strong", "blockquote",
    "pre", "code", "div", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details", "summary", "svg",
    "desc", "line", "path", "polyline", "circle", "text",
}  # fmt: skip


class Page(HTMLParser):
    """The elements of a page with their attributes and text, and whether they are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag: str) -> list[str]:
        return [data for name, data in self.texts if name == tag]


def series(
    count: int = 30, *, name: str = "conv", unit: str = "s", base: float = 1e-3, steps: tuple[int, ...] = (12,)
) -> Series:
    """Values that rise by a tenth at each step."""
    values = [base * 1.1 ** sum(k >= at for at in steps) for k in range(count)]
    bounds = (0, *steps, count)
    return Series(
        title=f"{name}/forward",
        unit=unit,
        points=tuple(
            Point(label=f"{name[:20]}{k:04x}", value=v, low=v * 0.98, high=v * 1.03, note=f"commit {name}")
            for k, v in enumerate(values)
        ),
        levels=tuple(Level(first=a, last=b - 1, start=values[a], end=values[a]) for a, b in pairwise(bounds)),
        steps=tuple(
            Step(after=at, short="+10 %", text=f"+10 % at {name}", up=True, sure=i != 1) for i, at in enumerate(steps)
        ),
        bars="quickest to slowest process",
        notes=(f"note {name}",),
    )


def everything(name: str) -> tuple[Block, ...]:
    """Each kind of block, with the same name wherever there can be one."""
    chart = Roofline(
        title=name,
        roofs=(Roof(label=name, flop_per_s=1e13, main=True),),
        slopes=(Slope(label=name, bytes_per_s=1e12, main=True),),
        dots=(),
        x_decades=(-2, 4),
        y_decades=(10, 16),
        footnotes=(name,),
    )
    table = Table(
        columns=(Column(name=name), Column(name="time", numeric=True)), rows=((name, "2 ms"),), elided=2, hint=name
    )
    words = (Paragraph(text=name), Paragraph(text=name, tone="warning"), Code(lines=(name,)), Words(text=name))
    return (
        Heading(text=name),
        *words,
        table,
        chart,
        series(name=name),
        *(Heading(text=f"{name} {k}") for k in range(3)),
    )


def shape(page: Page) -> list[tuple[str, list[str]]]:
    """Elements and the names of their attributes. How many labels an axis has depends on how wide they are."""
    return [(tag, sorted(attributes)) for tag, attributes in page.elements if tag not in ("line", "text")]


def svgs(page: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.S)]


def test_the_page_needs_nothing_and_allows_nothing() -> None:
    page = Page(text := render(everything("x"), "t"))
    assert {tag for tag, _ in page.elements} <= KNOWN
    (policy,) = [m["content"] or "" for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "script-src" not in policy
    assert not re.search(r"https?:|@import|url\(|<script|<link|javascript", text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')


def test_the_policy_knows_the_style_by_its_hash() -> None:
    """What a browser does with it: SHA-256 of the text between the tags."""
    text = render(everything("x"))
    style = re.search(r"<style>(.*?)</style>", text, re.S)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src &#x27;sha256-{digest}&#x27;" in text or f"style-src 'sha256-{digest}'" in text
    assert " style=" not in text, "the policy would drop it"


@pytest.mark.parametrize("name", EVIL)
def test_no_name_acts_in_the_page(name: str) -> None:
    """The same elements and attributes as with a harmless name; no character that hides or turns text around."""
    page, harmless = Page(text := render(everything(name), name)), Page(render(everything("x"), "x"))
    assert shape(page) == shape(harmless)
    assert all(c.isprintable() or c == "\n" for c in text) and len(text) < 300_000
    text.encode("utf-8")
    assert all(a["href"] in {f"#{h['id']}" for h in page.all("h2")} for a in page.all("a"))


@pytest.mark.parametrize("name", EVIL[:4])
def test_names_are_shown_literally(name: str) -> None:
    page = Page(render(everything(name)))
    for tag in ("h1", "p", "code", "blockquote", "th", "figcaption", "desc", "li"):
        assert any(name in text for text in page.text(tag)), tag


def test_long_names_that_differ_stay_apart() -> None:
    cells = Page(render((Table(columns=(Column(name="n"),), rows=(("a" * 10**6,), ("a" * 10**6 + "b",))),))).text("th")
    assert len({c for c in cells if c.startswith("aaa")}) == 2


def test_the_page_is_the_same_in_every_process() -> None:
    """Whatever the seed of Python's hashes."""
    code = (
        "import test_render_html as t, hashlib as h; print(h.sha256(t.render(t.everything('x')).encode()).hexdigest())"
    )
    here = Path(__file__).parent
    told = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=here, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
            text=True, check=True,
        ).stdout
        for seed in ("0", "7")
    }  # fmt: skip
    assert told == {hashlib.sha256(render(everything("x")).encode()).hexdigest() + "\n"}


def test_tables_name_their_rows_and_columns() -> None:
    columns_ = (Column(name="#", numeric=True), Column(name="layer"), Column(name="time", numeric=True))
    page = Page(render((Table(columns=columns_, rows=(("1", "conv", "2 ms"), ("2", "relu", "1 ms"))),)))
    assert [h.get("scope") for h in page.all("th")] == ["col"] * 3 + ["row"] * 2
    assert [text for tag, text in page.texts if tag == "th" and text.strip()] == ["#", "layer", "time", "conv", "relu"]
    assert page.text("td") == ["1", "2 ms", "2", "1 ms"]


def test_whoever_sees_no_chart_reads_it() -> None:
    """A title, a description with the steps, and every number."""
    found = series()
    page = Page(text := render((found,)))
    (svg,) = page.all("svg")
    ids = re.findall(r' id="([^"]+)"', text)
    assert svg["role"] == "img" and set((svg["aria-labelledby"] or "").split()) <= set(ids)
    assert "Step up: +10 % at conv." in page.text("desc")[0]
    assert sum(h.get("scope") == "row" for h in page.all("th")) == len(found.points)
    assert all(p.label in page.text("th") for p in found.points)
    assert "quickest to slowest process" in page.text("th") and "980 us to 1.03 ms" in page.text("td")


def test_what_scrolls_can_be_reached_by_keyboard_and_has_a_name() -> None:
    page = Page(render(everything("x")))
    assert all(d.get("tabindex") == "0" and d.get("aria-label") for d in page.all("div"))
    assert all(p.get("tabindex") == "0" for p in page.all("pre"))


def test_headings_are_in_order_and_listed_where_there_are_several() -> None:
    page = Page(render(tuple(Heading(text=f"h{k}") for k in range(5))))
    assert [t for t, _ in page.elements if t in ("h1", "h2")] == ["h1", "h2", "h2", "h2", "h2"]
    assert list(page.text("a")) == ["h1", "h2", "h3", "h4"]
    assert not Page(render((Heading(text="a"), Heading(text="b")))).all("nav")


def test_ids_are_there_once() -> None:
    ids = re.findall(r' id="([^"]+)"', render((*everything("x"), *everything("x"))))
    assert len(ids) == len(set(ids)) > 10


def test_no_blocks_make_a_page() -> None:
    assert Page(render(())).text("title") == ["rooflens"]


# the chart


def box(element: ET.Element) -> tuple[float, float, float, float]:
    """As wide as seven pixels a character, which at 12 px is a wide font."""
    wide, x, y = 7 * columns(element.text or ""), float(element.get("x", "0")), float(element.get("y", "0"))
    left = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.get("text-anchor", "start")]
    return left, y - 11, left + wide, y + 3


CHARTS = {
    "usual": series(),
    "one": series(1, steps=()),
    "two": series(2, steps=()),
    "many": series(400, steps=(50, 53, 56, 200, 397)),
    "steps at the ends": series(40, steps=(1, 39)),
    "zero": replace(series(5, steps=()), points=tuple(Point(label=str(k), value=0.0) for k in range(5)), levels=()),
    "tiny": series(base=3e-13),
    "large": series(base=7e17, unit="FLOP/s"),
    "wide": replace(
        series(3, steps=()), points=tuple(Point(label=str(k), value=10.0**k) for k in (-6, 0, 3)), levels=()
    ),
    "long labels": series(name="日本語" * 30),
    "not a number": replace(
        series(3, steps=()), points=(Point(label="a", value=float("nan")), Point(label="b", value=1.0)), levels=()
    ),
    "below zero": replace(
        series(2, steps=()), points=(Point(label="a", value=-2.0), Point(label="b", value=1.0)), levels=()
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_stays_in_its_frame_and_its_texts_apart(name: str) -> None:
    (svg,) = svgs(render((replace(CHARTS[name], notes=()),)))
    assert svg.get("viewBox") == f"0 0 {WIDTH} {HEIGHT}"
    for e in svg.iter():
        xs = [float(v) for k, v in e.items() if k in ("x1", "x2", "cx", "x")]
        ys = [float(v) for k, v in e.items() if k in ("y1", "y2", "cy", "y")]
        assert all(0 <= x <= WIDTH for x in xs) and all(0 <= y <= HEIGHT for y in ys)
    boxes = [box(e) for e in svg.iter("text")]
    assert all(b[0] >= 0 and b[1] >= 0 and b[2] <= WIDTH and b[3] <= HEIGHT for b in boxes)
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_points_and_levels_are_where_their_values_are() -> None:
    """Read back from the picture: pixels between two ticks against their values."""
    found = series()
    (svg,) = svgs(render((found,)))
    grid = [float(e.get("y1", "")) for e in svg.iter("line") if e.get("class") == "grid"]
    at = ticks(scale_of(found))
    each = (at[-1] - at[0]) / (grid[0] - grid[-1])
    read = [at[0] + (grid[0] - float(e.get("cy", ""))) * each for e in svg.iter("circle")]
    assert read == pytest.approx([p.value for p in found.points], abs=0.1 * each)
    levels = [at[0] + (grid[0] - float(e.get("y1", ""))) * each for e in svg.iter("line") if e.get("class") == "level"]
    assert levels == pytest.approx([v.start for v in found.levels], abs=0.1 * each)


def test_a_step_stands_between_its_runs() -> None:
    (svg,) = svgs(render((series(steps=(12, 20)),)))
    dots = [float(e.get("cx", "")) for e in svg.iter("circle")]
    lines = [e for e in svg.iter("line") if "step" in e.get("class", "")]
    assert [e.get("class") for e in lines] == ["step up", "step up guess"]
    assert [sum(x < float(e.get("x1", "")) for x in dots) for e in lines] == [12, 20]
    assert [e.text for e in svg.iter("text") if e.get("class")] == ["▲ +10 %", "▲ +10 %?"]


def test_an_axis_that_is_cut_says_where_it_starts() -> None:
    def told(values: tuple[float, ...]) -> str:
        points = tuple(Point(label=str(k), value=v) for k, v in enumerate(values))
        (svg,) = svgs(render((Series(title="t", unit="s", points=points),)))
        return " ".join(e.text or "" for e in svg.iter("text"))

    assert "axis starts at 950 ms, not at 0" in told((1.0, 1.5))
    assert "axis" not in told((1.0, 2.0)) and "0 s" in told((1.0, 2.0))


@pytest.mark.parametrize("name", CHARTS)
def test_ticks_are_round_few_and_within(name: str) -> None:
    scale = scale_of(CHARTS[name])
    found = ticks(scale)
    assert 2 <= len(found) <= 8 and all(scale.low - 1e-9 <= t <= scale.high * (1 + 1e-9) + 1e-9 for t in found)
    texts = tick_texts(found, CHARTS[name].unit)
    assert len(set(texts)) == len(texts) and all(len(t) <= 11 for t in texts)


def test_the_style_is_readable_on_light_and_dark() -> None:
    """WCAG: text at 4.5 to 1 and lines at 3 to 1 against the paper."""
    text = render(())
    for paper_mode in re.findall(r":root\{([^}]*)\}", text)[:2]:
        colours = dict(re.findall(r"--(\w+):(#[0-9a-f]{3,6})", paper_mode))
        paper = luminance(colours["paper"])
        for name, least in (
            ("ink", 7),
            ("minor", 4.5),
            ("up", 4.5),
            ("down", 4.5),
            ("value", 3),
            ("level", 3),
            ("warn", 3),
        ):
            lighter, darker = sorted((luminance(colours[name]), paper), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= least, name


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_chart_without_a_title_has_a_name_all_the_same() -> None:
    page = Page(render((replace(series(), title=""),)))
    assert page.text("title")[1].startswith("30 runs: ") and not page.all("figcaption")
