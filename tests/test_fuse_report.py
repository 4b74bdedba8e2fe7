"""What `fuse` shows, and what `analyze` shows at a fused level: counted by hand on a residual block of layer text."""

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rooflens
from rooflens.fusion import rules
from rooflens.report.blocks import Diagram, Table
from rooflens.report.render import graphviz, markdown, mermaid, terminal, textplot
from rooflens.report.rows import GROUP_HEADER
from rooflens.report.sections import chart, diagram, ranking
from rooflens.report.sections.fusion_verdict import REASON_WORDS, words_of
from rooflens.report.sections.table import blocks_of, fusion_blocks_of

BLOCK = "conv2d 8 k3 p1 | batchnorm | relu | conv2d 8 k3 p1 | batchnorm | add input | relu"
NET = f"1x8x8x8 | {BLOCK} | maxpool2d k2"
T = 8 * 8 * 8 * 4  # bytes of every tensor but the last
LAST = T // 4
WEIGHTS = 2 * (8 * 8 * 9 + 4 * 8) * 4  # two convolutions, four vectors for each batchnorm
# read and written one by one: two each for conv, bn, relu, conv, bn, relu; three for the add; the pool
BEFORE = (6 * 2 + 3 + 1) * T + LAST + WEIGHTS
# conv+bn+relu, conv+bn, add+relu, the pool
AFTER = (2 + 2 + 3 + 1) * T + LAST + WEIGHTS


def document(**options: Any) -> dict[str, Any]:
    return rooflens.fuse(NET, **options).to_dict()


def table(blocks: tuple[Any, ...], first: str) -> dict[str, tuple[str, ...]]:
    """Rows by their first cell, of the table whose first column has that name."""
    found = next(b for b in blocks if isinstance(b, Table) and b.columns[0].name == first)
    return {row[0].strip(): row[1:] for row in found.rows}


def words(text: str) -> str:
    return " ".join(text.split())


def test_before_and_after_are_counted_as_by_hand() -> None:
    f = document()["fusion"]
    assert (f["before"]["units"], f["before"]["kernels"], f["before"]["bytes"]) == (8, 8, BEFORE)
    assert (f["after"]["units"], f["after"]["kernels"], f["after"]["bytes"]) == (4, 4, AFTER)
    rows = table(fusion_blocks_of(document()), "")
    assert rows["kernels"] == ("8", "4", "2.00x fewer")
    assert rows["ops per unit"] == ("1", "2.00", "at most 3")
    assert rows["bytes moved"][2] == f"{AFTER / BEFORE - 1:+.1%}"
    assert rows["work"][2] == rows["parameters"][2] == "same"
    assert "latency" not in rows


def test_tensors_read_and_written_are_those_of_kernels() -> None:
    """Each kernel reads one activation, an add two, and writes one; a batchnorm reads four vectors."""
    f = document()["fusion"]
    assert [f["before"][k] for k in ("reads", "writes", "param_reads")] == [8 + 1, 8, 2 * (1 + 4)]
    assert [f["after"][k] for k in ("reads", "writes", "param_reads")] == [4 + 1, 4, 2 * (1 + 4)]
    flat = rooflens.fuse("2x4x4x4 | relu | flatten").to_dict()["fusion"]
    assert [flat["after"][k] for k in ("units", "kernels", "reads", "writes")] == [2, 1, 1, 1]


def test_resnet18_reads_and_writes() -> None:
    pytest.importorskip("torch")
    f = rooflens.fuse("resnet18").to_dict()["fusion"]
    assert (f["before"]["reads"], f["before"]["writes"]) == (68 + 8, 68)  # eight adds read two
    assert (f["after"]["reads"], f["after"]["writes"]) == (31 + 8, 31)


def test_times_follow_from_bytes_and_launches() -> None:
    chip = "l4 with launch.eager=10us"
    d = document(on=chip)
    f, rate = d["fusion"], 300e9
    assert f["saved_bandwidth_s"] == pytest.approx((BEFORE - AFTER) / rate)
    rows = table(fusion_blocks_of(d), "")
    assert rows["launches"] == ("80 us", "40 us", "40 us less")
    assert rows["speed-up"][2] == f"{f['speedup']:.2f}x" == "2.00x"  # launches are all there is to wait for
    text = words(str(rooflens.fuse(NET, on=chip)))
    assert "4 kernels instead of 8" in text
    assert f"({1 - AFTER / BEFORE:.1%} less) for the same work" in text
    assert "40 us of kernel launches: at best 2.00x as fast in all." in text


