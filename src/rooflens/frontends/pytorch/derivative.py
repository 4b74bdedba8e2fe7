"""One recorded call in, the Graph of that call alone out, or of a training step of it: what its backward has to do."""

from typing import Any

import torch
from torch import nn

from rooflens.errors import RooflensError
from rooflens.frontends.pytorch.calls import Call
from rooflens.frontends.pytorch.trace import trace_module
from rooflens.graph.records import Graph


class _OneCall(nn.Module):
    """What learns is a parameter, what does not a buffer."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call
        for place, slot in enumerate(call.slots):
            made = torch.empty_strided(slot.shape, slot.stride, dtype=slot.dtype, device="meta")
            if slot.learns:
                self.register_parameter(f"t{place}", nn.Parameter(made))
            else:
                self.register_buffer(f"t{place}", made)

    def forward(self) -> Any:
        tensors = [getattr(self, f"t{place}") for place in range(len(self.call.slots))]
        args, kwargs = self.call.given(self.call.unspent(tensors))
        return self.call.function(*args, **kwargs)


def forward_graph(call: Call, autocast: torch.dtype | None = None) -> Graph | None:
    """None where it cannot be recorded by itself."""
    try:
        return trace_module(_OneCall(call), (), {}, name=call.name, source="call", autocast=autocast)
    except RooflensError:
        return None


def training_graph(call: Call, autocast: torch.dtype | None = None) -> Graph | None:
    """None where no gradient flows, or autograd knows none."""
    if not any(s.learns for s in call.slots):
        return None
    try:
        return trace_module(_OneCall(call), (), {}, name=call.name, source="call", training=True, autocast=autocast)
    except RooflensError:
        return None
