"""A case of a suite and a pass in, something to run again and again out, with what it is run on.

Forward is as in inference unless the case says otherwise. Backward is what autograd makes of one forward pass, over and
over, with gradients for inputs as for parameters: a layer inside a network passes them on. A step is an optimizer's.
"""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rooflens.benches.replay import spread
from rooflens.benches.subject import Subject
from rooflens.benches.suite import Case
from rooflens.benches.whole import forward_run
from rooflens.frontends.pytorch.load import module_of
from rooflens.frontends.pytorch.text_net import text_net
from rooflens.frontends.pytorch.trace import outputs_in, own_dtype
from rooflens.frontends.pytorch.tracker import DTYPES, TORCH_DTYPES
from rooflens.frontends.pytorch.trees import mapped, tensors_in
from rooflens.frontends.request import Request

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
_FEW = 8  # parameters that are told one by one


class NoGradient(Exception):
    """Nothing that is given or learnt has a gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """`run` is what is timed; `whole` what has to run for the most memory to be held: with backward the forward before it.
    `held_bytes` are there before and after: the module, its inputs, and what an optimizer keeps."""

    run: Callable[[], object]
    whole: Callable[[], object]
    subject: Subject
    held_bytes: int

    def outputs(self) -> tuple[torch.Tensor, ...]:
        with torch.no_grad():
            return tuple(outputs_in(self.subject.module(*self.subject.args, **self.subject.kwargs)))


def subject_of(case: Case, folder: Path) -> tuple[Subject, str]:
    """As its author made it, before any tensor has values, and the type that it computes in."""
    if case.layer is not None:
        dtype = case.dtype or "fp32"
        net, given = text_net(case.layer, TORCH_DTYPES[dtype])
        return Subject(module=net, args=(), kwargs={k: _over_the_table(t, net) for k, t in given.items()}), dtype
    found = module_of(_placed(case.model or "", folder), Request())
    args, kwargs = found.inputs
    return Subject(module=found.module, args=args, kwargs=kwargs), case.dtype or own_dtype(found.module)


def _over_the_table(given: torch.Tensor, net: nn.Module) -> torch.Tensor:
    """Indices that reach every part of the table that they are looked up in."""
    rows = next((m.num_embeddings for m in net.modules() if isinstance(m, nn.Embedding)), None)
    if given.is_floating_point() or rows is None:
        return given
    return spread(given.numel(), 0, rows, given.dtype, "cpu").reshape(given.shape)


def _placed(model: str, folder: Path) -> str:
    return str(folder / model) if ".py:" in model else model


def code_hash(case: Case, folder: Path) -> str:
    """Of the layer text, or of the whole file that the function stands in."""
    if case.layer is not None:
        text = " ".join(case.layer.split()).encode()
    elif ".py:" in (case.model or ""):
        text = Path(_placed(case.model or "", folder).rpartition(":")[0]).read_bytes()
    else:
        text = (case.model or "").encode()
    return hashlib.sha256(text).hexdigest()[:12]


def ready(case: Case, pass_: str, made: Subject, dtype: str, device: str) -> Ready:
    """With values, on the device."""
    learning = pass_ != "forward" or case.training
    subject = made.to_run(device, training=learning, dtype=TORCH_DTYPES[dtype], channels_last=False)
    if pass_ == "step":
        return _stepping(case.optimizer or "", subject)
    if pass_ == "backward":
        return _backward(_learning(subject))
    run = _learnt_forward(subject) if learning else forward_run(subject, nullcontext)
    return Ready(run=run, whole=run, subject=subject, held_bytes=subject.bytes)


def _learning(subject: Subject) -> Subject:
    def learns(t: torch.Tensor) -> torch.Tensor:
        return t.requires_grad_() if t.is_floating_point() else t

    args = tuple(mapped(learns, a) for a in subject.args)
    return Subject(module=subject.module, args=args, kwargs={k: mapped(learns, v) for k, v in subject.kwargs.items()})


def _learnt_forward(subject: Subject) -> Callable[[], Any]:
    def run() -> Any:
        with torch.enable_grad():
            return subject.module(*subject.args, **subject.kwargs)

    return run


def _backward(subject: Subject) -> Ready:
    inside = [*subject.module.parameters(), *subject.inputs]
    leaves = [t for t in {id(t): t for t in inside}.values() if t.requires_grad]
    forward = _learnt_forward(subject)

    def whole() -> Any:
        outs = [t for t in outputs_in(forward()) if t.requires_grad]
        return torch.autograd.grad(outs, leaves, [torch.ones_like(t) for t in outs], allow_unused=True)

    outs = [t for t in outputs_in(forward()) if t.requires_grad]
    if not leaves or not outs:
        raise NoGradient("nothing that it is given or has learnt has a gradient")
    seeds = [torch.ones_like(t) for t in outs]
    return Ready(
        run=lambda: torch.autograd.grad(outs, leaves, seeds, retain_graph=True, allow_unused=True),
        whole=whole,
        subject=subject,
        held_bytes=subject.bytes,
    )


def _stepping(optimizer: str, subject: Subject) -> Ready:
    """Every parameter has a gradient, and the optimizer its state, as from the second step on."""
    learnt = [p for p in subject.module.parameters() if p.requires_grad]
    if not learnt:
        raise NoGradient("it has no parameter that learns")
    for p in learnt:
        p.grad = torch.ones_like(p)
    made = OPTIMIZERS[optimizer](learnt, lr=1e-6)
    made.step()
    kept = [
        *learnt,
        *(t for s in made.state.values() for t in tensors_in(s)),
    ]  # a gradient is as large as its parameter
    held = subject.bytes + sum(t.numel() * t.element_size() for t in kept)
    return Ready(run=made.step, whole=made.step, subject=subject, held_bytes=held)


def shape_of(subject: Subject, outputs: Iterable[torch.Tensor]) -> str:
    """Every input, output and parameter with its type; many parameters by their number and a hash of them all."""
    params = [_told(p) for p in subject.module.parameters()]
    if len(params) > _FEW:
        count = sum(p.numel() for p in subject.module.parameters())
        params = [f"{count} in {len(params)} ({hashlib.sha256(' '.join(params).encode()).hexdigest()[:12]})"]
    told = f"{' '.join(map(_told, subject.inputs))} -> {' '.join(map(_told, outputs))}"
    return f"{told}; parameters {' '.join(params)}" if params else told


def _told(t: torch.Tensor) -> str:
    return f"{DTYPES.get(t.dtype, str(t.dtype))}[{','.join(map(str, t.shape))}]"


class Learner(nn.Module):
    """A module whose inputs learn too, for counting what its backward has to do: on meta, nothing is computed."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.inner = subject.module
        self.given = subject
        self.names = {id(t): f"input{place}" for place, t in enumerate(subject.inputs)}
        for t in {id(t): t for t in subject.inputs}.values():
            made = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
            if t.is_floating_point():
                self.register_parameter(self.names[id(t)], nn.Parameter(made))
            else:
                self.register_buffer(self.names[id(t)], made)

    def forward(self) -> Any:
        def learnt(t: torch.Tensor) -> Any:
            return getattr(self, self.names[id(t)])

        args = [mapped(learnt, a) for a in self.given.args]
        return self.inner(*args, **{k: mapped(learnt, v) for k, v in self.given.kwargs.items()})
