"""This computer in, its ceilings out: bandwidth by level, peaks by dtype, and what a call costs, one core and all."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from rooflens.benches import bandwidth, gemm
from rooflens.benches.ceilings import (
    BandwidthPoint,
    GemmPoint,
    Launch,
    LevelCeiling,
    PeakCeiling,
    fastest,
)
from rooflens.benches.host import HostFacts, host_facts
from rooflens.benches.launch import eager_on_cpu
from rooflens.benches.levels import best_plateaus
from rooflens.benches.pinning import Crew
from rooflens.benches.plateaus import Capacity, Plateau
from rooflens.benches.rounds import Pace, Tick, in_rounds, quick_s
from rooflens.benches.sampling import Samples

KERNELS = ("add", "negate")
NO_FAST_PATH = "no library here multiplies it faster than a tenth of the fp32 rate"
DISTURBED = "other processes disturbed every reading: measure again when idle"
MATRIX_ISA = {"bf16": ("amx_bf16",), "fp16": ("amx_fp16",), "int8": ("amx_int8",), "fp32": (), "fp64": ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to try: sizes an octave of the sweep, sizes of products, and how long a reading is."""

    seconds: float
    per_octave: float
    dtypes: tuple[str, ...] = gemm.DTYPES
    sizes: tuple[int, ...] = gemm.SIZES
    one_core_sizes: tuple[int, ...] = (256, 512, 1024)
    stream_s: float = 0.003
    product_s: float = 0.1
    most_bytes: int | None = None
    least_rounds: int = 3


