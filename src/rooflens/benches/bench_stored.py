"""A run in, the plain values that a store keeps and `--format json` prints out; and back."""

import math
from typing import Any

from rooflens.benches.bench_run import (
    Allocated,
    BenchMachine,
    Benchmark,
    BenchRow,
    BenchRun,
    ProcessTimes,
    Revision,
)
from rooflens.benches.sampling import Samples

_ROW = ("status", "reason", "peak_bytes", "kernels", "flops", "bytes", "roof_s")
_RUN = ("date", "suite", "tool", "session", "note", "stopped_by")
_MACHINE = ("fingerprint", "name", "device", "device_name", "threads", "system")
_ALLOCATED = ("framework_count", "framework_bytes", "python_count", "python_bytes")
_BENCHMARK = ("name", "source", "shape", "code_hash", "threshold")


def stored(run: BenchRun) -> dict[str, Any]:
    return {
        **_fields(run, _RUN),
        "machine": _fields(run.machine, _MACHINE),
        "versions": dict(run.versions),
        "revision": None if run.revision is None else _fields(run.revision, ("commit", "dirty", "label")),
        "settings": dict(run.settings),
        "rows": [stored_row(r) for r in run.rows],
    }


def restored(found: dict[str, Any]) -> BenchRun:
    """Fields beyond those that are stored may be there: a printed run has what follows from them too."""
    revision = found["revision"]
    return BenchRun(
        **_picked(found, _RUN),
        machine=BenchMachine(**_picked(found["machine"], _MACHINE)),
        versions=tuple(found["versions"].items()),
        revision=None if revision is None else Revision(**_picked(revision, ("commit", "dirty", "label"))),
        settings=tuple(found["settings"].items()),
        rows=tuple(restored_row(r) for r in found["rows"]),
    )


def stored_row(row: BenchRow) -> dict[str, Any]:
    return {
        "name": row.benchmark.name,
        "pass": row.benchmark.pass_,
        **_fields(row.benchmark, _BENCHMARK[1:]),
        **_fields(row, _ROW),
        **_fields(row.allocated, _ALLOCATED),
        "processes": [_process(p) for p in row.processes],
    }


def _process(p: ProcessTimes) -> dict[str, Any]:
    """NaN and infinity are no numbers in JSON: a reading that was one is told by its reason alone."""
    return {
        "process": p.process,
        "references_s": list(p.references_s),
        "drift": p.drift,
        "others_share": p.others_share,
        "samples_s": list(p.samples.times_s),
        "warmups_s": list(p.samples.warmups_s),
        "rejected": [{"reason": w, "time_s": t if math.isfinite(t) else None} for w, t in p.samples.rejected],
        "switches": p.samples.switches,
    }


def restored_row(found: dict[str, Any]) -> BenchRow:
    return BenchRow(
        benchmark=Benchmark(pass_=found["pass"], **_picked(found, _BENCHMARK)),
        processes=tuple(map(_restored_process, found["processes"])),
        allocated=Allocated(**_picked(found, _ALLOCATED)),
        **_picked(found, _ROW),
    )


def _restored_process(found: dict[str, Any]) -> ProcessTimes:
    rejected = tuple((r["reason"], math.nan if r["time_s"] is None else r["time_s"]) for r in found["rejected"])
    samples = Samples(
        times_s=tuple(found["samples_s"]),
        warmups_s=tuple(found["warmups_s"]),
        rejected=rejected,
        switches=found["switches"],
    )
    references_s = tuple(found["references_s"])
    return ProcessTimes(
        samples=samples, references_s=references_s, **_picked(found, ("process", "drift", "others_share"))
    )


def _fields(record: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _picked(found: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: found[name] for name in names}