def test_what_is_not_known_is_not_made_up() -> None:
    d = document(on="hailo-8", dtype="int8")  # publishes no off-chip bandwidth that would give a time
    text = terminal.render(fusion_blocks_of(d))
    if d["fusion"]["speedup"] is None:
        assert "is not known" in words(text)
    assert "nan" not in text.lower() and "None" not in text


def test_what_not_fusing_costs_dearest_first() -> None:
    d = document()
    cut = [(e["from"], e["to"], e["bytes"]) for e in d["fusion"]["edges"] if e["decision"] == "cut"]
    assert sorted(cut) == [("batchnorm2", "add1", 2 * T), ("relu1", "conv2", 2 * T), ("relu2", "maxpool1", 2 * T)]
    rows = table(fusion_blocks_of(d), "from")
    assert rows["batchnorm2"] == ("add1", "4.1 kB", "join order")
    assert set(rows) == {"relu1", "batchnorm2", "relu2"}
    wide = rooflens.fuse("1x8x8x8 | conv2d 64 k1 | relu | conv2d 8 k1 | relu | conv2d 8 k1").to_dict()
    bytes_ = [e["bytes"] for e in fusion_edges(wide)]
    assert bytes_ == sorted(bytes_, reverse=True) == [2 * 8 * T, 2 * T]


def fusion_edges(d: dict[str, Any]) -> list[dict[str, Any]]:
    from rooflens.report.sections.fusion import cut_edges

    return cut_edges(d)


def test_every_reason_has_words_for_a_newcomer() -> None:
    reasons = (
        rules.FORK, rules.JOIN_ORDER, rules.CAPACITY, rules.UNLISTED, rules.SHAPE, rules.OUTPUT, rules.SAVED, rules.DTYPE,
        rules.OPAQUE, rules.NOT_ASKED, rules.CYCLE,
    )  # fmt: skip
    assert len({words_of(reason) for reason in reasons}) == len(reasons) == len(REASON_WORDS)
    assert all(words_of(reason) in REASON_WORDS.values() for reason in reasons)
    constants = {v for k, v in vars(rules).items() if k.isupper() and isinstance(v, str)}
    said = {c for c in constants if any(c.startswith(start) for start in REASON_WORDS)}
    assert said == set(reasons)


def test_at_level_none_it_says_what_could_be() -> None:
    d = document(fusion="none", on="l4")
    text = words(terminal.render(fusion_blocks_of(d)))
    carried = sum(e["bytes"] for e in d["fusion"]["edges"])
    assert (
        carried == 7 * 2 * T
    )  # all tensors but the input and the last one have one reader, the input's two have no writer
    assert "8 kernels run one by one" in text and "28.67 kB only pass from one kernel to the next" in text
    assert "chain" in text.split("What each level would take off the device time:")[1].split("total")[0]
    assert "Before and after" not in text and "fusion none" in text
    assert "Add --fusion chain" in words(terminal.render(fusion_blocks_of(document(fusion="none"))))


def test_one_kernel_is_no_kernels(cli) -> None:
    assert "layers runs as 1 kernel instead of 2 and moves" in cli("fuse", "8x8 | relu | relu").stdout.replace(
        "\n", " "
    )
    assert "at level chain: 1 kernel runs by itself." in words(cli("fuse", "8x8 | relu").stdout)


def test_nothing_to_fuse_is_said() -> None:
    text = words(str(rooflens.fuse("4x16 | softmax")))
    assert "Nothing of" in text and "No two kernels that follow each other are left apart." in text


def test_it_prints_itself_as_the_verb_does(cli) -> None:
    assert str(rooflens.fuse(NET, on="l4")) == cli("fuse", NET, "--on", "l4").stdout
    assert rooflens.fuse(NET).to_text("mermaid") == cli("fuse", NET, "--format", "mermaid").stdout


def test_levels_and_defaults(cli) -> None:
    def level(*args: str) -> str:
        return str(json.loads(cli(*args, "--format", "json").stdout)["fusion"]["level"])

    assert level("fuse", NET) == "chain"
    assert level("analyze", NET) == level("fuse", NET, "--fusion", "none") == "none"
    assert level("fuse", NET, "--execution", "compiled") == "residual"
    assert level("fuse", NET, "--execution", "compiled", "--bn", "folded") == "chain"


