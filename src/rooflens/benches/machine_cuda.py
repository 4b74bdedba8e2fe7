"""A CUDA device in, its ceilings out: bandwidth of L2 and memory, peaks by dtype and unit, and what a launch costs."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rooflens.benches import cuda_probes as probes
from rooflens.benches.ceilings import BandwidthPoint, GemmPoint, Launch, LevelCeiling, PeakCeiling, fastest
from rooflens.benches.cuda_kernels import FMA
from rooflens.benches.cuda_time import captured, device_reading
from rooflens.benches.gpu import Clocks, DeviceFacts, clocks_now
from rooflens.benches.launch import CALLS, called
from rooflens.benches.levels import best_plateaus
from rooflens.benches.plateaus import Capacity
from rooflens.benches.rounds import Pace, Probe, Tick, in_rounds, quick_s
from rooflens.benches.sampling import Raw, Samples

# The compute capability from which a matrix unit does that dtype; fp64 on the ones for data centres alone.
MATRIX_SINCE = {"fp16": 7.0, "int8": 7.2, "bf16": 8.0, "tf32": 8.0, "fp8": 8.9}
MATRIX_FP64 = ("8.0", "9.0", "10.0")
HBM = (
    "P100",
    "V100",
    "A30",
    "A100",
    "A800",
    "H20",
    "H100",
    "H200",
    "H800",
    "GH200",
    "B100",
    "B200",
    "B300",
    "GB200",
    "GB300",
)
LPDDR = ("ORIN", "XAVIER", "THOR", "TEGRA", "GB10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to try; `sample_s` is device time of a reading."""

    seconds: float
    per_octave: float
    dtypes: tuple[str, ...] = probes.DTYPES
    shapes: tuple[tuple[int, int, int], ...] = probes.SHAPES
    sample_s: float = 0.02
    most_bytes: int | None = None
    least_rounds: int = 3


