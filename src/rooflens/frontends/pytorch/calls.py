"""A module and its inputs in, its Graph and the calls that made it out: what `measure` runs again, one by one, on a real
device.

The forward pass is recorded above autograd in training too, so that a call is what the user wrote and torch chooses the
kernels of its backward where it runs.
"""

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rooflens.errors import RooflensError, one_line
from rooflens.frontends.pytorch.autocast import regions
from rooflens.frontends.pytorch.lent import lent
from rooflens.frontends.pytorch.recorder import Recorder
from rooflens.frontends.pytorch.trace import build_graph, forward, inputs_of, register_state
from rooflens.frontends.pytorch.trees import like, mapped
from rooflens.graph.records import FLOATS, Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A tensor that a call was given. `tensor` is its place in the graph, `learns` whether a gradient flows back to it."""

    tensor: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    learns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function and what it was given, tensors as numbers of `slots`. `writes`: it changes one of them in place."""

    function: Any  # an overload of torch's, which has no public type
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    slots: tuple[Slot, ...]
    writes: bool

    @property
    def name(self) -> str:
        """As torch's profiler has it."""
        return str(self.function._schema.name)

    def given(self, tensors: list[torch.Tensor], device: str | None = None) -> tuple[Any, dict[str, Any]]:
        """Its arguments with these tensors in their places; devices among them become `device`."""
        return _placed(self.args, tensors, device), _placed(self.kwargs, tensors, device)

    def unspent(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Tensors that it may be given to differentiate: what it writes in place must be no leaf."""
        return [t.clone() if self.writes and t.requires_grad else t for t in tensors]

    @property
    def key(self) -> str:
        """Equal for calls that do the same work."""
        slots = [(s.shape, s.stride, s.dtype, s.learns) for s in self.slots]
        return repr((str(self.function), self.args, sorted(self.kwargs.items(), key=lambda i: i[0]), slots))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor stands among the arguments of a call: the number of its slot."""

    slot: int


def _placed(value: Any, tensors: list[torch.Tensor], device: str | None) -> Any:
    if isinstance(value, Place):
        return tensors[value.slot]
    if isinstance(value, torch.device):
        return value if device is None else torch.device(device)
    if isinstance(value, list | tuple):
        return like(value, [_placed(v, tensors, device) for v in value])
    if isinstance(value, dict):
        return {k: _placed(v, tensors, device) for k, v in value.items()}
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call that ran, and the ops of the graph that it is."""

    ops: tuple[int, ...]
    module: str
    call: Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Where the forward pass ended early, and why."""

    module: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    graph: Graph
    steps: tuple[Step, ...]
    failure: Failure | None = None


class _CallRecorder(Recorder):
    """Keeps of each call that made ops what it was given. A composite that is taken apart is known by its parts."""

    def __init__(self, modules: dict[Any, str], autocast: torch.dtype | None) -> None:
        super().__init__(modules, autocast)
        self.steps: list[Step] = []
        self._claimed = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first, module = len(self.builder.ops), self.module
        given = self._call(func, args, kwargs or {})
        out = super().__torch_dispatch__(func, types, args, kwargs)
        start = max(first, self._claimed)
        made = tuple(p for p in range(start, len(self.builder.ops)) if not self.builder.ops[p].view)
        if made and not self.quiet:
            self._claimed = len(self.builder.ops)
            self.steps.append(Step(ops=made, module=module, call=given))
        return out

    def _call(self, func: Any, args: Any, kwargs: Any) -> Call:
        slots: list[Slot] = []
        known: dict[int, int] = {}

        def slot(t: torch.Tensor) -> Place:
            if id(t) not in known:
                known[id(t)] = len(slots)
                tid = self.tracker.id_of(t) if self.tracker.is_known(t) else -1
                slots.append(Slot(tensor=tid, shape=tuple(t.shape), stride=t.stride(), dtype=t.dtype))
            return Place(known[id(t)])

        writes = any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)
        return Call(
            function=func, args=tuple(mapped(slot, list(args))), kwargs=mapped(slot, kwargs), slots=tuple(slots),
            writes=writes,
        )  # fmt: skip


def record_calls(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    name: str,
    source: str,
    dtype: torch.dtype | None = None,
    training: bool = False,
    autocast: torch.dtype | None = None,
    channels_last: bool = False,
) -> Recording:
    """A forward pass that raises leaves what ran before it."""
    layout = torch.channels_last if channels_last else None
    recorder = _CallRecorder({m: path for path, m in module.named_modules()}, autocast)
    failure, outputs = None, []
    with lent(module, training=training, dtype=dtype, layout=layout), regions(recorder.casts), closing(recorder):
        register_state(recorder, module)
        given, named = inputs_of(recorder, args, kwargs, dtype, layout)
        try:
            outputs = forward(recorder, module, given, named, training=False)
        except RooflensError as error:
            if not recorder.builder.ops:
                raise
            failure = Failure(module=recorder.module, reason=one_line(str(error), 300))
        graph = build_graph(recorder, name, source, False, outputs)
    learning = _learning(graph)
    return Recording(graph=graph, steps=tuple(_told(s, learning) for s in recorder.steps), failure=failure)


def _told(step: Step, learning: frozenset[int]) -> Step:
    slots = tuple(replace(s, learns=s.tensor in learning) for s in step.call.slots)
    return replace(step, call=replace(step.call, slots=slots))


def _learning(graph: Graph) -> frozenset[int]:
    """Tensors to which a gradient flows: trainable parameters, and all floating ones that are computed from them."""
    roots = {t.id for t in graph.tensors if t.trainable}
    found = {t.id for t in graph.tensors if t.base in roots}
    for op in graph.ops:
        if any(i in found or graph.tensors[i].base in found for i in op.inputs):
            found.update(o for o in op.outputs if graph.tensors[o].dtype in FLOATS)
    bases = {t.base for t in graph.tensors if t.id in found}
    return frozenset(t.id for t in graph.tensors if t.id in found or (t.base in bases and t.dtype in FLOATS))
