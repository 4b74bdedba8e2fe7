"""A run in, the JSON that pytest-benchmark writes and its `compare` reads out.

Each field is what pytest-benchmark documents. What it has no field for (processes, allocations, the machine's fingerprint)
stands under `rooflens`, so that an export that is imported again is the same run.
"""

import math
import statistics
from dataclasses import asdict
from typing import Any

from rooflens.benches.bench_run import BenchRow, BenchRun

FORMAT_VERSION = "5.1.0"  # of pytest-benchmark, whose format this is
OURS = "rooflens"


def pytest_benchmark_document(run: BenchRun) -> dict[str, Any]:
    """Rows without a time are left out: the format has no place for them."""
    machine, revision = run.machine, run.revision
    versions = dict(run.versions)
    system, *release, arch = machine.system.split(" ") if " " in machine.system else (machine.system, "")
    return {
        "machine_info": {
            "node": None,
            "processor": machine.name,
            "machine": arch,
            "python_version": versions.get("python"),
            "release": " ".join(release),
            "system": system,
            "cpu": {"brand_raw": machine.device_name, "count": machine.threads},
        },
        "commit_info": {
            "id": revision.commit if revision else "unversioned",
            "time": None,
            "author_time": None,
            "dirty": revision.dirty if revision else False,
            "project": run.suite,
            "branch": revision.label if revision else "(unknown)",
        },
        "benchmarks": [_benchmark(row) for row in run.rows if _samples(row)],
        "datetime": run.date,
        "version": FORMAT_VERSION,
        OURS: {
            "run": run.id,
            "suite": run.suite,
            "tool": run.tool,
            "machine": asdict(machine),
            "versions": versions,
        },
    }


def left_out(run: BenchRun) -> tuple[str, ...]:
    """Names of the rows that have no time."""
    return tuple(row.benchmark.key for row in run.rows if not _samples(row))


def _samples(row: BenchRow) -> list[float]:
    return [t for p in row.processes for t in p.samples.times_s]


def _benchmark(row: BenchRow) -> dict[str, Any]:
    b = row.benchmark
    return {
        "group": None,
        "name": b.key,
        "fullname": b.key,
        "params": None,
        "param": None,
        "extra_info": {
            OURS: {
                "name": b.name,
                "pass": b.pass_,
                "source": b.source,
                "shape": b.shape,
                "code_hash": b.code_hash,
                "threshold": b.threshold,
                "process_rounds": [len(p.samples.times_s) for p in row.processes if p.samples.times_s],
                **asdict(row.allocated),
                "peak_bytes": row.peak_bytes,
                "bytes": row.bytes,
            }
        },
        "options": {
            "disable_gc": True,
            "timer": "perf_counter",
            "min_rounds": 1,
            "max_time": 0.0,
            "min_time": 0.0,
            "warmup": False,
        },
        "stats": stats_of(_samples(row)),
    }


def stats_of(data: list[float]) -> dict[str, Any]:
    """Outliers: beyond a standard deviation of the mean, and beyond 1.5 interquartile ranges of a quartile."""
    ordered, mean = sorted(data), statistics.mean(data)
    deviation = statistics.stdev(data) if len(data) > 1 else 0.0
    q1, q3 = quartiles(ordered)
    low, high = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
    inside = [t for t in ordered if low <= t <= high]
    of_deviation = sum(abs(t - mean) > deviation for t in data)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": deviation,
        "rounds": len(data),
        "median": statistics.median(data),
        "iqr": q3 - q1,
        "q1": q1,
        "q3": q3,
        "iqr_outliers": len(data) - len(inside),
        "stddev_outliers": of_deviation,
        "outliers": f"{of_deviation};{len(data) - len(inside)}",
        "ld15iqr": inside[0] if inside else ordered[0],
        "hd15iqr": inside[-1] if inside else ordered[-1],
        "ops": len(data) / math.fsum(data),
        "total": math.fsum(data),
        "data": data,
        "iterations": 1,
    }


def quartiles(ordered: list[float]) -> tuple[float, float]:
    """Medians of the halves where their number is even, else the mean of the two ways to halve, as pytest-benchmark does."""
    number = len(ordered)
    if number == 1:
        return ordered[0], ordered[0]
    half = number // 2
    if number % 2 == 0:
        return statistics.median(ordered[:half]), statistics.median(ordered[half:])
    with_middle = statistics.median(ordered[: half + 1]), statistics.median(ordered[half:])
    without = statistics.median(ordered[:half]), statistics.median(ordered[half + 1 :])
    return (with_middle[0] + without[0]) / 2, (with_middle[1] + without[1]) / 2
