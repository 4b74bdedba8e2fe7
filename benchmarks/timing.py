"""What the benchmarks share: interleaved rounds, so that a slow minute of the machine hits every case alike; medians;
and one table with the machine's kind above it. A ratio is that of two medians of the same run."""

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

Case = tuple[str, Callable[[], object]]


def machine() -> str:
    """The kind of machine, not its name."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def seconds(run: Callable[[], object]) -> float:
    """One run, with the garbage of the one before swept away; what it returns is let go after the clock stopped."""
    gc.collect()
    start = time.perf_counter()
    result = run()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def interleaved(cases: Sequence[Case], rounds: int, warm: int = 1) -> dict[str, float]:
    """Case name to its median: a b c, a b c, ..."""
    for _ in range(warm):
        for _, run in cases:
            run()
    found: dict[str, list[float]] = {name: [] for name, _ in cases}
    for _ in range(rounds):
        for name, run in cases:
            found[name].append(seconds(run))
    return {name: statistics.median(times) for name, times in found.items()}


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    print(f"{title}\n{machine()}\n")
    for line in (header, ["-" * w for w in widths], *rows):
        print(
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        )


def verdict(value: float, bar: float, goal: float | None = None) -> str:
    if goal is not None and value <= goal:
        return "goal"
    return "ok" if value <= bar else f"missed by {value / bar - 1:.0%}"