def test_several_models_have_a_table_first_and_a_comparison(cli, tmp_path: Path) -> None:
    done = cli("fuse", NET, f"2x8x8x8 | {BLOCK}", "--on", "l4,t4", "--plot", "all.svg")
    assert done.returncode == 0, done.stderr
    head = done.stdout.split("\n\n")[1].splitlines()
    assert len(head) == 2 + 1 + 4 - (0 if "ops per" in head[0] else 1)
    assert all("→" in line for line in head[-4:])
    found = json.loads(cli("fuse", NET, NET, "--format", "json").stdout)
    assert found["schema"] == "rooflens.comparison/1" and len(found["analyses"]) == 2
    assert (tmp_path / "all.svg").read_text().count("Hollow") == 0


def test_csv_has_a_row_a_unit(cli) -> None:
    rows = list(csv.DictReader(io.StringIO(cli("fuse", NET, "--format", "csv").stdout)))
    assert tuple(rows[0]) == GROUP_HEADER
    assert [r["pattern"] for r in rows] == ["conv+bn+relu", "conv+bn", "add+relu", "single"]
    assert sum(int(r["bytes"]) for r in rows) == AFTER
    assert rows[0]["ops"] == "conv1 batchnorm1 relu1"
    both = list(csv.DictReader(io.StringIO(cli("fuse", NET, NET, "--on", "l4", "--format", "csv").stdout)))
    assert len(both) == 8 and both[0]["chip"] == "l4"


@pytest.mark.parametrize("width", ["40", "80", "120"])
def test_no_line_is_too_wide_and_no_pipe_is_coloured(cli, width: str) -> None:
    for args in (("--on", "l4"), ("--fusion", "none"), ("--on", "l4,t4", "--fusion", "residual")):
        text = cli("fuse", NET, *args, env={"COLUMNS": width}).stdout
        assert max(len(line) for line in text.splitlines()) <= int(width)
        assert "\x1b" not in text


@pytest.mark.parametrize(
    ("gate", "status"),
    [("fusion.after.bytes<=80MB", 0), ("fusion.after.bytes<=1kB", 1), ("fusion.after.kernels<fusion", 2),
     ("fusion.speedup>1", 3), ("fusion.before.writes==8", 0), ("fusion.level==chain", 0)],
)  # fmt: skip
def test_gates(cli, gate: str, status: int) -> None:
    assert cli("fuse", NET, "--gate", gate).returncode == status


# analyze at a fused level


def test_analyze_goes_by_what_runs() -> None:
    d = rooflens.analyze(NET, on="l4", fusion="chain").to_dict()
    rows = ranking.ranked(d)
    assert [n for n, _ in rows] == [1, 2, 3, 4]
    assert {row["label"] for _, row in rows} == {"conv1 conv+bn+relu", "conv2 conv+bn", "add1 add+relu", "maxpool1"}
    times = [row["device_time_s"] for _, row in rows]
    assert times == sorted(times, reverse=True)
    assert sum(row["share"] for _, row in rows) == pytest.approx(1)
    assert sum(times) == pytest.approx(d["totals"]["device_time_s"])
    drawn = chart.chart_of(d)
    assert drawn is not None
    assert [dot.label for dot in drawn.dots] == [row["label"] for _, row in rows]
    text = terminal.render(blocks_of(d))
    assert "Units, heaviest first" in text and "8 kernels that move" in text


def test_at_level_none_layers_are_ops_without_views() -> None:
    d = rooflens.analyze("1x8x8x8 | relu | flatten | linear 4", on="l4").to_dict()
    assert [row["label"] for _, row in ranking.ranked(d)] == ["linear1", "relu1"]
    assert "Layers, heaviest first" in terminal.render(blocks_of(d))
    drawn = chart.chart_of(d)
    assert drawn is not None and not drawn.arrows and not drawn.footnotes


def test_long_patterns_are_told_by_their_ends() -> None:
    assert ranking.short("conv+bn+add+relu") == "conv+bn+add+relu"
    assert ranking.short("linear+add+mul+tanh+mul") == "linear+add+…+mul (5)"


# the picture


