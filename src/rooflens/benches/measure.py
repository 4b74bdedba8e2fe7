"""A module, the calls recorded of it and a device in, a Measurement out: each call by itself, the whole, and each call
inside the whole.

What was finished is kept, whatever ends the run.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from rooflens.benches.compiled import compiled_run
from rooflens.benches.device import Device, switches
from rooflens.benches.host import host_facts, load, one_cpu_per_core
from rooflens.benches.inductor import compiler_name, draw_apart
from rooflens.benches.insitu import in_situ
from rooflens.benches.isolated import NO_GRADIENT, Conditions, Timed, backward_times, forward_times
from rooflens.benches.measurement import CompiledRun, LayerTime, Measurement, Taken, WholeTime
from rooflens.benches.pinning import pinned
from rooflens.benches.profiled import Spent
from rooflens.benches.sampling import Budget, now
from rooflens.benches.subject import Subject
from rooflens.benches.whole import Around, Fault, backward_faults, forward_run, step_run, whole_time
from rooflens.frontends.pytorch.calls import Recording
from rooflens.frontends.pytorch.tracker import TORCH_DTYPES

RUNS_IN_SITU = 5
Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, of how much


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run. `trained` is the forward pass of a training step, None where no backward is asked for; `training`: the
    forward pass that is measured is that one."""

    subject: Subject
    forward: Recording
    trained: Recording | None
    training: bool
    dtype: str
    autocast: str | None = None
    channels_last: bool = False
    captured: bool = False  # the whole in a CUDA graph
    compiled: bool = False  # the forward pass by torch's compiler too
    frozen: bool = False  # and weights are constants there, as batchnorms are folded into

    @property
    def measured(self) -> Recording:
        return self.trained if self.training and self.trained is not None else self.forward


class _Partial:
    """Grows while the run goes on: what an interruption leaves."""

    def __init__(self) -> None:
        self.layers: dict[str, list[LayerTime]] = {"forward": [], "backward": []}
        self.compiled: CompiledRun | None = None
        self.wholes: list[WholeTime] = []
        self.stopped_by = ""


def measure(plan: Plan, device: Device, budget: Budget, threads: int, progress: Progress) -> Measurement:
    load_before, done = load(), _Partial()
    cpus = one_cpu_per_core(host_facts())
    with pinned(cpus), switches(plan.dtype, threads) as told:
        try:
            _run(plan, device, budget, progress, done)
        except KeyboardInterrupt as error:
            done.stopped_by = type(error).__name__
    return Measurement(
        layers=(*done.layers["forward"], *done.layers["backward"]),
        wholes=tuple(done.wholes),
        taken=_taken(device, threads, cpus, told, load_before),
        compiled=done.compiled,
        stopped_by=done.stopped_by,
    )


def _run(plan: Plan, device: Device, budget: Budget, progress: Progress, done: _Partial) -> None:
    conditions = Conditions(device=device, budget=budget, around=around_of(plan, device))
    if plan.compiled:
        progress("compiling", 0, 1)
        done.compiled = _compiled(plan, conditions)
        progress("compiling", 1, 1)
    forward, trained = plan.measured.steps, plan.trained.steps if plan.trained else ()
    total = len(forward) + len(trained)
    kept = done.layers
    for step, timed in zip(forward, forward_times(forward, plan.training, conditions), strict=True):
        kept["forward"].append(LayerTime(step=step, pass_="forward", alone=timed))
        progress("layers", len(kept["forward"]), total)
    for step, timed in zip(trained, backward_times(trained, conditions), strict=True):
        kept["backward"].append(LayerTime(step=step, pass_="backward", alone=timed))
        progress("layers", len(forward) + len(kept["backward"]), total)
    if plan.measured.failure is None:
        _wholes(plan, conditions, progress, done)


def _compiled(plan: Plan, conditions: Conditions) -> CompiledRun:
    """First of all: a model that the compiler does not take is told before anything is measured."""
    device = conditions.device
    lacking = _cannot(plan, "forward", device)
    if lacking is not None:
        return CompiledRun(
            compiler=compiler_name(),
            frozen=plan.frozen,
            compile_s=0.0,
            graph=plan.forward.graph,
            made_of=(),
            whole=lacking,
        )
    subject = plan.subject.to_run(device.name, training=False, dtype=_weights(plan), channels_last=plan.channels_last)
    draw_apart(subject.module, plan.subject.module)
    try:
        return compiled_run(
            subject, plan.forward.graph.name, conditions.around, device, _longer(conditions.budget), frozen=plan.frozen
        )
    finally:
        device.release()


