"""CPUs and dtypes in, products of matrices to time out: the rate that a machine's multipliers really reach.

Square matrices of random numbers, through torch and through NumPy, whose libraries differ, and a convolution. Sizes grow
until one product takes too long. A dtype that its library multiplies one number at a time is found out at a small size
and left alone.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rooflens.benches.ceilings import GemmPoint
from rooflens.benches.pinning import Crew, pinned, torch_threads
from rooflens.benches.rounds import Probe
from rooflens.benches.sampling import Raw, Samples, switches

DTYPES = ("fp32", "fp64", "bf16", "fp16", "int8")
TORCH = {"fp32": "float32", "fp64": "float64", "bf16": "bfloat16", "fp16": "float16", "int8": "int8"}
NUMPY = {"fp32": "float32", "fp64": "float64"}
SIZES = (256, 512, 1024, 2048, 3072, 4096)
FIRST = 256
READING_S, SHORT_READINGS = 0.0005, 16  # short readings fit between what disturbs; more of them cost no more
CONVOLVED, CONVOLUTION = ("fp32", "bf16"), "torch, as a convolution"
BATCH, CHANNELS, PIXELS = 2, 128, 28
SLOW = 0.1  # of the fp32 rate: nobody would choose that dtype to compute in


Run = Callable[[], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A probe with what it multiplies."""

    dtype: str
    library: str
    m: int
    k: int
    n: int
    threads: int
    probe: Probe


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """CPUs to work on. NumPy's library has no switch for its threads: it is asked only where it takes all CPUs. With a
    crew, each CPU has a product of its own, and none waits for another."""

    cpus: tuple[int, ...]
    numpy: bool = False
    crew: Crew | None = None

    @property
    def products(self) -> int:
        """In each run."""
        return len(self.cpus) if self.crew else 1


def point_of(product: Product, samples: Samples) -> GemmPoint:
    return GemmPoint(
        dtype=product.dtype, library=product.library, m=product.m, n=product.n, k=product.k, threads=product.threads,
        samples=samples,
    )  # fmt: skip


def products(pool: Pool, dtypes: Sequence[str], sizes: Sequence[int], sample_s: float) -> Iterator[Product]:
    """Those worth timing; `sample_s` bounds one reading."""
    usual = first_rate("fp32", pool) if sizes else 0.0
    for dtype in dtypes if sizes else ():
        if first_rate(dtype, pool) > SLOW * usual:
            for make in makers(dtype, pool):
                yield from _growing(pool, make, sizes, sample_s)
            if dtype in CONVOLVED and _importable("torch"):
                yield _convolution(pool, dtype)