def test_arrows_lead_from_where_each_op_stands_alone() -> None:
    d = document(on="l4")
    alone, fused = chart.chart_of(rooflens.analyze(NET, on="l4").to_dict()), chart.chart_of(d)
    assert alone is not None and fused is not None
    assert (alone.x_decades, alone.y_decades) == (fused.x_decades, fused.y_decades)
    own = {dot.label: (dot.intensity, dot.flop_per_s) for dot in alone.dots}
    label = {dot.number: dot.label for dot in fused.dots}
    assert {a.label for a in fused.arrows} == {"conv1", "batchnorm1", "relu1", "conv2", "batchnorm2", "add1", "relu2"}
    for arrow in fused.arrows:
        assert (arrow.intensity, arrow.flop_per_s) == pytest.approx(own[arrow.label])
    assert {label[a.number] for a in fused.arrows if a.label == "relu1"} == {"conv1 conv+bn+relu"}
    assert "all 3 fused units" in fused.footnotes[0]


def test_arrows_are_those_of_the_heaviest_where_they_are_many() -> None:
    count = chart.ARROWS_FOR + 4
    many = " | ".join(f"conv2d {8 * i} k3 p1 | relu" for i in range(1, count + 1))
    drawn = chart.chart_of(rooflens.fuse(f"1x8x8x8 | {many}", on="l4").to_dict())
    assert drawn is not None
    assert {a.number for a in drawn.arrows} == set(range(1, chart.ARROWS_FOR + 1))
    assert f"the {chart.ARROWS_FOR} heaviest of {count}" in drawn.footnotes[0]
    assert "∘" in "".join(textplot.plain(textplot.draw(drawn)))
    assert all(line.isascii() for line in textplot.plain(textplot.draw(drawn, unicode=False)))


def test_a_cnn_has_an_arrow_from_every_member() -> None:
    """9 conv+bn+relu, 11 conv+bn and 8 add+relu: 27 + 22 + 16 members."""
    pytest.importorskip("torch")
    drawn = chart.chart_of(rooflens.fuse("resnet18", on="h100-sxm").to_dict())
    assert drawn is not None and len(drawn.arrows) == 65


def test_the_picture_has_arrows_and_is_the_same_each_time() -> None:
    pytest.importorskip("matplotlib")
    from rooflens.report.render import plot

    drawn = chart.chart_of(document(on="l4"))
    assert drawn is not None
    first = plot.draw(drawn, "svg")
    assert first == plot.draw(drawn, "svg")
    text = first.decode()
    assert len(re.findall(r'id="alone-\d+-\d+"', text)) >= 4
    assert 'id="arrow-' in text and "Hollow:" in text
    assert plot.draw(drawn, "png") == plot.draw(drawn, "png")


# the diagrams

EVIL = (
    '"];x', "a\nb", "</script><script>alert(1)</script>", "\x1b[31m", "end", "`**md**`", "{{x}}", "|p|", "%%{init: {}}%%",
    "\\", "-->", "&lt;", "#quot;", "\u202eevil", "日本", "x" * 500, "",
)  # fmt: skip
_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_DOT = re.compile(
    rf"digraph fusion \{{|\}}|  (?:graph|node|edge) \[.*\];|  n\d+ \[color=\"#\w{{6}}\", label={_TEXT}\];"
    rf"|  n\d+ -> n\d+ \[label={_TEXT}(?:, style=dashed, constraint=false)?\];"
    rf"|  subgraph cluster_\d+ \{{ style=rounded; color=\"#\w{{6}}\"; label={_TEXT}; (?:n\d+; ?)+ ?\}}"
)
_SAFE = r'"(?:[\w .,:/+\-()=…→]|#\d+;|<br/>)*"'
_MERMAID = re.compile(
    rf"%% [^{{}}]*|flowchart TB|  classDef \w+ stroke:#\w+,stroke-width:2px|  n\d+\[{_SAFE}\]:::\w+"
    rf"|  subgraph r\d+\[{_SAFE}\]|    n\d+|  end|  n\d+ -?-\.?->?\|{_SAFE}\| n\d+"
)


def named(name: str) -> dict[str, Any]:
    """A document in which a layer has that name."""
    text = json.dumps(document(on="l4")).replace('"conv2"', json.dumps(name)).replace(f'"{NET}"', json.dumps(name))
    found: dict[str, Any] = json.loads(text)
    return {**found, "model": {**found["model"], "name": name}}