def _wholes(plan: Plan, conditions: Conditions, progress: Progress, done: _Partial) -> None:
    """The whole model, forward and then as a training step, and every call inside them."""
    passes = [*([] if plan.training else ["forward"]), *(["step"] if plan.trained else [])]
    for place, pass_ in enumerate(passes):
        progress("whole model", place, len(passes))
        missing = _cannot(plan, pass_, conditions.device)
        if missing is not None:
            done.wholes.append(missing)
            continue
        training = pass_ == "step"
        subject = plan.subject.to_run(
            conditions.device.name, training=training, dtype=_weights(plan), channels_last=plan.channels_last
        )
        run = (step_run if training else forward_run)(subject, conditions.around)
        whole, fault = whole_time(pass_, run, subject, conditions.device, _longer(conditions.budget), plan.captured)
        if fault is not None:
            _mark_faults(plan, subject, conditions.around, fault, training, done)
        elif whole.status == "ok":
            whole = _inside(plan, subject, run, pass_, whole, conditions.device, done)
        done.wholes.append(whole)
        conditions.device.release()
    progress("whole model", len(passes), len(passes))


def _cannot(plan: Plan, pass_: str, device: Device) -> WholeTime | None:
    """Asked before anything is allocated."""
    lacking = device.lacks(plan.subject.bytes * (2 if pass_ == "step" else 1))
    if lacking:
        return WholeTime(pass_=pass_, status="oom", reason=lacking)
    if pass_ == "step" and not any(p.requires_grad for p in plan.subject.module.parameters()):
        return WholeTime(pass_=pass_, status=NO_GRADIENT, reason="the model has no parameter that learns")
    return None


def _longer(budget: Budget) -> Budget:
    return replace(budget, total_s=5 * budget.total_s, least=3)


def _inside(
    plan: Plan,
    subject: Subject,
    run: Callable[[], object],
    pass_: str,
    whole: WholeTime,
    device: Device,
    done: _Partial,
) -> WholeTime:
    recording = plan.trained if pass_ == "step" and plan.trained else plan.forward
    seen = in_situ(run, subject.module, recording.steps, device.name, RUNS_IN_SITU)
    if pass_ == "forward" or plan.training:
        _note(done.layers["forward"], [f.forward for f in seen])
    if pass_ == "step":
        _note(done.layers["backward"], [f.backward for f in seen])
    held = subject.bytes + max((f.peak_bytes for f in seen), default=0)
    return replace(whole, peak_bytes=held)


def _note(layers: list[LayerTime], runs: list[tuple[Spent | None, ...]]) -> None:
    for place, layer in enumerate(layers):
        spent = tuple(s for s in (run[place] for run in runs) if s is not None)
        layers[place] = replace(layer, in_situ=spent)


def _mark_faults(plan: Plan, subject: Subject, around: Around, fault: Fault, training: bool, done: _Partial) -> None:
    """A module that raised while the model ran is a layer that failed, whatever its kernels do by themselves."""
    faults: tuple[Fault, ...] = (fault,)
    pass_ = "forward"
    if training and not fault.module:
        steps = plan.trained.steps if plan.trained else ()
        owners = tuple(dict.fromkeys(s.module for s in steps))
        faults, pass_ = backward_faults(subject, owners, around) or faults, "backward"
    for found in faults:
        layers = done.layers[pass_] if done.layers[pass_] else done.layers["forward"]
        for place, layer in enumerate(layers):
            if layer.step.module == found.module:
                layers[place] = replace(layer, alone=Timed(status="failed", reason=found.reason))


def around_of(plan: Plan, device: Device) -> Callable[[], AbstractContextManager[Any]]:
    if plan.autocast is None:
        return nullcontext
    return partial(torch.autocast, device.name, TORCH_DTYPES[plan.autocast])


def _weights(plan: Plan) -> torch.dtype | None:
    return TORCH_DTYPES["fp32" if plan.autocast else plan.dtype]


def _taken(
    device: Device, threads: int, cpus: tuple[int, ...], told: tuple[tuple[str, Any], ...], load_before: float | None
) -> Taken:
    return Taken(
        device=device.name,
        device_name=device_name(device),
        facts=host_facts(),
        date=now(),
        threads=threads,
        pinned_cpus=cpus,
        switches=told,
        versions=tuple(versions()),
        load_before=load_before,
        load_after=load(),
    )


def device_name(device: Device) -> str:
    if device.name == "cuda":
        return str(torch.cuda.get_device_name())
    return host_facts().cpu_model or platform.machine()


def versions() -> Iterator[tuple[str, str]]:
    yield "python", platform.python_version()
    yield "torch", torch.__version__
    if torch.version.cuda is not None:
        yield "cuda", torch.version.cuda
