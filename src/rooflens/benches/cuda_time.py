"""A launch on a CUDA device in, readings of its device time out: events around many of them in one CUDA graph.

Host time says how fast Python is; a graph replays without it. What cannot be captured runs back to back instead, which
hides the host just as well as long as one launch takes longer than making it.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rooflens.benches.sampling import Raw

MOST = 2000  # launches in a graph

Run = Callable[[], Any]


def device_reading(run: Run, sample_s: float, *, graph: bool = True) -> Callable[[], Raw]:
    """`run` is warmed up, told how often it fills a reading, and captured."""
    for _ in range(3):
        run()
    once_s = min(_events(run) for _ in range(3))
    times = max(1, min(MOST, math.ceil(sample_s / max(once_s, 1e-7))))
    replay = captured(run, times) if graph else None
    many = replay if replay is not None else _repeated(run, times)
    many()
    return lambda: Raw(time_s=_events(many) / times)


def captured(run: Run, times: int) -> Run | None:
    """None where one of its calls has no place in a graph."""
    import torch

    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    try:
        with torch.cuda.graph(graph):
            for _ in range(times):
                run()
    except RuntimeError:
        torch.cuda.synchronize()
        return None

    def replay(kept: Run = run) -> None:
        """A graph reads what the run closes over, and does not keep it alive."""
        graph.replay()

    return replay


def _repeated(run: Run, times: int) -> Run:
    def many() -> None:
        for _ in range(times):
            run()

    return many


def _events(run: Run) -> float:
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1000


@contextmanager
def tf32(on: bool) -> Iterator[None]:
    """fp32 means no TF32 anywhere; as it was afterwards."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if on else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
