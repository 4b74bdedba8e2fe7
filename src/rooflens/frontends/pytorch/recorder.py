"""A forward pass, and in training its backward, in; the ops that ran, out: a dispatch mode over meta tensors.

In inference the mode stands above torch's composite functions, so an op is the function that the user called. In
training autograd takes composites apart first; `whole.py` meets the few that must stay whole before it does.
"""

import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rooflens.errors import RooflensError
from rooflens.frontends.pytorch.autocast import LISTED, Casts
from rooflens.frontends.pytorch.devices import READABLE, device_of, dtype_of, made_on_meta
from rooflens.frontends.pytorch.guesses import ASSUMED, DATA_DEPENDENT, READS_VALUES
from rooflens.frontends.pytorch.missing import packed
from rooflens.frontends.pytorch.names import Row
from rooflens.frontends.pytorch.plans import Plan, Writes, plan_of
from rooflens.frontends.pytorch.tracker import TensorTracker
from rooflens.frontends.pytorch.trees import mapped, tensors_in
from rooflens.graph.build import GraphBuilder
from rooflens.graph.records import Attr

_META = torch.device("meta")


class GradientInForward(RooflensError):
    """The model needs autograd in its forward pass, which a recording has only where calls are taken apart for it."""


class Recorder(TorchDispatchMode):
    """Holds the builder, where the run stands (module, pass), and what had to be assumed. `apart`: autograd runs in
    the forward pass too, and takes every call apart, so that it can differentiate twice."""

    def __init__(self, modules: dict[Any, str], autocast: torch.dtype | None = None, apart: bool = False) -> None:
        TorchDispatchMode.__init__(self)
        self.builder = GraphBuilder()
        self.tracker = TensorTracker(self.builder)
        self.pass_ = "forward"
        self.apart = apart
        self.casts = None if autocast is None else Casts(autocast, self.tracker, self.record)
        self.assumptions: dict[str, None] = {}
        self._modules = modules
        self._stack: list[tuple[str, bool, Any]] = [("", False, None)]
        self._known_cause: int | None = None
        self._sequence: list[int] = []
        self._ops_by_sequence: list[int] = []
        self._on_meta: dict[int, torch.Tensor] = {}
        self.quiet = 0

    def close(self) -> None:
        """Let go of every tensor. The builder stays."""
        self.tracker.forget()
        if self.casts is not None:
            self.casts.clear()
        self._on_meta.clear()

    # where we are

    def enter(self, module: Any, args: Any) -> None:
        path = self._modules.get(module)
        if path is None:
            path = self._stack[-1][0]
        kind = type(module)
        plain = kind.__module__.startswith("torch.nn.") and not module._modules
        plain = plain or getattr(kind, "names_its_op", False)
        self._stack.append((path, plain, module))

    def leave(self, module: Any, args: Any, output: Any) -> None:
        """A module inside it that raised, and was caught, never left."""
        while len(self._stack) > 1 and self._stack.pop()[2] is not module:
            pass

    @contextmanager
    def at(self, path: str, plain: bool) -> Iterator[None]:
        """For a graph that is run without its modules: the ops inside belong to the module at `path`."""
        self._stack.append((path, plain, None))
        try:
            yield
        finally:
            self._stack.pop()

    @property
    def module(self) -> str:
        return self._stack[-1][0]

    def _place(self, kind: str) -> tuple[str, str]:
        """Label and module of the op that runs now. In backward it belongs to the forward op that caused it."""
        if self.pass_ == "backward":
            cause = self._cause()
            if cause is not None:
                op = self.builder.ops[cause]
                return op.id, op.module
        path, plain, _ = self._stack[-1]
        if plain and path and kind not in ("cast", "copy"):
            return path, path
        return (f"{path}.{kind}" if path else kind), path

    @contextmanager
    def caused_by(self, place: int) -> Iterator[None]:
        """Backward kernels that are derived from one forward op, which autograd's own numbering does not know."""
        self._known_cause = place
        try:
            yield
        finally:
            self._known_cause = None

    def _cause(self) -> int | None:
        if self._known_cause is not None:
            return self._known_cause
        node = torch._C._current_autograd_node()
        if node is None or len(self._stack) > 1:
            return None
        place = bisect.bisect_right(self._sequence, node._sequence_nr())
        return self._ops_by_sequence[place] if place < len(self._sequence) else None

    # what ran

    def record(
        self,
        kind: str,
        ins: tuple[int, ...],
        outs: tuple[int, ...],
        attrs: tuple[tuple[str, Attr], ...] = (),
        view: bool = False,
    ) -> int:
        label, module = self._place(kind)
        place = self.builder.op(kind, ins, outs, label=label, module=module, pass_=self.pass_, attrs=attrs, view=view)
        if self.pass_ == "forward" and torch.is_grad_enabled():
            self.note_node(place)
        return place

    def note_node(self, place: int) -> None:
        """Autograd has just made a node for the op at `place`: kernels of that node are caused by it."""
        self._sequence.append(torch.autograd._get_sequence_nr())  # type: ignore[attr-defined]
        self._ops_by_sequence.append(place)

    def quietly(self, make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Tensors of ours, made the way torch makes them: no ops of the model."""
        self.quiet += 1
        try:
            return make(*args, **kwargs)
        finally:
            self.quiet -= 1

    def assume(self, what: str) -> None:
        self.assumptions[f"{what} (in {self.module or 'the model'})"] = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.quiet:
            return func(*args, **kwargs)
        plan = plan_of(func)
        row = plan.row
        if row is None:
            return self._unlisted(func, plan, args, kwargs)
        if plan.factory:
            kwargs = made_on_meta(args, kwargs)
        how = row.how
        if how == "kernel":
            return self._kernel(func, plan, row, args, kwargs)
        if how == "view":
            return self._view(func, plan, row, args, kwargs)
        if how == "alias":
            return self._alias(func, plan, row, args, kwargs)
        if how == "answer":
            return self._answer(func, plan, args, kwargs)
        if how == "dropout":
            return self._dropout(func, plan, args, kwargs)
        return self._free(func, args, kwargs)

    def _kernel(self, func: Any, plan: Plan, row: Row, args: Any, kwargs: Any) -> Any:
        if self.casts is not None:
            args = self.casts.below(plan.name, args, kwargs, self.pass_ == "backward")
        if plan.name not in READS_VALUES:
            args, kwargs = self.all_meta(args, kwargs)
        out = plan.shape(*args, **kwargs) if plan.shape is not None else None
        if out is None:
            out = self._run(func, plan, args, kwargs)
        kind, attrs, skip = (row.kind, (), ()) if plan.detail is None else plan.detail(row.kind, args, kwargs)
        self._note(kind, attrs, (*skip, *row.skip), plan.writes, row, args, kwargs, out)
        return out

    def _run(self, func: Any, plan: Plan, args: Any, kwargs: Any) -> Any:
        """torch's own shape kernel, or ours where the shape depends on values that a meta tensor does not have."""
        rule = DATA_DEPENDENT.get(plan.name)
        out = None if rule is None else rule(func, *args, **kwargs)
        if out is None:
            return func(*args, **kwargs)
        self.assume(ASSUMED.get(plan.name, f"{plan.name} was taken to select every element"))
        return out

    def _note(
        self, kind: str, attrs: Any, skip: tuple[int, ...], writes: Writes, row: Row, args: Any, kwargs: Any, out: Any
    ) -> None:
        track = self.tracker
        mutated = [t for w, name in writes for t in tensors_in(args[w] if w < len(args) else kwargs.get(name))]
        if mutated and _is_counter(mutated[0]):
            return  # a batch counter belongs to its norm
        if row.overwrites:
            skip = (*skip, 0)
        ins = [track.id_of(t) for place, a in enumerate(args) if place not in skip for t in tensors_in(a)]
        given = {name for _, name in writes}
        ins += [track.id_of(t) for name, a in kwargs.items() if name not in given for t in tensors_in(a)]
        if row.scatters:
            ins = self._stored_first(args, ins)
        if mutated:
            if row.overwrites or row.scatters:
                ins += track.kept_around(mutated[0], row.scatters)
            outs = [track.written(t) for t in mutated]
        else:
            outs = [track.fresh(t) for t in tensors_in(out)]
        if kind == "batchnorm_train":
            outs += [track.written(t) for t in args[3:5] if isinstance(t, torch.Tensor)]
        self.record(kind, tuple(ins), tuple(outs), attrs)

    def _stored_first(self, args: Any, ins: list[int]) -> list[int]:
        """An indexed store reads its values and indices, not the tensor it stores into."""
        rest = [t for a in args[1:] for t in tensors_in(a)]
        values = max(rest, key=lambda t: (t.is_floating_point(), t.numel()), default=None)
        if values is None:
            return ins[1:]
        return [self.tracker.id_of(values), *(self.tracker.id_of(t) for t in rest if t is not values)]

    def _view(self, func: Any, plan: Plan, row: Row, args: Any, kwargs: Any) -> Any:
        """Where the memory has to change for it (flattening channels-last data) it is a copy."""
        sources = list(tensors_in(args))
        out = self._run(func, plan, args, kwargs)
        if not sources:
            return out
        before = [self.tracker.id_of(t) for t in sources]
        results = [t for t in tensors_in(out) if self.tracker.is_known(t)]
        moved = [t for t in tensors_in(out) if not self.tracker.is_known(t)]
        if moved:
            self.record("copy", tuple(before[:1]), tuple(self.tracker.fresh(t) for t in moved))
        if results and self.pass_ == "forward" and not self._is_weight(sources[0]):
            read = before if row.kind == "split" else before[:1]  # elsewhere a second tensor only lends its shape
            self.record(row.kind, tuple(read), tuple(self.tracker.viewed(t) for t in results), view=True)
        return out

    def _is_weight(self, t: torch.Tensor) -> bool:
        return self.builder.tensors[self.tracker.id_of(t)].role in ("param", "buffer")

    def _alias(self, func: Any, plan: Plan, row: Row, args: Any, kwargs: Any) -> Any:
        """reshape, contiguous, to: a copy where the memory has to change, a view or nothing where not."""
        source = args[0]
        out = self._converted(func, args, kwargs)
        if out is source:
            return out
        if self.tracker.shares_storage(out, [source]):
            if self.pass_ == "forward" and not self._is_weight(source):
                self.record(row.kind, (self.tracker.id_of(source),), (self.tracker.viewed(out),), view=True)
            return out
        kind, attrs, _ = plan.detail(row.kind, args, kwargs) if plan.detail else ("copy", (), ())
        kind = "cast" if out.dtype != source.dtype else "copy"
        self.record(kind, (self.tracker.id_of(source),), (self.tracker.fresh(out),), attrs)
        return out

    def _converted(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A meta tensor that is asked onto a real device: small ones come as ones, so that a list can be made of
        them; large ones stay."""
        source, device = args[0], device_of(args, kwargs)
        if device is None or device.type == "meta" or not source.is_meta:
            return func(*args, **kwargs)
        dtype = dtype_of(args, kwargs) or source.dtype
        if source.numel() > READABLE or (source.requires_grad and torch.is_grad_enabled()):
            return torch.ops.aten._to_copy.default(source, dtype=dtype)
        self.assume(f"the values of a tensor were moved to {device.type} and taken as 1")
        return torch.ones(source.shape, dtype=dtype)

    def _dropout(self, func: Any, plan: Plan, args: Any, kwargs: Any) -> Any:
        """In evaluation it passes its input on: an op that is a view."""
        x, p, train = args
        if not train or p == 0:
            self.pass_through(x)
            return x
        if plan.name != "dropout":
            return self._unlisted(func, plan, args, kwargs)
        out, mask = torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)
        self.record("dropout", (self.tracker.id_of(x),), (self.tracker.fresh(out), self.tracker.fresh(mask)))
        return out

    def pass_through(self, x: torch.Tensor) -> None:
        self.record("dropout_eval", (self.tracker.id_of(x),), (self.tracker.viewed(x),), view=True)

    def _free(self, func: Any, args: Any, kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        for t in tensors_in(out):
            if not self.tracker.is_known(t):
                self.tracker.register(t, "state")
        return out

    def _answer(self, func: Any, plan: Plan, args: Any, kwargs: Any) -> Any:
        """A meta tensor has no value. Masks are taken as full, numbers as one; the report lists it."""
        source = args[0]
        if not source.is_meta:
            return func(*args, **kwargs)
        value: Any = plan.name != _NO if plan.name in _YES_OR_NO or source.dtype == torch.bool else 1
        value = float(value) if source.is_floating_point() and not isinstance(value, bool) else value
        self.assume(f"the value of a tensor was asked for ({plan.name}) and taken as {value}")
        return value

    def _unlisted(self, func: Any, plan: Plan, args: Any, kwargs: Any) -> Any:
        if self.casts is not None and plan.name in LISTED:
            args = self.casts.below(plan.name, args, kwargs, self.pass_ == "backward")
            with self.casts.switched_to(None):
                return self._apart(func, plan, args, kwargs)
        return self._apart(func, plan, args, kwargs)

    def _apart(self, func: Any, plan: Plan, args: Any, kwargs: Any) -> Any:
        """A composite is taken apart; what cannot be is opaque, never zero."""
        if plan.quantised:
            raise packed(plan.name, self.module)
        if func not in _INDIVISIBLE:
            with self:
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
            _INDIVISIBLE.add(func)
        args, kwargs = self.all_meta(args, kwargs)
        out = func(*args, **kwargs)
        self._note_unlisted(plan, args, kwargs, out)
        return out

    def _note_unlisted(self, plan: Plan, args: Any, kwargs: Any, out: Any) -> None:
        sources = list(tensors_in(args))
        results = list(tensors_in(out))
        if not results:
            return
        if not plan.writes and all(self.tracker.shares_storage(t, sources) for t in results):
            return
        self._note(plan.name, (), (), plan.writes, Row(kind=plan.name), args, kwargs, out)

    # devices

    def all_meta(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Constants that live on the CPU meet meta tensors: they move, as they would to the real device."""
        found = [*tensors_in(args), *tensors_in(kwargs)]
        if not found or all(t.is_meta for t in found) or not any(t.is_meta for t in found):
            return args, kwargs
        return mapped(self._moved, args), mapped(self._moved, kwargs)

    def _moved(self, t: torch.Tensor) -> torch.Tensor:
        if t.is_meta or t.dim() == 0:
            return t
        known = self._on_meta.get(id(t))
        if known is None:
            tid = self.tracker.id_of(t)
            known = self._on_meta[id(t)] = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=_META)
            self.tracker.adopt(known, tid)
        return known


_INDIVISIBLE: set[Any] = set()


_NO = "_nested_tensor_from_mask_left_aligned"  # asks for a fast path over ragged batches: masks are taken as full
_YES_OR_NO = frozenset({"equal", "is_nonzero", "allclose", _NO})


def _is_counter(t: Any) -> bool:
    return isinstance(t, torch.Tensor) and t.dim() == 0 and t.dtype == torch.int64
