"""Steps in the history of benchmarks: what is one, what is none, what can be on one line, and what is shown of it."""

import csv
import io
import json
import math
import random
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from rooflens.benches.bench_run import (
    FAILED,
    BenchMachine,
    Benchmark,
    BenchRow,
    BenchRun,
    ProcessTimes,
    Revision,
)
from rooflens.benches.sampling import Samples
from rooflens.compare.steps import LEAST, Z99, Levels, cut, levels_of, student
from rooflens.compare.trails import Trail, keys_of, moved_together, trail_of
from rooflens.report.blocks import Block, Heading, Paragraph, Series, Table
from rooflens.report.history import history_document
from rooflens.report.render import html, markdown, terminal
from rooflens.report.sections.history import history_blocks, history_rows, short_ids
from rooflens.store.store import open_store

Cli = Callable[..., Any]


def noise(seed: int, count: int = 30, share: float = 0.02) -> list[float]:
    r = random.Random(seed)
    return [math.exp(r.gauss(0, share)) for _ in range(count)]


def stepped(times: Iterable[float], at: int, ratio: float) -> list[float]:
    return [t * (ratio if k >= at else 1) for k, t in enumerate(times)]


def places(found: Levels) -> list[int]:
    return [step.after for step in found.steps]


# the maths


@pytest.mark.parametrize(
    ("degrees", "value"), [(4, 4.604), (6, 3.707), (8, 3.355), (18, 2.878), (30, 2.750), (120, 2.617)]
)
def test_student_is_that_of_printed_tables(degrees: int, value: float) -> None:
    assert student(degrees, Z99) == pytest.approx(value, rel=0.01)


