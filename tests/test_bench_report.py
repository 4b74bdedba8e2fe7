"""Reports of benchmark runs: percentages, claims, documents, tables, and what a hand-written report gets wrong."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflens.benches.bench_run import (
    NO_ANSWER,
    Allocated,
    BenchMachine,
    Benchmark,
    BenchRow,
    BenchRun,
    ProcessTimes,
    Revision,
)
from rooflens.benches.bench_stored import restored
from rooflens.benches.sampling import Samples
from rooflens.compare.verdicts import FASTER, INCONCLUSIVE, NOT_COMPARABLE, SAME, SLOWER, Comparison, Verdict, compared
from rooflens.report.bench import comparison_document, run_document
from rooflens.report.bench_report import Held, Part, pairs_of, report_document
from rooflens.report.blocks import Heading, Paragraph, Table, Words
from rooflens.report.ratios import change, claim, count_change, plus_minus, reduction_text, speedup
from rooflens.report.render import comment as comments
from rooflens.report.render.markdown import render as markdown
from rooflens.report.render.terminal import render as terminal
from rooflens.report.sections.bench_comment import comment
from rooflens.report.sections.bench_comparison import comparison_blocks, comparison_rows
from rooflens.report.sections.bench_report import report_blocks
from rooflens.report.sections.bench_run import run_blocks
from rooflens.store.store import open_store
from rooflens.units import show_share

ROOT = Path(__file__).parent.parent
SEED = (ROOT / "tests" / "data" / "layer-benchmark-report.md").read_text("utf-8")
MACHINE = BenchMachine(
    fingerprint="f00d", name="Some CPU 9000", device="cpu", device_name="Some CPU 9000", threads=2, system="Linux"
)

NOTHING = Allocated()


def row(name: str, *times_s: float, pass_: str = "forward", counts: Allocated = NOTHING, **fields: Any) -> BenchRow:
    """One process for each time."""
    found = Benchmark(
        name=name, pass_=pass_, **{k: fields.pop(k) for k in ("source", "shape", "threshold") if k in fields}
    )
    processes = tuple(ProcessTimes(process=i, samples=Samples(times_s=(t,))) for i, t in enumerate(times_s))
    return BenchRow(benchmark=found, processes=processes, allocated=counts, **fields)


def run(*rows: BenchRow, date: str = "2026-01-02T03:04:05+00:00", **fields: Any) -> BenchRun:
    given = {"suite": "layers", "tool": "rooflens", "machine": MACHINE, "versions": (("rooflens", "1"),)}
    return BenchRun(**{**given, "date": date, "rows": rows, **fields})


def verdict(base: BenchRow, new: BenchRow, found: str, *span: float, why: str = "") -> Verdict:
    ratio, low, high = span if len(span) == 3 else (*span, None, None) if span else (None, None, None)
    return Verdict(base=base, new=new, verdict=found, threshold=0.05, ratio=ratio, low=low, high=high, why=why)


def held(base: BenchRun, new: BenchRun, *verdicts: Verdict, **fields: Any) -> Comparison:
    given = {"added": (), "removed": (), "renamed": (), "method": "normalised", "confidence": 0.99}
    return Comparison(base=base, new=new, verdicts=verdicts, **{**given, **fields})


def told(blocks: Any) -> str:
    return terminal(tuple(blocks), width=120)


# what a hand-written report says, as runs


def tables() -> list[list[tuple[str, ...]]]:
    """The rows of the three tables of measurements, cells stripped."""
    parts = SEED.split("\n## ")
    named = [p for p in parts if re.match(r"(BEFORE|AFTER|CURRENT)", p)]
    lines = [[line for line in p.splitlines() if re.match(r"\| \w+\dD \|", line)] for p in named]
    return [[tuple(c.strip() for c in line.strip("|").split("|")) for line in found] for found in lines]


def number(cell: str) -> int | None:
    return int(cell.replace(",", "")) if re.fullmatch(r"[\d,]+", cell) else None


def imported(cells: list[tuple[str, ...]], shape: dict[str, str], date: str) -> BenchRun:
    """As `bench import` would have it: a time is one process's, allocations are what the tool counts."""
    found = []
    for layer, operation, time_ns, allocations, size, *_ in cells:
        ns, kind = number(time_ns), {"shape": shape.get(layer), "pass_": operation.lower()}
        if ns is None:
            found.append(row(layer, status=NO_ANSWER, reason=time_ns, **kind))
        else:
            counts = Allocated(framework_count=number(allocations), framework_bytes=number(size))
            found.append(row(layer, ns / 1e9, counts=counts, **kind))
    return run(*found, date=date, tool="go", versions=(), machine=replace(MACHINE, threads=None, system=""))


