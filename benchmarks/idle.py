"""Rounds that nobody disturbed: what the benchmarks of the machine verb share. A round waits a while for idle CPUs, and one
during which other processes used them does not count; how many those were is printed."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
FOREIGN = 0.1  # of all CPU time, used by others
LONGEST_S, TRIES = 20.0, 20


def undisturbed(run: Callable[[], T], rounds: int) -> list[T]:
    """As many results as rounds, or the last ones where no quiet minute came."""
    kept: list[T] = []
    lost: list[T] = []
    while len(kept) < rounds and len(lost) < TRIES:
        _wait()
        before = _foreign_s()
        start = time.perf_counter()
        found = run()
        share = (_foreign_s() - before) / (time.perf_counter() - start) / (os.cpu_count() or 1)
        print(
            f"round of {time.perf_counter() - start:.0f} s, {share:.0%} of the CPUs used by others",
            file=sys.stderr,
            flush=True,
        )
        (kept if share <= FOREIGN else lost).append(found)
    print(f"{len(kept)} rounds count, {len(lost)} were disturbed by other processes")
    return kept if len(kept) == rounds else [*kept, *lost[-(rounds - len(kept)) :]]


def _wait() -> None:
    end = time.perf_counter() + LONGEST_S
    while time.perf_counter() < end:
        before = _foreign_s()
        time.sleep(1)
        if _foreign_s() - before < FOREIGN * (os.cpu_count() or 1):
            return


def _foreign_s() -> float:
    """CPU seconds that anybody but this process and its children has used; idle and waiting for a disk are none."""
    ticks = [int(t) for t in Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:9]]
    used = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    return used - sum(os.times()[:4])
