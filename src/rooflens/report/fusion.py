"""A Prediction and its edges in, `groups` and `fusion` of the Analysis JSON out: what runs as one, and what that saved."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rooflens.costs.reuse import Reuse, reuse_together
from rooflens.costs.sheet import OpCost
from rooflens.estimate.roofline import Estimate, GroupTime
from rooflens.fusion.account import is_stored, outside_reads, stays
from rooflens.fusion.edges import Edge, groups_of
from rooflens.fusion.flow import flow_of
from rooflens.fusion.partition import Group, Partition
from rooflens.fusion.rules import OUTPUT
from rooflens.graph.records import Graph
from rooflens.pipeline.run import Prediction

SINGLE = "single"
_SHORT = {"batchnorm": "bn", "batchnorm_train": "bn_train", "batchnorm_backward": "bn_backward"}


def pattern_of(graph: Graph, ops: tuple[int, ...]) -> str:
    """`conv+bn+relu`: the kinds of its kernels in the order they run; one kernel is `single`."""
    kinds = [_SHORT.get(graph.ops[i].kind, graph.ops[i].kind) for i in ops if not graph.ops[i].view]
    return "+".join(kinds) if len(kinds) > 1 else SINGLE


def kernels_of(groups: Partition) -> int:
    return sum(_runs(groups.sheet.graph, g.ops) for g in groups.groups)


def _runs(graph: Graph, ops: tuple[int, ...]) -> bool:
    return any(not graph.ops[i].view for i in ops)


def reuse_document(found: Reuse) -> dict[str, Any]:
    return {
        "mode": found.mode,
        "ops_per_output": found.ops_per_output,
        "bytes_per_output": found.bytes_per_output,
        "intensity": found.intensity,
    }


def op_shares(p: Prediction) -> list[float | None]:
    """By place: a group's share of the device time, shared out by what its members would take by themselves."""
    found: list[float | None] = [None] * len(p.graph.ops)
    e, alone = p.estimate, p.alone
    if e is None or alone is None or not e.device_time_s:
        return found
    for group, time in zip(p.partition.groups, e.groups, strict=True):
        own = [alone.groups[place].device_time_s or 0.0 for place in group.ops]
        whole = sum(own)
        for place, part in zip(group.ops, own, strict=True):
            if time.device_time_s is not None:
                found[place] = time.device_time_s / e.device_time_s * (part / whole if whole else 0.0)
    return found


def groups_document(p: Prediction, edges: tuple[Edge, ...]) -> list[dict[str, Any]]:
    reasons, e = _cut_reasons(p.partition, edges), p.estimate
    return [
        _group(p, group, e.groups[place] if e else None, reasons[place])
        for place, group in enumerate(p.partition.groups)
    ]


def _cut_reasons(groups: Partition, edges: tuple[Edge, ...]) -> list[str | None]:
    """Why each group ends where it does: the reason of the dearest edge that leaves it, or that its output is one of the
    model's."""
    of, graph = groups_of(groups), groups.sheet.graph
    found: list[tuple[int, str] | None] = [None] * len(groups.groups)
    for edge in edges:
        before = found[of[edge.before]]
        if edge.reason is not None and (before is None or before[0] < edge.bytes):
            found[of[edge.before]] = (edge.bytes, edge.reason)
    results = {graph.tensors[o].base for o in graph.outputs}
    ends = [any(graph.tensors[o].base in results for i in g.ops for o in graph.ops[i].outputs) for g in groups.groups]
    return [f[1] if f else OUTPUT if end else None for f, end in zip(found, ends, strict=True)]


def _group(p: Prediction, group: Group, time: GroupTime | None, reason: str | None) -> dict[str, Any]:
    cost, rows = group.cost, [p.sheet.rows[i] for i in group.ops]
    alone_bytes = sum(row.bytes for row in rows)
    total = p.estimate.device_time_s if p.estimate else None
    device = time.device_time_s if time else None
    return {
        "id": p.graph.ops[group.ops[0]].id,
        "pattern": pattern_of(p.graph, group.ops),
        "ops": [p.graph.ops[i].id for i in group.ops],
        "macs": None if cost.opaque else cost.macs,
        "extra_macs": group.extra_macs,
        "flops": None if cost.opaque else cost.flops,
        "input_bytes": cost.input_bytes,
        "output_bytes": cost.output_bytes,
        "param_bytes": cost.param_bytes,
        "bytes": cost.bytes,
        "internal_bytes": alone_bytes - cost.bytes,
        "unfused_bytes": alone_bytes,
        "intensity_flop_per_byte": None if cost.opaque else _ratio(cost.flops, cost.bytes),
        "unfused_intensity_flop_per_byte": None if cost.opaque else _ratio(sum(r.flops for r in rows), alone_bytes),
        "dtype": cost.dtype,
        "ceiling_flop_per_s": time.ceiling_flop_per_s if time else None,
        "ceiling_dtype": time.dtype if time and _runs(p.graph, group.ops) else None,
        "ridge_flop_per_byte": time.ridge if time else None,
        "zone": time.zone if time else None,
        "bound": time.bound if time else None,
        "unit": time.unit if time else cost.unit,
        "traffic": _traffic(p, cost),
        "roofline_time_s": time.roofline_time_s if time else None,
        "device_time_s": device,
        "device_time_low_s": time.low_s if time else None,
        "device_time_high_s": time.high_s if time else None,
        "confidence": time.confidence if time else None,
        "share": device / total if device is not None and total else None,
        "energy_j": None,
        "mapping": _mapping(p),
        "tile": _tile(group),
        "cut_reason": reason,
        "reuse": _reuse(p, group),
    }


