"""Probes in, the samples of each out, taken in rounds: each probe a little, again and again, until time is up.

What disturbs a machine comes in bursts of seconds. A probe that took all its readings at once would sit in one; spread
over rounds it loses a few of them.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rooflens.benches.sampling import Raw, Samples, collector_off, judged

Tick = Callable[[float], None]  # told the share that is done


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """`sample` takes one reading. The first ones of a round warm caches, pools and clocks up and do not count."""

    name: str
    sample: Callable[[], Raw]
    warmups: int = 1
    readings: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long to go on, and the least number of rounds however long they take."""

    seconds: float
    least: int = 2


def in_rounds(probes: Sequence[Probe], pace: Pace, tick: Tick = lambda share: None) -> tuple[Samples, ...]:
    raw: list[list[Raw]] = [[] for _ in probes]
    warm: list[list[float]] = [[] for _ in probes]
    start, done = time.perf_counter(), 0
    with collector_off():
        while done < pace.least or time.perf_counter() - start < pace.seconds:
            for place, probe in enumerate(probes):
                warm[place] += [probe.sample().time_s for _ in range(probe.warmups)]
                raw[place] += [probe.sample() for _ in range(probe.readings)]
                tick(_share(start, done + (place + 1) / len(probes), pace))
                if done >= pace.least and time.perf_counter() - start > pace.seconds:
                    break
            done += 1
    return tuple(judged(tuple(r), tuple(w)) for r, w in zip(raw, warm, strict=True))


def _share(start: float, rounds: float, pace: Pace) -> float:
    """Both must be over: the time and the least rounds."""
    return min(1.0, rounds / pace.least, (time.perf_counter() - start) / max(pace.seconds, 1e-9))


def quick_s(samples: Samples) -> float | None:
    """The lower quartile of the times. What disturbs only ever slows, so that a ceiling is among the quicker readings;
    the very quickest of all would be luck."""
    if len(samples.times_s) < 2:
        return samples.median_s
    return statistics.quantiles(samples.times_s, n=4, method="inclusive")[0]
