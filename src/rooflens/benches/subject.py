"""A module and its inputs in, copies to experiment on out: on the meta device, real zeros on the CPU, or with values to
measure on any device. The user's own module is never touched: some counters leave hooks and buffers behind in what they
are given."""

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rooflens.benches.replay import spread
from rooflens.frontends.pytorch.trees import mapped, tensors_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a counter is run on."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def on(self, device: str) -> "Subject":
        """A copy in evaluation mode; tensors that are real already keep their values on the CPU."""
        made = self.made(lambda t: _stand_in(t, device))
        made.module.eval()
        return made

    def to_run(self, device: str, *, training: bool, dtype: torch.dtype | None, channels_last: bool) -> "Subject":
        """A copy with values that a run can be timed on; those that are real already stay what they are."""
        made = self.made(lambda t: _valued(t, device, dtype, channels_last))
        made.module.train(training)
        for m in made.module.modules():
            if isinstance(m, nn.RNNBase):
                m.flatten_parameters()
        return made

    def made(self, change: Callable[[torch.Tensor], Any]) -> "Subject":
        """A copy whose every tensor is what `change` makes of it; tied ones stay tied."""
        inside = [t for m in self.module.modules() for t in _tensors_of(m)]
        module = copy.deepcopy(self.module, {id(t): change(t) for t in {id(t): t for t in inside}.values()})
        args = tuple(mapped(change, a) for a in self.args)
        return Subject(module=module, args=args, kwargs={k: mapped(change, v) for k, v in self.kwargs.items()})

    def larger(self, times: int) -> "Subject":
        """With so many times the items: every input whose first size is the batch."""
        if times == 1:
            return self
        batch = next((t.shape[0] for t in self.inputs if t.dim()), None)

        def repeated(t: torch.Tensor) -> torch.Tensor:
            return torch.cat([t] * times) if t.dim() and t.shape[0] == batch else t

        args = tuple(mapped(repeated, a) for a in self.args)
        return replace(self, args=args, kwargs={k: mapped(repeated, v) for k, v in self.kwargs.items()})

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        return tuple(tensors_in([self.args, self.kwargs]))

    def positional(self) -> tuple[Any, ...]:
        """The inputs by place, for counters that take no keywords."""
        given = inspect.signature(self.module.forward).bind(*self.args, **self.kwargs)
        places = [place for place, name in enumerate(given.signature.parameters) if name in given.arguments]
        given.apply_defaults()
        return given.args[: max(places[-1] + 1 if places else 0, len(self.args))]

    def keywords(self) -> dict[str, Any]:
        """The inputs by name, for counters that would take the first one's length for a batch."""
        return dict(inspect.signature(self.module.forward).bind(*self.args, **self.kwargs).arguments)

    @property
    def bytes(self) -> int:
        """Of the module and its inputs, tied tensors once."""
        inside = [t for m in self.module.modules() for t in _tensors_of(m)]
        found = {id(t): t for t in (*inside, *tensors_in(self.args), *tensors_in(self.kwargs))}
        return sum(t.numel() * t.element_size() for t in found.values())


def _tensors_of(module: nn.Module) -> list[torch.Tensor]:
    tables = (module._parameters, module._buffers, vars(module))
    return [t for table in tables for t in table.values() if isinstance(t, torch.Tensor)]


def _stand_in(t: torch.Tensor, device: str) -> torch.Tensor:
    """Zeros: no value that a table or an index could be broken by, and no memory before it is written."""
    if t.device.type == device:
        return t
    made = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)
    if device != "meta":
        made = torch.zeros(t.shape, dtype=t.dtype, device=device) if t.is_meta else t.detach().to(device)
    return nn.Parameter(made, requires_grad=t.requires_grad) if isinstance(t, nn.Parameter) else made


def _valued(t: torch.Tensor, device: str, dtype: torch.dtype | None, channels_last: bool) -> torch.Tensor:
    """Small random weights, positive vectors (a variance is one), indices of the first row."""
    kind = dtype if dtype is not None and t.is_floating_point() else t.dtype
    made = _drawn(t, device, kind) if t.is_meta else t.detach().to(device=device, dtype=kind, copy=True)
    if channels_last and made.dim() == 4:
        made = made.contiguous(memory_format=torch.channels_last)
    return nn.Parameter(made, requires_grad=t.requires_grad) if isinstance(t, nn.Parameter) else made


def _drawn(t: torch.Tensor, device: str, kind: torch.dtype) -> torch.Tensor:
    if not kind.is_floating_point:
        return torch.zeros(t.shape, dtype=kind, device=device)
    low, high = (0.5, 1.5) if t.dim() < 2 else (-0.05, 0.05)
    return spread(t.numel(), low, high, kind, device).reshape(t.shape)
