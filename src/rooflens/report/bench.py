"""A run, or two of them compared, in; their documents out (`rooflens.bench/1`, kinds run and comparison).

A run is printed as it is stored, raw samples and all, with what follows from them beside: a saved document is a run again.
"""

from dataclasses import replace
from statistics import median
from typing import Any

from rooflens.benches.bench_run import BenchRow, BenchRun
from rooflens.benches.bench_stored import stored
from rooflens.compare.bootstrap import interval_of
from rooflens.compare.states import Seconds, processes_of, undisturbed, usual_state
from rooflens.compare.verdicts import (
    FASTER,
    INCONCLUSIVE,
    LEAST_PROCESSES,
    NOT_COMPARABLE,
    SAME,
    SLOWER,
    VERDICTS,
    Comparison,
    Verdict,
)
from rooflens.report.ratios import reduction
from rooflens.resultfile import BENCH_SCHEMA
from rooflens.version import __version__

_WORST_FIRST = (SLOWER, INCONCLUSIVE, NOT_COMPARABLE, SAME, FASTER)


def bench_document(kind: str) -> dict[str, Any]:
    """What every document of this schema begins with."""
    return {"schema": BENCH_SCHEMA, "kind": kind, "rooflens_version": __version__}


def run_document(run: BenchRun) -> dict[str, Any]:
    found = stored(run)
    usual = usual_state(processes_of(run))
    rows = [row | _derived(r, usual) for row, r in zip(found["rows"], run.rows, strict=True)]
    return {**bench_document("run"), "id": run.id, **found, "rows": rows}


def run_summary(run: BenchRun) -> dict[str, Any]:
    """Without the samples: enough for a report of several runs."""
    document = run_document(run)
    for row in document["rows"]:
        row["process_count"] = len(row.pop("processes"))
    return {name: value for name, value in document.items() if name not in ("schema", "kind", "rooflens_version")}


def _derived(row: BenchRow, usual: Seconds) -> dict[str, Any]:
    """Times are those of undisturbed processes, where there are enough of them."""
    calm = undisturbed(row.processes, usual)
    times_s = replace(row, processes=calm).times_s if len(calm) >= LEAST_PROCESSES else row.times_s
    time_s = median(times_s) if times_s else None
    low_s, high_s = _interval(times_s)
    return {
        "key": row.benchmark.key,
        "undisturbed_count": len(calm),
        "time_s": time_s,
        "low_s": low_s,
        "high_s": high_s,
        "flop_per_s": _share(row.flops, time_s),
        "bytes_per_s": _share(row.bytes, time_s),
        "roof_share": _share(row.roof_s, time_s),
    }


def _interval(times_s: tuple[float, ...]) -> tuple[float | None, float | None]:
    """Of fewer processes the least and the largest are no interval of any confidence worth the name."""
    if len(times_s) < LEAST_PROCESSES:
        return None, None
    found = interval_of(times_s)
    return found.low, found.high


def _share(amount: float | None, of: float | None) -> float | None:
    return None if amount is None or not of else amount / of


def comparison_document(found: Comparison) -> dict[str, Any]:
    rows = [_verdict(v, found.moved) for v in found.verdicts]
    return {
        **bench_document("comparison"),
        "base": _side(found.base),
        "new": _side(found.new),
        "counts": {name: found.count(name) for name in VERDICTS},
        "rows": sorted(rows, key=_badness),
        "added": list(found.added),
        "removed": list(found.removed),
        "renamed": [{"from": old, "to": new} for old, new in found.renamed],
        "moved": found.moved,
        "method": found.method,
        "confidence": found.confidence,
        "mismatches": list(found.mismatches),
    }


def _badness(row: dict[str, Any]) -> tuple[int, float, str]:
    return _WORST_FIRST.index(row["verdict"]), -(row["ratio"] or 0.0), row["key"]


def _side(run: BenchRun) -> dict[str, Any]:
    """Which run it is; what it found stands in the rows."""
    found = stored(run)
    kept = ("date", "suite", "tool", "machine", "versions", "revision", "settings", "session")
    return {"id": run.id, **{name: found[name] for name in kept}, "process_count": run.processes}


def _verdict(v: Verdict, moved: float | None) -> dict[str, Any]:
    return {
        "key": v.key,
        "verdict": v.verdict,
        "ratio": v.ratio,
        "low": v.low,
        "high": v.high,
        **_beside(v, moved),
        "threshold": v.threshold,
        "why": v.why,
        **_sides(v),
        **_reductions(v),
    }


def _beside(v: Verdict, moved: float | None) -> dict[str, float | None]:
    """The ratio beside what all rows moved by: all that such a row says of itself."""
    ratios = (("ratio", v.ratio), ("low", v.low), ("high", v.high))
    return {f"beside_{name}": None if ratio is None or moved is None else ratio / moved for name, ratio in ratios}


_SIDES = ("status", "time_s", "framework_count", "framework_bytes", "python_count", "python_bytes", "peak_bytes")


def _sides(v: Verdict) -> dict[str, Any]:
    both = (("base", v.base), ("new", v.new))
    return {f"{side}_{name}": _field(row, name) for name in _SIDES for side, row in both}


def _field(row: BenchRow, name: str) -> Any:
    return getattr(row if hasattr(row, name) else row.allocated, name)


def _reductions(v: Verdict) -> dict[str, float | None]:
    """The share that is gone, exact counts and so without an interval; of rows that do other things there is none."""
    pairs = ((name, getattr(v.base.allocated, name), getattr(v.new.allocated, name)) for name in _SIDES[2:6])
    shares = {name: None if v.verdict == NOT_COMPARABLE else reduction(old, new) for name, old, new in pairs}
    return {f"{name}_reduction": None if share is None else float(share) for name, share in shares.items()}
