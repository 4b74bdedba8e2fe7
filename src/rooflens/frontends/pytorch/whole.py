"""Calls that stay one op in training, when autograd would otherwise take them apart on meta tensors.

They are met by the dispatcher, above autograd, however they are reached (Python, C++, inside another function), and get
one forward op and the backward kernels that the OPS table names for it.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from torch.utils import checkpoint

from rooflens.frontends.backward import derive
from rooflens.frontends.pytorch import shapes
from rooflens.frontends.pytorch.autocast import FULL, LOWER
from rooflens.frontends.pytorch.recorder import Recorder
from rooflens.graph.records import Attr

aten = torch.ops.aten


class _Whole(torch.autograd.Function):
    """One op with derived backward. `make` builds the outputs; tensors come last, so that autograd sees them."""

    @staticmethod
    def forward(ctx: Any, recorder: Recorder, kind: str, attrs: Any, make: Callable[[], Any], *tensors: Any) -> Any:
        ctx.set_materialize_grads(False)  # a zero gradient that nobody asked for would be a kernel that nobody runs
        recorder.quiet += 1
        outs = make()
        recorder.quiet -= 1
        ins = tuple(recorder.tracker.id_of(t) for t in tensors)
        many = outs if isinstance(outs, tuple) else (outs,)
        tids = tuple(recorder.tracker.fresh(t) for t in many)
        ctx.place = recorder.record(kind, ins, tids, attrs)
        ctx.recorder = recorder
        ctx.save_for_backward(*tensors)  # not kept aside: reading them back is what makes a checkpoint recompute
        return outs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        recorder: Recorder = ctx.recorder
        op = recorder.builder.ops[ctx.place]
        given = next(g for g in gradients if g is not None)
        inputs, ctx.recorder = ctx.saved_tensors, None
        needs = tuple(ctx.needs_input_grad[4:])
        with recorder.caused_by(ctx.place):
            tids = derive(recorder.builder, recorder.record, op, recorder.tracker.id_of(given), needs)
        return (None, None, None, None, *_meta_for(recorder, tids, inputs))


_whole: Callable[..., Any] = _Whole.apply


def _meta_for(recorder: Recorder, tids: tuple[int | None, ...], like: Any) -> list[Any]:
    recorder.quiet += 1
    found = []
    for tid, t in zip(tids, like, strict=True):
        out = None if tid is None else torch.empty(t.shape, dtype=t.dtype, device="meta")
        if out is not None and tid is not None:
            recorder.tracker.adopt(out, tid)
        found.append(out)
    recorder.quiet -= 1
    return found


def _linear(recorder: Recorder, x: Any, w: Any, b: Any = None) -> Any:
    if shapes.linear(x, w, b) is None:
        return aten.linear.default.decompose(x, w, b)
    tensors = (x, w) if b is None else (x, w, b)
    return _whole(recorder, "linear", (), lambda: shapes.linear(x, w, b), *tensors)


def _bilinear(recorder: Recorder, a: Any, b: Any, w: Any, bias: Any = None) -> Any:
    if shapes.bilinear(a, b, w, bias) is None:
        return aten.bilinear.default.decompose(a, b, w, bias)
    tensors = (a, b, w) if bias is None else (a, b, w, bias)
    return _whole(recorder, "bilinear", (), lambda: shapes.bilinear(a, b, w, bias), *tensors)


_SPARSE = "the sparse gradient of an embedding is counted as a dense one"


def _embedding_backward(
    recorder: Recorder, g: Any, chosen: Any, rows: int, padding: int, scaled: bool, sparse: bool
) -> Any:
    if sparse:
        recorder.assume(_SPARSE)
    return aten.embedding_dense_backward(g, chosen, rows, padding, scaled)


def _bag_backward(
    recorder: Recorder, g: Any, chosen: Any, offsets: Any, bags: Any, sizes: Any, maxima: Any, rows: int, scaled: bool,
    mode: int, sparse: bool, *args: Any,
) -> Any:  # fmt: skip
    if sparse:
        recorder.assume(_SPARSE)
    return aten._embedding_bag_dense_backward(g, chosen, bags, sizes, maxima, rows, scaled, mode, *args)


def _attention(
    recorder: Recorder, q: Any, k: Any, v: Any, mask: Any = None, p: float = 0.0, causal: bool = False, **kwargs: Any
) -> Any:
    if shapes.attention(q, k, v, mask, **kwargs) is None:
        return aten.scaled_dot_product_attention.default.decompose(q, k, v, mask, p, causal, **kwargs)
    attrs: tuple[tuple[str, Attr], ...] = (("causal", causal),)
    tensors = (q, k, v) if mask is None else (q, k, v, mask)
    return _whole(recorder, "attention", attrs, lambda: shapes.attention(q, k, v, mask, **kwargs), *tensors)


def _dropout(recorder: Recorder, x: Any, p: float, train: bool) -> Any:
    if not train or p == 0 or not x.is_floating_point():
        recorder.pass_through(x)
        return x
    make = lambda: (torch.empty_like(x), torch.empty_like(x, dtype=torch.bool))  # noqa: E731
    return _whole(recorder, "dropout", (), make, x)[0]


def _rms_norm(recorder: Recorder, x: Any, shape: Any, w: Any = None, eps: Any = None) -> Any:
    if not shapes.normalised(x, shape, (w,)):
        return aten.rms_norm.default.decompose(x, shape, w, eps)
    stats = (*x.shape[: x.dim() - len(shape)], *(1,) * len(shape))
    make = lambda: (torch.empty_like(x), torch.empty(stats, dtype=torch.float32, device="meta"))  # noqa: E731
    return _whole(recorder, "rmsnorm", (), make, *((x,) if w is None else (x, w)))[0]


def _recurrent(kind: str) -> Callable[..., Any]:
    """`args` as in shapes.recurrent. The weights come right behind the input, where the attribute says."""

    def call(recorder: Recorder, x: Any, *args: Any) -> Any:
        packed = isinstance(args[2], list | tuple)
        states, weights = args[1:3] if packed else args[:2]
        states = tuple(states) if isinstance(states, list | tuple) else (states,)
        if shapes.recurrent(x, *args) is None:
            raise RuntimeError(f"input of size {x.shape[-1]} does not match weights of size {weights[0].shape[-1]}")
        attrs: tuple[tuple[str, Attr], ...] = (("weights", (1, len(weights))),)
        return _whole(recorder, kind, attrs, lambda: shapes.recurrent(x, *args), x, *weights, *states)

    return call


WHOLE: dict[str, Callable[..., Any]] = {
    "linear": _linear,
    "bilinear": _bilinear,
    "embedding_backward": _embedding_backward,
    "_embedding_bag_backward": _bag_backward,
    "scaled_dot_product_attention": _attention,
    "dropout": _dropout,
    "rms_norm": _rms_norm,
    **{f"lstm.{form}": _recurrent("lstm") for form in ("input", "data")},
    **{f"gru.{form}": _recurrent("gru") for form in ("input", "data")},
    **{f"rnn_{f}.{form}": _recurrent("rnn") for f in ("tanh", "relu") for form in ("input", "data")},
}
# Composites that autocast changes and that must therefore be met above autograd too.
_CAST_ABOVE = (
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input", "matmul",
    "prelu", "softmax.int", "log_softmax.int", "layer_norm", "group_norm",
)  # fmt: skip


@contextmanager
def whole_calls(recorder: Recorder) -> Iterator[None]:
    """While recording a training step."""
    with torch.library._scoped_library("aten", "IMPL") as library:
        for name, rule in WHOLE.items():
            library.impl(name, _bound(recorder, name, rule), "AutogradMeta")
        if recorder.autocast is not None:
            for name in _CAST_ABOVE:
                library.impl(name, _casting(recorder, name), "AutogradMeta")
        yield


def _bound(recorder: Recorder, name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    plain = name.partition(".")[0]

    def call(*args: Any, **kwargs: Any) -> Any:
        return rule(recorder, *_cast_above(recorder, plain, args), **kwargs)

    return call


def _casting(recorder: Recorder, name: str) -> Callable[..., Any]:
    plain, _, overload = name.partition(".")
    func = getattr(getattr(aten, plain), overload or "default")

    def call(*args: Any, **kwargs: Any) -> Any:
        return func.decompose(*_cast_above(recorder, plain, args), **kwargs)

    return call


def _cast_above(recorder: Recorder, name: str, args: Any) -> Any:
    """A cast that autograd sees, so that gradients are cast back."""
    dtype = recorder.autocast if name in LOWER else torch.float32 if name in FULL else None
    if recorder.autocast is None or dtype is None:
        return args
    floating = (torch.float32, torch.bfloat16, torch.float16)

    def cast(a: Any) -> Any:
        if isinstance(a, torch.Tensor):
            return recorder.cast_once(a, dtype) if a.dtype in floating and a.dtype != dtype else a
        return [cast(i) for i in a] if isinstance(a, list | tuple) else a

    return tuple(cast(a) for a in args)


def _weights_of(given: Any) -> torch.Tensor:
    """As nn.MultiheadAttention returns them: one matrix a batch item, or one a head."""
    query, key = given["query"], given["key"]
    steps = key.shape[0] + (given["bias_k"] is not None) + bool(given["add_zero_attn"])
    heads = () if given["average_attn_weights"] else (given["num_heads"],)
    batch = (query.shape[1],) if query.dim() == 3 else ()
    return torch.empty((*batch, *heads, query.shape[0], steps), dtype=query.dtype, device="meta")


class _Rerun:
    """Reentrant checkpointing runs a backward of its own, which a backward that asks for gradients forbids. The other
    kind runs the same ops."""

    @staticmethod
    def apply(function: Any, preserve: bool, *args: Any) -> Any:
        return checkpoint.checkpoint(function, *args, use_reentrant=False, preserve_rng_state=preserve)


@contextmanager
def plain_checkpoints() -> Iterator[None]:
    original = checkpoint.CheckpointFunction
    checkpoint.CheckpointFunction = _Rerun  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        checkpoint.CheckpointFunction = original  # type: ignore[misc]


@contextmanager
def fused_multi_head(recorder: Recorder) -> Iterator[None]:
    """nn.MultiheadAttention asked for its averaged weights takes attention apart: keep it one op, and say so."""
    original = functional.multi_head_attention_forward
    signature = inspect.signature(original)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        wants, given.arguments["need_weights"] = given.arguments["need_weights"], False
        out, _ = original(*given.args, **given.kwargs)
        if not wants:
            return out, None
        recorder.assume("attention counted as one fused op; the averaged weights it also returns are not")
        return out, _weights_of(given.arguments)

    functional.multi_head_attention_forward = call
    try:
        yield
    finally:
        functional.multi_head_attention_forward = original
