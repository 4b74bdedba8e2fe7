"""Runs in the order they were taken in, the trail of one benchmark through them out: stretches whose times can be compared
with each other, and in each its levels and steps.

Another machine, device, torch, number of threads or shape is another stretch and never a step. Runs of the same conditions
are one stretch also where others lie between them. Times are freed of the machine's own moods by the reference workload,
in each process, where every process of the stretch has one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, stdev

from rooflens.benches.bench_run import OK, BenchRow, BenchRun, ProcessTimes
from rooflens.compare.row_ratio import AS_MEASURED, NORMALISED
from rooflens.compare.states import undisturbed
from rooflens.compare.steps import Level, Levels, levels_of
from rooflens.compare.verdicts import THRESHOLD, together

Conditions = tuple[tuple[str, str | int | None], ...]
_OF_MEDIANS = 1.2533  # how much less certain the median of many is than their mean
_LEAST_SPREAD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One run's time, and that of its quickest and slowest process; `run` is its place among the runs."""

    run: int
    time_s: float
    low_s: float
    high_s: float
    measured_s: float
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Places in `found` are places in `passed`. `method`: normalised | as measured."""

    conditions: Conditions
    method: str
    passed: tuple[Passed, ...]
    found: Levels

    @property
    def drifts(self) -> tuple[Level, ...]:
        return tuple(level for level in self.found.levels if level.drifts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """Stretches in the order of their newest run, the newest first."""

    key: str
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """A run at which nearly all benchmarks stepped alike: the machine did, and not the code."""

    run: int
    ratio: float


def keys_of(runs: Sequence[BenchRun]) -> tuple[str, ...]:
    """Those of the newest run first, in its order."""
    return tuple(dict.fromkeys(row.benchmark.key for run in reversed(runs) for row in run.rows))


def trail_of(runs: Sequence[BenchRun], key: str) -> Trail:
    """`runs`: oldest first."""
    met: dict[Conditions, list[tuple[int, BenchRow]]] = {}
    for place, run in enumerate(runs):
        row = run.row(key)
        if row is not None and row.status == OK and _sound(row):
            met.setdefault(conditions_of(run, row), []).append((place, row))
    newest_first = sorted(met.items(), key=lambda item: item[1][-1][0], reverse=True)
    return Trail(key=key, stretches=tuple(_stretch(conditions, rows) for conditions, rows in newest_first))


def conditions_of(run: BenchRun, row: BenchRow) -> Conditions:
    machine, versions = run.machine, dict(run.versions)
    return (
        ("tool", run.tool),
        ("machine", machine.name),
        ("fingerprint", machine.fingerprint),
        ("device", machine.device_name),
        ("threads", machine.threads),
        ("torch", versions.get("torch")),
        ("cuda", versions.get("cuda")),
        ("shape", row.benchmark.shape),
    )


def moved_together(trails: Sequence[Trail]) -> tuple[Together, ...]:
    """Of the benchmarks that have a level on both sides of a run, nearly all stepped there, and alike."""
    ratios: dict[int, list[float]] = {}
    for trail in trails:
        for stretch in trail.stretches:
            stepped = {step.after: step.ratio for step in stretch.found.steps}
            for place, passed in enumerate(stretch.passed[1:], 1):
                ratios.setdefault(passed.run, []).append(stepped.get(place, 1.0))
    found = ((run, together(r)) for run, r in sorted(ratios.items()))
    return tuple(Together(run=run, ratio=ratio) for run, ratio in found if ratio is not None)


def _sound(row: BenchRow) -> list[ProcessTimes]:
    """Processes whose time has a logarithm."""
    return [p for p in row.processes if p.time_s is not None and math.isfinite(p.time_s) and p.time_s > 0]


def _stretch(conditions: Conditions, rows: list[tuple[int, BenchRow]]) -> Stretch:
    every = [_sound(row) for _, row in rows]
    calm = [undisturbed(of_run, ()) for of_run in every]  # a slower machine is divided out, not left out
    if any(calm):  # runs of which every process was disturbed are no part of the trail
        rows = [row for row, of_run in zip(rows, calm, strict=True) if of_run]
    processes = [list(of_run) for of_run in calm if of_run] or every
    references = [[_reference(p) for p in of_run] for of_run in processes]
    normalised = all(r is not None for of_run in references for r in of_run)
    pace = median(median(r for r in of_run if r) for of_run in references) if normalised else 1.0
    times = [
        [(p.time_s or 0.0) / r * pace if normalised and r else p.time_s or 0.0 for p, r in zip(of_run, of, strict=True)]
        for of_run, of in zip(processes, references, strict=True)
    ]
    passed = tuple(_passed(place, of_run, row) for (place, row), of_run in zip(rows, times, strict=True))
    threshold = rows[-1][1].benchmark.threshold
    found = levels_of([p.time_s for p in passed], THRESHOLD if threshold is None else threshold, _uncertain(times))
    return Stretch(conditions=conditions, method=NORMALISED if normalised else AS_MEASURED, passed=passed, found=found)


def _reference(p: ProcessTimes) -> float | None:
    r = p.reference_s
    return r if r is not None and math.isfinite(r) and r > 0 else None


def _passed(place: int, times: list[float], row: BenchRow) -> Passed:
    return Passed(
        run=place,
        time_s=median(times),
        low_s=min(times),
        high_s=max(times),
        measured_s=median(p.time_s for p in _sound(row) if p.time_s is not None),
        processes=len(times),
    )


def _uncertain(times: list[list[float]]) -> float:
    """How far the median of one run's processes is uncertain by itself: of the usual run, as a share. 0 where too few
    processes say it."""
    shares = [
        _OF_MEDIANS * stdev(map(math.log, of_run)) / math.sqrt(len(of_run))
        for of_run in times
        if len(of_run) >= _LEAST_SPREAD
    ]
    return median(shares) if shares else 0.0
