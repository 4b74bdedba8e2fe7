"""What was measured in, the `measured` part of a measurement document out: raw samples and all, so that drawing it again
never measures again."""

import statistics
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rooflens.compare.standing import DIFFERS, GroupRow, Measured, Row, Standing, Work
from rooflens.pipeline.settings import Settings
from rooflens.report.samples import samples_document
from rooflens.report.tried import tried_document

if TYPE_CHECKING:
    from rooflens.benches.isolated import Timed
    from rooflens.benches.measurement import CompiledRun, Taken, WholeTime


def measured_document(m: Measured, settings: Settings) -> dict[str, Any]:
    ids = {p: [r.id for r in m.rows if r.layer.pass_ == p] for p in ("forward", "backward")}
    ops = [_row(r, ids[r.layer.pass_]) for r in m.rows]
    execution = "graph" if settings.execution == "graph" else "eager"  # a compiled run stands beside the eager one
    compiled = [] if m.compiled is None else [_compiled_whole(m.compiled)]
    failed = [] if m.failure is None else [_unreached(m.failure.module, m.failure.reason)]
    return {
        **_taken(m.taken),
        "stopped_by": m.stopped_by or None,
        "notes": list(m.notes),
        "whole": [*(_whole(w, ops, execution) for w in m.wholes), *compiled],
        "ops": [*ops, *failed],
        "groups": [_group(g) for g in m.groups],
        "compiled": _compiled(m),
        "tried": [tried_document(t) for t in m.tried],
    }


def _taken(t: "Taken") -> dict[str, Any]:
    return {
        "device": t.device, "device_name": t.device_name, "date": t.date, "threads": t.threads,
        "pinned_cpus": list(t.pinned_cpus),
        "switches": dict(t.switches), "versions": dict(t.versions), "load_before": t.load_before,
        "load_after": t.load_after, "machine": asdict(t.facts),
    }  # fmt: skip


def _row(r: Row, ids: list[str]) -> dict[str, Any]:
    layer, work, stands = r.layer, r.work, r.standing
    inside = [s.time_s for s in layer.in_situ]
    time_s = layer.alone.samples.median_s if layer.alone.samples else None
    in_situ_s = statistics.median(inside) if inside else None
    last = layer.in_situ[-1] if layer.in_situ else None
    return {
        "id": r.id,
        "ops": list(r.ids),
        "module": layer.step.module,
        "call": layer.step.call.name,
        "pass": layer.pass_,
        **_timed(layer.alone, ids),
        "in_situ_s": in_situ_s,
        "in_situ_samples_s": inside,
        "differs": differs(time_s, in_situ_s),
        "kernels": last.kernels if last else None,
        "allocations": last.allocations if last else None,
        "allocated_bytes": last.allocated_bytes if last else None,
        "peak_memory_bytes": last.peak_bytes if last else None,
        **_under_the_roof(work, stands),
    }


def _under_the_roof(work: Work | None, stands: Standing | None) -> dict[str, Any]:
    """What there is to do, how quickly it was done, and how far from the roof that is."""
    return {
        "flops": work.flops if work else None,
        "bytes": work.bytes if work else None,
        "intensity_flop_per_byte": work.intensity if work else None,
        "unit": work.unit if work else None,
        "dtype": work.dtype if work else None,
        "flop_per_s": stands.flop_per_s if stands else None,
        "bytes_per_s": stands.bytes_per_s if stands else None,
        "roofline_time_s": work.roof_s if work else None,
        "predicted_s": work.predicted_s if work else None,
        "roof_share": stands.roof_share if stands else None,
        "distance": stands.distance if stands else None,
        "limited_by": stands.limited_by if stands else None,
        "move": stands.move if stands else None,
        "above_roof": bool(stands and stands.above_roof),
        "above_roof_reasons": list(stands.above_roof) if stands else [],
    }


def _timed(t: "Timed", ids: list[str]) -> dict[str, Any]:
    """`same_as`: the equal call whose samples these are."""
    first = None if t.first is None else ids[t.first]
    return {"status": t.status, "reason": t.reason or None, "same_as": first, **samples_document(t.samples)}