def seed_runs() -> tuple[BenchRun, BenchRun, BenchRun]:
    """The AFTER bytes of AvgPool2D are those of a shape 16 times as large, as its backward shows best."""
    before, after, current = tables()
    large, small = {"AvgPool2D": "in 4x32x64x64 fp32"}, {"AvgPool2D": "in 4x32x16x16 fp32"}
    dates = [f"2025-11-0{day}T00:00:00+00:00" for day in (5, 6, 7)]
    return imported(before, small, dates[0]), imported(after, large, dates[1]), imported(current, small, dates[2])


def seed_document() -> dict[str, Any]:
    before, after, current = seed_runs()
    parts = (
        Part(role="before", name="before", run=before),
        Part(role="after", name="after", run=after),
        Part(role="current", name="", run=replace(current, note="- **Conv2D**: `Permute` instead of transpose\n")),
        Part(role="previous", name="", why_not="there is no run before the current one"),
    )
    return report(parts)


def report(parts: tuple[Part, ...]) -> dict[str, Any]:
    pairs = ((b, n) for b, n in pairs_of(parts) if b.run and n.run)
    return report_document(
        "layers", parts, tuple(Held(base=b.role, new=n.role, found=compared(b.run, n.run)) for b, n in pairs)
    )


def table(blocks: Any, heading: str) -> list[dict[str, str]]:
    """Rows of the first table behind a heading, by the names of the columns."""
    listed = list(blocks)
    place = next(i for i, b in enumerate(listed) if isinstance(b, Heading) and b.text == heading)
    found = next(b for b in listed[place:] if isinstance(b, Table))
    return [dict(zip((c.name for c in found.columns), r, strict=True)) for r in found.rows]


def test_the_hand_written_report_is_regenerated_right() -> None:
    blocks = report_blocks(seed_document())
    after = {r["benchmark"]: r for r in table(blocks, "AFTER")}
    # (221280 - 92) / 221280 = 0.99958…, written as 58.4 %; 62 of 200,829,122 are 3e-7 of them, written as 99.97 %
    assert after["Conv2D/backward"]["fewer allocations"] == "99.96 %"
    assert after["Conv1D/backward"]["fewer allocations"] == "99.99997 %"
    assert after["Conv2D/forward"]["fewer allocations"] == "25.0 %"
    assert after["Conv1D/forward"]["fewer allocations"] == "-4.0 %"
    # 20706564862 / 7708476288 = 2.686…, written as 2.67x too; 18886984389 / 536800186 = 35.184…, written as 35.22x
    assert "2.69x" in after["Conv2D/backward"]["speed-up"]
    assert "35.18x" in after["Conv1D/backward"]["speed-up"]
    text = markdown(blocks)
    for wrong in ("58.4", "99.97 %", "2.67x", "35.22x", "92.8", "92.4"):
        assert wrong not in text