def _reuse(p: Prediction, group: Group) -> dict[str, Any] | None:
    """Per output element of the group's first op, at the reuse that was asked for: fused, and its members one by one."""
    if p.settings.reuse == "compulsory":
        return None
    flow, of, graph = flow_of(p.graph), groups_of(p.partition), p.graph
    members = [(graph.ops[i], p.sheet.rows[i]) for i in group.ops]
    made = [o for op, _ in members if not op.view for o in op.outputs]
    together = reuse_together(members, graph.tensors, p.settings.reuse, [o for o in made if stays(flow, o, of)])
    if together is None:
        return None
    return {**reuse_document(together), "unfused_intensity": together.apart_intensity}


def _tile(group: Group) -> dict[str, Any] | None:
    t = group.tile
    if t is None:
        return None
    return {"shape": list(t.shape), "count": t.count, "needs_bytes": t.needs_bytes, "has_bytes": t.has_bytes}


def _ratio(a: int, b: int) -> float | None:
    return a / b if b else None


def _traffic(p: Prediction, cost: OpCost) -> list[dict[str, Any]]:
    level = p.hardware.offchip if p.hardware else None
    if level is None:
        return []
    intensity, bandwidth = None if cost.opaque else _ratio(cost.flops, cost.bytes), level.bandwidth_bytes_per_s
    ceiling = intensity * bandwidth if intensity is not None and bandwidth else None
    return [{"level": level.level, "bytes": cost.bytes, "intensity": intensity, "ceiling_flop_per_s": ceiling}]


def _mapping(p: Prediction) -> dict[str, Any] | None:
    """What part 5 brings is null until then."""
    if p.estimate is None:
        return None
    return {"mapper": p.estimate.mapping.mapper, "cache_resident": None, "algorithm": "direct", "waste": None}


# before and after


def fusion_document(p: Prediction, edges: tuple[Edge, ...]) -> dict[str, Any]:
    groups, e = p.partition, p.estimate
    one_by_one = _tensors(groups, list(range(len(groups.sheet.rows))))
    before = {**_side(p, p.alone, None), **one_by_one}
    after = {**_side(p, e, groups), **(one_by_one if groups.level == "none" else _tensors(groups, groups_of(groups)))}
    kept = [len(g.ops) for g in groups.groups]
    bandwidth = p.hardware.offchip.bandwidth_bytes_per_s if p.hardware and p.hardware.offchip else None
    launches = before["launch_s"], after["launch_s"]
    return {
        "level": groups.level,
        "before": before,
        "after": after,
        "ops_per_unit": {"mean": sum(kept) / len(kept), "max": max(kept)} if kept else {"mean": None, "max": None},
        "patterns": _patterns(p),
        "sizes": _sizes(p),
        "blocks": _blocks(p),
        "edges": [_edge(p.graph, edge) for edge in edges],
        "extra_macs": sum(g.extra_macs for g in groups.groups),
        "saved_bandwidth_s": (before["bytes"] - after["bytes"]) / bandwidth if bandwidth else None,
        "saved_launch_s": None if None in launches else launches[0] - launches[1],
        "speedup": _speedup(p.alone, e),
    }


