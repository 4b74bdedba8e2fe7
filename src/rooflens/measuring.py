"""A MODEL, options and a device in; the Analysis of it with what was measured here beside what was predicted, out."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rooflens.changes import Baseline
from rooflens.compare.grouped import in_eager, in_kernels
from rooflens.compare.standing import GroupRow, KernelRow, Measured, Row, Work, standing, work_of
from rooflens.compare.trials import Trial
from rooflens.errors import HardwareError, ModelError, NotInThisVersion, RooflensError, ShapeError, SyntaxFault
from rooflens.frontends.load import check_module, layers_of, needs_torch
from rooflens.frontends.request import Loaded, check_batch
from rooflens.graph.records import Graph
from rooflens.hardware.load import load_chip
from rooflens.hardware.records import Hardware
from rooflens.loading import checked_module, load, request_of
from rooflens.ops.table import OPS
from rooflens.pipeline.run import Prediction, predict
from rooflens.pipeline.settings import Settings
from rooflens.trying import try_changes

if TYPE_CHECKING:
    from rooflens.benches.measure import Plan, Progress
    from rooflens.benches.measurement import CompiledRun, LayerTime
    from rooflens.frontends.pytorch.calls import Recording, Step

DTYPES = ("fp32", "tf32", "bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an Analysis of a measured model is made of."""

    prediction: Prediction
    measured: Measured
    batch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runnable:
    name: str
    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def measure_model(
    model: Any,
    inputs: Any,
    hardware: Hardware | None,
    settings: Settings,
    *,
    device: str | None,
    seconds: float,
    backward: bool,
    progress: "Progress",
    try_: bool = False,
) -> Result:
    """`backward`: each layer's backward is measured too. `seconds` are spent on each distinct layer. `try_`: changes are
    tried on the whole afterwards."""
    check_run(settings, device)
    from rooflens.benches.device import device_of
    from rooflens.benches.host import host_facts
    from rooflens.benches.measure import measure
    from rooflens.benches.sampling import Budget

    where = device_of(device)
    found = _runnable(model, inputs, settings)
    compiled = settings.execution == "compiled"
    plan = _plan(found, settings, (backward or settings.training) and not compiled)
    loaded = _official(model, inputs, settings, plan)
    prediction = predict(loaded.graph, hardware, settings.adopting(loaded.settings), loaded.dtype)
    threads = host_facts().threads
    taken = measure(plan, where, Budget(total_s=seconds), threads, progress)
    rows = tuple(_rows(plan, taken.layers, prediction, where.name))
    trials: list[Trial] = []
    stopped_by = taken.stopped_by
    if try_ and not stopped_by:
        baseline = Baseline(
            plan=plan, device=where, settings=prediction.settings, hardware=hardware, wholes=taken.wholes, rows=rows,
            seconds=seconds, threads=threads,
        )  # fmt: skip
        stopped_by = try_changes(baseline, progress, trials)
    groups, kernels = _groups(prediction, taken.compiled, rows, where.name)
    measured = Measured(
        rows=rows,
        groups=groups,
        kernels=kernels,
        compiled=taken.compiled,
        wholes=taken.wholes,
        taken=taken.taken,
        stopped_by=stopped_by,
        failure=plan.measured.failure,
        notes=tuple(_notes(plan, backward)),
        tried=tuple(trials),
    )
    return Result(prediction=prediction, measured=measured, batch=loaded.batch)


def device_name(device: str | None) -> str:
    """`cpu` or `cuda`: what was asked for, else the best that is here."""
    from rooflens.benches.device import device_of

    return device_of(device).name


def this_machine(device: str | None) -> Hardware | None:
    """Its roofs, where `rooflens machine` has found them."""
    needs_torch()
    try:
        return load_chip(f"this-{device_name(device)}")
    except HardwareError:
        return None


def _check_runs(dtype: str | None) -> None:
    if dtype is not None and dtype not in DTYPES:
        raise SyntaxFault(f"--dtype {dtype}: torch runs no network as it is in that type: use {' '.join(DTYPES)}")