def test_times_of_one_process_each_are_no_evidence() -> None:
    document = seed_document()
    assert document["highlights"] == document["areas_of_note"] == []
    verdicts = [r["verdict"] for pair in document["comparisons"] for r in pair["comparison"]["rows"]]
    assert set(verdicts) == {INCONCLUSIVE, NOT_COMPARABLE}
    told_current = {r["benchmark"]: r for r in table(report_blocks(document), "CURRENT")}
    assert told_current["Conv2D/forward"]["vs AFTER"] == "inconclusive: +36 %"  # 1986477144 / 1457734861 = 1.3627…
    assert told_current["AvgPool2D/forward"]["vs AFTER"] == "not comparable"
    assert told_current["AvgPool2D/forward"]["allocations vs AFTER"] == "–"
    assert told_current["Conv2D/backward"]["allocations vs AFTER"] == "+9.8 %"  # 92 to 101
    rows = table(report_blocks(document), "Nothing is said of")
    said = {(key, r["compared"]): r["why"] for r in rows for key in r["benchmarks"].split(", ")}
    assert said["AvgPool2D/forward", "CURRENT against AFTER"].startswith("another shape")
    assert "process" in said["Conv2D/forward", "CURRENT against AFTER"]
    rows = [r for p in document["comparisons"] for r in p["comparison"]["rows"]]
    reduced = {r["verdict"]: r["framework_count_reduction"] for r in rows}
    assert reduced[NOT_COMPARABLE] is None
    assert reduced[INCONCLUSIVE] is not None


def test_the_slowdown_of_the_machine_is_no_regression_of_six_rows() -> None:
    """What the hand-written report lists as regressions of 24 to 46 %, six in six."""
    (pair,) = [p for p in seed_document()["comparisons"] if p["new"] == "current"]
    ratios = sorted(r["ratio"] for r in pair["comparison"]["rows"] if r["ratio"])
    assert len(ratios) == 6
    assert pair["comparison"]["moved"] == pytest.approx((ratios[2] + ratios[3]) / 2)
    assert told(report_blocks(seed_document())).count("all rows together moved by +30 %: the machine") == 1


def test_the_report_passes_the_check_that_the_hand_written_one_fails(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "report.md").write_text(markdown(report_blocks(seed_document())))
    done = cli("bench", "check", "report.md", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert cli("bench", "check", str(ROOT / "tests/data/layer-benchmark-report.md")).returncode == 1


def test_a_configuration_that_differs_between_runs_is_told_for_each() -> None:
    rows = table(report_blocks(seed_document()), "Configurations")
    assert [(r["shape"], r["runs"]) for r in rows if r["benchmark"] == "AvgPool2D"] == [
        ("in 4x32x16x16 fp32", "BEFORE, CURRENT"), ("in 4x32x64x64 fp32", "AFTER"),
    ]  # fmt: skip
    assert all(r["passes"] == "forward, backward" for r in rows)


def test_rows_without_a_time_say_why() -> None:
    rows = table(report_blocks(seed_document()), "BEFORE, without a time")
    assert ("AvgPool2D/backward", "n/a", "N/A (not implemented)") in {tuple(r.values()) for r in rows}


def test_columns_of_what_nobody_counted_are_left_out() -> None:
    assert list(table(report_blocks(seed_document()), "BEFORE")[0]) == ["benchmark", "time", "allocations", "bytes"]


# percentages


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (28, 21, "25.0 %"), (25, 26, "-4.0 %"), (221_280, 92, "99.96 %"), (200_829_122, 62, "99.99997 %"),
        (7, 7, "0 %"), (7, 0, "100 %"), (0, 0, "0 %"), (0, 3, "3 instead of none"), (1000, 1, "99.9 %"),
        (10**6, 10**6 - 1, "0.0001 %"), (10**12, 1, "more than 99.9999999 %"), (10**12, 10**12 - 1, "less than 0.0000001 %"),
        (None, 3, ""),
    ],
)  # fmt: skip
def test_a_reduction_never_says_all_of_what_is_not(before: int | None, after: int | None, text: str) -> None:
    assert reduction_text(before, after) == text


@given(st.integers(1, 10**15), st.integers(0, 10**15))
def test_a_share_is_near_and_100_is_said_of_all_alone(before: int, part: int) -> None:
    share = Fraction(min(part, before), before)
    text = show_share(share)
    assert (text == "100 %") == (share == 1)
    assert (text == "0 %") == (share == 0)
    if text[0].isdigit():
        decimals = len(text.removesuffix(" %").partition(".")[2])
        assert abs(Fraction(text.removesuffix(" %")) - 100 * share) <= Fraction(1, 2 * 10**decimals)