def differs(alone_s: float | None, inside_s: float | None) -> bool | None:
    """Whether a layer takes another time in the whole than by itself."""
    if alone_s is None or inside_s is None:
        return None
    return abs(inside_s - alone_s) > DIFFERS * alone_s


def _unreached(module: str, reason: str) -> dict[str, Any]:
    """The layer that ended the forward pass."""
    empty = dict.fromkeys(_FIELDS)
    return {
        **empty, "id": module or "model", "ops": [], "module": module, "call": None, "pass": "forward",
        "status": "failed", "reason": reason, "samples_s": [], "warmups_s": [], "rejected": [], "in_situ_samples_s": [],
        "above_roof": False, "above_roof_reasons": [],
    }  # fmt: skip


_FIELDS = (
    "id", "ops", "module", "call", "pass", "status", "reason", "same_as", "time_s", "low_s", "high_s", "spread",
    "samples_s", "warmups_s", "rejected", "involuntary_switches", "inconclusive", "in_situ_s", "in_situ_samples_s",
    "differs", "kernels", "allocations", "allocated_bytes", "peak_memory_bytes", "flops", "bytes",
    "intensity_flop_per_byte", "unit", "dtype", "flop_per_s", "bytes_per_s", "roofline_time_s", "predicted_s",
    "roof_share", "distance", "limited_by", "move", "above_roof", "above_roof_reasons",
)  # fmt: skip


def _whole(w: "WholeTime", ops: list[dict[str, Any]], execution: str) -> dict[str, Any]:
    """Beside the sum of its layers; the gap between the two is a row of its own."""
    mine = [o for o in ops if o["pass"] == "forward" or w.pass_ == "step"]
    inside = _sum(o["in_situ_s"] for o in mine)
    return {
        **_run(w, execution, inside),
        "layers_alone_s": _sum(o["time_s"] for o in mine),
        "layers_in_situ_s": inside,
        "kernels_s": None,
    }


def _compiled_whole(run: "CompiledRun") -> dict[str, Any]:
    """Beside the sum of its kernels."""
    every = {place: 1.0 for place in range(len(run.kernels)) if run.samples_of({place: 1.0}) is not None}
    kernels = run.samples_of(every)
    inside = kernels.median_s if kernels else None
    return {
        **_run(run.whole, "compiled", inside), "layers_alone_s": None, "layers_in_situ_s": None, "kernels_s": inside,
    }  # fmt: skip


def _run(w: "WholeTime", execution: str, inside: float | None) -> dict[str, Any]:
    time_s = w.samples.median_s if w.samples else None
    gap = None if time_s is None or inside is None else time_s - inside
    return {
        "pass": w.pass_,
        "execution": execution,
        "status": w.status,
        "reason": w.reason or None,
        **samples_document(w.samples),
        "peak_memory_bytes": w.peak_bytes,
        "gap_s": gap,
        "gap_share": gap / time_s if gap is not None and time_s else None,
    }


def _sum(values: Iterable[float | None]) -> float | None:
    """Of what is known; None where nothing is."""
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _group(g: GroupRow) -> dict[str, Any]:
    return {
        "id": g.id,
        "ops": list(g.ids),
        "how": g.how,
        "kernel": ", ".join(g.kernels) or None,
        **samples_document(g.samples),
        "time_s": g.time_s,
        "members_s": g.members_s,
        **_under_the_roof(g.work, g.standing),
    }


def _compiled(m: Measured) -> dict[str, Any] | None:
    if m.compiled is None:
        return None
    return {
        "compiler": m.compiled.compiler,
        "frozen": m.compiled.frozen,
        "compile_s": m.compiled.compile_s,
        "runs": len(m.compiled.runs),
        "kernels": [
            {"name": k.name, "what": k.what, "groups": list(k.groups), **samples_document(k.samples)}
            for k in m.kernels
        ],
    }  # fmt: skip
