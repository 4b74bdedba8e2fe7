"""The JSON of pytest-benchmark in (`--benchmark-json`, or a file of its storage), rows and machine out.

`stats.data` are the rounds, in seconds for one iteration; a file that was saved without them has the median alone. What
`bench export` wrote says besides how many of them each process took.
"""

from typing import Any

from rooflens.benches.bench_run import FAILED, Allocated, BenchMachine, Benchmark, Revision
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

TOOL = "pytest-benchmark"
OURS = "rooflens"  # the key of what pytest-benchmark has no field for
_STAYS = ("system", "machine", "processor")
_CPU_STAYS = ("brand_raw", "brand", "arch", "count", "l2_cache_size", "l3_cache_size")


def is_pytest_benchmark(content: Content) -> bool:
    document = fields(content.document)
    return isinstance(document.get("benchmarks"), list) and ("machine_info" in document or "commit_info" in document)


def read_pytest_benchmark(content: Content) -> Found:
    document = fields(content.document)
    ours, commit = fields(document.get(OURS)), fields(document.get("commit_info"))
    benchmarks = [fields(b) for b in document["benchmarks"]]
    rows = tuple(_row(content.path, place, b) for place, b in enumerate(benchmarks))
    without = sum(not fields(b.get("stats")).get("data") for b in benchmarks)
    told = f"{content.path}: {without} of {len(rows)} have no raw data, their medians are taken: save with --benchmark-json"
    return Found(
        tool=word(ours.get("tool")) or TOOL,
        suite=word(ours.get("suite")) or word(commit.get("project")) or TOOL,
        date=utc(document.get("datetime"), content.modified),
        machine=_machine(fields(document.get("machine_info")), fields(ours.get("machine"))),
        rows=rows,
        versions=tuple(_versions(document)),
        revision=_revision(commit),
        notes=(told,) if without else (),
    )


def _row(path: str, place: int, found: dict[str, Any]) -> FoundRow:
    name = word(found.get("fullname")) or word(found.get("name"))
    if not name:
        raise FormatError(f"{path}: benchmarks[{place}] has no name: save the result again")
    stats, ours = fields(found.get("stats")), fields(fields(found.get("extra_info")).get(OURS))
    benchmark = _benchmark(name, ours)
    data = stats.get("data") or ([stats["median"]] if stats.get("median") is not None else [])
    if not isinstance(data, list):
        raise FormatError(f"{path}: stats.data of {name} is no list: save the result again")
    samples = tuple(seconds(t, path, f"stats of {name}") for t in data)
    if not samples:
        return FoundRow(benchmark=benchmark, status=FAILED, reason="no time is saved")
    return FoundRow(
        benchmark=benchmark,
        processes=_processes(samples, ours.get("process_rounds")),
        allocated=Allocated(**{n: whole(ours.get(n)) for n in Allocated.__dataclass_fields__}),
        peak_bytes=whole(ours.get("peak_bytes")),
        bytes=whole(ours.get("bytes")),
    )


def _benchmark(name: str, ours: dict[str, Any]) -> Benchmark:
    if word(ours.get("name")):
        threshold = ours.get("threshold")
        return Benchmark(
            name=ours["name"],
            pass_=word(ours.get("pass")),
            source=word(ours.get("source")),
            shape=word(ours.get("shape")) or None,
            code_hash=word(ours.get("code_hash")) or None,
            threshold=threshold if isinstance(threshold, float) and 0 < threshold < 10 else None,
        )
    return benchmark_of(name, name)


def _processes(samples: tuple[float, ...], rounds: Any) -> tuple[tuple[float, ...], ...]:
    if (
        not isinstance(rounds, list)
        or not all(isinstance(n, int) and n > 0 for n in rounds)
        or sum(rounds) != len(samples)
    ):
        return (samples,)
    ends = [sum(rounds[: n + 1]) for n in range(len(rounds))]
    return tuple(samples[end - n : end] for end, n in zip(ends, rounds, strict=True))


def _machine(info: dict[str, Any], ours: dict[str, Any]) -> BenchMachine:
    """Without the name of the host and the clocks, which change on one machine."""
    cpu = fields(info.get("cpu"))
    name = word(cpu.get("brand_raw")) or word(cpu.get("brand")) or word(info.get("processor")) or "unknown"
    stays = [[k, info.get(k)] for k in _STAYS] + [[k, cpu.get(k)] for k in _CPU_STAYS]
    return BenchMachine(
        fingerprint=word(ours.get("fingerprint")) or fingerprint_of((TOOL, stays)),
        name=word(ours.get("name")) or name,
        device=word(ours.get("device")) or "cpu",
        device_name=word(ours.get("device_name")) or name,
        threads=whole(ours.get("threads")),
        system=word(ours.get("system"))
        or " ".join(word(info.get(k)) for k in ("system", "release", "machine") if word(info.get(k))),
    )


def _versions(document: dict[str, Any]) -> list[tuple[str, str]]:
    info, ours = fields(document.get("machine_info")), fields(fields(document.get(OURS)).get("versions"))
    if ours:
        return [(name, word(v)) for name, v in ours.items()]
    found = (("python", info.get("python_version")), (TOOL, document.get("version")))
    return [(name, word(v)) for name, v in found if word(v)]


def _revision(commit: dict[str, Any]) -> Revision | None:
    found = word(commit.get("id"))
    if not found or found in ("unversioned", "unknown"):
        return None
    return Revision(commit=found, dirty=bool(commit.get("dirty")), label=word(commit.get("branch")))
