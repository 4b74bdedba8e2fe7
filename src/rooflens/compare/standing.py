"""A measured time and what was counted for it in, where it stands under its roof out: how far, what limits it, which way
to move it. A point above its roof stays where it is, and what could explain it is named.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from rooflens.compare.trials import Trial
from rooflens.estimate.roofline import GroupTime
from rooflens.graph.records import Graph, Op
from rooflens.hardware.records import OFFCHIP, Hardware
from rooflens.pipeline.run import Prediction
from rooflens.units import show

if TYPE_CHECKING:
    from rooflens.benches.measurement import CompiledRun, LayerTime, Taken, WholeTime
    from rooflens.benches.sampling import Samples
    from rooflens.frontends.pytorch.calls import Failure

NEAR = 0.6  # a kernel that reaches so much of its roof is a good one; more comes from moving right, or another roof
DIFFERS = 0.2  # between a layer alone and the same layer in the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What some ops have to do, one after the other. `predicted_s` counts their launches where the host does the work;
    None where work or a rate is unknown."""

    flops: int | None
    bytes: int
    unit: str
    dtype: str
    moved_s: float | None
    roof_s: float | None
    predicted_s: float | None
    launch_s: float | None
    winograd: bool

    @property
    def intensity(self) -> float | None:
        return self.flops / self.bytes if self.flops is not None and self.bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`roof_share` is how much of the roof is reached, `distance` how many times slower than the roof it is."""

    flop_per_s: float | None
    bytes_per_s: float
    roof_share: float | None
    distance: float | None
    limited_by: str | None
    move: str | None
    above_roof: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`ids` are the ops of the graph that it stands for; `work` is None where they are not known."""

    id: str
    ids: tuple[str, ...]
    layer: "LayerTime"
    work: Work | None
    standing: Standing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A unit of the partition. `how` its time was come by, `kernels` the names of what computes it; `members_s` is the sum
    of its layers, each by itself."""

    id: str
    ids: tuple[str, ...]
    how: str
    kernels: tuple[str, ...]
    time_s: float | None
    samples: "Samples | None"
    members_s: float | None
    work: Work
    standing: Standing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """A call in compiled code, what it is, the units that it computes (by id), and what it took."""

    name: str
    what: str
    groups: tuple[str, ...]
    samples: "Samples | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    rows: tuple[Row, ...]
    groups: tuple[GroupRow, ...]
    wholes: "tuple[WholeTime, ...]"
    taken: "Taken"
    compiled: "CompiledRun | None" = None
    kernels: tuple[KernelRow, ...] = ()
    stopped_by: str = ""
    failure: "Failure | None" = None  # where the forward pass ended early
    notes: tuple[str, ...] = ()
    tried: tuple[Trial, ...] = ()


def work_of(p: Prediction, places: Iterable[int], device: str) -> Work:
    """Of ops of the graph, each by itself."""
    places = tuple(places)
    rows = [p.sheet.rows[i] for i in places]
    times = [p.alone.groups[i] for i in places] if p.alone else []
    main = max(range(len(rows)), key=lambda i: (rows[i].flops, rows[i].bytes))
    at = times[main] if times else rows[main]
    launch_s, moved = _launch_s(p, device), sum(r.bytes for r in rows)
    return Work(
        flops=None if any(r.opaque for r in rows) else sum(r.flops for r in rows),
        bytes=moved,
        unit=at.unit,
        dtype=at.dtype,
        moved_s=_moved_s(p, moved),
        roof_s=_sum(t.roofline_time_s for t in times) if times else None,
        predicted_s=_sum(_expected(t, launch_s if device == "cpu" else None) for t in times) if times else None,
        launch_s=launch_s,
        winograd=any(_may_be_winograd(p.graph, p.graph.ops[i]) for i in places),
    )


def work_of_group(p: Prediction, number: int, device: str) -> Work:
    """Of a unit of the partition: what is read and written around it, once."""
    group, launch_s = p.partition.groups[number], _launch_s(p, device)
    time = p.estimate.groups[number] if p.estimate else None
    at = time or group.cost
    return Work(
        flops=None if group.cost.opaque else group.cost.flops,
        bytes=group.cost.bytes,
        unit=at.unit,
        dtype=at.dtype,
        moved_s=_moved_s(p, group.cost.bytes),
        roof_s=time.roofline_time_s if time else None,
        predicted_s=_expected(time, launch_s if device == "cpu" else None) if time else None,
        launch_s=launch_s,
        winograd=any(_may_be_winograd(p.graph, p.graph.ops[i]) for i in group.ops),
    )


def _launch_s(p: Prediction, device: str) -> float | None:
    return p.hardware.value("launch.eager" if device == "cpu" else "launch.graph") if p.hardware else None


def _moved_s(p: Prediction, moved: int) -> float | None:
    bandwidth = p.hardware.offchip.bandwidth_bytes_per_s if p.hardware and p.hardware.offchip else None
    return moved / bandwidth if bandwidth else None


def _expected(time: GroupTime, launch_s: float | None) -> float | None:
    if time.device_time_s is None:
        return None
    return max(time.device_time_s, launch_s or 0.0)


def _sum(values: Iterable[float | None]) -> float | None:
    found = list(values)
    return None if any(v is None for v in found) else sum(v for v in found if v is not None)


def _may_be_winograd(graph: Graph, op: Op) -> bool:
    if not op.kind.startswith("conv"):
        return False
    weights = [graph.tensors[i].shape for i in op.inputs if len(graph.tensors[i].shape) > 2]
    stride = op.attr("stride", 1)
    steps = stride if isinstance(stride, tuple) else (stride,)
    return any(prod(w[2:]) > 1 for w in weights[1:2]) and all(s == 1 for s in steps)


def standing(time_s: float, work: Work, hardware: Hardware | None) -> Standing:
    share = work.roof_s / time_s if work.roof_s is not None else None
    limit = _limit(time_s, work)
    return Standing(
        flop_per_s=None if work.flops is None else work.flops / time_s,
        bytes_per_s=work.bytes / time_s,
        roof_share=share,
        distance=1 / share if share else None,
        limited_by=limit,
        move=_move(share, limit),
        above_roof=tuple(_explained(work, hardware)) if share is not None and share > 1 else (),
    )


def _limit(time_s: float, work: Work) -> str | None:
    if work.launch_s is not None and time_s < 2 * work.launch_s and (work.roof_s or 0.0) < work.launch_s:
        return "launch"
    if work.roof_s is None or work.moved_s is None:
        return None
    return "memory" if _by_memory(work) else "compute"


def _by_memory(work: Work) -> bool:
    return work.moved_s is not None and work.roof_s is not None and work.moved_s >= 0.999 * work.roof_s


def _move(share: float | None, limit: str | None) -> str | None:
    """Far from its roof: up. Near it: past it, by moving fewer bytes, or under another one."""
    if share is None or limit is None:
        return None
    if limit == "launch" or share < NEAR:
        return "up"
    return "right" if limit == "memory" else "roof"


def _explained(work: Work, hardware: Hardware | None) -> Iterable[str]:
    assert hardware is not None
    memory_bound = _by_memory(work)
    if memory_bound:
        holding = [m for m in hardware.memory if m.level not in OFFCHIP and (m.capacity_bytes or 0) >= work.bytes]
        if holding:
            level = min(holding, key=lambda m: m.capacity_bytes or 0)
            yield f"cache: its {show(work.bytes, 'B')} fit in {level.level} ({show(level.capacity_bytes, 'B')})"
        elif any(m.level not in OFFCHIP for m in hardware.memory):
            yield "cache: part of its bytes stay on chip between runs"
        if hardware.offchip is not None and hardware.offchip.lower_bound:
            yield f"the bandwidth of {hardware.offchip.level} is a lower bound"
    if work.winograd:
        yield "Winograd or FFT: fewer multiplications than are counted"
    if not memory_bound and work.dtype == "fp32":
        yield "lower precision: the kernel may compute in less than fp32"
    if not memory_bound:
        yield "the peak may have been measured too low: run 'rooflens machine' again when nothing else runs"
