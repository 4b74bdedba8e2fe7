"""CPUs and sizes in, points of bandwidth out: a sweep from well inside the first cache to far outside the last.

One NumPy call makes many passes over small arrays: their views have a first axis of stride 0, so that a call's cost is
spread over as many bytes as it takes. NumPy's buffer is set to its least, or it would copy such views first. Kernels are
`add` (two reads, a write: the traffic of STREAM's triad) and `negate` (a read, a write: that of its copy and scale).
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflens.benches.ceilings import BandwidthPoint
from rooflens.benches.host import HostFacts
from rooflens.benches.pinning import Crew, Job
from rooflens.benches.plateaus import Capacity
from rooflens.benches.rounds import Probe
from rooflens.benches.sampling import Raw, Samples, switches

if TYPE_CHECKING:
    import numpy as np

STREAMS = {"add": 3, "negate": 2}  # arrays that each kernel names
GUESS_BYTES_PER_S = 100e9  # of one core, for a first try at how many passes fill a reading
ITEM_BYTES = 4
LINE_ITEMS = 16
LEAST_BUFFER = 16
FIRST_SHARE = 0.25  # of the innermost level, where the sweep starts
PAST_CLEAR = 8.0  # times the last cache, from where on it holds next to nothing of what comes round again
PAST_LAST = (
    16.0  # times the last cache, where it ends: each of three arrays is over four times the cache, as STREAM asks
)
OF_FREE = 0.25  # of the memory that is free: all cores and one core have arrays at the same time
UNKNOWN_LAST_CACHE = 64 * 2**20


def levels_of(facts: HostFacts) -> tuple[Capacity, ...]:
    """What these CPUs have of each level, and memory behind it; `facts` are those of these CPUs alone."""
    known = sorted({c.level for c in facts.caches})
    caches = [Capacity(level=f"l{n}", bytes=facts.cache_bytes(n)) for n in known if n <= 3]
    return (*caches, Capacity(level="dram", bytes=None, clear=PAST_CLEAR))


def footprints(levels: tuple[Capacity, ...], free_bytes: int | None, per_octave: float) -> tuple[int, ...]:
    """Evenly spaced on a logarithmic scale."""
    sizes = [c.bytes for c in levels if c.bytes]
    first = FIRST_SHARE * min(sizes, default=32 * 2**10)
    last = PAST_LAST * max(sizes, default=UNKNOWN_LAST_CACHE)
    if free_bytes is not None:
        last = min(last, OF_FREE * free_bytes)
    steps = max(1, math.ceil(per_octave * math.log2(max(2.0, last / first))))
    return tuple(round(first * (last / first) ** (i / steps)) for i in range(steps + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One kernel at one size: what a pass moves, and how many passes a reading is made of."""

    kernel: str
    bytes: int
    threads: int
    probe: Probe


class Arrays:
    """A crew with memory: each thread makes and first touches its own, so that it lies near its core."""

    def __init__(self, cpus: Sequence[int], most_bytes: int) -> None:
        self.crew = Crew(cpus)
        self.pools: list[Any] = [None] * len(cpus)
        share = most_bytes // len(cpus)
        self.crew.together([self._maker(i, share) for i in range(len(cpus))])

    def __enter__(self) -> "Arrays":
        return self

    def __exit__(self, *error: Any) -> None:
        self.crew.__exit__(*error)
        self.pools.clear()

    def _maker(self, place: int, share_bytes: int) -> Job:
        def make() -> None:
            import numpy as np

            np.setbufsize(LEAST_BUFFER)  # a setting of this thread alone
            self.pools[place] = _aligned(np.ones(share_bytes // ITEM_BYTES + 4 * LINE_ITEMS, np.float32))

        return make


def streams(arrays: Arrays, sizes: Sequence[int], kernels: Sequence[str], sample_s: float) -> Iterator[Stream]:
    for size in sizes:
        for kernel in kernels:
            yield _stream(arrays, kernel, size, sample_s)


def _aligned(pool: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """From the first cache line on: vectors that straddle two lines cost twice."""
    return pool[(-pool.ctypes.data % (LINE_ITEMS * ITEM_BYTES)) // ITEM_BYTES :]


def _stream(arrays: Arrays, kernel: str, size: int, sample_s: float) -> Stream:
    crew = arrays.crew
    items = max(LINE_ITEMS, size // len(crew) // STREAMS[kernel] // ITEM_BYTES // LINE_ITEMS * LINE_ITEMS)
    moved = items * ITEM_BYTES * STREAMS[kernel] * len(crew)

    def jobs(passes: int) -> list[Job]:
        return [_job(pool, kernel, items, passes) for pool in arrays.pools]

    passes = max(1, math.ceil(sample_s / (moved / len(crew) / GUESS_BYTES_PER_S)))
    least_s = min(_timed(crew, jobs(passes), passes).time_s for _ in range(2))  # the first call of all costs more
    passes = max(1, math.ceil(sample_s / least_s))
    ready = jobs(passes)
    probe = Probe(name=f"{kernel} {moved} B", sample=lambda: _timed(crew, ready, passes))
    return Stream(kernel=kernel, bytes=moved, threads=len(crew), probe=probe)


def point_of(stream: Stream, samples: Samples) -> BandwidthPoint:
    return BandwidthPoint(kernel=stream.kernel, bytes=stream.bytes, threads=stream.threads, samples=samples)


def _job(pool: "np.ndarray[Any, Any]", kernel: str, items: int, passes: int) -> Job:
    import numpy as np
    from numpy.lib.stride_tricks import as_strided

    views = [
        as_strided(pool[i * items : (i + 1) * items], (passes, items), (0, ITEM_BYTES)) for i in range(STREAMS[kernel])
    ]
    if kernel == "add":
        return lambda: np.add(views[0], views[1], out=views[2])
    return lambda: np.negative(views[0], out=views[1])


def _timed(crew: Crew, jobs: Sequence[Job], passes: int) -> Raw:
    before, cpu = switches(), time.process_time()
    wall = crew.together(jobs)
    return Raw(time_s=wall / passes, wall_s=wall, cpu_s=time.process_time() - cpu, switches=switches() - before)
