"""A module and its inputs in, copies to experiment on out: on the meta device, or real zeros on the CPU. The user's own
module is never touched: some counters leave hooks and buffers behind in what they are given."""

import copy
import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a counter is run on."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def on(self, device: str) -> "Subject":
        """A copy in evaluation mode; tensors that are real already keep their values on the CPU."""
        inside = [t for m in self.module.modules() for t in _tensors_of(m)]
        module = copy.deepcopy(self.module, {id(t): _stand_in(t, device) for t in inside})
        args = tuple(_moved(a, device) for a in self.args)
        return Subject(module=module.eval(), args=args, kwargs={k: _moved(v, device) for k, v in self.kwargs.items()})

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
        return sum(t.numel() * t.element_size() for m in self.module.modules() for t in _tensors_of(m))


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


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return _stand_in(value, device)
    if isinstance(value, list | tuple):
        return type(value)(_moved(v, device) for v in value)
    if isinstance(value, dict):
        return {k: _moved(v, device) for k, v in value.items()}
    return value
