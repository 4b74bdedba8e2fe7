"""A Prediction with its advice and gates in, the Analysis JSON out (`rooflens.analysis/1`, schema in `report/schemas`).

The document is the saved result: every report is drawn from it alone, so drawing it again never traces again.
"""

from typing import Any

from rooflens.advise.whatif import Advice
from rooflens.compare.gates import GateResult
from rooflens.compare.inductor import Against
from rooflens.compare.standing import Measured
from rooflens.costs.reuse import reuse_of
from rooflens.costs.sheet import BYTES_CONVENTION, FLOP_CONVENTION, OpCost
from rooflens.estimate.roofline import GroupTime
from rooflens.fusion.edges import edges_of, groups_of
from rooflens.graph.records import Graph, Op, Tensor, graph_hash
from rooflens.hardware.records import Hardware, hardware_hash
from rooflens.pipeline.run import Prediction
from rooflens.report.against import against_document
from rooflens.report.fusion import fusion_document, groups_document, kernels_of, op_shares, reuse_document
from rooflens.report.measured import measured_document
from rooflens.report.notes import assumptions_of, notes_of
from rooflens.resultfile import ANALYSIS_SCHEMA, MEASUREMENT_SCHEMA
from rooflens.version import __version__

SCHEMA = ANALYSIS_SCHEMA
COMPARISON_SCHEMA = "rooflens.comparison/1"


def analysis_document(
    prediction: Prediction,
    advice: tuple[Advice, ...],
    on: str | None,
    batch: int | None,
    against: Against | None = None,
    measured: Measured | None = None,
) -> dict[str, Any]:
    """Everything but the gates, which are judged on the document itself."""
    graph, edges = prediction.graph, edges_of(prediction.partition)
    return {
        "schema": SCHEMA if measured is None else MEASUREMENT_SCHEMA,
        "rooflens_version": __version__,
        "assumptions": [*graph.assumptions, *assumptions_of(prediction)],
        "notes": [*graph.notes, *notes_of(prediction)],
        "convention": {"flop": FLOP_CONVENTION, "bytes": BYTES_CONVENTION},
        "model": _model(graph),
        "settings": _settings(prediction, on, batch),
        "hardware": None if prediction.hardware is None else hardware_document(prediction.hardware),
        "coverage": _coverage(prediction),
        "totals": _totals(prediction, batch),
        "ops": _ops(prediction),
        "outputs": list(graph.outputs),
        "tensors": [_stored_tensor(t) for t in graph.tensors],
        "groups": groups_document(prediction, edges),
        "fusion": {
            **fusion_document(prediction, edges),
            "against": against_document(against, graph) if against else None,
        },
        "llm": None,
        "memory_timeline": None,
        "measured": None if measured is None else measured_document(measured, prediction.settings),
        "advice": [_advice(a) for a in advice],
        "gates": [],
    }


def with_gates(document: dict[str, Any], results: tuple[GateResult, ...]) -> dict[str, Any]:
    return {**document, "gates": [{"gate": r.gate, "value": r.value, "passed": r.passed} for r in results]}


