"""Results of other tools in, and runs out: what each format says of a benchmark is what the record holds."""

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflens.benches.bench_run import FAILED, NOT_RUN, OK, BenchRun
from rooflens.benches.imports.formats import FORMATS, imported
from rooflens.errors import (
    ConfigError,
    EmptyError,
    FileError,
    FormatError,
    MismatchError,
    RooflensError,
    SchemaError,
    SyntaxFault,
)
from rooflens.report.bench import run_document
from rooflens.report.bench_export import pytest_benchmark_document, stats_of

GO = """goos: linux
goarch: amd64
pkg: github.com/acme/nn/layers
cpu: Intel(R) Core(TM) i7-8750H CPU @ 2.20GHz
BenchmarkConv2D/Forward-8         \t       3\t1457734861 ns/op\t27263560 B/op\t      21 allocs/op
BenchmarkConv2D/Backward-8        \t       1\t7708476288 ns/op\t27856576 B/op\t      92 allocs/op
BenchmarkEncode-8                 \t   50000\t     24036 ns/op\t   0.66 MB/s\t        12.5 widgets/op
BenchmarkTiny-8                   \t1000000000\t         0.2500 ns/op
--- FAIL: BenchmarkBroken-8
    broken_test.go:12: index out of range
--- SKIP: BenchmarkGPU-8
    gpu_test.go:7: no device
PASS
ok  \tgithub.com/acme/nn/layers\t65.380s
"""

GOOGLE: dict[str, Any] = {
    "context": {
        "date": "2024-03-01T12:00:00+02:00", "host_name": "box", "executable": "./build/bench_conv", "num_cpus": 8,
        "mhz_per_cpu": 4000, "cpu_scaling_enabled": False, "load_avg": [1.0, 1.2],
        "caches": [{"type": "Data", "level": 1, "size": 32768, "num_sharing": 2}],
        "library_version": "v1.9.0", "library_build_type": "release", "json_schema_version": 1,
    },
    "benchmarks": [
        {"name": "BM_Conv/8", "run_name": "BM_Conv/8", "run_type": "iteration", "repetitions": 3, "repetition_index": i,
         "threads": 1, "iterations": 100, "real_time": t, "cpu_time": 1.0, "time_unit": "us", "bytes_per_second": 2.0e9,
         "allocs_per_iter": 4.0, "max_bytes_used": 512}
        for i, t in enumerate((10.0, 12.0, 11.0))
    ] + [
        {"name": "BM_Conv/8_mean", "run_name": "BM_Conv/8", "run_type": "aggregate", "aggregate_name": "mean",
         "real_time": 99.0, "cpu_time": 1.0, "time_unit": "us", "threads": 1},
        {"name": "BM_Slow", "run_name": "BM_Slow", "run_type": "iteration", "threads": 1, "real_time": 1.5, "cpu_time": 1.5,
         "time_unit": "s"},
        {"name": "BM_Bad", "run_name": "BM_Bad", "run_type": "iteration", "threads": 1, "error_occurred": True,
         "error_message": "no input", "real_time": 0.0, "cpu_time": 0.0, "time_unit": "ns"},
    ],
}  # fmt: skip

PYTEST: dict[str, Any] = {
    "machine_info": {
        "node": "runner-17", "processor": "x86_64", "machine": "x86_64", "python_version": "3.12.4", "release": "6.1",
        "system": "Linux",
        "cpu": {"brand_raw": "AMD EPYC 9654", "count": 4, "hz_actual": [2400000000, 0], "l2_cache_size": 1048576},
    },
    "commit_info": {
        "id": "0a3ee3960b760e9bdb355dc3f772ed429d8e86b1", "time": "2024-03-01T09:00:00Z", "dirty": True, "project": "parser",
        "branch": "main",
    },
    "benchmarks": [
        {"group": None, "name": "test_parse[small]", "fullname": "tests/test_p.py::test_parse[small]", "param": "small",
         "params": {"n": "small"}, "extra_info": {}, "options": {},
         "stats": {"data": [0.25, 0.5, 0.75], "median": 0.5, "mean": 0.5, "iterations": 10, "rounds": 3}},
        {"group": None, "name": "test_dump", "fullname": "tests/test_p.py::test_dump", "params": None, "param": None,
         "extra_info": {}, "options": {}, "stats": {"median": 0.125, "mean": 0.2, "iterations": 1, "rounds": 9}},
    ],
    "datetime": "2024-03-01T10:00:00.000001",
    "version": "5.1.0",
}  # fmt: skip