def check_run(settings: Settings, device: str | None) -> None:
    """What no model changes: asked before this machine's roofs are looked for."""
    needs_torch()
    where = device_name(device)
    _check_runs(settings.dtype)
    if settings.dtype == "tf32" and where == "cpu":
        raise SyntaxFault("--dtype tf32: only NVIDIA GPUs have TF32: use fp32 or bf16 on a CPU")
    if settings.execution == "compiled":
        if settings.training:
            raise NotInThisVersion(
                "measure --execution compiled with --mode training is not in this version: leave one of them out"
            )
        from rooflens.benches.inductor_built import check_compiler

        check_compiler(where)


# what runs


def _runnable(model: Any, inputs: Any, settings: Settings) -> _Runnable:
    if not isinstance(model, str | os.PathLike):
        from rooflens.frontends.pytorch.load import given_inputs

        name = checked_module(model)
        args, kwargs = given_inputs(inputs, request_of(settings))
        return _Runnable(name=name, module=model, args=args, kwargs=kwargs)
    text = os.fsdecode(model).strip()
    layers = layers_of(text) if text else None
    if layers is not None:
        return _from_text(*layers, inputs, settings)
    check_module(text, "measure needs")
    from rooflens.frontends.pytorch.load import module_of

    found = module_of(text, request_of(settings, inputs))
    return _Runnable(name=found.name, module=found.module, args=found.inputs[0], kwargs=found.inputs[1])


def _from_text(text: str, dtype: str | None, inputs: Any, settings: Settings) -> _Runnable:
    from rooflens.frontends.pytorch.text_net import text_net
    from rooflens.frontends.pytorch.tracker import TORCH_DTYPES

    if inputs is not None or settings.input is not None:
        raise ShapeError("inputs beside layer text, which starts with its own shape: change that shape")
    if settings.autocast:
        raise ModelError("--autocast is a torch feature and layer text has none: use --dtype alone")
    _check_runs(settings.dtype or dtype)
    net, given = text_net(text, TORCH_DTYPES[settings.dtype or dtype or "fp32"])
    check_batch(request_of(settings), tuple(given["input"].shape), "the layer text's shape")
    return _Runnable(name="layers", module=net, args=(), kwargs=dict(given))


def _plan(found: _Runnable, settings: Settings, backward: bool) -> "Plan":
    from rooflens.benches.measure import Plan
    from rooflens.benches.subject import Subject
    from rooflens.frontends.pytorch.trace import own_dtype

    dtype = settings.dtype or own_dtype(found.module)
    forward = _recorded(found, settings, dtype, training=False)
    return Plan(
        subject=Subject(module=found.module, args=found.args, kwargs=found.kwargs),
        forward=forward,
        trained=_recorded(found, settings, dtype, training=True) if backward else None,
        training=settings.training,
        dtype=dtype,
        autocast=dtype if settings.autocast else None,
        channels_last=settings.layout == "channels-last",
        captured=settings.execution == "graph",
        compiled=settings.execution == "compiled",
        frozen=settings.bn == "folded",
    )


def _recorded(found: _Runnable, settings: Settings, dtype: str, training: bool) -> "Recording":
    from rooflens.frontends.pytorch.calls import record_calls
    from rooflens.frontends.pytorch.load import prints_aside
    from rooflens.frontends.pytorch.tracker import TORCH_DTYPES

    with prints_aside():
        return record_calls(
            found.module,
            found.args,
            found.kwargs,
            name=found.name,
            source=found.name,
            dtype=TORCH_DTYPES["fp32" if settings.autocast else dtype],
            training=training,
            autocast=TORCH_DTYPES[dtype] if settings.autocast else None,
            channels_last=settings.layout == "channels-last",
        )


def _official(model: Any, inputs: Any, settings: Settings, plan: "Plan") -> Loaded:
    """The graph that `analyze` would give. A model that raises half-way still has what ran before."""
    try:
        return load(model, inputs, replace(settings, dtype=plan.dtype))
    except RooflensError:
        graph = plan.measured.graph
        shapes = [graph.tensors[i].shape for i in graph.inputs]
        return Loaded(graph=graph, dtype=plan.dtype, batch=shapes[0][0] if shapes and shapes[0] else None)


