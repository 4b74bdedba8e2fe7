"""A CUDA device in, its probes out: copies, triads and reads over a range of sizes, and products of matrices by dtype."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rooflens.benches.ceilings import BandwidthPoint, GemmPoint
from rooflens.benches.cuda_kernels import NoKernel, fma_chain, reads
from rooflens.benches.cuda_time import device_reading, tf32
from rooflens.benches.gpu import DeviceFacts
from rooflens.benches.rounds import Probe
from rooflens.benches.sampling import Samples

DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")
TORCH = {"fp64": "float64", "fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
# m, k, n: squares, and what networks have; libraries choose other tiles for each
SHAPES = (
    (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 8192, 4096), (8192, 4096, 8192),
    (8192, 16384, 8192), (16384, 8192, 16384), (16384, 16384, 16384),
)  # fmt: skip
QUICK_SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 4096, 8192))
KERNELS = {"copy": 2, "triad": 3, "read": 1}  # arrays that each names
READ_BYTES = 64e6  # a launch of `read` reads at least as much
FALLBACK_L2 = 32 * 2**20
OF_FREE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """`bytes` are those that lie in the arrays: what a pass moves."""

    kernel: str
    bytes: int
    probe: Probe

    def point(self, samples: Samples) -> BandwidthPoint:
        return BandwidthPoint(kernel=self.kernel, bytes=self.bytes, threads=None, samples=samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    dtype: str
    m: int
    k: int
    n: int
    probe: Probe

    def point(self, samples: Samples) -> GemmPoint:
        return GemmPoint(dtype=self.dtype, library="torch", m=self.m, n=self.n, k=self.k, threads=None, samples=samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Multiply-adds in registers: `operations` in each launch."""

    dtype: str
    operations: int
    probe: Probe


def footprints(
    facts: DeviceFacts, free_bytes: int, per_octave: float, most_bytes: int | None = None
) -> tuple[int, ...]:
    """From a sixteenth of the L2 to a hundred times it, where memory alone is seen."""
    l2 = facts.l2_bytes or FALLBACK_L2
    first, last = l2 / 16, float(min(100 * l2, OF_FREE * free_bytes, most_bytes or 2**62))
    steps = max(1, math.ceil(per_octave * math.log2(max(2.0, last / first))))
    return tuple(round(first * (last / first) ** (i / steps)) for i in range(steps + 1))


def streams(facts: DeviceFacts, sizes: tuple[int, ...], sample_s: float) -> Iterator[Stream]:
    """All of them in one piece of memory: no size lies better than another."""
    import torch

    memory = torch.randn(max(sizes) // 4 + 256, device="cuda")
    for size in sizes:
        for kernel in KERNELS:
            try:
                yield _stream(facts, memory, kernel, size, sample_s)
            except NoKernel:
                continue


def _stream(facts: DeviceFacts, memory: Any, kernel: str, size: int, sample_s: float) -> Stream:
    items = size // KERNELS[kernel] // 4 // 64 * 64
    parts = [memory[i * items : (i + 1) * items] for i in range(KERNELS[kernel])]
    moved = items * 4 * KERNELS[kernel]
    run, passes = _launched(kernel, parts, moved, facts)
    reading = device_reading(run, sample_s)

    def sample() -> Any:
        from dataclasses import replace

        raw = reading()
        return replace(raw, time_s=raw.time_s / passes)

    return Stream(kernel=kernel, bytes=moved, probe=Probe(name=f"{kernel} {moved} B", sample=sample))


def _launched(kernel: str, parts: list[Any], moved: int, facts: DeviceFacts) -> tuple[Callable[[], Any], int]:
    """What to launch, and how many passes a launch makes."""
    import torch

    if kernel == "copy":
        return (lambda: parts[1].copy_(parts[0])), 1
    if kernel == "triad":
        return (lambda: torch.add(parts[0], parts[1], alpha=3.0, out=parts[2])), 1
    passes = max(1, math.ceil(READ_BYTES / moved))
    return reads(parts[0], passes, facts.multiprocessors).launch, passes


def products(dtypes: tuple[str, ...], shapes: tuple[tuple[int, int, int], ...], sample_s: float) -> Iterator[Product]:
    for dtype in dtypes:
        rate = 0.0
        for m, k, n in sorted(shapes, key=math.prod):
            if rate and 2 * m * k * n / rate > 4 * sample_s:
                break
            reading = _product_reading(dtype, m, k, n, sample_s)
            if reading is None:
                break
            rate = 2 * m * k * n / reading().time_s
            yield Product(dtype=dtype, m=m, k=k, n=n, probe=Probe(name=f"{dtype} {m}x{k}x{n}", sample=reading))


def _product_reading(dtype: str, m: int, k: int, n: int, sample_s: float) -> Callable[[], Any] | None:
    """None where this device or this torch has no such product, or no memory for it."""

    try:
        with tf32(dtype == "tf32"):
            return device_reading(product(dtype, m, k, n), sample_s)
    except (
        RuntimeError,
        AttributeError,
        TypeError,
    ):  # no such kernel or no memory; no such function; another signature
        return None


def product(dtype: str, m: int, k: int, n: int) -> Callable[[], Any]:
    """Random numbers: zeros switch fewer transistors, and a device that is less hot clocks higher."""
    import torch

    if dtype == "int8":
        a, b = (torch.randint(-128, 128, s, dtype=torch.int8, device="cuda") for s in ((m, k), (n, k)))
        return lambda: torch._int_mm(a, b.t())
    if dtype == "fp8":
        return _fp8_product(m, k, n)
    kind = getattr(torch, TORCH[dtype])
    x, y = (torch.randn(s, dtype=kind, device="cuda") for s in ((m, k), (k, n)))
    out = torch.empty(m, n, dtype=kind, device="cuda")
    return lambda: torch.mm(x, y, out=out)


def _fp8_product(m: int, k: int, n: int) -> Callable[[], Any]:
    """The second operand lies by columns, as the tensor cores of this type want it."""
    import torch

    a, b = (torch.randn(s, device="cuda").to(torch.float8_e4m3fn) for s in ((m, k), (n, k)))
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)


def chains(facts: DeviceFacts, dtypes: tuple[str, ...], sample_s: float) -> Iterator[tuple[str, Chain | str]]:
    """Of each dtype a chain, or why there is none."""
    for dtype in dtypes:
        try:
            kernel = fma_chain(dtype, facts.multiprocessors)
            probe = Probe(name=f"chain {dtype}", sample=device_reading(kernel.launch, sample_s))
            yield dtype, Chain(dtype=dtype, operations=kernel.work, probe=probe)
        except (NoKernel, RuntimeError) as error:
            yield dtype, str(error).splitlines()[0]