FILES: dict[str, str] = {"go": GO, "google-benchmark": json.dumps(GOOGLE), "pytest-benchmark": json.dumps(PYTEST)}


def written(folder: Path, text: str, name: str = "found.txt") -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def read(folder: Path, text: str) -> BenchRun:
    return imported([written(folder, text)]).run


def times(run: BenchRun) -> dict[str, tuple[tuple[float, ...], ...]]:
    return {r.benchmark.key: tuple(p.samples.times_s for p in r.processes) for r in run.rows}


# what each format says


def test_go(tmp_path: Path) -> None:
    run = read(tmp_path, GO)
    rows = {r.benchmark.key: r for r in run.rows}
    assert list(rows) == ["Conv2D/forward", "Conv2D/backward", "Encode", "Tiny", "Broken", "GPU"]
    assert rows["Conv2D/forward"].time_s == pytest.approx(1.457734861, rel=1e-15)
    assert rows["Tiny"].time_s == pytest.approx(0.25e-9, rel=1e-15)
    allocated = rows["Conv2D/backward"].allocated
    assert (allocated.framework_count, allocated.framework_bytes, allocated.python_count) == (92, 27856576, None)
    assert rows["Encode"].bytes == round(0.66e6 * 24036e-9) == 16  # b.SetBytes(16), told as a rate
    assert rows["Encode"].allocated.framework_count is None
    assert [(rows[k].status, rows[k].reason) for k in ("Broken", "GPU")] == [
        (FAILED, "broken_test.go:12: index out of range"), (NOT_RUN, "gpu_test.go:7: no device"),
    ]  # fmt: skip
    machine = run.machine
    assert (machine.name, machine.system, machine.threads) == (
        "Intel(R) Core(TM) i7-8750H CPU @ 2.20GHz",
        "linux amd64",
        8,
    )
    assert (run.suite, run.tool, run.revision) == ("github.com/acme/nn/layers", "go test", None)
    notes = imported([written(tmp_path, GO)]).notes
    assert any("widgets/op" in n for n in notes)


def test_go_repetitions_are_samples_of_one_process(tmp_path: Path) -> None:
    text = "".join(f"BenchmarkA-4 \t 100 \t {t} ns/op\n" for t in (1000, 3000, 2000))
    found = imported([written(tmp_path, text)])
    assert times(found.run) == {"A": (pytest.approx((1e-6, 3e-6, 2e-6)),)}
    assert found.run.processes == 1
    assert any("1 process" in n and "5 files" in n for n in found.notes)


def test_go_names_keep_their_ending_where_it_is_no_fact_of_the_run(tmp_path: Path) -> None:
    one = read(tmp_path, "BenchmarkA/size-16 \t 1 \t 5 ns/op\nBenchmarkB \t 1 \t 5 ns/op\n")
    assert (list(times(one)), one.machine.threads) == (["A/size-16", "B"], None)
    list_of_cpus = read(
        tmp_path, "BenchmarkA \t 1 \t 5 ns/op\nBenchmarkA-2 \t 1 \t 5 ns/op\nBenchmarkA-4 \t 1 \t 5 ns/op\n"
    )
    assert (list(times(list_of_cpus)), list_of_cpus.machine.threads) == (["A", "A-2", "A-4"], None)


def test_go_packages_stay_apart(tmp_path: Path) -> None:
    run = read(tmp_path, "pkg: x/a\nBenchmarkRun-2 1 5 ns/op\npkg: x/b\nBenchmarkRun-2 1 7 ns/op\n")
    assert times(run) == {"x/a.Run": (pytest.approx((5e-9,)),), "x/b.Run": (pytest.approx((7e-9,)),)}


def test_go_json_events(tmp_path: Path) -> None:
    lines = GO.splitlines(keepends=True)
    pieces = [piece for line in lines for piece in (line[:10], line[10:])]  # a line may come in two events
    events = "".join(
        json.dumps({"Time": "2024-03-01T10:00:00Z", "Action": "output", "Package": "p", "Output": p}) + "\n"
        for p in pieces
    )
    start = json.dumps({"Action": "start", "Package": "p"}) + "\n"
    assert times(read(tmp_path, start + events)) == times(read(tmp_path, GO))


