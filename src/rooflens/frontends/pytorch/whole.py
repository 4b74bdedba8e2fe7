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
from rooflens.frontends.pytorch.autocast import Casts
from rooflens.frontends.pytorch.guesses import ASSUMED, narrowed
from rooflens.frontends.pytorch.recorder import GradientInForward, Recorder
from rooflens.graph.records import Attr

aten = torch.ops.aten
Made = Callable[[], Any]


class _Whole(torch.autograd.Function):
    """One op with derived backward. `made` holds its outputs, which are no arguments, so that autograd takes them for
    new; tensors come last, so that autograd sees them."""

    @staticmethod
    def forward(ctx: Any, recorder: Recorder, kind: str, attrs: Any, made: Made, *tensors: Any) -> Any:
        ctx.set_materialize_grads(False)  # a zero gradient that nobody asked for would be a kernel that nobody runs
        outs = made()
        ins = tuple(recorder.tracker.id_of(t) for t in tensors)
        many = outs if isinstance(outs, tuple) else (outs,)
        tids = tuple(recorder.tracker.fresh(t) for t in many)
        ctx.place = recorder.record(kind, ins, tids, attrs)
        if recorder.pass_ == "forward":  # gradients are off in here, yet this call has a node
            recorder.note_node(ctx.place)
        ctx.recorder = recorder
        ctx.save_for_backward(*tensors)  # not kept aside: reading them back is what makes a checkpoint recompute
        return outs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        recorder: Recorder = ctx.recorder
        if recorder.pass_ == "forward":
            raise GradientInForward("the model differentiates in its own forward pass")
        op = recorder.builder.ops[ctx.place]
        given = next(g for g in gradients if g is not None)
        inputs, ctx.recorder = ctx.saved_tensors, None
        needs = tuple(ctx.needs_input_grad[4:])
        with recorder.caused_by(ctx.place):
            tids = derive(recorder.builder, recorder.record, op, recorder.tracker.id_of(given), needs)
        return (None, None, None, None, *_meta_for(recorder, tids, inputs))


_apply: Callable[..., Any] = _Whole.apply


def _whole(recorder: Recorder, kind: str, attrs: Any, outs: Any, *tensors: Any) -> Any:
    return _apply(recorder, kind, attrs, lambda: outs, *tensors)


def _meta_for(recorder: Recorder, tids: tuple[int | None, ...], like: Any) -> list[Any]:
    found = []
    for tid, t in zip(tids, like, strict=True):
        out = None if tid is None else recorder.quietly(_gradient_of, t)
        if out is not None and tid is not None:
            recorder.tracker.adopt(out, tid)
        found.append(out)
    return found


def _gradient_of(t: torch.Tensor) -> torch.Tensor:
    """Laid out as the tensor, as kernels leave it."""
    return torch.empty_like(t, device="meta")


def _linear(recorder: Recorder, x: Any, w: Any, b: Any = None) -> Any:
    out = recorder.quietly(shapes.linear, x, w, b)
    if out is None:
        return aten.linear.default.decompose(x, w, b)
    tensors = (x, w) if b is None else (x, w, b)
    return _whole(recorder, "linear", (), out, *tensors)


def _bilinear(recorder: Recorder, a: Any, b: Any, w: Any, bias: Any = None) -> Any:
    out = recorder.quietly(shapes.bilinear, a, b, w, bias)
    if out is None:
        return aten.bilinear.default.decompose(a, b, w, bias)
    tensors = (a, b, w) if bias is None else (a, b, w, bias)
    return _whole(recorder, "bilinear", (), out, *tensors)


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
    out = recorder.quietly(shapes.attention, q, k, v, mask, **kwargs)
    if out is None:
        return aten.scaled_dot_product_attention.default.decompose(q, k, v, mask, p, causal, **kwargs)
    attrs: tuple[tuple[str, Attr], ...] = (("causal", causal),)
    tensors = (q, k, v) if mask is None else (q, k, v, mask)
    return _whole(recorder, "attention", attrs, out, *tensors)