def _notes(plan: "Plan", backward: bool) -> Iterator[str]:
    if plan.compiled and backward:
        yield "backward passes are not measured: only the forward pass is compiled, as for inference"
    failure = plan.measured.failure
    if failure is not None:
        where = f"layer '{failure.module}'" if failure.module else "the model"
        yield f"the forward pass ended in {where}, what comes after it was not reached: {failure.reason}"


# what it means


def _rows(plan: "Plan", layers: "tuple[LayerTime, ...]", p: Prediction, device: str) -> Iterator[Row]:
    recordings = {"forward": plan.measured, "backward": plan.trained or plan.measured}
    places = {pass_: _aligned(recordings[pass_].graph, p.graph) for pass_ in recordings}
    known: dict[str, Work | None] = {}
    for layer in layers:
        graph, found = recordings[layer.pass_].graph, places[layer.pass_]
        mine = tuple(found[i] for i in layer.step.ops if i in found)
        ids = tuple(p.graph.ops[i].id for i in mine) or tuple(graph.ops[i].id for i in layer.step.ops)
        if layer.pass_ == "forward":
            work = work_of(p, mine, device) if mine else None
        else:
            work = _backward_work(layer.step, p, device, known)
        time_s = layer.alone.samples.median_s if layer.alone.samples else None
        stands = standing(time_s, work, p.hardware) if time_s and work else None
        yield Row(id=ids[-1], ids=ids, layer=layer, work=work, standing=stands)


def _groups(
    p: Prediction, run: "CompiledRun | None", rows: tuple[Row, ...], device: str
) -> tuple[tuple[GroupRow, ...], tuple[KernelRow, ...]]:
    if run is None:
        return in_eager(p, rows, device), ()
    return in_kernels(p, _made_of(run, p.graph), run, rows, device)


def _made_of(run: "CompiledRun", official: Graph) -> dict[int, frozenset[int]]:
    """By place in the graph that is reported, the kernels. One call that stands for a module (torch's own encoder layer)
    computes every op of it that is found nowhere else."""
    aligned = _aligned(run.graph, official)
    found = {aligned[i]: numbers for i, numbers in enumerate(run.made_of) if i in aligned}
    for op, numbers in zip(run.graph.ops, run.made_of, strict=False):
        if op.kind not in OPS and numbers:
            inside = f"{op.module}." if op.module else ""
            for place, other in enumerate(official.ops):
                if not other.view and (other.module == op.module or other.module.startswith(inside)):
                    found.setdefault(place, numbers)
    return found


def _aligned(recorded: Graph, official: Graph) -> dict[int, int]:
    """Places of recorded ops to places in the graph that is reported: by module, kind and turn."""
    turns: dict[tuple[str, str], list[int]] = {}
    for place, op in enumerate(official.ops):
        if op.pass_ == "forward" and not op.view:
            turns.setdefault((op.module, op.kind), []).append(place)
    found: dict[int, int] = {}
    for place, op in enumerate(recorded.ops):
        waiting = turns.get((op.module, op.kind)) or turns.get((op.module, op.kind.removesuffix("_train")))
        if not op.view and waiting:
            found[place] = waiting.pop(0)
    return found


def _backward_work(step: "Step", p: Prediction, device: str, known: dict[str, Work | None]) -> Work | None:
    """What autograd has to do for one call, counted on a training step of that call alone."""
    from rooflens.frontends.pytorch.derivative import training_graph

    if step.call.key not in known:
        graph = training_graph(step.call)
        known[step.call.key] = None if graph is None else _counted_backward(graph, p, device)
    return known[step.call.key]


def _counted_backward(graph: Graph, p: Prediction, device: str) -> Work | None:
    plain = replace(p.settings, fusion="none", bn="kept", mode="training", execution="eager")
    alone = predict(graph, p.hardware, plain, p.dtype)
    places = [i for i, op in enumerate(graph.ops) if op.pass_ == "backward" and not op.view]
    return work_of(alone, places, device) if places else None
