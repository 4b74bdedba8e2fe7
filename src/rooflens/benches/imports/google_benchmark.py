"""The JSON of Google Benchmark in (`--benchmark_out=FILE --benchmark_out_format=json`), rows and machine out.

Real time counts. Repetitions of one name are samples of one process; means, medians and deviations that the tool adds are
none.
"""

import re
from pathlib import PurePosixPath
from statistics import median
from typing import Any

from rooflens.benches.bench_run import FAILED, NOT_RUN, Allocated, BenchMachine
from rooflens.benches.imports.found import (
    Content,
    Found,
    FoundRow,
    benchmark_of,
    fields,
    fingerprint_of,
    seconds,
    utc,
    whole,
    word,
)
from rooflens.errors import FormatError

TOOL = "google-benchmark"
_UNITS = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}  # in a second
_OLD_AGGREGATE = re.compile(r"_(?:mean|median|stddev|cv|BigO|RMS)$")  # files from before 1.5 do not say what is one


def is_google_benchmark(content: Content) -> bool:
    document = fields(content.document)
    return isinstance(document.get("benchmarks"), list) and isinstance(document.get("context"), dict)


def read_google_benchmark(content: Content) -> Found:
    context = fields(fields(content.document).get("context"))
    runs = [fields(b) for b in fields(content.document)["benchmarks"]]
    single = [r for r in runs if not _is_aggregate(r)]
    if runs and not single:
        raise FormatError(
            f"{content.path}: aggregates alone, no single time: run without --benchmark_report_aggregates_only"
        )
    by_name: dict[str, list[dict[str, Any]]] = {}
    for run in single:
        by_name.setdefault(_name(content.path, run), []).append(run)
    executable = PurePosixPath(word(context.get("executable")).replace("\\", "/")).name
    return Found(
        tool=TOOL,
        suite=executable or TOOL,
        date=utc(context.get("date"), content.modified),
        machine=_machine(context, _threads(single)),
        rows=tuple(_row(content.path, name, found) for name, found in by_name.items()),
        versions=((TOOL, word(context.get("library_version"))),) if word(context.get("library_version")) else (),
        settings=tuple(
            (k, context[k]) for k in ("library_build_type", "cpu_scaling_enabled") if _plain(context.get(k))
        ),
        notes=tuple(_notes(content.path, context)),
    )


def _is_aggregate(run: dict[str, Any]) -> bool:
    if "run_type" in run:
        return str(run["run_type"]) == "aggregate"
    return "rms" in run or "big_o" in run or _OLD_AGGREGATE.search(word(run.get("name"))) is not None


def _name(path: str, run: dict[str, Any]) -> str:
    found = word(run.get("run_name")) or word(run.get("name"))
    if not found:
        raise FormatError(f"{path}: a benchmark has no name: save the result again")
    return found


def _row(path: str, name: str, runs: list[dict[str, Any]]) -> FoundRow:
    benchmark = benchmark_of(name, name)
    lost = next((r for r in runs if r.get("error_occurred") or r.get("skipped")), None)
    timed = [r for r in runs if not r.get("error_occurred") and not r.get("skipped")]
    if not timed:
        failed = bool(lost and lost.get("error_occurred"))
        reason = word((lost or {}).get("error_message")) or word((lost or {}).get("skip_message"))
        return FoundRow(benchmark=benchmark, status=FAILED if failed else NOT_RUN, reason=reason or "it says no reason")
    samples = tuple(_time(path, name, r) for r in timed)
    return FoundRow(
        benchmark=benchmark,
        processes=(samples,),
        allocated=Allocated(framework_count=_middle(timed, "allocs_per_iter")),
        peak_bytes=_middle(timed, "max_bytes_used"),
        bytes=_moved(timed, samples),
    )


def _time(path: str, name: str, run: dict[str, Any]) -> float:
    unit = word(run.get("time_unit"), "ns")
    if unit not in _UNITS:
        raise FormatError(
            f"{path}: {name}: time_unit is '{unit[:40]}', not one of {' '.join(_UNITS)}: save the result again"
        )
    return seconds(run.get("real_time"), path, f"real_time of {name}") / _UNITS[unit]


def _middle(runs: list[dict[str, Any]], field: str) -> int | None:
    values = [v for v in (whole(r.get(field)) for r in runs) if v is not None]
    return round(median(values)) if values else None


def _moved(runs: list[dict[str, Any]], samples: tuple[float, ...]) -> int | None:
    """Bytes of one iteration: the rate that it reports counts them in real time unless it says CPU time."""
    rates = [whole(r.get("bytes_per_second")) for r in runs]
    if any(rate is None for rate in rates):
        return None
    return round(median((rate or 0) * t for rate, t in zip(rates, samples, strict=True)))


def _threads(runs: list[dict[str, Any]]) -> int | None:
    found = {whole(r.get("threads")) for r in runs}
    return found.pop() if len(found) == 1 else None


def _machine(context: dict[str, Any], threads: int | None) -> BenchMachine:
    """It names no CPU: its caches, its CPUs and the name of the host have to tell machines apart; the clock does not."""
    host, cpus = word(context.get("host_name")), whole(context.get("num_cpus"))
    caches = context.get("caches") if isinstance(context.get("caches"), list) else []
    name = host or (f"{cpus} CPUs" if cpus else "unknown")
    return BenchMachine(
        fingerprint=fingerprint_of((TOOL, host, cpus, caches)),
        name=name,
        device="cpu",
        device_name=name,
        threads=threads,
        system=f"{cpus} CPUs" if cpus else "",
    )


def _plain(value: Any) -> bool:
    return isinstance(value, str | bool)


def _notes(path: str, context: dict[str, Any]) -> list[str]:
    debug = context.get("library_build_type") == "debug"
    return [f"{path}: measured with a debug build of the library: times are too long"] if debug else []