def _dropout(recorder: Recorder, x: Any, p: float, train: bool) -> Any:
    if not train or p == 0 or not x.is_floating_point():
        recorder.pass_through(x)
        return x
    out, mask = recorder.quietly(_dropped, x)
    return _whole(recorder, "dropout", (), (out, mask), x)[0]


def _dropped(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


def _rms_norm(recorder: Recorder, x: Any, shape: Any, w: Any = None, eps: Any = None) -> Any:
    if not shapes.normalised(x, shape, (w,)):
        return aten.rms_norm.default.decompose(x, shape, w, eps)
    outs = recorder.quietly(_scaled, x, len(shape))
    return _whole(recorder, "rmsnorm", (), outs, *((x,) if w is None else (x, w)))[0]


def _scaled(x: torch.Tensor, axes: int) -> tuple[torch.Tensor, torch.Tensor]:
    stats = (*x.shape[: x.dim() - axes], *(1,) * axes)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    return out, torch.empty(stats, dtype=torch.float32, device="meta")


def _recurrent(kind: str) -> Callable[..., Any]:
    """`args` as in shapes.recurrent. The weights come right behind the input, where the attribute says."""

    def call(recorder: Recorder, x: Any, *args: Any) -> Any:
        packed = isinstance(args[2], list | tuple)
        states, weights = args[1:3] if packed else args[:2]
        states = tuple(states) if isinstance(states, list | tuple) else (states,)
        outs = recorder.quietly(shapes.recurrent, x, *args)
        if outs is None:
            raise RuntimeError(f"input of size {x.shape[-1]} does not match weights of size {weights[0].shape[-1]}")
        attrs: tuple[tuple[str, Attr], ...] = (("weights", (1, len(weights))),)
        return _whole(recorder, kind, attrs, outs, x, *weights, *states)

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
    "prelu", "softmax.int", "log_softmax.int", "layer_norm", "group_norm", "nll_loss", "nll_loss2d", "cosine_similarity",
    "kl_div", "l1_loss", "cdist", "cross", "grid_sampler", "tensordot",
)  # fmt: skip


@contextmanager
def whole_calls(recorder: Recorder) -> Iterator[None]:
    """While recording a training step."""
    with torch.library._scoped_library("aten", "IMPL") as library:
        for name, rule in () if recorder.apart else WHOLE.items():
            library.impl(name, _bound(recorder, name, rule), "AutogradMeta")
        library.impl("narrow.Tensor", _narrow(recorder), "AutogradMeta")
        if recorder.casts is not None:
            for name in (*_CAST_ABOVE, *WHOLE) if recorder.apart else _CAST_ABOVE:
                library.impl(name, _casting(recorder.casts, name), "AutogradMeta")
        yield


def _bound(recorder: Recorder, name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    plain, casts = name.partition(".")[0], recorder.casts

    def call(*args: Any, **kwargs: Any) -> Any:
        if casts is not None:
            args = casts.above(plain, args, kwargs)
        return rule(recorder, *args, **kwargs)

    return call


def _narrow(recorder: Recorder) -> Callable[..., Any]:
    """Autograd would ask for the value of its start before anybody could answer."""

    def call(*args: Any) -> Any:
        out = narrowed(None, *args)
        if out is None:
            return aten.narrow.Tensor.decompose(*args)
        recorder.assume(ASSUMED["narrow"])
        return out

    return call


def _casting(casts: Casts, name: str) -> Callable[..., Any]:
    plain, _, overload = name.partition(".")
    func = getattr(getattr(aten, plain), overload or "default")

    def call(*args: Any, **kwargs: Any) -> Any:
        args = casts.above(plain, args, kwargs)
        with casts.switched_to(None):  # it was cast as a whole
            return func.decompose(*args, **kwargs)

    return call


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