def comparison_document(documents: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schema": COMPARISON_SCHEMA, "rooflens_version": __version__, "analyses": documents}


def _model(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "source": graph.source,
        "graph_hash": graph_hash(graph),
        "params": graph.params,
        "param_bytes": graph.param_bytes,
        "inputs": [
            {"name": t.name, "shape": list(t.shape), "dtype": t.dtype} for t in (graph.tensors[i] for i in graph.inputs)
        ],
        "assumptions": list(graph.assumptions),
        "notes": list(graph.notes),
    }


def _stored_tensor(t: Tensor) -> dict[str, Any]:
    """Enough to build the graph again, so that a saved result can be priced on another chip."""
    return {
        "tensor": t.id, "name": t.name, "shape": list(t.shape), "dtype": t.dtype, "role": t.role, "base": t.base,
        "elements": t.elements, "offset": t.offset, "trainable": t.trainable,
    }  # fmt: skip


def _settings(p: Prediction, on: str | None, batch: int | None) -> dict[str, Any]:
    s = p.settings
    return {
        "on": on, "batch": batch, "input": _input_in_force(p.graph), "dim": dict(s.dim), "dtype": p.dtype, "kv_dtype": s.kv_dtype,
        "mode": s.mode, "optimizer": s.step, "layout": s.layout, "autocast": s.autocast, "phase": s.phase, "seq": s.seq,
        "context": s.context, "fusion": s.fusion, "bn": s.bn, "execution": s.execution, "reuse": s.reuse,
        "sparsity": s.sparsity, "weight_density": s.weight_density, "uncalibrated": s.uncalibrated, "gate": list(s.gate),
        "strict": s.strict, "format": s.format, "output": s.output, "html": s.html, "plot": s.plot,
        "trace_out": s.trace_out,
    }  # fmt: skip


def _input_in_force(graph: Graph) -> str | None:
    """As --input would say it; inputs that differ in shape have no such text."""
    shapes = {graph.tensors[i].shape for i in graph.inputs}
    return "x".join(map(str, shapes.pop())) if len(shapes) == 1 else None


def hardware_document(h: Hardware) -> dict[str, Any]:
    dtypes = list(dict.fromkeys(p.dtype for p in h.peaks))
    return {
        "id": h.id,
        "name": h.name,
        "kind": h.kind,
        "peak_flop_per_s": {d: {u: h.peak(d, u) for u in ("matrix", "vector")} for d in dtypes},
        "ridge_flop_per_byte": {d: {u: h.ridge(d, u) for u in ("matrix", "vector")} for d in dtypes},
        "memory": [
            {
                "level": m.level,
                "bandwidth_bytes_per_s": m.bandwidth_bytes_per_s,
                "capacity_bytes": m.capacity_bytes,
                "lower_bound": m.lower_bound,
            }
            for m in h.memory
        ],
        "source": {f.key: f.source for f in h.facts},
        "hash": hardware_hash(h),
        "calibrated": h.calibrated,
        "measured": h.measured,
        "hypothetical": h.hypothetical,
        "note": h.note,
    }


def _coverage(p: Prediction) -> dict[str, Any]:
    c = p.sheet.coverage
    return {
        "ops": c.ops,
        "opaque": [{"kind": kind, "count": count, "example": example} for kind, count, example in c.opaque],
        "share_counted": c.share_counted,
    }


def _totals(p: Prediction, batch: int | None) -> dict[str, Any]:
    """Counts are of what could be counted; a ratio to a part of the work would say nothing, so it is unknown then."""
    rows, e = [g.cost for g in p.partition.groups], p.estimate
    macs, flops, moved = sum(r.macs for r in rows), sum(r.flops for r in rows), sum(r.bytes for r in rows)
    latency, whole = e.latency_s if e else None, not p.sheet.coverage.opaque
    return {
        "ops": len(p.graph.ops),
        "kernels": kernels_of(p.partition),
        "macs": macs,
        "flops": flops,
        "input_bytes": sum(r.input_bytes for r in rows),
        "output_bytes": sum(r.output_bytes for r in rows),
        "param_bytes": sum(r.param_bytes for r in rows),
        "bytes": moved,
        "dram_bytes": sum(e.mapping.dram_bytes) if e else None,
        "intensity_flop_per_byte": _ratio(flops, moved) if whole else None,
        "mac_intensity_flop_per_byte": _ratio(2 * macs, moved) if whole else None,
        "bound": e.bound if e else None,
        "roofline_time_s": e.roofline_time_s if e else None,
        "device_time_s": e.device_time_s if e else None,
        "device_time_low_s": e.low_s if e else None,
        "device_time_high_s": e.high_s if e else None,
        "latency_s": latency,
        "launch_bound": e.launch_bound if e else None,
        "energy_j": None,
        "peak_memory_bytes": None,
        "throughput_per_s": batch / latency if batch and latency else None,
        "confidence": e.confidence if e else None,
    }


def _ratio(a: int, b: int) -> float | None:
    return a / b if b else None


def _ops(p: Prediction) -> list[dict[str, Any]]:
    """Each op as if it ran by itself; `share` alone is its part of what really runs, so that shares add up to one."""
    graph, alone = p.graph, p.alone
    tensors = [
        {"tensor": t.id, "name": t.name, "shape": list(t.shape), "dtype": t.dtype, "role": t.role}
        for t in graph.tensors
    ]
    shares, groups = op_shares(p), groups_of(p.partition)
    ids = [graph.ops[group.ops[0]].id for group in p.partition.groups]
    return [
        {
            **_op(p, op, row, alone.groups[place] if alone else None, tensors),
            "group": ids[groups[place]],
            "share": shares[place],
        }
        for place, (op, row) in enumerate(zip(graph.ops, p.sheet.rows, strict=True))
    ]


def _op(p: Prediction, op: Op, row: OpCost, time: GroupTime | None, tensors: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": op.id,
        "module": op.module,
        "kind": op.kind,
        "pass": op.pass_,
        "view": op.view,
        "inputs": [tensors[i] for i in op.inputs],
        "outputs": [tensors[o] for o in op.outputs],
        "attrs": {k: list(v) if isinstance(v, tuple) else v for k, v in op.attrs},
        "dtype": row.dtype,
        "macs": None if row.opaque else row.macs,
        "flops": None if row.opaque else row.flops,
        "input_bytes": row.input_bytes,
        "output_bytes": row.output_bytes,
        "param_bytes": row.param_bytes,
        "bytes": row.bytes,
        "intensity_flop_per_byte": None if row.opaque else _ratio(row.flops, row.bytes),
        "ceiling_flop_per_s": time.ceiling_flop_per_s if time else None,
        "ceiling_dtype": time.dtype if time and not op.view else None,
        "ridge_flop_per_byte": time.ridge if time else None,
        "zone": time.zone if time else None,
        "bound": time.bound if time else None,
        "unit": time.unit if time else row.unit,
        "group": None,
        "roofline_time_s": time.roofline_time_s if time else None,
        "device_time_s": time.device_time_s if time else None,
        "share": None,
        "reuse": _reuse(p, op, row),
    }


def _reuse(p: Prediction, op: Op, row: OpCost) -> dict[str, Any] | None:
    found = reuse_of(op, p.graph.tensors, row, p.settings.reuse)
    if found is None:
        return None
    return reuse_document(found)


def _advice(a: Advice) -> dict[str, Any]:
    return {
        "target": a.target, "move": a.move, "action": a.action, "why": a.why, "gain_of": a.gain_of,
        "gain_s": a.gain_s, "gain_share": a.gain_share,
    }  # fmt: skip