@pytest.mark.parametrize("name", EVIL)
def test_no_name_is_syntax(name: str) -> None:
    drawn = diagram.diagram_of(named(name))
    for line in graphviz.render(drawn).splitlines():
        assert _DOT.fullmatch(line), line
    for line in mermaid.render(drawn).splitlines():
        assert _MERMAID.fullmatch(line), line


@pytest.mark.parametrize("name", EVIL)
def test_no_name_acts_in_a_report(name: str) -> None:
    blocks = fusion_blocks_of(named(name))
    text = terminal.render(blocks, unicode=True)
    assert "\x1b" not in text and "\u202e" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "<script" not in markdown.render(blocks)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("name", ["conv2", *(e for e in EVIL if e.isprintable() and 0 < len(e) < 50)])
def test_graphviz_reads_it_and_shows_names_as_they_are(name: str) -> None:
    from xml.etree import ElementTree

    text = graphviz.render(diagram.diagram_of(named(name)))
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True)
    shown = {
        "".join(e.itertext()).strip()
        for e in ElementTree.fromstring(done.stdout).iter("{http://www.w3.org/2000/svg}text")
    }
    assert name.strip() in shown


def test_nodes_are_units_and_edges_what_passes_through_memory() -> None:
    drawn = diagram.diagram_of(document())
    assert [n.lines[:2] for n in drawn.nodes] == [
        ("conv1", "conv+bn+relu"), ("conv2", "conv+bn"), ("add1", "add+relu"), ("maxpool1", "maxpool"),
    ]  # fmt: skip
    assert [(c.before, c.after, c.text) for c in drawn.connections] == [
        (0, 1, "4.1 kB, unlisted pair (relu then conv)"), (1, 2, "4.1 kB, join order"),
        (2, 3, "4.1 kB, unlisted pair (relu then maxpool)"),
    ]  # fmt: skip
    assert not drawn.clusters and not drawn.notes


def test_a_block_that_repeats_is_drawn_once() -> None:
    text = (
        "1x8x8x8 | conv2d 8 k1 | relu6 | "
        + " | ".join(["conv2d 8 k3 p1 | relu | conv2d 8 k5 p2 | sigmoid"] * 4)
        + " | maxpool2d k2"
    )
    drawn = diagram.diagram_of(rooflens.fuse(text).to_dict())
    assert [c.nodes for c in drawn.clusters] == [(1, 2)]
    assert drawn.clusters[0].text == "4 x, from conv2 to conv8"
    assert [(c.before, c.after, c.back) for c in drawn.connections] == [
        (0, 1, False), (1, 2, False), (2, 1, True), (2, 9, False),
    ]  # fmt: skip


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_runs_say_all_units_in_order(text: list[str]) -> None:
    runs = diagram.runs_of([(c,) for c in text])
    told = [c for run in runs for c in text[run.start : run.start + run.period] * run.times]
    assert told == text
    assert all(run.times >= 1 and run.period >= 1 for run in runs)


def test_a_large_picture_says_what_it_leaves_out() -> None:
    layers = " | ".join(f"conv2d {1 + i} k1 | relu" for i in range(200))
    drawn: Diagram = diagram.diagram_of(rooflens.fuse(f"1x3x4x4 | {layers}").to_dict())
    assert len(drawn.nodes) <= diagram.NODES_SHOWN
    assert len(drawn.connections) <= diagram.TIES_SHOWN
    assert drawn.notes == ("50 units are left out",)


# the documentation


def test_docs_name_every_rule_and_every_reason() -> None:
    docs = (Path(__file__).parent.parent / "docs/fusion.md").read_text().replace("\\|", "|")
    for rule in rules.RULES:
        assert f"**{rule.name}**" in docs, rule.name
        assert f"`{rule.fuses}`" in docs, rule.name
    for reason in REASON_WORDS:
        assert f"`{reason}" in docs, reason


def test_docs_reconcile_with_the_numbers_of_a_real_run() -> None:
    pytest.importorskip("torch")
    docs = (Path(__file__).parent.parent / "docs/fusion.md").read_text()
    for model in ("resnet18", "mobilenet_v2"):
        f = rooflens.fuse(model).to_dict()["fusion"]
        before, after = f["before"], f["after"]
        for number in (before["bytes"], after["bytes"]):
            assert f"{number:,}" in docs
        assert f"{(before['bytes'] - after['bytes']) / 2e6:.1f} MB" in docs  # what counting once gives
        assert f"{1 - after['bytes'] / before['bytes']:.1%}" in docs
