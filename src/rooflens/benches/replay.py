"""A recorded call and a device in; the same call on real tensors, ready to run again and again, out.

Values matter little to the time of a dense kernel, but they must not break it: numbers stay near one, indices within
their tables, masks let everything through.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from rooflens.frontends.pytorch.calls import Call, Place, Slot
from rooflens.frontends.pytorch.trees import tensors_in

Run = Callable[[], Any]
_PATTERN, _GOLDEN = 1 << 22, 0.6180339887498949
_RECURRENT = frozenset({"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """`forward` runs the call. `backward` runs what autograd makes of it, over and over from one forward pass; None
    where no gradient flows."""

    forward: Run
    backward: Run | None


class NoGradient(Exception):
    """Nothing that the call was given, or nothing that it returns, has a gradient."""


def extent(slot: Slot) -> int:
    """Elements of the memory that a strided tensor reaches over."""
    if 0 in slot.shape:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(slot.shape, slot.stride, strict=True))


def needed_bytes(call: Call) -> int:
    return sum(extent(s) * s.dtype.itemsize for s in call.slots)


def forward_of(call: Call, device: str, around: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Run:
    """As in inference: no gradient is prepared."""
    tensors = _tensors(call, device)
    args, kwargs = call.given(tensors, device)

    def run() -> Any:
        with torch.inference_mode(), around():
            return call.function(*args, **kwargs)

    return run


def differentiated(call: Call, device: str, around: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Replay:
    """The forward pass as in training, and its backward."""
    tensors = [t.requires_grad_(s.learns) for t, s in zip(_tensors(call, device), call.slots, strict=True)]

    def forward() -> Any:
        args, kwargs = call.given(call.unspent(tensors), device)
        with torch.enable_grad(), around():
            return call.function(*args, **kwargs)

    return Replay(forward=forward, backward=_backward(forward, [t for t in tensors if t.requires_grad]))


def _backward(forward: Run, leaves: list[torch.Tensor]) -> Run | None:
    if not leaves:
        return None
    outs = [t for t in tensors_in(forward()) if t.requires_grad]
    if not outs:
        return None
    seeds = [torch.ones_like(t) for t in outs]

    def run() -> Any:
        return torch.autograd.grad(outs, leaves, seeds, retain_graph=True, allow_unused=True)

    return run


def _tensors(call: Call, device: str) -> list[torch.Tensor]:
    """The weights of a recurrent layer lie one behind the other, as its module keeps them: elsewhere a GPU would have to
    bring them together in every call."""
    made = [_filled(s, call, device) for s in call.slots]
    if call.name in _RECURRENT:
        weights = [p.slot for a in call.args if isinstance(a, list | tuple) for p in a if isinstance(p, Place)]
        flat = torch.cat([made[i].reshape(-1) for i in weights])
        for i, part in zip(weights, flat.split([made[i].numel() for i in weights]), strict=True):
            made[i] = part.view(made[i].shape).detach()
    return made


def _filled(slot: Slot, call: Call, device: str) -> torch.Tensor:
    """With the strides that it had; what is behind a broadcast or an overlapping window is there once."""
    count = extent(slot)
    kind = slot.dtype
    if kind.is_floating_point or kind.is_complex:
        made = spread(count, 0.5, 1.5, kind, device)
    elif kind == torch.bool:
        made = torch.ones(count, dtype=kind, device=device)
    else:
        made = spread(count, 0, _rows(slot, call), kind, device)
    return made.as_strided(slot.shape, slot.stride)


def spread(count: int, low: float, high: float, kind: torch.dtype, device: str) -> torch.Tensor:
    """Numbers spread evenly between two, in an order of no pattern, the same ones every time. Not drawn: a graph that
    fails to capture leaves a GPU's dice unusable."""
    some = torch.arange(min(count, _PATTERN), dtype=torch.float64, device=device)
    some = some.mul_(_GOLDEN).frac_().mul_(high - low).add_(low).to(kind)
    if count <= _PATTERN:
        return some
    made = torch.empty(count, dtype=kind, device=device)
    for start in range(0, count, _PATTERN):
        part = made[start : start + _PATTERN]
        part.copy_(some[: part.numel()])
    return made


def _rows(slot: Slot, call: Call) -> int:
    """How far an index may reach: into a table over its rows, elsewhere nowhere but to the first."""
    if not call.name.startswith("aten::embedding"):
        return 1
    return max(1, next(call.slots[p.slot].shape[0] for p in call.args if isinstance(p, Place)))
