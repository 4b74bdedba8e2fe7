"""Something too small to take time itself in, what it costs to start it out."""

import time
from collections.abc import Callable
from typing import Any

from rooflens.benches.pinning import pinned, torch_threads
from rooflens.benches.rounds import Probe
from rooflens.benches.sampling import Raw, switches

CALLS = 1000


def eager_on_cpu(cpu: int) -> Probe | None:
    """An addition of 8 numbers, called from Python as a network's layers are; None without torch."""
    try:
        import torch
    except ImportError:
        return None
    a, b = torch.ones(8), torch.ones(8)

    def sample() -> Raw:
        with pinned((cpu,)), torch_threads(1), torch.inference_mode():
            return called(lambda: torch.add(a, b))

    return Probe(name="launch", sample=sample)


def called(run: Callable[[], Any]) -> Raw:
    before, cpu, start = switches(), time.process_time(), time.perf_counter()
    for _ in range(CALLS):
        run()
    wall = time.perf_counter() - start
    return Raw(time_s=wall / CALLS, wall_s=wall, cpu_s=time.process_time() - cpu, switches=switches() - before)
