"""Pictures that are the same bytes everywhere, that parse, that show names as text, with each dot where it belongs."""

import builtins
import hashlib
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_render_text import EVIL, dot, h100

from rooflens.errors import MissingExtra
from rooflens.report.blocks import Roof, Roofline, Slope
from rooflens.report.render import plot, plot_dots
from rooflens.report.render.declutter import Room, Spot, along, centred, overlap

pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"


def svg(chart: Roofline | tuple[Roofline, ...]) -> ElementTree.Element:
    return ElementTree.fromstring(plot.draw(chart, "svg"))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(e.itertext()) for e in root.iter(f"{SVG}text")]


def spots(root: ElementTree.Element) -> dict[str, tuple[float, float]]:
    """Where each dot is drawn, in SVG points."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        if group.get("id", "").startswith("dot-"):
            use = next(group.iter(f"{SVG}use"))
            found[group.get("id", "")] = (float(use.get("x", "nan")), float(use.get("y", "nan")))
    return found


def test_the_same_bytes_in_every_process() -> None:
    script = (
        "import hashlib, sys; from test_render_text import h100; from rooflens.report.render.plot import draw; "
        "drawn = draw(h100(12), 'svg'), draw(h100(12), 'png'), draw((h100(0), h100(3)), 'svg'); "
        "print([hashlib.sha256(d).hexdigest() for d in drawn], [m for m in sys.modules if m == 'matplotlib.pyplot'])"
    )
    here = str(Path(__file__).parent)
    told = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([here, *filter(None, sys.path)])}
        done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
        told.append(done.stdout)
        assert "pyplot" not in done.stdout
    assert told[0] == told[1]
    assert hashlib.sha256(plot.draw(h100(12), "svg")).hexdigest() in told[0]


def test_neither_date_nor_version_is_written() -> None:
    text = plot.draw(h100(3), "svg").decode()
    assert not re.search(r"dc:date|dc:creator|matplotlib\.org", text)
    assert b"Software" not in plot.draw(h100(3), "png")


def test_the_caller_s_settings_neither_count_nor_change() -> None:
    import matplotlib

    before = plot.draw(h100(3), "svg")
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        kept = dict(matplotlib.rcParams)
        assert plot.draw(h100(3), "svg") == before
        assert dict(matplotlib.rcParams) == kept


def test_a_picture_has_900_by_600_pixels() -> None:
    png = plot.draw(h100(), "png")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (900, 600)


@pytest.mark.parametrize("name", [*EVIL, "$x^2$ \\frac", "a & b", "]]>", "日本", "x" * 10**6, ""])
def test_names_are_shown_literally(name: str) -> None:
    chart = h100(2)
    chart = replace(
        chart,
        title=name,
        footnotes=(name,),
        dots=tuple(replace(d, label=name) for d in chart.dots),
        roofs=(Roof(label=name, flop_per_s=1e13, main=True),),
        slopes=(Slope(label=name, bytes_per_s=1e12, main=True),),
    )
    shown = texts(svg(chart))
    assert plot.draw(chart, "png")
    if len(name) < 40 and name.isprintable():
        assert shown.count(name) >= (3 if name else 0)
    assert all(text.isprintable() for text in shown)


def test_text_stays_text_in_a_family_that_others_have() -> None:
    text = plot.draw(h100(), "svg").decode()
    assert "<text" in text and "sans-serif" in text and "layer1" in text


def test_one_marker_a_dot_and_it_lies_where_its_values_say() -> None:
    chart = replace(h100(0), dots=(dot(1, 0.01, 1e10), dot(2, 1e4, 1e16), dot(3, 10, 1e13), dot(4, 10, 10 * 3.35e12)))
    at = spots(svg(chart))
    (x1, y1), (x2, y2), (x3, y3) = at["dot-1"], at["dot-2"], at["dot-3"]
    assert x3 == pytest.approx((x1 + x2) / 2) and y3 == pytest.approx((y1 + y2) / 2)
    assert at["dot-4"] == pytest.approx((x3, y1 + (y2 - y1) * (math.log10(3.35e13) - 10) / 6))
    assert len(spots(svg(h100()))) == 68


def test_dots_outside_are_badges_and_none_is_lost() -> None:
    dots = (dot(1, 0, 0), dot(2, 0, 0, share=0.5), dot(3, 1e9, 1e13), dot(4, 10, 1e20), dot(5, 5, 1.0))
    root = svg(replace(h100(0), dots=dots))
    assert set(spots(root)) == {"dot-2", "dot-3", "dot-4", "dot-5"}
    assert "2 +1" in texts(root)


def test_area_follows_the_share() -> None:
    small, large = (plot_dots.area(dot(1, 1, 1, share=share)) for share in (0.02, 0.2))
    assert large / small == pytest.approx(10)
    assert plot_dots.area(dot(1, 1, 1, share=0.0)) > 10
    assert plot_dots.area(dot(1, 1, 1, share=1.0)) < 1000


def test_each_bound_has_a_shape_and_a_colour_of_its_own() -> None:
    assert len(set(plot_dots.MARKERS.values())) == len(set(plot_dots.COLORS.values())) == 4
    strange = replace(h100(0), dots=(dot(1, 1, 1e12, bound="cosmic"),))
    assert any("unknown (1)" in text for text in texts(svg(strange)))


def test_numbers_match_the_table_and_the_heaviest_have_one() -> None:
    chart = h100()
    shown = texts(svg(chart))
    heaviest = sorted(chart.dots, key=lambda d: -(d.share or 0))[:20]
    assert all(str(d.number) in shown and d.label in shown for d in heaviest)


@pytest.mark.parametrize("count", [0, 1, 300])
def test_any_number_of_dots_is_drawn(count: int) -> None:
    assert len(spots(svg(h100(count)))) == count
    unshared = replace(h100(count), dots=tuple(replace(d, share=None) for d in h100(count).dots))
    assert "Area: share of time" not in texts(svg(unshared))


def test_charts_without_roofs_or_slopes_are_drawn() -> None:
    for chart in (replace(h100(3), roofs=()), replace(h100(3), slopes=()), replace(h100(0), roofs=(), slopes=())):
        assert plot.draw(chart, "png")


def test_an_overlay_names_each_chip_and_holds_all_axes() -> None:
    pi = replace(h100(0), title="Raspberry Pi 5", x_decades=(-2, 3), y_decades=(7, 11))
    pi = replace(
        pi, roofs=(Roof(label="fp32 vector", flop_per_s=76.8e9),), slopes=(Slope(label="dram", bytes_per_s=17e9),)
    )
    shown = texts(svg((replace(h100(0), title="NVIDIA H100"), pi)))
    assert {"Raspberry Pi 5", "NVIDIA H100", "fp32 vector 76.8 GFLOP/s", "10 M", "10 P"} <= set(shown)
    assert plot.draw(tuple(replace(pi, title=f"chip {i}") for i in range(30)), "png")


def test_a_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> object:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match=r"rooflens\[plot\]"):
        plot.draw(h100(1), "svg")


def test_texts_never_cover_each_other() -> None:
    room = Room((0, 0, 100, 100), dots=[centred(50, 50, 10, 10)])
    first = room.settle([Spot(50, 50, (centred(50, 50, 10, 10),)), Spot(70, 50, (centred(70, 50, 10, 10),))])
    assert first is not None and first.x == 70
    assert room.settle([Spot(70, 50, (centred(72, 50, 10, 10),)), Spot(200, 0, (centred(200, 0, 9, 9),))]) is None
    chain = along(0, 0, 100, 10, math.pi / 4)
    assert len(chain) == 10 and not any(overlap(a, b) for a, b in zip(chain, chain[2:], strict=False))