QUICK = Plan(
    seconds=10, per_octave=1.5, sizes=(256, 512, 1024, 2048), one_core_sizes=(256, 1024), product_s=0.04, least_rounds=1
)
FULL = Plan(seconds=55, per_octave=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """All cores first, then one core; `launch` is None without torch."""

    sweep: tuple[BandwidthPoint, ...]
    gemm: tuple[GemmPoint, ...]
    launch: Samples | None


def read_cpu(cpus: tuple[int, ...], facts: HostFacts, plan: Plan, tick: Tick) -> Readings:
    """Everything in the same rounds: no ceiling is taken in a better minute than another."""
    began = time.perf_counter()
    with ExitStack() as stack:
        streams = [s for chosen in _crews(cpus) for s in _streams(stack, chosen, facts, plan)]
        products = [p for pool, sizes in _pools(stack, cpus, facts, plan) for p in _products(pool, sizes, plan)]
        launch = eager_on_cpu(cpus[0])
        probes = [*(s.probe for s in streams), *(p.probe for p in products), *([launch] if launch else [])]
        left = max(0.0, plan.seconds - (time.perf_counter() - began))
        found = in_rounds(probes, Pace(seconds=left, least=plan.least_rounds), tick)
    timed = found[len(streams) :]
    return Readings(
        sweep=tuple(bandwidth.point_of(s, t) for s, t in zip(streams, found, strict=False)),
        gemm=tuple(gemm.point_of(p, t) for p, t in zip(products, timed, strict=False)),
        launch=found[-1] if launch else None,
    )


def _crews(cpus: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [cpus] if len(cpus) == 1 else [cpus, cpus[:1]]


def _streams(stack: ExitStack, chosen: tuple[int, ...], facts: HostFacts, plan: Plan) -> list[bandwidth.Stream]:
    free = facts.memory_available_bytes
    most = min(b for b in (plan.most_bytes, free, 2**62) if b is not None)
    sizes = bandwidth.footprints(cache_levels(chosen), most, plan.per_octave)
    arrays = stack.enter_context(bandwidth.Arrays(chosen, max(sizes)))
    return list(bandwidth.streams(arrays, sizes, KERNELS, plan.stream_s))


def _pools(
    stack: ExitStack, cpus: tuple[int, ...], facts: HostFacts, plan: Plan
) -> Iterator[tuple[gemm.Pool, tuple[int, ...]]]:
    """All cores on one product, one core, and a product on each core. NumPy's threads are as many as CPUs were allowed
    when it was loaded; fewer cannot be asked for."""
    yield gemm.Pool(cpus=cpus, numpy=len(cpus) == len(facts.usable_cpus)), plan.sizes
    if len(cpus) > 1:
        yield gemm.Pool(cpus=cpus[:1]), plan.one_core_sizes
        yield gemm.Pool(cpus=cpus, crew=stack.enter_context(Crew(cpus))), plan.one_core_sizes


def _products(pool: gemm.Pool, sizes: tuple[int, ...], plan: Plan) -> list[gemm.Product]:
    return list(gemm.products(pool, plan.dtypes, sizes, plan.product_s))


def cache_levels(cpus: Sequence[int]) -> tuple[Capacity, ...]:
    return bandwidth.levels_of(host_facts(cpus=frozenset(cpus)))


def level_ceilings(
    sweep: tuple[BandwidthPoint, ...], cpus: tuple[int, ...], facts: HostFacts
) -> tuple[LevelCeiling, ...]:
    together = best_plateaus((p for p in sweep if p.threads == len(cpus)), cache_levels(cpus))
    alone = best_plateaus((p for p in sweep if p.threads == 1), cache_levels(cpus[:1]))
    sizes = {c.level: c.bytes for c in cache_levels(cpus)}
    memory = facts.memory_limit_bytes or facts.memory_bytes
    return tuple(
        _level(found, alone.get(level), memory if level == "dram" else sizes[level])
        for level, found in together.items()
    )


def _level(together: tuple[str, Plateau], alone: tuple[str, Plateau] | None, capacity: int | None) -> LevelCeiling:
    """All cores reach at least what one does: where they were seen to reach less, something else had some of them."""
    kernel, p = together
    one = alone[1].bandwidth_bytes_per_s if alone else None
    if alone and one is not None and one > (p.bandwidth_bytes_per_s or 0.0):
        kernel = alone[0]
        p = replace(
            alone[1], lower_bound=True, why="one core alone reached more than all together: measure again when idle"
        )
    return LevelCeiling(
        level=p.level, bandwidth_bytes_per_s=p.bandwidth_bytes_per_s, one_core_bandwidth_bytes_per_s=one,
        capacity_bytes=capacity, lower_bound=p.lower_bound, spread=p.spread,
        kernel=kernel if p.bandwidth_bytes_per_s else None, why=p.why,
    )  # fmt: skip


def peak_ceilings(points: tuple[GemmPoint, ...], isa: tuple[str, ...] | None) -> tuple[PeakCeiling, ...]:
    return tuple(c for dtype in gemm.DTYPES for c in _peaks_of(dtype, points, isa))


def _peaks_of(
    dtype: str, points: tuple[GemmPoint, ...], isa: tuple[str, ...] | None
) -> tuple[PeakCeiling, PeakCeiling]:
    """The GEMM rate belongs to the unit that does that dtype; the other unit is absent or was not asked."""
    mine = tuple(p for p in points if p.dtype == dtype)
    best, alone = fastest(mine), fastest(tuple(p for p in mine if p.threads == 1))
    tiled = bool(set(MATRIX_ISA[dtype]) & set(isa or ()))
    unit, other = ("matrix", "vector") if tiled else ("vector", "matrix")
    found = PeakCeiling(
        dtype=dtype, unit=unit, flop_per_s=best.flop_per_s if best else None,
        one_core_flop_per_s=alone.flop_per_s if alone else None, spread=best.samples.spread if best else None,
        how=_how(best) if best else "", why="" if best else DISTURBED if mine else NO_FAST_PATH,
    )  # fmt: skip
    return found, _other(dtype, other, isa)


def _other(dtype: str, unit: str, isa: tuple[str, ...] | None) -> PeakCeiling:
    if unit == "matrix" and isa is not None:
        return PeakCeiling(dtype=dtype, unit=unit, flop_per_s=None, absent=True, why=f"no matrix unit for {dtype} here")
    why = (
        "GEMM runs on the matrix unit; nothing measured the vector unit" if unit == "vector" else "unknown instructions"
    )
    return PeakCeiling(dtype=dtype, unit=unit, flop_per_s=None, why=why)


def _how(point: GemmPoint) -> str:
    threads = f"{point.threads} thread{'s' if point.threads != 1 else ''}"
    return f"GEMM of {point.m} x {point.n} x {point.k} through {point.library}, {threads}"


def launch_of(samples: Samples | None) -> Launch:
    graph = "a CPU runs each call when it is made: there is nothing to replay"
    if samples is None:
        return Launch(eager_why="torch is not installed", graph_why=graph)
    return Launch(eager_s=quick_s(samples), graph_why=graph)
