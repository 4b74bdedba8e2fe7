"""CPUs in, a process that runs on them alone out, and as it was afterwards: a thread that moves measures two cores.

`Crew` is one thread a CPU, started together: NumPy lets go of the interpreter inside its loops, so that threads of one
process load every core without a framework's own cost of sharing work out.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

Job = Callable[[], object]
TASKS = Path("/proc/self/task")


@contextmanager
def pinned(cpus: Sequence[int]) -> Iterator[None]:
    """Every thread that the process has, those of a framework's pool too; systems without affinity stay as they are."""
    before = _affinities()
    try:
        for task in before:
            _pin(task, cpus)
        yield
    finally:
        for task, mask in before.items():
            _pin(task, tuple(mask))


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _affinities() -> dict[int, set[int]]:
    if not hasattr(os, "sched_getaffinity"):
        return {}
    tasks = [int(t.name) for t in TASKS.iterdir()] if TASKS.is_dir() else [0]
    found: dict[int, set[int]] = {}
    for task in tasks:
        try:
            found[task] = os.sched_getaffinity(task)
        except OSError:  # a thread that has ended meanwhile
            continue
    return found


def _pin(task: int, cpus: Sequence[int]) -> None:
    try:
        os.sched_setaffinity(task, cpus)
    except OSError:  # ended meanwhile, or the system forbids it: then nothing was changed
        return


class Crew:
    """`together` gives each thread its job and returns the seconds from the first start to the last end."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self._start, self._end = (threading.Barrier(len(cpus) + 1) for _ in range(2))
        self._jobs: Sequence[Job] = ()
        self._spans: list[tuple[float, float]] = [(0.0, 0.0)] * len(cpus)
        self._faults: list[BaseException] = []
        self._threads = [threading.Thread(target=self._work, args=(i, c), daemon=True) for i, c in enumerate(cpus)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Threads that wait are let go; one in its job ends with it (Ctrl-C must not wait for a barrier)."""
        self._start.abort()
        self._end.abort()

    def __len__(self) -> int:
        return len(self._threads)

    def together(self, jobs: Sequence[Job]) -> float:
        self._jobs = jobs
        self._start.wait()
        self._end.wait()
        faults, self._faults = self._faults, []
        if faults:
            raise faults[0]
        return max(end for _, end in self._spans) - min(start for start, _ in self._spans)

    def _work(self, place: int, cpu: int) -> None:
        if hasattr(os, "sched_setaffinity"):
            _pin(0, (cpu,))
        while True:
            try:
                self._start.wait()
                self._spans[place] = self._timed(self._jobs[place])
                self._end.wait()
            except threading.BrokenBarrierError:
                return

    def _timed(self, job: Job) -> tuple[float, float]:
        start = time.perf_counter()
        try:
            job()
        except BaseException as fault:  # told to whoever waits: a thread has nobody to raise to
            self._faults.append(fault)
        return start, time.perf_counter()