QUICK = Plan(seconds=10, per_octave=1, shapes=probes.QUICK_SHAPES, sample_s=0.01, least_rounds=2)
FULL = Plan(seconds=55, per_octave=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """`chains` are rates of multiply-adds by dtype, or why there is none."""

    sweep: tuple[BandwidthPoint, ...]
    gemm: tuple[GemmPoint, ...]
    chains: tuple[tuple[str, float | None, float | None, str], ...]  # dtype, rate, spread, why
    launch: Launch
    clocks: tuple[Clocks, ...]


def read_cuda(facts: DeviceFacts, plan: Plan, tick: Tick) -> Readings:
    import torch

    began, before = time.perf_counter(), clocks_now(facts.index)
    free = torch.cuda.mem_get_info(facts.index)[0]
    sizes = probes.footprints(facts, free, plan.per_octave, plan.most_bytes)
    streams = list(probes.streams(facts, sizes, plan.sample_s / 2))
    products = list(probes.products(plan.dtypes, plan.shapes, plan.sample_s))
    chains = list(probes.chains(facts, tuple(FMA), plan.sample_s))
    made = [c for _, c in chains if isinstance(c, probes.Chain)]
    launches = [eager_launch(), *graph_launch()]
    run = [*(s.probe for s in streams), *(p.probe for p in products), *(c.probe for c in made), *launches]
    left = max(0.0, plan.seconds - (time.perf_counter() - began))
    found = in_rounds(run, Pace(seconds=left, least=plan.least_rounds), tick)
    first, second = len(streams), len(streams) + len(products)
    rates = {c.dtype: (c.operations, s) for c, s in zip(made, found[second:], strict=False)}
    return Readings(
        sweep=tuple(s.point(t) for s, t in zip(streams, found, strict=False)),
        gemm=tuple(p.point(t) for p, t in zip(products, found[first:], strict=False)),
        chains=tuple(_chain(dtype, c, rates) for dtype, c in chains),
        launch=_launch(found[second + len(made) :]),
        clocks=(before, _clocks_at_work(facts)),
    )


def _chain(
    dtype: str, chain: probes.Chain | str, rates: dict[str, tuple[int, Samples]]
) -> tuple[str, float | None, float | None, str]:
    if isinstance(chain, str):
        return dtype, None, None, chain
    work, samples = rates[dtype]
    quick = quick_s(samples)
    return dtype, work / quick if quick else None, samples.spread, ""


def _clocks_at_work(facts: DeviceFacts) -> Clocks:
    """While a large product runs: a device that waits clocks down, one that works hard does too."""
    import torch

    run = probes.product("fp32", 4096, 4096, 4096)
    for _ in range(20):
        run()
    found = clocks_now(facts.index)
    torch.cuda.synchronize()
    return found


def eager_launch() -> Probe:
    """Host time of a call: the device is done with each before the next one is made."""
    import torch

    a, b = (torch.ones(8, device="cuda") for _ in range(2))
    out = torch.empty(8, device="cuda")

    def sample() -> Raw:
        torch.cuda.synchronize()
        with torch.inference_mode():
            raw = called(lambda: torch.add(a, b, out=out))
        torch.cuda.synchronize()
        return replace(raw, cpu_s=None)

    return Probe(name="eager launch", sample=sample)


def graph_launch() -> tuple[Probe, ...]:
    """Device time of each of many tiny kernels of one graph."""
    import torch

    a, b = (torch.ones(8, device="cuda") for _ in range(2))
    out = torch.empty(8, device="cuda")
    replay = captured(lambda: torch.add(a, b, out=out), CALLS)
    if replay is None:
        return ()
    reading = device_reading(replay, 0.0, graph=False)
    return (Probe(name="graph launch", sample=_each(reading)),)


def _each(reading: Callable[[], Raw]) -> Callable[[], Raw]:
    def sample() -> Raw:
        raw = reading()
        return replace(raw, time_s=raw.time_s / CALLS)

    return sample


def _launch(found: tuple[Samples, ...]) -> Launch:
    eager, graph = (quick_s(s) for s in (*found, *found[:1])[:2])
    if len(found) < 2:
        return Launch(eager_s=eager, graph_why="no CUDA graph could be captured here")
    return Launch(eager_s=eager, graph_s=graph)


def offchip_level(name: str) -> str:
    """Which memory that board is sold with; the driver does not tell."""
    upper = name.upper()
    if any(word in upper for word in LPDDR):
        return "lpddr"
    words = upper.replace("-", " ").split()
    return "hbm" if any(w in HBM or w.startswith(("HBM", "MI")) for w in words) else "gddr"


def levels_of(facts: DeviceFacts) -> tuple[Capacity, ...]:
    l2 = (Capacity(level="l2", bytes=facts.l2_bytes),) if facts.l2_bytes else ()
    return (*l2, Capacity(level=offchip_level(facts.name), bytes=None, clear=8.0))


def level_ceilings(sweep: tuple[BandwidthPoint, ...], facts: DeviceFacts) -> tuple[LevelCeiling, ...]:
    levels = levels_of(facts)
    sizes: dict[str, Any] = {c.level: c.bytes for c in levels} | {levels[-1].level: facts.memory_bytes}
    return tuple(
        LevelCeiling(
            level=level, bandwidth_bytes_per_s=p.bandwidth_bytes_per_s, one_core_bandwidth_bytes_per_s=None,
            capacity_bytes=sizes[level], lower_bound=p.lower_bound, spread=p.spread,
            kernel=kernel if p.bandwidth_bytes_per_s else None, why=p.why,
        )
        for level, (kernel, p) in best_plateaus(sweep, levels).items()
    )  # fmt: skip


def peak_ceilings(found: Readings, facts: DeviceFacts) -> tuple[PeakCeiling, ...]:
    return tuple(c for dtype in probes.DTYPES for c in (_matrix(dtype, found, facts), _vector(dtype, found, facts)))


def on_matrix_unit(dtype: str, facts: DeviceFacts) -> bool:
    if dtype == "fp64":
        return facts.capability in MATRIX_FP64
    return dtype in MATRIX_SINCE and float(facts.capability) >= MATRIX_SINCE[dtype]


def _matrix(dtype: str, found: Readings, facts: DeviceFacts) -> PeakCeiling:
    if not on_matrix_unit(dtype, facts):
        why = f"compute capability {facts.capability} has no matrix unit for {dtype}"
        return PeakCeiling(dtype=dtype, unit="matrix", flop_per_s=None, why=why, absent=True)
    best = _product(dtype, found)
    why = f"this torch has no {dtype} product for this device"
    return best if best else PeakCeiling(dtype=dtype, unit="matrix", flop_per_s=None, why=why)


def _product(dtype: str, found: Readings) -> PeakCeiling | None:
    best = fastest(tuple(p for p in found.gemm if p.dtype == dtype))
    if best is None:
        return None
    how = f"GEMM of {best.m} x {best.k} x {best.n} through torch, random numbers, device time"
    return PeakCeiling(dtype=dtype, unit="matrix", flop_per_s=best.flop_per_s, spread=best.samples.spread, how=how)


def _vector(dtype: str, found: Readings, facts: DeviceFacts) -> PeakCeiling:
    """A chain of multiply-adds in registers; without one, a product that ran on the vector unit."""
    _, rate, spread, why = next((c for c in found.chains if c[0] == dtype), ("", None, None, ""))
    ran = None if on_matrix_unit(dtype, facts) or dtype == "tf32" else _product(dtype, found)
    if ran and (rate is None or (ran.flop_per_s or 0.0) > rate):
        return replace(ran, unit="vector")
    if rate is not None:
        how = "chains of multiply-adds in registers, device time"
        return PeakCeiling(dtype=dtype, unit="vector", flop_per_s=rate, spread=spread, how=how)
    if dtype in ("tf32", "fp8"):
        return PeakCeiling(
            dtype=dtype, unit="vector", flop_per_s=None, why=f"{dtype} is a type of matrix units", absent=True
        )
    return PeakCeiling(
        dtype=dtype, unit="vector", flop_per_s=None, why=why or "torch has no loop of multiply-adds to time"
    )
