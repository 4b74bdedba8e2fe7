"""Something to run in, its raw samples and what was judged of them out.

A sample is kept as it was read, with what else happened meanwhile; `judged` says afterwards which of them count, and why
the others do not. Time lost to a stopped process or to another one is no time of what was measured.
"""

import gc
import math
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

CLEAN_SHARE = 0.9  # with fewer samples kept than this, nothing is concluded
PATIENCE = 3.0  # times the time that was asked for
STOPPED = 2.0  # wall time over CPU time, of something that keeps at least one thread busy
STOPPED_LEAST_S = 0.02
DISTURBED = 1.25  # over the median of the undisturbed ones, or the quickest where none was


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """One reading: seconds for one run, how much CPU time the process took meanwhile (None where the clock is that of
    another device), and how often it was made to wait for another process."""

    time_s: float
    cpu_s: float | None = None
    wall_s: float | None = None
    switches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """`times_s` count; `rejected` are the others, by reason. `warmups_s` came before and were never meant to count."""

    times_s: tuple[float, ...]
    warmups_s: tuple[float, ...] = ()
    rejected: tuple[tuple[str, float], ...] = ()
    switches: int = 0

    @property
    def inconclusive(self) -> bool:
        taken = len(self.times_s) + len(self.rejected)
        return not self.times_s or len(self.times_s) < CLEAN_SHARE * taken

    @property
    def median_s(self) -> float | None:
        return statistics.median(self.times_s) if self.times_s else None

    @property
    def spread(self) -> float | None:
        """Half the distance of the quartiles, as a share of the median."""
        if len(self.times_s) < 2:
            return None
        low, _, high = statistics.quantiles(self.times_s, n=4, method="inclusive")
        return (high - low) / 2 / statistics.median(self.times_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How long to try. A sample runs often enough to be well above what the clock can tell apart."""

    total_s: float = 0.2
    least: int = 5
    most: int = 50
    sample_s: float = 0.002
    warmups: int = 2


def judged(raw: tuple[Raw, ...], warmups_s: tuple[float, ...] = ()) -> Samples:
    """Which samples count: no other process, no stop and no broken clock in them."""
    reasons = verdicts(raw)
    return Samples(
        times_s=tuple(r.time_s for r, why in zip(raw, reasons, strict=True) if not why),
        warmups_s=warmups_s,
        rejected=tuple((why, r.time_s) for r, why in zip(raw, reasons, strict=True) if why),
        switches=sum(r.switches for r in raw),
    )


def verdicts(raw: tuple[Raw, ...]) -> list[str]:
    """Why each of them does not count; empty where it does."""
    reasons = [_broken(r) for r in raw]
    sound = [r.time_s for r, why in zip(raw, reasons, strict=True) if not why and not r.switches]
    whole = [r.time_s for r, why in zip(raw, reasons, strict=True) if not why]
    usual = statistics.median(sound) if sound else min(whole, default=0.0)
    return [why or _disturbed(r, usual) for r, why in zip(raw, reasons, strict=True)]


def _broken(r: Raw) -> str:
    if math.isnan(r.time_s) or math.isinf(r.time_s):
        return "not a number"
    if r.time_s < 0:
        return "the clock went backward"
    if r.time_s == 0:
        return "no time passed"
    wall_s = r.time_s if r.wall_s is None else r.wall_s
    if r.cpu_s is not None and wall_s > STOPPED * r.cpu_s + STOPPED_LEAST_S:
        return "the process was stopped"
    return ""


def _disturbed(r: Raw, usual_s: float) -> str:
    return "another process ran meanwhile" if r.switches and r.time_s > DISTURBED * usual_s else ""


def sampled(run: Callable[[], object], budget: Budget) -> Samples:
    """Host time of `run`, which returns when it is done."""
    with collector_off():
        first = [timed(run, 1).time_s for _ in range(1 + budget.warmups)]
        times = repeats(min(first[1:] or first), budget)
        raw = tuple(taken(lambda: timed(run, times), budget))
    return judged(raw, tuple(first))


def repeats(once_s: float, budget: Budget) -> int:
    """Runs in a sample: as many as make it long enough to be told by the clock."""
    return max(1, math.ceil(budget.sample_s / max(once_s, 1e-7)))


def taken(sample: Callable[[], Raw], budget: Budget) -> Iterator[Raw]:
    """Where other processes keep getting in between, as long again, for the sake of some that count."""
    start, clean = time.perf_counter(), 0
    for done in range(budget.most):
        spent = time.perf_counter() - start
        if (
            done >= budget.least
            and spent > budget.total_s
            and (clean >= budget.least or spent > PATIENCE * budget.total_s)
        ):
            return
        raw = sample()
        clean += not raw.switches
        yield raw


def timed(run: Callable[[], object], times: int) -> Raw:
    """One reading of so many runs."""
    before, cpu = switches(), time.process_time()
    start = time.perf_counter()
    for _ in range(times):
        run()
    wall = time.perf_counter() - start
    return Raw(time_s=wall / times, wall_s=wall, cpu_s=time.process_time() - cpu, switches=switches() - before)


def switches() -> int:
    """How often this process was made to wait for another one."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def collector_off() -> Iterator[None]:
    """Python's garbage collector would fall into whichever sample comes next."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
