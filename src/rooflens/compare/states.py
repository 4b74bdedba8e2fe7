"""Processes of runs in, those that met the machine in its usual state out: the others measured what else it did.

The usual state is the best that was met often: for each piece of the reference work, the time that a tenth of all processes
stayed below. On a machine that is alone with its user all states are usual.
"""

from collections.abc import Iterable
from statistics import quantiles

from rooflens.benches.bench_run import BenchRun, ProcessTimes

BUSY = 0.15  # of one CPU's time to others: more than the ticks of an idle system
SLOWER = 1.3  # than usual, in one of the pieces: noise of a quiet machine stays below
Seconds = tuple[float, ...]


def usual_state(processes: Iterable[ProcessTimes]) -> Seconds:
    """Empty where some process has no reference beside it."""
    found = [p.references_s for p in processes]
    if not found or not all(found) or len({len(of) for of in found}) > 1:
        return ()
    if len(found) == 1:
        return found[0]
    return tuple(quantiles(part, n=10, method="inclusive")[0] for part in zip(*found, strict=True))


def processes_of(*runs: BenchRun) -> list[ProcessTimes]:
    return [p for run in runs for row in run.rows for p in row.processes]


def undisturbed(processes: Iterable[ProcessTimes], usual: Seconds) -> tuple[ProcessTimes, ...]:
    return tuple(p for p in processes if not _disturbed(p, usual))


def _disturbed(p: ProcessTimes, usual: Seconds) -> bool:
    slowed = any(s > SLOWER * u for s, u in zip(p.references_s, usual, strict=False))
    return slowed or (p.drift or 1.0) > SLOWER or (p.others_share or 0.0) > BUSY
