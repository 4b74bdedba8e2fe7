"""CPUs in, how much of their time other processes took meanwhile out: a machine that works for others too measures them.

From the kernel's own count of each CPU's time, less what this process used, so that load elsewhere on a large machine does
not matter. The count goes in ticks, of 10 ms mostly: so much of it as may be a tick's fault is not told.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rooflens.hardware.identity import ROOT, text

_IDLE = (3, 4)  # idle, and waiting for a disk
_GUEST = 8  # guests are counted under user already


class Watch:
    """`share` is of one CPU's time: 1.0 is a CPU that others had to themselves. None where the kernel does not tell."""

    def __init__(self, cpus: Sequence[int], root: Path = ROOT) -> None:
        self._cpus, self._root = cpus, root
        self._others_s: float | None = 0.0
        self._passed_s = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """For a stretch; several add up."""
        busy_s, own_s, start = _busy_s(self._cpus, self._root), time.process_time(), time.perf_counter()
        yield
        after_s, used_s = _busy_s(self._cpus, self._root), time.process_time() - own_s
        self._passed_s += time.perf_counter() - start
        if busy_s is None or after_s is None or self._others_s is None:
            self._others_s = None
        else:
            self._others_s += after_s - busy_s - used_s

    @property
    def share(self) -> float | None:
        if self._others_s is None or not self._passed_s:
            return None
        return max(0.0, (self._others_s - len(self._cpus) / _ticks_per_s()) / self._passed_s)


def _busy_s(cpus: Sequence[int], root: Path) -> float | None:
    """Steal, which other guests of the same host took, is time of others too."""
    rows = {r[0]: r[1:] for line in (text(root / "proc/stat") or "").splitlines() if (r := line.split())}
    counts = [rows.get(f"cpu{n}") for n in cpus]
    if not counts or any(c is None for c in counts):
        return None
    ticks = sum(int(n) for c in counts if c for i, n in enumerate(c[:_GUEST]) if i not in _IDLE)
    return ticks / _ticks_per_s()


def _ticks_per_s() -> float:
    return float(os.sysconf("SC_CLK_TCK"))