def first_rate(dtype: str, pool: Pool) -> float:
    """Of torch on one core, at a size where even a product one number at a time costs no seconds; 0 where it has none.
    NumPy's dtypes are those that every library does well."""
    if not _importable("torch"):
        return float(dtype in NUMPY)
    try:
        run = _torch_product(dtype, FIRST)
        alone = Pool(cpus=pool.cpus[:1], numpy=False)
        return 2 * FIRST**3 / min(_timed(alone, run, 1).time_s for _ in range(4))
    except (RuntimeError, TypeError, AttributeError):
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Makes a product of a size, ready to run."""

    dtype: str
    library: str
    ready: Callable[[int], Run]


def makers(dtype: str, pool: Pool) -> Iterator[Maker]:
    if _importable("torch"):
        library = "torch, a product a core" if pool.crew else "torch"
        yield Maker(dtype=dtype, library=library, ready=lambda size: _torch_product(dtype, size))
    if dtype in NUMPY and pool.numpy and _importable("numpy"):
        yield Maker(dtype=dtype, library="numpy", ready=lambda size: _numpy_product(dtype, size))


def _growing(pool: Pool, make: Maker, sizes: Sequence[int], sample_s: float) -> Iterator[Product]:
    """Until one product alone would fill a reading several times."""
    rate = math.inf
    for size in sizes:
        if 2 * size**3 * pool.products > 4 * sample_s * rate:
            return
        run = _run_of(pool, make, size)
        once_s = min(_timed(pool, run, 1).time_s for _ in range(2))
        rate = 2 * size**3 / once_s
        probe = _probe(pool, run, once_s, f"{make.library} {make.dtype} {size}")
        yield Product(
            dtype=make.dtype, library=make.library, m=size, k=size, n=size, threads=len(pool.cpus), probe=probe
        )


def _probe(pool: Pool, run: Run, once_s: float, name: str) -> Probe:
    times = max(1, math.ceil(READING_S / once_s / pool.products))
    readings = SHORT_READINGS if once_s * pool.products < READING_S else 2
    return Probe(name=name, sample=_sampler(pool, run, times), readings=readings)


def _convolution(pool: Pool, dtype: str) -> Product:
    """The kernels of convolutions are written for this CPU more often than those of its matrix libraries. One of 3 x 3
    without padding, so that each multiplication that is counted is made, by a library that knows no other way on x86."""
    run = _run_of(pool, Maker(dtype=dtype, library=CONVOLUTION, ready=lambda size: _torch_convolution(dtype)), 0)
    once_s = min(_timed(pool, run, 1).time_s for _ in range(3))
    return Product(
        dtype=dtype, library=CONVOLUTION, m=BATCH * PIXELS**2, k=CHANNELS * 9, n=CHANNELS, threads=len(pool.cpus),
        probe=_probe(pool, run, once_s, f"convolution {dtype}"),
    )  # fmt: skip


def _run_of(pool: Pool, make: Maker, size: int) -> Run:
    """With a crew, operands of its own for each of its threads."""
    if pool.crew is None:
        return make.ready(size)
    crew, jobs = pool.crew, [make.ready(size) for _ in pool.cpus]
    return lambda: crew.together(jobs)


def _sampler(pool: Pool, run: Run, times: int) -> Callable[[], Raw]:
    return lambda: _timed(pool, run, times)


def _timed(pool: Pool, run: Run, times: int) -> Raw:
    with ExitStack() as stack:
        if pool.crew is None:  # a crew's threads have a core each already
            stack.enter_context(pinned(pool.cpus))
        if _importable("torch"):
            stack.enter_context(torch_threads(1 if pool.crew else len(pool.cpus)))
        before, cpu, start = switches(), time.process_time(), time.perf_counter()
        for _ in range(times):
            run()
        wall = time.perf_counter() - start
        each_s = wall / times / pool.products
        return Raw(time_s=each_s, wall_s=wall, cpu_s=time.process_time() - cpu, switches=switches() - before)


def _torch_product(dtype: str, size: int) -> Run:
    import torch

    if dtype == "int8":
        a, b = (torch.randint(-128, 128, (size, size), dtype=torch.int8) for _ in range(2))
        return lambda: torch._int_mm(a, b)
    kind = getattr(torch, TORCH[dtype])
    x, y = (torch.randn(size, size).to(kind) for _ in range(2))
    out = torch.empty(size, size, dtype=kind)
    return lambda: torch.mm(x, y, out=out)


def _torch_convolution(dtype: str) -> Run:
    import torch
    from torch.nn import functional

    kind, size = getattr(torch, TORCH[dtype]), PIXELS + 2
    x = torch.randn(BATCH, CHANNELS, size, size).to(kind)
    w = torch.randn(CHANNELS, CHANNELS, 3, 3).to(kind)

    def run() -> Any:
        with torch.inference_mode():
            return functional.conv2d(x, w)

    return run


def _numpy_product(dtype: str, size: int) -> Run:
    import numpy as np

    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size)).astype(NUMPY[dtype]) for _ in range(2))
    out = np.empty_like(a)
    return lambda: np.matmul(a, b, out=out)


def _importable(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None
