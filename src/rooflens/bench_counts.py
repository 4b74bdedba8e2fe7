"""A benchmark that runs in, what it allocates, launches and has to do, and what the roof asks for it, out."""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

from torch.autograd.profiler import record_function

from rooflens.bench_roof import roof_work
from rooflens.benches.bench_run import Allocated, BenchRow
from rooflens.benches.bench_subject import Ready
from rooflens.benches.device import Device
from rooflens.benches.profiled import OURS, Spent, profiled
from rooflens.benches.subject import Subject
from rooflens.benches.suite import Case

_RUN = f"{OURS}run"


def counted(
    row: BenchRow, case: Case, made: Subject, dtype: str, found: Ready, device: Device, on: str | None
) -> BenchRow:
    seen, whole = spent(found.run, device), spent(found.whole, device)
    blocks, python_bytes = python_side(found.run)
    work = roof_work(case, row.benchmark.pass_, made, dtype, device.name, on)
    return replace(
        row,
        allocated=Allocated(
            framework_count=seen.allocations,
            framework_bytes=seen.allocated_bytes,
            python_count=blocks,
            python_bytes=python_bytes,
        ),
        peak_bytes=found.held_bytes + whole.peak_bytes,
        kernels=seen.kernels,
        flops=work.flops if work else None,
        bytes=work.bytes if work else None,
        roof_s=work.roof_s if work else None,
    )


def spent(run: Callable[[], object], device: Device) -> Spent:
    """Of the second of two runs: the first may still make what the others find. A backward pass on a GPU runs on a thread of
    autograd's, whose calls stand beside ours."""

    def twice() -> None:
        for _ in range(2):
            with record_function(_RUN):
                run()

    seen = profiled(twice, device.name)
    ours = [root for root in seen.roots if root.name == _RUN][-1]
    beside = [r for r in seen.roots if r.thread != ours.thread and ours.start_ns <= r.start_ns <= ours.end_ns]
    return replace(seen.spent([ours]), kernels=seen.spent([ours, *beside]).kernels)


def python_side(run: Callable[[], object]) -> tuple[int, int]:
    """Blocks of Python's own that one run leaves behind with what it returns, and the most bytes of them at any moment."""
    for _ in range(2):
        run()
    gc.collect()
    tracemalloc.start()
    try:
        run()
        start = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        blocks = sys.getallocatedblocks()
        kept = run()
        blocks = sys.getallocatedblocks() - blocks
        most = tracemalloc.get_traced_memory()[1] - start
        del kept
    finally:
        tracemalloc.stop()
    return max(0, blocks), max(0, most)
