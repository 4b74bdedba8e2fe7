"""Runs and the trails of benchmarks through them in, the document of a history out."""

from collections.abc import Mapping, Sequence
from typing import Any

from rooflens.benches.bench_run import BenchRun
from rooflens.compare.steps import Level, Step
from rooflens.compare.trails import Passed, Stretch, Trail, moved_together
from rooflens.report.bench import bench_document

Baselines = Mapping[str, Sequence[str]]


def history_document(
    runs: Sequence[BenchRun], trails: Sequence[Trail], baselines: Baselines, suite: str | None = None
) -> dict[str, Any]:
    """`runs`: oldest first, as the trails count them; the document has the newest first. `baselines`: names by run id."""
    ids = [run.id for run in runs]
    rows = [_run(run, id, baselines.get(id, ())) for run, id in zip(runs, ids, strict=True)]
    return {
        **bench_document("history"),
        "suite": suite,
        "runs": rows[::-1],
        "moved_together": [{"run": ids[m.run], "ratio": m.ratio} for m in moved_together(trails)],
        "benchmarks": [
            {"key": trail.key, "stretches": [_stretch(s, ids) for s in trail.stretches]} for trail in trails
        ],
    }


def _run(run: BenchRun, id: str, baselines: Sequence[str]) -> dict[str, Any]:
    revision = run.revision
    return {
        "id": id,
        "date": run.date,
        "commit": None if revision is None else revision.commit,
        "dirty": None if revision is None else revision.dirty,
        "label": None if revision is None else revision.label or None,
        "suite": run.suite,
        "tool": run.tool,
        "processes": run.processes,
        "machine": run.machine.name,
        "fingerprint": run.machine.fingerprint,
        "baselines": list(baselines),
        "stopped_by": run.stopped_by or None,
        "note": run.note,
    }


def _stretch(stretch: Stretch, ids: list[str]) -> dict[str, Any]:
    of = [ids[p.run] for p in stretch.passed]
    return {
        "conditions": dict(stretch.conditions),
        "method": stretch.method,
        "points": [_point(p, id) for p, id in zip(stretch.passed, of, strict=True)],
        "levels": [_level(level, of) for level in stretch.found.levels],
        "steps": [_step(step, of) for step in stretch.found.steps],
    }


def _point(p: Passed, id: str) -> dict[str, Any]:
    return {
        "run": id, "time_s": p.time_s, "low_s": p.low_s, "high_s": p.high_s, "measured_s": p.measured_s,
        "processes": p.processes,
    }  # fmt: skip


def _level(level: Level, of: list[str]) -> dict[str, Any]:
    return {
        "first": of[level.first], "last": of[level.last], "start_s": level.start, "end_s": level.end,
        "drifts": level.drifts,
    }  # fmt: skip


def _step(step: Step, of: list[str]) -> dict[str, Any]:
    return {
        "before": of[step.after - 1], "after": of[step.after], "ratio": step.ratio, "low": step.low,
        "high": step.high, "sure": step.sure,
    }  # fmt: skip