def test_google_benchmark(tmp_path: Path) -> None:
    run = read(tmp_path, FILES["google-benchmark"])
    rows = {r.benchmark.key: r for r in run.rows}
    assert times(run) == {"BM_Conv/8": (pytest.approx((10e-6, 12e-6, 11e-6)),), "BM_Slow": ((1.5,),), "BM_Bad": ()}
    assert (rows["BM_Bad"].status, rows["BM_Bad"].reason) == (FAILED, "no input")
    conv = rows["BM_Conv/8"]
    assert (conv.bytes, conv.allocated.framework_count, conv.peak_bytes) == (round(2.0e9 * 11e-6), 4, 512)
    assert (run.date, run.suite, run.machine.threads) == ("2024-03-01T10:00:00+00:00", "bench_conv", 1)
    assert dict(run.versions) == {"google-benchmark": "v1.9.0"}


def test_google_benchmark_of_before_it_said_what_an_aggregate_is(tmp_path: Path) -> None:
    runs = [
        {"name": n, "real_time": t, "cpu_time": t, "time_unit": "ns"}
        for n, t in (("BM_A", 5), ("BM_A_mean", 7), ("BM_A_stddev", 1))
    ]
    run = read(tmp_path, json.dumps({"context": {"date": "2018-01-01 10:00:00", "num_cpus": 2}, "benchmarks": runs}))
    assert times(run) == {"BM_A": (pytest.approx((5e-9,)),)}


def test_a_number_that_google_benchmark_does_not_have_is_no_fault(tmp_path: Path) -> None:
    text = FILES["google-benchmark"].replace('"load_avg"', '"my_counter": NaN, "load_avg"')
    assert len(read(tmp_path, text).rows) == 3


def test_the_clock_is_no_part_of_a_machine(tmp_path: Path) -> None:
    google = json.loads(FILES["google-benchmark"])
    google["context"] |= {"mhz_per_cpu": 800, "load_avg": [7.0], "date": "2025-01-01T00:00:00+00:00"}
    assert read(tmp_path, json.dumps(google)).machine == read(tmp_path, FILES["google-benchmark"]).machine
    pytest_ = json.loads(FILES["pytest-benchmark"])
    pytest_["machine_info"]["node"], pytest_["machine_info"]["cpu"]["hz_actual"] = "runner-18", [800000000, 0]
    assert (
        read(tmp_path, json.dumps(pytest_)).machine.fingerprint
        == read(tmp_path, FILES["pytest-benchmark"]).machine.fingerprint
    )


def test_pytest_benchmark(tmp_path: Path) -> None:
    found = imported([written(tmp_path, FILES["pytest-benchmark"])])
    run = found.run
    assert times(run) == {
        "tests/test_p.py::test_parse[small]": ((0.25, 0.5, 0.75),),
        "tests/test_p.py::test_dump": ((0.125,),),
    }
    assert any("1 of 2 have no raw data" in n for n in found.notes)
    assert run.revision is not None and (run.revision.commit[:8], run.revision.dirty, run.revision.label) == (
        "0a3ee396",
        True,
        "main",
    )
    assert (run.suite, run.machine.name, dict(run.versions)["python"]) == ("parser", "AMD EPYC 9654", "3.12.4")
    assert run.date == "2024-03-01T10:00:00+00:00"


# files


@pytest.mark.parametrize("name", [f.name for f in FORMATS])
def test_every_format_is_told_by_its_content_alone(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, FILES[name], "results")
    assert times(imported([path]).run) == times(imported([path], as_=name).run)
    for other in FORMATS:
        if other.name != name:
            with pytest.raises(FormatError, match="results"):
                imported([path], as_=other.name)


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_one_process(tmp_path: Path, name: str) -> None:
    paths = [written(tmp_path, FILES[name], f"{i}.out") for i in range(5)]
    found = imported(paths, suite="s", note="words")
    assert (found.run.processes, found.run.suite, found.run.note) == (5, "s", "words")
    assert not any("a verdict needs" in n for n in found.notes)
    assert all(len(r.processes) in (0, 5) for r in found.run.rows)


def test_a_row_that_a_file_lacks_keeps_the_numbers_of_the_processes(tmp_path: Path) -> None:
    texts = ("BenchmarkA-2 1 5 ns/op\n", "BenchmarkA-2 1 6 ns/op\nBenchmarkB-2 1 7 ns/op\n")
    run = imported([written(tmp_path, t, f"{i}.txt") for i, t in enumerate(texts)]).run
    assert [[p.process for p in r.processes] for r in run.rows] == [[0, 1], [1]]