def test_a_doubling_is_not_all() -> None:
    assert count_change(65_540, 131_100) == "+100.0 %"
    assert count_change(92, 101) == "+9.8 %"
    assert count_change(221_280, 92) == "-99.96 %"
    assert show_share(Fraction(100_001, 100_000)) == "100.001 %"


def test_changes_and_their_intervals_are_rounded_outward() -> None:
    assert change(1.12, 1.0901, 1.1401) == "+12 % (+9.0 to +15)"
    assert change(0.97, 0.949, 1.001) == "-3.0 % (-5.1 to +0.1)"
    assert change(1.31) == "+31 %"
    assert change(0.00001) == "-99.999 %"
    assert speedup(0.5, 0.45, 0.55) == "2.00x (1.81 to 2.23)"  # 1 / 0.55 = 1.818…, 1 / 0.45 = 2.222…


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.861, 0.914, "at least 8.6 % faster (between 8.6 and 14 %)"),
        (1.08, 1.14, "at least 8.0 % slower (between 8.0 and 14 %)"),
        (
            0.36,
            0.38,
            "at least 2.63 times as fast (between 2.63 and 2.78 times)",
        ),  # 1 / 0.38 = 2.631…, 1 / 0.36 = 2.777…
        (2.1, 2.399, "at least 2.10 times the time (between 2.10 and 2.40 times)"),
    ],
)
def test_a_claim_is_the_end_nearer_to_no_change(low: float, high: float, text: str) -> None:
    assert claim(low, high) == text


@given(st.floats(0.51, 0.949), st.floats(0.5, 1.0))
def test_no_claim_is_more_than_its_interval(high: float, narrower: float) -> None:
    found = re.fullmatch(
        r"at least ([\d.]+) % faster \(between ([\d.]+) and ([\d.]+) %\)", claim(high * narrower, high)
    )
    assert found is not None
    assert found[1] == found[2]
    assert Fraction(found[1]) <= 100 * (1 - Fraction(repr(high)))
    assert Fraction(found[3]) >= 100 * (1 - Fraction(repr(high * narrower)))


def test_a_time_stands_with_its_further_end() -> None:
    assert plus_minus(1.0e-3, 0.99e-3, 1.021e-3) == "1 ms ±2.1 %"
    assert plus_minus(1.0e-3, 0.99e-3, 2.0e-3) == "1 ms (990 us to 2 ms)"
    assert plus_minus(1.0e-3, None, None) == "1 ms"
    assert plus_minus(None, None, None) == "–"


# verdicts alone make a highlight


def five(name: str, time_s: float, **fields: Any) -> BenchRow:
    """Five processes, 1 % apart."""
    return row(name, *(time_s * (1 + n / 100) for n in range(-2, 3)), **fields)


def two_runs(times: dict[str, tuple[float, float]]) -> tuple[BenchRun, BenchRun]:
    base = run(*(five(name, a) for name, (a, _) in times.items()))
    new = run(*(five(name, b) for name, (_, b) in times.items()), date="2026-01-03T00:00:00+00:00")
    return base, new