def all_cuts(count: int) -> Iterable[tuple[int, ...]]:
    for levels in range(count // LEAST + 1):
        for inner in combinations(range(1, count), levels):
            bounds = (0, *inner, count)
            if all(b - a >= LEAST for a, b in pairwise(bounds)):
                yield bounds


@pytest.mark.parametrize("seed", range(12))
def test_levels_are_the_cheapest_of_all(seed: int) -> None:
    """Held against every way to cut a short series."""
    r = random.Random(seed)
    logs = [r.gauss(0, 1) + 3 * (k >= r.randint(3, 9)) for k in range(12)]

    def price(bounds: Sequence[int]) -> float:
        parts = [logs[a:b] for a, b in pairwise(bounds)]
        return sum(abs(y - median(part)) for part in parts for y in part) + 6 * 0.5 * len(parts)

    assert price(cut(logs, 0.5)) == pytest.approx(min(map(price, all_cuts(12))))


def test_five_hundred_series_of_noise_have_hardly_a_step() -> None:
    """At most 1 %, whatever the size of the noise."""
    for share in (0.02, 0.05):
        found = [levels_of(noise(seed, share=share)) for seed in range(500)]
        assert sum(bool(f.steps) for f in found) <= 5
        assert sum(level.drifts for f in found for level in f.levels) <= 5


@pytest.mark.parametrize("ratio", [1.1, 1 / 1.1])
@pytest.mark.parametrize("at", [5, 15, 25])
def test_ten_percent_is_found_at_its_place(ratio: float, at: int) -> None:
    found = [levels_of(stepped(noise(seed), at, ratio)) for seed in range(150)]
    right = [f for f in found if len(f.steps) == 1 and abs(f.steps[0].after - at) <= 1]
    assert len(right) >= 0.95 * 150
    assert sum(f.steps[0].low <= ratio <= f.steps[0].high for f in right) >= 0.95 * len(right)


def test_five_runs_of_five_processes_on_either_side_are_enough() -> None:
    """Each process 2 % off: their median is what a run has."""
    found = []
    for seed in range(150):
        r = random.Random(seed)
        runs = [median(math.exp(r.gauss(0, 0.02)) for _ in range(5)) for _ in range(10)]
        found.append(levels_of(stepped(runs, 5, 1.1)))
    assert sum(len(f.steps) == 1 and abs(f.steps[0].after - 5) <= 1 for f in found) >= 0.95 * 150


def test_a_step_without_noise_is_told_exactly() -> None:
    found = levels_of([2.0] * 5 + [2.5] * 5)
    step = found.steps[0]
    assert (step.after, step.sure) == (5, True)
    assert (step.ratio, step.low, step.high) == pytest.approx((1.25, 1.25, 1.25))
    assert [(v.first, v.last) for v in found.levels] == [(0, 4), (5, 9)]
    assert [(v.start, v.end) for v in found.levels] == [pytest.approx((2.0, 2.0)), pytest.approx((2.5, 2.5))]


def test_two_steps_are_found() -> None:
    right = sum(places(levels_of(stepped(stepped(noise(s), 10, 1.2), 20, 1 / 1.15))) == [10, 20] for s in range(50))
    assert right >= 48


@pytest.mark.parametrize("at", [0, 1, 14, 28, 29])
@pytest.mark.parametrize("factor", [3.0, 1 / 3])
def test_one_run_alone_is_no_step(at: int, factor: float) -> None:
    for seed in range(20):
        times = noise(seed)
        times[at] *= factor
        assert places(levels_of(times)) == []


def test_two_runs_in_a_row_are_no_step_yet() -> None:
    for seed in range(20):
        times = noise(seed)
        times[12] *= 1.5
        times[13] *= 1.6
        assert places(levels_of(times)) == []


def test_an_outlier_hides_no_step() -> None:
    times = stepped(noise(1), 15, 1.15)
    times[8] *= 2
    times[20] /= 2
    assert places(levels_of(times)) == [15]


def test_what_is_within_the_threshold_is_no_step() -> None:
    """However plain it is; a smaller threshold makes it one."""
    times = stepped(noise(3, share=0.001), 15, 1.04)
    assert places(levels_of(times)) == []
    assert places(levels_of(times, threshold=0.02)) == [15]


def test_what_may_be_within_the_threshold_is_not_sure() -> None:
    unsure = levels_of(stepped(noise(4, share=0.01), 15, 1.055)).steps
    assert [s.sure for s in unsure] == [False] and unsure[0].low < 1.05 < unsure[0].ratio
    assert levels_of(stepped(noise(4, share=0.01), 15, 1.10)).steps[0].sure


def test_what_creeps_is_a_drift_and_no_step() -> None:
    for seed in range(20):
        found = levels_of([t * 1.01**k for k, t in enumerate(noise(seed, share=0.01))])
        assert places(found) == [] and [v.drifts for v in found.levels] == [True]
        assert found.levels[0].end / found.levels[0].start == pytest.approx(1.01**29, rel=0.05)


def test_processes_that_differ_more_than_runs_do_decide() -> None:
    """Runs that agree by luck: their own processes say that they are uncertain by 10 %."""
    times = [1.0] * 5 + [1.1] * 5
    assert levels_of(times).steps[0].sure and not levels_of(times, floor=0.1).steps


@pytest.mark.parametrize("times", [[], [1.0], [1.0, 9.0], [1.0, 2.0, 3.0, 4.0, 5.0], [7e-9] * 40])
def test_short_and_equal_series_have_no_steps(times: list[float]) -> None:
    found = levels_of(times)
    assert not found.steps and sum(v.last - v.first + 1 for v in found.levels) == len(times)


# trails: what is on one line


def run(
    day: int, times: dict[str, list[float]], *, reference: list[float] | None = None, machine: str = "a", threads: int = 4,
    torch: str = "2.7.0", shape: str = "8x3", status: dict[str, str] | None = None, **others: Any,
) -> BenchRun:  # fmt: skip
    """A run with a list of process times by key."""

    def row(key: str, seconds: list[float]) -> BenchRow:
        name, _, pass_ = key.partition("/")
        references = reference or [None] * len(seconds)
        processes = tuple(
            ProcessTimes(process=p, samples=Samples(times_s=(s, s, s)), references_s=(r, r, r) if r else ())
            for p, (s, r) in enumerate(zip(seconds, references, strict=True))
        )
        state = (status or {}).get(key, "ok")
        return BenchRow(benchmark=Benchmark(name=name, pass_=pass_, shape=shape), processes=processes, status=state)

    box = BenchMachine(fingerprint=f"f-{machine}", name=machine, device="cpu", device_name="CPU", threads=threads)
    given = {
        "suite": "default",
        "tool": "rooflens",
        "date": f"2026-{1 + day // 28:02}-{1 + day % 28:02}T12:00:00+00:00",
    }
    rows = tuple(row(*item) for item in times.items())
    return BenchRun(**(given | others), machine=box, versions=(("torch", torch),), rows=rows)


def five(seconds: float, seed: int, share: float = 0.01) -> list[float]:
    r = random.Random(seed)
    return [seconds * math.exp(r.gauss(0, share)) for _ in range(5)]


def trails(runs: Sequence[BenchRun]) -> list[Trail]:
    return [trail_of(runs, key) for key in keys_of(runs)]


def steps_of(trail: Trail) -> list[tuple[int, float]]:
    """The place of the run among all runs, and the ratio."""
    return [(s.passed[t.after].run, round(t.ratio, 2)) for s in trail.stretches for t in s.found.steps]


def test_a_slow_machine_is_taken_out_by_the_reference() -> None:
    """It takes half as long again from the tenth run on, the workload and all; the code is slower by a fifth from the 20th."""
    runs = []
    for day in range(30):
        pace = 1.5 if day >= 10 else 1.0
        times = [t * pace for t in five(1.2e-3 if day >= 20 else 1e-3, day)]
        runs.append(run(day, {"conv": times}, reference=[2e-3 * pace] * 5))
    trail = trail_of(runs, "conv")
    assert [s.method for s in trail.stretches] == ["normalised"]
    assert steps_of(trail) == [(20, pytest.approx(1.2, abs=0.02))]
    plain = [run(k, {"conv": [p.time_s or 0 for p in r.rows[0].processes]}) for k, r in enumerate(runs)]
    assert [place for place, _ in steps_of(trail_of(plain, "conv"))] == [10, 20]


def test_normalised_times_are_seconds_at_the_usual_pace() -> None:
    """Three runs whose references are 1, 2 and 4 s: the usual pace is 2."""
    runs = [run(k, {"conv": [10.0 * r] * 3}, reference=[r] * 3) for k, r in enumerate((1.0, 2.0, 4.0))]
    passed = trail_of(runs, "conv").stretches[0].passed
    assert [(p.time_s, p.measured_s) for p in passed] == [(20.0, 10.0), (20.0, 20.0), (20.0, 40.0)]


def test_one_process_without_a_reference_leaves_all_as_measured() -> None:
    runs = [run(k, {"conv": [1.0, 2.0, 4.0]}, reference=[1.0] * 3) for k in range(3)]
    odd = run(3, {"conv": [1.0, 2.0, 4.0]}, reference=[1.0, 0.0, 1.0])
    stretch = trail_of([*runs, odd], "conv").stretches[0]
    assert stretch.method == "as measured"
    assert {(p.time_s, p.low_s, p.high_s, p.processes) for p in stretch.passed} == {(2.0, 1.0, 4.0, 3)}


@pytest.mark.parametrize(
    "change", [{"machine": "b"}, {"threads": 8}, {"torch": "2.8.0"}, {"shape": "8x6"}, {"tool": "go"}]
)
def test_other_conditions_are_another_stretch(change: dict[str, Any]) -> None:
    runs = [run(k, {"conv": five(2e-3 if k >= 8 else 1e-3, k)}, **(change if k >= 8 else {})) for k in range(16)]
    trail = trail_of(runs, "conv")
    assert [len(s.passed) for s in trail.stretches] == [8, 8] and not steps_of(trail)
    assert trail.stretches[0].passed[-1].run == 15, "the newest is first"


def test_machines_that_take_turns_have_a_line_each() -> None:
    runs = [run(k, {"conv": five((1 + k % 2) * (1.3 if k >= 20 else 1), k)}, machine="ab"[k % 2]) for k in range(40)]
    assert sorted(steps_of(trail_of(runs, "conv"))) == [
        (20, pytest.approx(1.3, abs=0.03)),
        (21, pytest.approx(1.3, abs=0.03)),
    ]


def test_rows_without_a_time_are_left_out() -> None:
    runs = [run(0, {"conv": [1.0]}, status={"conv": FAILED}), run(1, {"conv": []}), run(2, {"conv": [0.0]}), run(3, {})]
    assert trail_of(runs, "conv").stretches == ()
    assert [p.run for p in trail_of([*runs, run(4, {"conv": [1.0]})], "conv").stretches[0].passed] == [4]


def test_all_that_move_together_are_the_machine() -> None:
    names = [f"layer{n}" for n in range(6)]
    runs = [run(k, {n: five(1.3 if k >= 10 else 1.0, k * 10 + i) for i, n in enumerate(names)}) for k in range(20)]
    found = moved_together(trails(runs))
    assert [(m.run, m.ratio) for m in found] == [(10, pytest.approx(1.3, abs=0.02))]
    alone = [run(k, {n: five(1.3 if k >= 10 and n == "layer0" else 1.0, k) for n in names}) for k in range(20)]
    assert moved_together(trails(alone)) == ()


# the document and what is shown


def history(days: int = 20, **others: Any) -> list[BenchRun]:
    def one(day: int) -> BenchRun:
        times = {"conv/forward": five(1.2e-3 if day >= 12 else 1e-3, day), "conv/backward": five(3e-3, day + 100)}
        revision = Revision(commit=f"{day:040x}", dirty=day == 12)
        return run(
            day, times, reference=[1e-3] * 5, revision=revision, note="why\nmore" if day == 5 else None, **others
        )

    return [one(day) for day in range(days)]


def document(runs: list[BenchRun], **others: Any) -> dict[str, Any]:
    return (
        history_document(runs, trails(runs), {runs[3].id: ("before",)}, **others)
        if runs
        else history_document([], [], {})
    )


def blocks_of(kind: type, blocks: tuple[Block, ...]) -> list[Any]:
    return [b for b in blocks if isinstance(b, kind)]


def test_the_document_holds_runs_points_and_steps() -> None:
    runs = history()
    found = json.loads(json.dumps(document(runs)))
    assert (found["schema"], found["kind"]) == ("rooflens.bench/1", "history")
    assert [r["id"] for r in found["runs"]] == [r.id for r in reversed(runs)]
    assert [r["baselines"] for r in found["runs"] if r["baselines"]] == [["before"]]
    forward, backward = found["benchmarks"]
    assert [b["key"] for b in (forward, backward)] == ["conv/forward", "conv/backward"]
    (stretch,) = forward["stretches"]
    assert [p["run"] for p in stretch["points"]] == [r.id for r in runs]
    (step,) = stretch["steps"]
    assert (step["before"], step["after"], step["sure"]) == (runs[11].id, runs[12].id, True)
    assert step["low"] < 1.2 < step["high"] and backward["stretches"][0]["steps"] == []


def test_the_table_tells_runs_newest_first() -> None:
    runs = history()
    blocks = history_blocks(document(runs))
    table = blocks_of(Table, blocks)[0]
    names = [c.name for c in table.columns]
    assert names == ["run", "date", "commit", "baselines", "note"], "what all runs share is one sentence"
    assert [row[0] for row in table.rows] == list(reversed(list(short_ids([r.id for r in runs]).values())))
    assert table.rows[-6][4] == "why" and table.rows[-4][3] == "before"
    assert [row[2][-1] == "+" for row in table.rows].count(True) == 1
    shared = "Of every run: suite default, tool rooflens, processes 5, machine a."
    assert shared in [p.text for p in blocks_of(Paragraph, blocks)]


def test_a_step_is_told_with_its_run() -> None:
    runs = history()
    series = blocks_of(Series, history_blocks(document(runs)))[0]
    (step,) = series.steps
    assert step.after == 12 and step.up and step.sure
    assert f"at run {runs[12].id[:4]} (commit 0000000+, 2026-01-13)" in step.text
    text = terminal.render(history_blocks(document(runs)))
    assert "1 step to slower, 0 steps to faster" in " ".join(text.split())


def test_stretches_are_named_by_what_differs() -> None:
    runs = [*history(8), *history(12, threads=8)[8:]]
    titles = [b.title for b in blocks_of(Series, history_blocks(document(runs)))]
    assert titles == ["Threads 8", "Threads 4"] * 2
    assert [b.title for b in blocks_of(Series, history_blocks(document(history())))] == ["", ""]


def test_a_history_of_nothing_says_so() -> None:
    assert "No runs yet" in terminal.render(history_blocks(document([])))
    empty = [run(0, {"conv": [1.0]}, status={"conv": FAILED})]
    blocks = history_blocks(history_document(empty, trails(empty), {}))
    assert "No run has a time of it." in terminal.render(blocks) and "conv" in [
        h.text for h in blocks_of(Heading, blocks)
    ]


def test_rows_have_a_line_a_run_and_benchmark() -> None:
    rows = history_rows(document(history()))
    assert len(rows) == 40 and len({tuple(r) for r in rows}) == 1
    assert [r["date"][:10] for r in rows if r["step_ratio"] is not None] == ["2026-01-13"]


def test_ids_are_as_short_as_tells_them_apart() -> None:
    assert short_ids(["abcd1", "abce1", "b0000"]) == {"abcd1": "abcd", "abce1": "abce", "b0000": "b000"}
    assert short_ids(["abcd1", "abcd2"]) == {"abcd1": "abcd1", "abcd2": "abcd2"}
    assert short_ids(["abcdef", "abcdef"]) == {"abcdef": "abcd"} and short_ids([]) == {}


def test_the_page_is_the_same_whatever_draws_it_again() -> None:
    blocks = history_blocks(document(history()))
    assert html.render(blocks) == html.render(history_blocks(json.loads(json.dumps(document(history())))))
    assert markdown.render(blocks) and html.render(blocks).count("<svg") == 2


# the command line


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    with open_store(path, write=True) as opened:
        ids = [opened.add(r) for r in (*history(), run(25, {"norm": [1.0]}, suite="other"))]
        opened.set_baseline("before", ids[3])
    return path


def test_the_verb_shows_runs_and_steps(cli: Cli, store: Path) -> None:
    done = cli("bench", "history", "--store", str(store), "--html", "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Step up: +" in done.stdout and "norm" in done.stdout
    page = (store.parent / "page.html").read_text()
    assert page.count("<svg") == 3 and "default-src 'none'" in page


def test_the_verb_prints_one_json_document(cli: Cli, store: Path) -> None:
    done = cli(
        "bench",
        "history",
        "conv/forward",
        "--store",
        str(store),
        "--suite",
        "default",
        "--limit",
        "9",
        "--format",
        "json",
    )
    found = json.loads(done.stdout)
    assert (done.returncode, found["kind"], len(found["runs"])) == (0, "history", 9)
    assert [b["key"] for b in found["benchmarks"]] == ["conv/forward"] and found["suite"] == "default"
    assert found["runs"][0]["date"].startswith("2026-01-20")


def test_a_name_without_a_pass_is_all_of_its_passes(cli: Cli, store: Path) -> None:
    done = cli("bench", "history", "conv", "--store", str(store), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {r["benchmark"] for r in rows} == {"conv/forward", "conv/backward"} and len(rows) == 40


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("conv2",), "Did you mean conv"),
        (("conv/foward",), "Did you mean conv/forward"),
        (("--suite", "defualt"), "Did you mean default"),
        (("--limit", "0"), "--limit 0"),
        (("--format", "xml"), "--format xml"),
    ],
)
def test_what_is_not_there_is_said_in_a_line(cli: Cli, store: Path, arguments: tuple[str, ...], said: str) -> None:
    done = cli("bench", "history", *arguments, "--store", str(store), "--html", "page.html")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr and not (store.parent / "page.html").exists()