def test_files_of_two_machines_are_refused(tmp_path: Path) -> None:
    for a, b in ((GO, GO.replace("i7-8750H", "i9-10940X")), (GO, GO.replace("-8 ", "-4 ").replace("-8\n", "-4\n"))):
        with pytest.raises(MismatchError, match=r"b\.txt"):
            imported([written(tmp_path, a, "a.txt"), written(tmp_path, b, "b.txt")])


def test_files_of_two_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"b\.json.*go test"):
        imported([written(tmp_path, GO, "a.txt"), written(tmp_path, FILES["google-benchmark"], "b.json")])


def test_a_time_of_nothing_is_rejected_and_kept(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "BenchmarkA-2 1 0 ns/op\nBenchmarkA-2 1 5 ns/op\n").rows
    assert row.status == OK and row.time_s == pytest.approx(5e-9)
    assert row.processes[0].samples.rejected == (("no time passed", 0.0),)


def _changed(document: dict[str, Any], **fields: Any) -> str:
    found = json.loads(json.dumps(document))
    found["benchmarks"][0] |= fields
    return json.dumps(found)


FAULTS: dict[str, tuple[str | bytes, type[RooflensError], str]] = {
    "missing": (b"", FileError, "cannot be read"),
    "empty": (" \n", EmptyError, "is empty"),
    "prose": ("It is fast.\n", FormatError, "say which with --as"),
    "binary": (b"\x7fELF\0\0\0", FormatError, "not text"),
    "not UTF-8": ("BenchmarkÄ 1 5 ns/op".encode("latin-1"), FormatError, "UTF-8"),
    "go without results": ("goos: linux\nPASS\nok x 1s\n", FormatError, "say which"),
    "go NaN": ("BenchmarkA-2 1 NaN ns/op\n", FormatError, "line 1"),
    "go negative": ("BenchmarkA-2 1 5 ns/op\nBenchmarkB-2 1 -5 ns/op\n", FormatError, "line 2"),
    "go beyond a clock": ("BenchmarkA-2 1 1e300 ns/op\n", FormatError, "no measurement"),
    "pytest beyond a clock": (_changed(PYTEST, stats={"data": [1e300]}), FormatError, "1e+300 is no time"),
    "go no number": ("BenchmarkA-2 1 fast ns/op\n", FormatError, "'fast'"),
    "go cut off": ("BenchmarkA-2 1 5\n", FormatError, "cut off"),
    "JSON cut off": (FILES["google-benchmark"][:200], ConfigError, "cut off"),
    "another JSON": ('{"results": []}', FormatError, "say which"),
    "deep JSON": ('{"a":' * 5000 + "1" + "}" * 5000, ConfigError, "nested"),
    "google nothing": ('{"context": {}, "benchmarks": []}', EmptyError, "no benchmark"),
    "google NaN": (_changed(GOOGLE, real_time=math.nan), FormatError, "real_time of BM_Conv/8"),
    "google text": (_changed(GOOGLE, real_time="5"), FormatError, "str is no time"),
    "google unit": (_changed(GOOGLE, time_unit="jiffies"), FormatError, "jiffies"),
    "google nameless": (_changed(GOOGLE, name=None, run_name=None), FormatError, "no name"),
    "google aggregates": (json.dumps({"context": {}, "benchmarks": [GOOGLE["benchmarks"][3]]}), FormatError, "aggregates alone"),
    "pytest nothing": ('{"machine_info": {}, "benchmarks": []}', EmptyError, "no benchmark"),
    "pytest NaN": (_changed(PYTEST, stats={"data": [0.5, math.nan]}), FormatError, "nan is no time"),
    "pytest no list": (_changed(PYTEST, stats={"data": "0.5"}), FormatError, "no list"),
    "a comparison of ours": ('{"schema": "rooflens.bench/1", "kind": "comparison"}', FormatError, "'bench run --format json'"),
    "a newer run of ours": ('{"schema": "rooflens.bench/2", "kind": "run"}', SchemaError, "rooflens.bench/1"),
    "half a run of ours": ('{"schema": "rooflens.bench/1", "kind": "run", "rows": []}', ConfigError, "no whole run"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults(tmp_path: Path, name: str) -> None:
    content, error, words = FAULTS[name]
    path = tmp_path / "results"
    if content:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(error) as raised:
        imported([str(path)])
    assert str(raised.value).startswith(str(path)) and words in str(raised.value)
    assert "\n" not in str(raised.value) and raised.value.status == 2


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("tool",), 5, "run.tool is a int"),
        (("date",), None, "run.date is a NoneType"),
        (("machine", "threads"), "8", "run.machine.threads is a str"),
        (("rows", 0, "bytes"), 10**30, "run.rows[0].bytes is a int"),
        (("rows", 0, "processes", 0, "samples_s"), ["x"], "times_s[0] is a str"),
        (("rows", 0, "processes", 0, "samples_s"), [-1.0], "hold what is no time"),
        (("versions",), [], "no whole run"),
        (("rows", 0, "pass"), ..., "no whole run"),
    ],
)
def test_a_saved_run_is_held_to_its_record(tmp_path: Path, place: tuple[Any, ...], value: Any, words: str) -> None:
    document = json.loads(json.dumps(run_document(read(tmp_path, GO))))
    assert read(tmp_path, json.dumps(document)).id == document["id"]
    *above, last = place
    inside = document
    for key in above:
        inside = inside[key]
    inside[last] = value
    if value is ...:
        del inside[last]
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, json.dumps(document))
    assert words in str(raised.value)


