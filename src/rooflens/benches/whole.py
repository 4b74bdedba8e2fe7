"""A module with real values in, the times of its whole forward pass, and of forward and backward together, out."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as nn_module

from rooflens.benches.device import Device
from rooflens.benches.isolated import described, is_out_of_memory
from rooflens.benches.measurement import WholeTime
from rooflens.benches.sampling import Budget
from rooflens.benches.subject import Subject
from rooflens.frontends.pytorch.trace import outputs_in
from rooflens.frontends.pytorch.trees import tensors_in

Around = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Where a real run raised: the module, and what it said."""

    module: str
    reason: str


def forward_run(subject: Subject, around: Around) -> Callable[[], object]:
    def run() -> object:
        with torch.inference_mode(), around():
            return subject.module(*subject.args, **subject.kwargs)

    return run


def step_run(subject: Subject, around: Around) -> Callable[[], object]:
    """Gradients are made anew each time, as after `zero_grad`."""

    def run() -> object:
        subject.module.zero_grad(set_to_none=True)
        with torch.enable_grad(), around():
            outs = [t for t in outputs_in(subject.module(*subject.args, **subject.kwargs)) if t.requires_grad]
        torch.autograd.backward(outs, [torch.ones_like(t) for t in outs])
        return None

    return run


def whole_time(
    pass_: str, run: Callable[[], object], subject: Subject, device: Device, budget: Budget, captured: bool
) -> tuple[WholeTime, Fault | None]:
    standing = _Standing(subject.module)
    try:
        with standing.watched():
            run()
        with device.working():
            samples = device.sampled(run, budget, captured)
        return WholeTime(pass_=pass_, status="ok", samples=samples), None
    except Exception as error:  # whatever a model may raise
        status = "oom" if is_out_of_memory(error) else "failed"
        fault = Fault(module=standing.module, reason=described(error))
        return WholeTime(pass_=pass_, status=status, reason=described(error)), fault


class _Standing:
    """In which module a forward pass stands; after it has raised, in which it did."""

    def __init__(self, module: nn.Module) -> None:
        self.paths = {m: path for path, m in module.named_modules()}
        self.stack: list[str] = []

    @property
    def module(self) -> str:
        return self.stack[-1] if self.stack else ""

    @contextmanager
    def watched(self) -> Iterator[None]:
        def enter(m: nn.Module, args: Any) -> None:
            self.stack.append(self.paths.get(m, self.module))

        def leave(m: nn.Module, args: Any, output: Any) -> None:
            self.stack.pop()

        with ExitStack() as stack:
            stack.callback(nn_module.register_module_forward_pre_hook(enter).remove)
            stack.callback(nn_module.register_module_forward_hook(leave).remove)
            yield


def backward_faults(subject: Subject, modules: tuple[str, ...], around: Around) -> tuple[Fault, ...]:
    """Which of the modules raise in backward when each runs by itself on what reached it; of modules inside each other
    the innermost."""
    found: dict[str, Fault] = {}
    given = _inputs_of(subject, modules, around)
    for path in sorted(given, key=lambda p: -p.count(".") - bool(p)):
        inside = f"{path}." if path else ""
        if any(p.startswith(inside) for p in found):
            continue
        reason = _backward_fault(subject.module.get_submodule(path), *given[path], around)
        if reason:
            found[path] = Fault(module=path, reason=reason)
    return tuple(found.values())


def _inputs_of(subject: Subject, modules: tuple[str, ...], around: Around) -> dict[str, tuple[Any, Any]]:
    given: dict[str, tuple[Any, Any]] = {}
    with ExitStack() as stack:
        for path in modules:

            def keep(m: nn.Module, args: Any, kwargs: Any, path: str = path) -> None:
                given.setdefault(path, (args, kwargs))

            hook = subject.module.get_submodule(path).register_forward_pre_hook(keep, with_kwargs=True)
            stack.callback(hook.remove)
        with torch.no_grad(), around():
            subject.module(*subject.args, **subject.kwargs)
    return given


def _backward_fault(module: nn.Module, args: Any, kwargs: Any, around: Around) -> str:
    def fresh(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            copy = value.detach().clone()
            return copy.requires_grad_() * 1 if copy.is_floating_point() else copy
        if isinstance(value, list | tuple):
            return type(value)(fresh(v) for v in value)
        return {k: fresh(v) for k, v in value.items()} if isinstance(value, dict) else value

    try:
        with torch.enable_grad(), around():
            outs = [t for t in tensors_in(module(*fresh(args), **fresh(kwargs))) if t.requires_grad]
        torch.autograd.backward(outs, [torch.ones_like(t) for t in outs])
    except Exception as error:
        return described(error)
    return ""