def test_a_store_that_is_not_there_is_said_in_a_line(cli: Cli) -> None:
    for where in ((), ("--store", "none.db")):
        done = cli("bench", "history", *where)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_a_page_that_cannot_be_written_leaves_nothing(cli: Cli, store: Path) -> None:
    done = cli("bench", "history", "--store", str(store), "--html", "no/page.html", "-o", "out.txt")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and not (store.parent / "out.txt").exists()


EVIL = '</script><img src=x onerror=x>{{7*7}}\x1b[31m\0\u202e\ud800"'


def test_names_of_strangers_are_text_everywhere(cli: Cli, tmp_path: Path) -> None:
    """Of a benchmark, a suite, a tool, a machine, a commit, a note: shown in each form, and nothing acts."""
    others = {"machine": EVIL, "suite": EVIL, "tool": EVIL, "note": EVIL, "shape": EVIL * 1000}
    changed = others | {"shape": "8x3", "revision": Revision(commit=EVIL, dirty=True)}
    with open_store(tmp_path / "runs.db", write=True) as opened:
        for k in range(12):
            opened.add(run(k, {EVIL: five(2.0 if k > 5 else 1.0, k)}, **(others if k % 2 else changed)))
    for form in ("table", "md", "csv", "json"):
        done = cli(
            "bench", "history", "--store", "runs.db", "--format", form, "--html", "page.html", "-o", f"out.{form}"
        )
        assert (done.returncode, done.stderr) == (0, "")
    texts = {form: (tmp_path / f"out.{form}").read_text() for form in ("table", "md", "csv", "json")}
    page = (tmp_path / "page.html").read_text()
    for form, text in (*texts.items(), ("html", page)):
        assert ("{{7\\*7}}" if form == "md" else "{{7*7}}") in text, form
        assert all(c.isprintable() or c == "\n" for c in text), form
    assert "<img" not in page and "<script" not in page and "&lt;img src=x" in page
    assert "<img" not in re.sub(r"`[^`]*`", "", texts["md"])
    assert json.loads(texts["json"])["benchmarks"][0]["key"] == EVIL, "whole in JSON"