def test_an_unknown_format_is_told(tmp_path: Path) -> None:
    with pytest.raises(SyntaxFault, match="go google-benchmark pytest-benchmark"):
        imported([written(tmp_path, GO)], as_="jmh")


@given(st.text(max_size=300))
def test_any_text_is_a_run_or_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_text("Benchmark" + text, "utf-8", errors="replace")
    try:
        assert imported([str(path)]).run.rows
    except RooflensError as error:
        assert error.status == 2


# exports


@pytest.mark.parametrize("name", FILES)
def test_an_export_that_is_imported_again_is_the_same_run(tmp_path: Path, name: str) -> None:
    run = imported([written(tmp_path, FILES[name], f"{i}") for i in range(3)]).run
    again = read(tmp_path, json.dumps(pytest_benchmark_document(run)))
    timed = [r for r in run.rows if r.processes]
    assert times(again) == {k: v for k, v in times(run).items() if v}
    assert [r.allocated for r in again.rows] == [r.allocated for r in timed]
    assert [r.benchmark for r in again.rows] == [r.benchmark for r in timed]
    assert (again.machine.fingerprint, again.suite, again.tool, again.date) == (
        run.machine.fingerprint,
        run.suite,
        run.tool,
        run.date,
    )


def test_pytest_benchmark_finds_every_field_it_reads() -> None:
    """Those that its table, its CSV and its checks take: see its `stats.py`, `table.py` and `storage/file.py`."""
    data = [0.5, 0.25, 1.0, 0.75, 9.0, 0.5]
    stats = stats_of(data)
    ordered = sorted(data)
    q1, q3 = statistics.median(ordered[:3]), statistics.median(ordered[3:])
    low, high = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
    mean, deviation = statistics.fmean(data), statistics.stdev(data)
    outside = sum(not low <= t <= high for t in data)
    beyond = sum(not mean - deviation <= t <= mean + deviation for t in data)
    assert stats == {
        "min": 0.25, "max": 9.0, "mean": mean, "stddev": deviation, "rounds": 6, "median": statistics.median(data), "iqr": q3 - q1,
        "q1": q1, "q3": q3, "iqr_outliers": outside, "stddev_outliers": beyond, "outliers": f"{beyond};{outside}", "ld15iqr": 0.25,
        "hd15iqr": 1.0, "ops": 6 / 12.0, "total": 12.0, "data": data, "iterations": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "quartiles"),
    [
        ([5.0], (5.0, 5.0)),
        ([1.0, 2.0, 3.0], (0.75 * 1 + 0.25 * 2, 0.25 * 2 + 0.75 * 3)),
        ([1.0, 2.0, 3.0, 4.0, 5.0], (0.25 * 1 + 0.75 * 2, 0.75 * 4 + 0.25 * 5)),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], (0.75 * 2 + 0.25 * 3, 0.25 * 5 + 0.75 * 6)),
        ([1.0, 2.0, 3.0, 4.0], (1.5, 3.5)),
    ],
)
def test_quartiles_are_those_of_pytest_benchmark(data: list[float], quartiles: tuple[float, float]) -> None:
    """Wikipedia's methods 2 and 3, which it names."""
    stats = stats_of(data)
    assert (stats["q1"], stats["q3"]) == pytest.approx(quartiles)


# the command line


