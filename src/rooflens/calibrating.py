"""A device and the chip that it is in, the Profile of what classes of ops reach on it out."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rooflens.compare.reach import Timing, reaches_of
from rooflens.errors import RooflensError, SyntaxFault
from rooflens.estimate.roofline import Estimate
from rooflens.frontends.load import needs_torch
from rooflens.graph.records import Graph
from rooflens.hardware.profile import Profile
from rooflens.hardware.records import Hardware
from rooflens.hardware.roofs import work_floor_s
from rooflens.mapping.compulsory import check_dtype
from rooflens.ops.classes import cares_for_layout, class_of
from rooflens.pipeline.run import predict
from rooflens.pipeline.settings import make_settings

if TYPE_CHECKING:
    from rooflens.benches.calibration import Point
    from rooflens.benches.isolated import Conditions, Timed
    from rooflens.frontends.pytorch.calls import Step

RUN = ("fp32", "tf32", "bf16", "fp16")
FULL_S, QUICK_S = 170.0, 18.0
Progress = Callable[[str, int, int], None]


def calibrate_device(
    hardware: Hardware, *, device: str | None, quick: bool, dtypes: tuple[str, ...] | None, progress: Progress
) -> tuple[Profile, tuple[Timing, ...]]:
    """The profile, and the points that it was made from. What an interruption leaves is not a profile."""
    needs_torch()
    from contextlib import nullcontext

    from rooflens.benches.calibration import points
    from rooflens.benches.device import device_of, switches
    from rooflens.benches.host import host_facts
    from rooflens.benches.isolated import Conditions
    from rooflens.benches.measure import device_name, versions
    from rooflens.benches.sampling import Budget, now

    where = device_of(device)
    plain = replace(hardware, profile=None)
    _check_chip(hardware, where.name)
    wanted = _checked_types(plain, where.name, dtypes)
    conditions = Conditions(device=where, budget=Budget(total_s=0.01 if quick else 0.02, most=20), around=nullcontext)
    found: list[Timing] = []
    todo, start = tuple(points(wanted, quick)), time.perf_counter()
    note = ""
    for done, point in enumerate(todo):
        if time.perf_counter() - start > (QUICK_S if quick else FULL_S):
            note = f"time ran out after {done} of {len(todo)} layers: classes that are missing were not reached"
            break
        with switches(point.dtype, host_facts().threads):
            found += _timings(point, plain, conditions)
        progress("calibrating", done + 1, len(todo))
    profile = Profile(
        chip=hardware.id, date=now(), device=device_name(where), versions=tuple(versions()), note=note,
        reaches=reaches_of(found),
    )  # fmt: skip
    return profile, tuple(found)


def _check_chip(hardware: Hardware, device: str) -> None:
    """What one device reaches says nothing about the roofs of another."""
    if (hardware.kind == "gpu") != (device == "cuda"):
        raise SyntaxFault(
            f"--on {hardware.id}: a {hardware.kind}, and what runs here is {device}: leave --on out, or name the chip in which "
            f"this {device} device is"
        )


def _checked_types(hardware: Hardware, device: str, asked: tuple[str, ...] | None) -> tuple[str, ...]:
    found = asked or _types(hardware, device)
    for dtype in found:
        if dtype not in RUN:
            raise SyntaxFault(f"--dtype {dtype}: no layer runs in that type: use some of {' '.join(RUN)}")
        check_dtype(hardware, dtype)
    return found


def _types(hardware: Hardware, device: str) -> tuple[str, ...]:
    have = {p.dtype for p in hardware.peaks if p.flop_per_s is not None}
    wanted = ("bf16", "fp32", "tf32") if device == "cuda" else ("fp32", "bf16")
    return tuple(d for d in wanted if d in have) or ("fp32",)


def _timings(point: "Point", hardware: Hardware, conditions: "Conditions") -> Iterator[Timing]:
    """Of a point's kernels, forward and backward; none where it does not run here, or would take too long."""
    from rooflens.benches.isolated import backward_times, forward_times
    from rooflens.frontends.pytorch.derivative import training_graph

    try:
        recording = point.recorded(training=False)
        forward = _estimated(recording.graph, hardware, point.dtype)
    except RooflensError:
        return
    if not _short(forward, conditions.device.name):
        return
    for step, timed in zip(recording.steps, forward_times(recording.steps, False, conditions), strict=True):
        if len(step.ops) == 1:
            yield from _timing(recording.graph, step.ops[0], forward, timed, point.layout)
    steps = tuple(_all_learn(s) for s in point.recorded(training=True).steps)
    for step, timed in zip(steps, backward_times(steps, conditions), strict=True):
        graph = training_graph(step.call)
        places = [i for i, op in enumerate(graph.ops) if op.pass_ == "backward" and not op.view] if graph else []
        if graph is not None and len(places) == 1:  # of several kernels nobody knows which took how long
            yield from _timing(graph, places[0], _estimated(graph, hardware, point.dtype), timed, point.layout)


def _estimated(graph: Graph, hardware: Hardware, dtype: str) -> Estimate:
    found = predict(graph, hardware, make_settings(dtype=dtype), dtype).estimate
    assert found is not None
    return found


def _short(estimate: Estimate, device: str) -> bool:
    from rooflens.benches.calibration import LONGEST_S

    return estimate.roofline_time_s is not None and estimate.roofline_time_s < LONGEST_S[device]


def _all_learn(step: "Step") -> "Step":
    """In a network gradients flow on from every layer."""
    slots = tuple(replace(s, learns=s.dtype.is_floating_point) for s in step.call.slots)
    return replace(step, call=replace(step.call, slots=slots))


def _timing(graph: Graph, place: int, estimate: Estimate, timed: "Timed", layout: str) -> Iterator[Timing]:
    mapping, group = estimate.mapping, estimate.mapping.partition.groups[place]
    bandwidth = mapping.hardware.offchip.bandwidth_bytes_per_s if mapping.hardware.offchip else None
    taken = timed.samples.median_s if timed.samples else None
    ceiling = mapping.ceilings[place]
    work = work_floor_s(group.cost.flops, ceiling.flop_per_s, mapping.parts[place])
    op_class = class_of(graph.ops[place], graph.tensors)
    told = layout == "nchw" or cares_for_layout(op_class)
    if taken and bandwidth and work is not None and told and not group.cost.opaque:
        yield Timing(
            op_class=op_class,
            dtype=ceiling.dtype,
            layout=layout,
            work_s=work,
            moved_s=group.cost.bytes / bandwidth,
            time_s=taken,
        )
