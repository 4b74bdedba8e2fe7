"""Mapping in, Estimate out: intensity, zone, bound and times of every group, and their totals.

roofline_time_s of a group = max(flops / peak of its unit, bytes / off-chip bandwidth): a floor by convention. Its device
time is that floor, or where its class of ops was calibrated on this chip what kernels of that class reach. Zones come from
the chip's own ridge for that type and unit, within 10 % of it `ridge`.
"""

from dataclasses import dataclass
from typing import NamedTuple

from rooflens.costs.sheet import OpCost
from rooflens.estimate.calibrated import expected, reach_of, together
from rooflens.hardware.profile import Reach
from rooflens.hardware.roofs import Ceiling, Parts, work_floor_s
from rooflens.mapping.compulsory import Mapping

RIDGE_BAND = 0.10
APART = 0.2  # of the device time, that a profile may know more of the one than of the other
EXECUTIONS = ("eager", "graph", "compiled")


class GroupTime(NamedTuple):
    """Where one group stands under its roof. None: a rate that it needs is not published. A named tuple, because one is
    made for each group."""

    unit: str
    dtype: str
    intensity: float | None
    ceiling_flop_per_s: float | None
    ridge: float | None
    zone: str | None
    bound: str | None
    roofline_time_s: float | None
    device_time_s: float | None
    low_s: float | None
    high_s: float | None
    confidence: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """`low_s` and `high_s` are between what nine of ten kernels of their classes took where they were measured; the high
    one is None where some were not."""

    mapping: Mapping
    groups: tuple[GroupTime, ...]
    launch_s: float | None
    roofline_time_s: float | None
    device_time_s: float | None
    low_s: float | None
    high_s: float | None
    confidence: str | None
    latency_s: float | None
    launch_bound: bool | None
    bound: str | None


def estimate(mapping: Mapping, execution: str = "eager", layout: str = "nchw") -> Estimate:
    launch_s = mapping.hardware.launch_s(execution)
    offchip = mapping.hardware.offchip
    bandwidth = offchip.bandwidth_bytes_per_s if offchip else None
    graph, rows, profile = mapping.partition.sheet.graph, mapping.partition.sheet.rows, mapping.hardware.profile
    reaches = None if profile is None else profile.lookup(layout)
    known: dict[tuple[OpCost, Ceiling, Parts, Reach | None], GroupTime] = {}  # blocks come many times in a network
    groups = list[GroupTime]()
    for group, ceiling, parts in zip(mapping.partition.groups, mapping.ceilings, mapping.parts, strict=True):
        if len(group.ops) == 1 and graph.ops[group.ops[0]].view:
            groups.append(_NOTHING)
            continue
        reach = None if reaches is None else reach_of(group, graph, rows, reaches, ceiling.dtype)
        key = group.cost, ceiling, parts, reach
        found = known.get(key)
        if found is None:
            found = known[key] = _group_time(*key[:3], bandwidth, launch_s, reach)
        groups.append(found)
    return _totals(mapping, tuple(groups), launch_s)


_NOTHING = GroupTime("vector", "fp32", None, None, None, None, None, 0.0, 0.0, 0.0, 0.0, None)


def _group_time(
    cost: OpCost,
    ceiling: Ceiling,
    parts: Parts,
    bandwidth: float | None,
    launch_s: float | None,
    reach: Reach | None,
) -> GroupTime:
    flops, moved, peak = cost.flops, cost.bytes, ceiling.flop_per_s
    intensity = flops / moved if moved else None
    ridge = peak / bandwidth if peak and bandwidth else None
    work_s = work_floor_s(flops, peak, parts)
    moved_s = moved / bandwidth if moved and bandwidth else None if moved else 0.0
    floor = None if cost.opaque or work_s is None or moved_s is None else max(work_s, moved_s)
    found = None if floor is None else expected(floor, work_s or 0.0, moved_s or 0.0, reach)
    return GroupTime(
        ceiling.unit,
        ceiling.dtype,
        None if cost.opaque else intensity,
        attainable_flop_per_s(intensity, peak, bandwidth),
        ridge,
        None if cost.opaque else zone_of(intensity, ridge, flops),
        None if found is None else _bound(work_s or 0.0, moved_s or 0.0, launch_s, found.time_s),
        floor,
        *(found or _UNKNOWN),
    )


_UNKNOWN = (None, None, None, None)


def attainable_flop_per_s(intensity: float | None, peak: float | None, bandwidth: float | None) -> float | None:
    """The height of the roof above an intensity; unknown where either line of it is."""
    if peak is None or bandwidth is None:
        return None
    return peak if intensity is None else min(peak, intensity * bandwidth)


def zone_of(intensity: float | None, ridge: float | None, flops: int) -> str | None:
    if flops == 0 and intensity is not None:
        return "memory-bound"
    if intensity is None or ridge is None:
        return None
    if abs(intensity - ridge) <= RIDGE_BAND * ridge:
        return "ridge"
    return "memory-bound" if intensity < ridge else "compute-bound"


def _bound(work_s: float, moved_s: float, launch_s: float | None, time_s: float) -> str:
    if launch_s is not None and launch_s > time_s:
        return "launch"
    return "compute" if work_s > moved_s else "memory"


def known_share(e: Estimate) -> float:
    """How much of the device time rests on measurements."""
    known = sum(g.device_time_s or 0.0 for g in e.groups if g.high_s is not None and g is not _NOTHING)
    return known / e.device_time_s if e.device_time_s else 0.0


def are_comparable(before: Estimate, after: Estimate) -> bool:
    """A forecast and a floor are not."""
    return abs(known_share(before) - known_share(after)) <= APART


def _totals(mapping: Mapping, groups: tuple[GroupTime, ...], launch_s: float | None) -> Estimate:
    """A sum with an unknown in it is unknown."""
    times = [g.device_time_s for g in groups]
    known = [t for t in times if t is not None]
    whole = len(known) == len(times)
    kernels = [g for g in groups if g is not _NOTHING]
    device_s = sum(known) if whole else None
    highs = [g.high_s for g in groups]
    exposed = sum(max(0.0, launch_s - (g.device_time_s or 0.0)) for g in kernels) if launch_s is not None else None
    return Estimate(
        mapping=mapping,
        groups=groups,
        launch_s=launch_s,
        roofline_time_s=sum(g.roofline_time_s for g in groups if g.roofline_time_s is not None) if whole else None,
        device_time_s=device_s,
        low_s=sum(g.low_s or 0.0 for g in groups) if whole else None,
        high_s=sum(h for h in highs if h is not None) if whole and None not in highs else None,
        confidence=together([(g.device_time_s or 0.0, g.confidence or "low") for g in kernels]) if whole else None,
        latency_s=None if device_s is None or exposed is None else device_s + exposed,
        launch_bound=None if device_s is None or exposed is None else exposed > device_s,
        bound=_heaviest(kernels, launch_s) if whole else None,
    )


def _heaviest(kernels: list[GroupTime], launch_s: float | None) -> str | None:
    """The class with the most time; a launch-bound kernel counts with its launch."""
    spent: dict[str, float] = {}
    for g in kernels:
        if g.bound is not None and g.device_time_s is not None:
            cost = launch_s if g.bound == "launch" and launch_s is not None else g.device_time_s
            spent[g.bound] = spent.get(g.bound, 0.0) + cost
    return max(sorted(spent), key=lambda k: spent[k]) if spent else None