def test_in_and_out_again(cli: Callable[..., Any], tmp_path: Path) -> None:
    for i in range(5):
        written(tmp_path, GO.replace("24036", str(24036 + i)), f"bench-{i}.txt")
    came = cli("bench", "import", *(f"bench-{i}.txt" for i in range(5)), "--baseline", "before", "--format", "json")
    assert came.returncode == 3, "a benchmark of it failed"
    run = json.loads(came.stdout)
    assert (run["schema"], run["kind"], len(run["rows"])) == ("rooflens.bench/1", "run", 6)
    assert "kept as run" in came.stderr and "named before" in came.stderr
    saved = cli("bench", "export", "before", "-o", "run.json")
    assert saved.returncode == 0 and json.loads((tmp_path / "run.json").read_text("utf-8"))["id"] == run["id"]
    again = cli("bench", "import", "run.json", "--store", "other.db", "--format", "json")
    assert json.loads(again.stdout)["id"] == run["id"]
    foreign = cli("bench", "export", "--as", "pytest-benchmark", "-o", "p.json")
    assert foreign.returncode == 0 and "left out: Broken, GPU" in foreign.stderr
    back = cli("bench", "import", "p.json", "--suite", "back", "--format", "json")
    assert back.returncode == 0
    kept = {r["key"]: r["time_s"] for r in run["rows"] if r["time_s"] is not None}
    assert {r["key"]: r["time_s"] for r in json.loads(back.stdout)["rows"]} == kept
    assert len(cli("bench", "export", "before", "--as", "csv").stdout.splitlines()) == 1 + 6
    assert "Conv2D" in cli("bench", "export", "before", "--as", "md").stdout


def test_imports_get_verdicts(cli: Callable[..., Any], tmp_path: Path) -> None:
    """Six processes of either side, one of five benchmarks 20 % slower."""
    names, spread = ("Conv/Forward", "Conv/Backward", "Pool", "Norm", "Relu"), (1.0, 1.004, 0.997, 1.002, 0.999, 1.003)
    for side, factor in (("a", 1.0), ("b", 1.2)):
        for i, noise in enumerate(spread):
            lines = [f"Benchmark{n}-8 100 {1e6 * noise * (factor if n == 'Pool' else 1):.1f} ns/op" for n in names]
            written(tmp_path, "\n".join(["goos: linux", "pkg: x/layers", "cpu: C", *lines, ""]), f"{side}-{i}.txt")
        assert cli("bench", "import", *(f"{side}-{i}.txt" for i in range(6)), "--baseline", side).returncode == 0
    found = cli("bench", "compare", "a", "b", "--format", "json")
    verdicts = {r["key"]: r["verdict"] for r in json.loads(found.stdout)["rows"]}
    assert found.returncode == 1 and verdicts == {
        "Conv/forward": "same", "Conv/backward": "same", "Pool": "slower", "Norm": "same", "Relu": "same",
    }  # fmt: skip


def test_a_benchmark_that_failed_in_one_file_is_told(tmp_path: Path) -> None:
    texts = ("BenchmarkA-2 1 5 ns/op\n", "--- FAIL: BenchmarkA-2\n    a_test.go:3: no\n")
    found = imported([written(tmp_path, t, f"{i}.txt") for i, t in enumerate(texts)])
    assert found.run.rows[0].status == OK and any("1.txt: A failed: a_test.go:3: no" in n for n in found.notes)


def test_a_fault_is_one_line_and_makes_no_store(cli: Callable[..., Any], tmp_path: Path) -> None:
    written(tmp_path, "It is fast.\n", "prose.txt")
    for args in (
        ("bench", "import", "prose.txt"),
        ("bench", "import", "missing.txt"),
        ("bench", "export", "--as", "xml"),
        ("bench", "export"),
    ):
        found = cli(*args)
        assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1), args
        assert found.stderr.startswith("rooflens: E_")
    assert not (tmp_path / ".rooflens").exists()


def test_a_skipped_go_benchmark_does_not_rename_the_others(tmp_path: Path) -> None:
    """The lines of a skipped one carry no number of threads."""
    run = read(
        tmp_path,
        "goos: linux\ngoarch: amd64\npkg: example.org/nn\ncpu: a CPU\n"
        "BenchmarkConv/forward-8 \t 100\t 1000 ns/op\n"
        "--- SKIP: BenchmarkGPU\n    a_test.go:9: no device\nPASS\n",
    )
    assert [r.benchmark.key for r in run.rows if r.status == "ok"] == ["Conv/forward"]
    assert run.machine.threads == 8