def test_what_stands_out_is_what_verdicts_say() -> None:
    base, new = two_runs({"quick": (1.0, 0.7), "slow": (1.0, 1.4), "same": (1.0, 1.0)})
    wild = row("wild", 1.0, 0.1, 3.0, 0.5, 2.0), row("wild", 0.1, 0.1, 0.1, 0.1, 5.0)
    base, new = replace(base, rows=(*base.rows, wild[0])), replace(new, rows=(*new.rows, wild[1]))
    document = report((Part(role="after", name="v1", run=base), Part(role="current", name="", run=new)))
    assert [r["key"] for r in document["highlights"]] == ["quick/forward"]
    assert [r["key"] for r in document["areas_of_note"]] == ["slow/forward"]
    assert [r["key"] for r in document["undecided"]] == ["wild/forward"]
    # five against five at 99 %: from the least over the largest to the largest over the least
    (fast,) = table(report_blocks(document), "Performance highlights")
    worst, best = Fraction("0.714") / Fraction("0.98"), Fraction("0.686") / Fraction("1.02")
    least, most = (int(100 * (1 - worst)), -int(-100 * (1 - best) // 1))
    assert fast["what the interval allows to say"] == f"at least {least} % faster (between {least} and {most} %)"
    assert "AFTER (v1)" in told(report_blocks(document))


def test_a_machine_that_moved_is_said_once_and_slows_no_row() -> None:
    base, new = two_runs({f"layer{n}": (1.0 + n, 1.31 * (1.0 + n)) for n in range(6)})
    document = report((Part(role="after", name="after", run=base), Part(role="current", name="", run=new)))
    assert document["areas_of_note"] == []
    assert told(report_blocks(document)).count("all rows together moved by +31 %") == 1


def test_beside_a_machine_that_moved_a_claim_is_of_the_row_alone() -> None:
    times = {f"layer{n}": (1.0 + n, 1.5 * (1.0 + n)) for n in range(19)}
    base, new = two_runs({**times, "gained": (1.0, 1.0)})
    document = report((Part(role="after", name="after", run=base), Part(role="current", name="", run=new)))
    (gained,) = document["highlights"]
    # its own ratio is 1 (0.96 to 1.04): a third less than what the others moved by
    assert gained["high"] == pytest.approx(1.02 / 0.98 / 1.5, rel=1e-6)
    assert gained["claim"].endswith("faster (between 30 and 36 %), beside what all rows moved by")


def test_runs_that_are_the_same_are_not_compared_twice() -> None:
    base, new = two_runs({"a": (1.0, 0.5)})
    parts = (
        Part(role="before", name="before", why_not="none"),
        Part(role="after", name="after", run=base),
        Part(role="current", name="", run=new),
        Part(role="previous", name="", run=base),
    )
    assert [(b.role, n.role) for b, n in pairs_of(parts)] == [("after", "current")]
    assert "PREVIOUS: the same run as AFTER." in told(report_blocks(report(parts)))


def test_without_an_after_the_current_run_is_held_against_before() -> None:
    base, new = two_runs({"a": (1.0, 0.5)})
    parts = Part(role="before", name="before", run=base), Part(role="current", name="", run=new)
    (found,) = table(report_blocks(report(parts)), "CURRENT")
    assert found["vs BEFORE"].startswith("faster: -50 %")


# a comparison


def test_a_comparison_begins_with_what_matters_and_the_worst_row() -> None:
    base, new = two_runs({"quick": (1.0, 0.7), "worse": (1.0, 1.3), "worst": (1.0, 1.6), "same": (1.0, 1.0)})
    base = replace(base, rows=(*base.rows, row("gone", 1.0), row("old", 1.0, source="x.py:f", shape="in 1")))
    new = replace(new, rows=(*new.rows, row("come", 1.0), row("young", 1.0, source="x.py:f", shape="in 1")))
    document = comparison_document(compared(base, new))
    blocks = comparison_blocks(document)
    assert isinstance(blocks[1], Paragraph)
    assert blocks[1].text == "2 slower, 1 faster, 1 same of 4."
    assert [r["key"].partition("/")[0] for r in document["rows"]] == ["worst", "worse", "same", "quick"]
    rows = table(blocks, "Added, removed and renamed")
    assert [tuple(r.values()) for r in rows] == [
        ("come/forward", "added"), ("gone/forward", "removed"), ("old/forward → young/forward", "renamed"),
    ]  # fmt: skip
    assert [r["verdict"] for r in comparison_rows(document)][4:] == ["added", "removed"]


def test_conditions_that_differ_are_a_warning_and_a_reason() -> None:
    base, new = two_runs({"a": (1.0, 0.5)})
    other = replace(new, machine=replace(MACHINE, fingerprint="beef"))
    document = comparison_document(compared(base, other, allow_mismatch=True))
    warning = next(b for b in comparison_blocks(document) if isinstance(b, Paragraph) and b.tone == "warning")
    assert "another machine" in warning.text
    assert document["counts"][FASTER] == 0


def test_allocations_that_changed_are_named_by_side() -> None:
    old, less = Allocated(framework_count=10, python_count=4), Allocated(framework_count=5, python_count=4)
    document = comparison_document(compared(run(five("a", 1.0, counts=old)), run(five("a", 1.0, counts=less))))
    (found,) = table(comparison_blocks(document), "Allocations and memory that changed")
    assert (found["what"], found["base"], found["new"], found["change"]) == (
        "framework allocations",
        "10",
        "5",
        "-50.0 %",
    )
    assert document["rows"][0]["framework_count_reduction"] == 0.5


# a run


def full_run() -> BenchRun:
    counts = Allocated(framework_count=12, framework_bytes=4096, python_count=3, python_bytes=512)
    work = {"flops": 2_000_000, "bytes": 1_000_000, "roof_s": 0.0005, "kernels": 2, "peak_bytes": 8192}
    return run(
        five("conv", 0.001, counts=counts, source="8x8 | linear 4", shape="in 8x8", **work),
        row("embed", status=NO_ANSWER, reason="no gradient", pass_="backward"),
        row("broken", status="failed", reason="ValueError: no"),
        revision=Revision(commit="0123456789abcdef", dirty=True, label="HEAD"),
        settings=(("time_s", 3.0), ("tf32", False), ("on", None)),
        note="what was done",
    )


def test_a_run_prints_times_memory_and_what_has_no_time() -> None:
    blocks = run_blocks(run_document(full_run()))
    (times,) = [r for r in table(blocks, "Benchmarks: layers") if r["benchmark"] == "conv/forward"]
    assert times == {
        "benchmark": "conv/forward", "time": "1 ms ±2.0 %", "FLOP/s": "2 GFLOP/s", "bytes/s": "1 GB/s", "of roof": "50.0%",
    }  # fmt: skip
    (memory,) = table(blocks, "Allocations, memory and kernels of one run of each")
    assert memory["framework allocations"] == "12"
    assert memory["Python blocks"] == "3"
    assert memory["kernels"] == "2"
    reasons = [(r["status"], r["reason"]) for r in table(blocks, "Without a time")]
    assert reasons == [("n/a", "no gradient"), ("failed", "ValueError: no")]
    text = " ".join(told(blocks).split())
    for said in ("commit 0123456789ab (HEAD) with changes not committed", "tf32 off", "time 3.0 s", "2 threads"):
        assert said in text


def test_fewer_than_five_processes_have_no_interval() -> None:
    document = run_document(run(row("a", 1.0, 1.1, 1.2, 1.3)))
    assert (document["rows"][0]["low_s"], document["rows"][0]["high_s"]) == (None, None)


def test_a_printed_run_is_the_run() -> None:
    document = json.loads(json.dumps(run_document(full_run()), allow_nan=False))
    assert restored(document) == full_run()
    assert document["id"] == full_run().id


# what a user wrote

BREAKERS = (
    "```\nnever closed", "~~~~\nnever closed", "<!-- never closed", "</details></blockquote><h2>mine</h2>",
    "<script>alert(1)</script>", "\\<b>bold", "<details>\n\n```html\n</details>", "    <pre>", "text\n---\n# mine",
    "- a\n  - b\n\n  > c",
    "<?php", "<![CDATA[", "| a | b |\n|---|---|\n<td>", "\x1b[31mred\u202e",
)  # fmt: skip


@pytest.mark.parametrize("note", BREAKERS)
def test_a_note_cannot_break_the_page(note: str) -> None:
    from markdown_it import MarkdownIt

    blocks = (
        Heading(text="Optimizations applied"),
        Words(text=note),
        Heading(text="What follows"),
        Paragraph(text="end"),
    )
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown(blocks))
    opened = [t.type for t in tokens if t.level == 0 and t.type.endswith("_open")]
    assert opened == ["heading_open", "blockquote_open", "heading_open", "paragraph_open"]
    inner = [t for token in tokens for t in (token, *(token.children or ()))]
    assert not any(t.type in ("html_block", "html_inline") for t in inner)
    assert "\x1b" not in terminal(blocks)


def test_a_note_is_printed_as_written() -> None:
    note = "\n- **Conv2D**: `Permute`, 1 < 2 & 3 > 2\n    indented * kept\n\n"
    quoted = "> - **Conv2D**: `Permute`, 1 < 2 & 3 > 2\n>     indented * kept\n"
    assert markdown((Words(text=note),)) == quoted
    assert terminal((Words(text=note),)) == "- **Conv2D**: `Permute`, 1 < 2 & 3 > 2\n    indented * kept\n"


# a comment


def test_a_comment_shows_what_changed_and_folds_the_rest() -> None:
    base, new = two_runs({"quick": (1.0, 0.7), "slow": (1.0, 1.4), "same": (1.0, 1.0)})
    text = comments.render(
        *comment(report((Part(role="after", name="", run=base), Part(role="current", name="", run=new))))
    )
    shown, folded = text.split("<details>")
    assert "1 slower, 1 faster, 1 same of 3." in shown
    assert "slow/forward" in shown
    assert "same/forward" not in shown
    assert "same/forward" in folded
    assert text.count("<details>") == text.count("</details>") == 1


@pytest.mark.parametrize("rows", [400, 3000])
def test_a_comment_is_never_too_long(rows: int) -> None:
    names = {f"{n:04}" + "é|<" * 90: (1.0, 1.0 + n % 3) for n in range(rows)}
    base, new = two_runs(names)
    verdicts = [
        verdict(b, n, SLOWER, 2.0, 1.9, 2.1) if place % 2 else verdict(b, n, SAME, 1.0, 0.99, 1.01)
        for place, (b, n) in enumerate(zip(base.rows, new.rows, strict=True))
    ]
    text = comments.render(*comment(comparison_document(held(base, new, *verdicts))))
    assert len(text.encode()) <= 60_000
    assert f"{rows // 2} slower, {rows // 2} same of {rows}." in text
    assert re.search(r"\d+ more rows: see the whole report", text)
    assert text.count("<details>") == text.count("</details>") == 1


def test_a_comment_of_sentences_alone_is_cut_at_a_line() -> None:
    text = comments.render(tuple(Paragraph(text=f"line {n}") for n in range(1000)), (), 300)
    assert len(text) <= 300
    assert text.rstrip().rpartition("\n")[2].startswith("line ")


# documents


def documents() -> dict[str, dict[str, Any]]:
    base, new = two_runs({"quick": (1.0, 0.7), "slow": (1.0, 1.4)})
    return {
        "run": run_document(full_run()),
        "comparison": comparison_document(compared(base, new)),
        "report": seed_document(),
    }


def schema() -> Any:
    return json.loads((ROOT / "src/rooflens/report/schemas/bench-1.json").read_text())


@pytest.mark.parametrize("kind", ["run", "comparison", "report"])
def test_documents_follow_their_schema(kind: str) -> None:
    import jsonschema

    document = json.loads(json.dumps(documents()[kind], allow_nan=False))
    assert document["kind"] == kind
    jsonschema.validate(document, schema())


def fields(found: dict[str, Any]) -> set[str]:
    inner = [*found.get("anyOf", ()), *([found["items"]] if "items" in found else [])]
    named = found.get("properties", {})
    return {*named, *(name for sub in (*named.values(), *inner) for name in fields(sub))}


def test_every_field_is_documented() -> None:
    page = (ROOT / "docs" / "bench-json.md").read_text()
    named = {name for branch in schema()["allOf"] for name in fields(branch["then"])}
    assert sorted(name for name in named if f"`{name}`" not in page and f"`{name}[]`" not in page) == []


def test_a_saved_document_is_drawn_again(tmp_path: Path, cli: Any) -> None:
    for kind, document in documents().items():
        file = tmp_path / f"{kind}.json"
        file.write_text(json.dumps(document))
        done = cli("report", str(file), "--format", "csv")
        assert (done.returncode, done.stderr) == (0, "")
        expected = {"run": 3, "comparison": 2, "report": 24}[kind]
        assert len(done.stdout.splitlines()) == 1 + expected


def test_a_damaged_document_is_refused_by_field(tmp_path: Path, cli: Any) -> None:
    file = tmp_path / "run.json"
    document = documents()["run"]
    document["rows"][0]["processes"][0]["samples_s"] = ["soon"]
    file.write_text(json.dumps(document))
    for verb in (("report", str(file)), ("bench", "compare", str(file), str(file))):
        done = cli(*verb)
        assert done.returncode == 2
        assert "rows[0].processes[0].samples_s[0]" in done.stderr
        assert len(done.stderr.splitlines()) == 1


# the verb


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three runs of one suite, a run of another one; two baselines."""
    path = tmp_path / "bench.db"
    runs = [
        run(five("a", t), five("b", 1.0), date=f"2026-01-0{n}T00:00:00+00:00") for n, t in enumerate((1.0, 0.5, 0.8), 1)
    ]
    other = run(five("c", 1.0), date="2026-01-02T12:00:00+00:00", suite="other")
    with open_store(path, write=True) as opened:
        ids = [opened.add(r) for r in (*runs, other)]
        opened.set_baseline("before", ids[0])
        opened.set_baseline("after", ids[1])
    return path


def test_the_verb_takes_its_runs_from_the_store(store: Path, cli: Any) -> None:
    done = cli("bench", "report", "--store", str(store), "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    dates = {part["role"]: part["run"]["date"][:10] for part in document["runs"]}
    assert dates == {"before": "2026-01-01", "after": "2026-01-02", "current": "2026-01-03", "previous": "2026-01-02"}
    claims = [(r["key"], r["base"], r["new"]) for r in document["highlights"]]
    assert claims == [("a/forward", "before", "after")]
    assert [(r["key"], r["base"], r["new"]) for r in document["areas_of_note"]] == [("a/forward", "after", "current")]


def test_names_can_be_given_and_unknown_ones_say_what_there_is(store: Path, cli: Any) -> None:
    done = cli("bench", "report", "--store", str(store), "--before", "after", "--after", "latest", "--format", "csv")
    assert done.returncode == 0
    done = cli("bench", "report", "--store", str(store), "--before", "first")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    for name in ("first", "before", "after"):
        assert name in done.stderr


def test_a_baseline_that_is_not_there_is_a_sentence(store: Path, cli: Any) -> None:
    done = cli("bench", "report", "--store", str(store), "--suite", "other")
    assert (done.returncode, done.stderr) == (0, "")
    assert "no run of suite other is named 'before'" in " ".join(done.stdout.split())
    assert "Nothing is compared." in done.stdout
    assert "there is no earlier run" in " ".join(done.stdout.split())


def test_a_run_of_another_machine_is_shown_and_not_compared(store: Path, cli: Any) -> None:
    elsewhere = run(five("a", 0.1), date="2026-01-04T00:00:00+00:00", machine=replace(MACHINE, fingerprint="beef"))
    with open_store(store, write=True) as opened:
        opened.add(elsewhere)
    done = cli("bench", "report", "--store", str(store), "--format", "json")
    document = json.loads(done.stdout)
    assert [p["why_not"] != "" for p in document["comparisons"] if p["new"] == "current"] == [True]
    assert [p["run"] for p in document["runs"] if p["role"] == "previous"] == [None]
    assert document["areas_of_note"] == []
    labelled = json.loads(cli("bench", "report", "--store", str(store), "--format", "json", "--allow-mismatch").stdout)
    found = [r["verdict"] for p in labelled["comparisons"] if p["new"] == "current" for r in p["comparison"]["rows"]]
    assert found == [NOT_COMPARABLE]


def test_the_comment_is_markdown_and_nothing_else(store: Path, cli: Any, tmp_path: Path) -> None:
    done = cli("bench", "report", "--store", str(store), "--pr", "-o", "comment.md")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "1 slower" in (tmp_path / "comment.md").read_text()
    refused = cli("bench", "report", "--store", str(store), "--pr", "--format", "csv")
    assert refused.returncode == 2
    assert "--pr" in refused.stderr


def test_a_page_is_written_beside(store: Path, cli: Any, tmp_path: Path) -> None:
    pytest.importorskip("rooflens.report.render.html")
    done = cli("bench", "report", "--store", str(store), "--html", "page.html", "--format", "md")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Performance highlights" in (tmp_path / "page.html").read_text()