def _side(p: Prediction, e: Estimate | None, groups: Partition | None) -> dict[str, Any]:
    """Totals of a partition; None is every op by itself."""
    rows = p.sheet.rows if groups is None else tuple(g.cost for g in groups.groups)
    kernels = sum(not op.view for op in p.graph.ops) if groups is None else kernels_of(groups)
    return {
        "units": len(rows),
        "kernels": kernels,
        "macs": sum(r.macs for r in rows),
        "flops": sum(r.flops for r in rows),
        "bytes": sum(r.bytes for r in rows),
        "input_bytes": sum(r.input_bytes for r in rows),
        "output_bytes": sum(r.output_bytes for r in rows),
        "param_bytes": sum(r.param_bytes for r in rows),
        "launch_s": kernels * e.launch_s if e and e.launch_s is not None else None,
        "roofline_time_s": e.roofline_time_s if e else None,
        "device_time_s": e.device_time_s if e else None,
        "latency_s": e.latency_s if e else None,
    }


def _tensors(groups: Partition, of: Sequence[int]) -> dict[str, int]:
    """How many tensors the units read from memory and write to it; `of` tells the unit of each op by its place."""
    sheet, flow = groups.sheet, flow_of(groups.sheet.graph)
    members: dict[int, list[int]] = {}
    kernels = [place for place, op in enumerate(sheet.graph.ops) if not op.view]
    for place in kernels:
        members.setdefault(of[place], []).append(place)
    read = [r for ops in members.values() for r in outside_reads(sheet, flow, ops, of, of[ops[0]]).values()]
    written = (a for place in kernels for a in sheet.traffic(place)[1] if stays(flow, a.region[0], of))
    return {
        "reads": sum(not is_stored(readers) for readers in read),
        "param_reads": sum(is_stored(readers) for readers in read),
        "writes": sum(1 for _ in written),
    }


def _speedup(before: Estimate | None, after: Estimate | None) -> float | None:
    """Of latency, launches included; of device time where the cost of a launch is unknown."""
    if before is None or after is None:
        return None
    if before.latency_s and after.latency_s:
        return before.latency_s / after.latency_s
    return before.device_time_s / after.device_time_s if before.device_time_s and after.device_time_s else None


def _edge(graph: Graph, edge: Edge) -> dict[str, Any]:
    return {
        "from": graph.ops[edge.before].id,
        "to": graph.ops[edge.after].id,
        "decision": "cut" if edge.rule is None else "fused",
        "rule": edge.rule,
        "reason": edge.reason,
        "bytes": edge.bytes,
    }


def _reduction(p: Prediction, group: Group) -> float:
    alone = sum(p.sheet.rows[i].bytes for i in group.ops)
    return 1 - group.cost.bytes / alone if alone else 0.0


def _patterns(p: Prediction) -> dict[str, dict[str, Any]]:
    """Most frequent first; `share` is of all units."""
    found: dict[str, list[float]] = {}
    for group in p.partition.groups:
        found.setdefault(pattern_of(p.graph, group.ops), []).append(_reduction(p, group))
    count = len(p.partition.groups)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        name: {
            "count": len(cuts),
            "share": len(cuts) / count,
            "reduction_min": min(cuts),
            "reduction_max": max(cuts),
        }
        for name, cuts in ordered
    }


def _sizes(p: Prediction) -> list[dict[str, Any]]:
    """Statistics by how many kernels were fused into one."""
    found: dict[int, list[Group]] = {}
    for group in p.partition.groups:
        found.setdefault(sum(not p.graph.ops[i].view for i in group.ops), []).append(group)
    return [
        {
            "kernels": size,
            "units": len(found[size]),
            "bytes": sum(g.cost.bytes for g in found[size]),
            "unfused_bytes": sum(p.sheet.rows[i].bytes for g in found[size] for i in g.ops),
        }
        for size in sorted(found)
    ]


def _blocks(p: Prediction) -> list[dict[str, Any]]:
    """Residual blocks, the modules that add two branches: how many units each needs, scheduled one by one and now."""
    adding = dict.fromkeys(
        op.module
        for op in p.graph.ops
        if op.kind == "add" and op.module and op.pass_ == "forward" and _joins(p.graph, op.inputs)
    )
    of = groups_of(p.partition)
    return [_block(p, module, of) for module in adding]


def _joins(graph: Graph, inputs: Iterable[int]) -> bool:
    return len({graph.tensors[i].base for i in inputs if graph.tensors[i].role == "activation"}) > 1


def _block(p: Prediction, module: str, of: list[int]) -> dict[str, Any]:
    inside = [
        place for place, op in enumerate(p.graph.ops)
        if op.pass_ == "forward" and not op.view and (op.module == module or op.module.startswith(f"{module}."))
    ]  # fmt: skip
    return {"module": module, "ops": len(inside), "units": len({of[place] for place in inside})}


def units_per_block(blocks: list[dict[str, Any]]) -> Counter[tuple[int, int]]:
    """How many blocks go from so many ops to so many units."""
    return Counter((b["ops"], b["units"]) for b in blocks)
