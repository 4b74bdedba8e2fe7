"""What a call's arguments say about its op: kind refinements, attributes, tensors that are only there for their shape.

One small function per ATen name that needs one; everything else is named by its row alone.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from rooflens.frontends.pytorch.guesses import MASKS, held
from rooflens.graph.records import Attr

Attrs = tuple[tuple[str, Attr], ...]
Detail = tuple[str, Attrs, tuple[int, ...]]  # kind, attributes, positions to skip


def _at(args: Any, place: int, default: Any) -> Any:
    return args[place] if len(args) > place else default


def _ints(value: Any) -> tuple[int, ...]:
    return (int(value),) if isinstance(value, int) else tuple(int(v) for v in value)


def _conv(kind: str, args: Any, kwargs: Any, transposed: bool = False, at: int = 3) -> Detail:
    last = at + (4 if transposed else 3)
    return kind, (
        ("stride", _ints(_at(args, at, 1))),
        ("padding", _at(args, at + 1, 0) if isinstance(_at(args, at + 1, 0), str) else _ints(_at(args, at + 1, 0))),
        ("dilation", _ints(_at(args, last if transposed else at + 2, 1))),
        ("groups", int(_at(args, last - 1 if transposed else last, 1))),
        ("transposed", transposed),
    ), ()  # fmt: skip


def _convolution(kind: str, args: Any, kwargs: Any) -> Detail:
    _, _, _, stride, padding, dilation, transposed, _, groups = args[:9]
    return kind, (
        ("stride", _ints(stride)), ("padding", _ints(padding)), ("dilation", _ints(dilation)),
        ("groups", int(groups)), ("transposed", bool(transposed)),
    ), ()  # fmt: skip


def _convolution_backward(kind: str, args: Any, kwargs: Any) -> Detail:
    mask = args[10]
    attrs: Attrs = (
        ("stride", _ints(args[4])), ("padding", _ints(args[5])), ("dilation", _ints(args[6])), ("groups", int(args[9])),
        ("transposed", bool(args[7])), ("mask", tuple(int(m) for m in mask)),
    )  # fmt: skip
    return kind, attrs, ()


def _batch_norm(kind: str, args: Any, kwargs: Any) -> Detail:
    training = bool(_at(args, 5, kwargs.get("training", False)))
    return ("batchnorm_train" if training else kind), (), ()


def _legit_train(kind: str, args: Any, kwargs: Any) -> Detail:
    return ("batchnorm_train" if any(a is True for a in args) else kind), (), ()


def _batch_norm_backward(kind: str, args: Any, kwargs: Any) -> Detail:
    return kind, (), ((3, 4) if args[7] else (5, 6))  # running or batch statistics, never both


def _layer_norm_backward(kind: str, args: Any, kwargs: Any) -> Detail:
    return kind, (), (6,)  # the bias is there for its shape


def _max_pool(axes: int) -> Callable[[str, Any, Any], Detail]:
    """Kernel, stride, padding and dilation; the last only matters for how far a window reaches."""

    def detail(kind: str, args: Any, kwargs: Any) -> Detail:
        kernel = _window(args[1], axes)
        stride = _window(_at(args, 2, ()) or kernel, axes)
        padding, dilation = _window(_at(args, 3, 0), axes), _window(_at(args, 4, 1), axes)
        return kind, (("kernel", kernel), ("stride", stride), ("padding", padding), ("dilation", dilation)), ()

    return detail


def _window_only(axes: int) -> Callable[[str, Any, Any], Detail]:
    return lambda kind, args, kwargs: (kind, (("kernel", _window(args[1], axes)),), ())


def _average(axes: int, first: int = 1) -> Callable[[str, Any, Any], Detail]:
    """Kernel, stride and padding from place `first` on; in backward the pool's input stands before, for its shape."""

    def detail(kind: str, args: Any, kwargs: Any) -> Detail:
        kernel = _window(args[first], axes)
        stride = _window(_at(args, first + 1, ()) or kernel, axes)
        padding = _window(_at(args, first + 2, 0), axes)
        return kind, (("kernel", kernel), ("stride", stride), ("padding", padding)), ((1,) if first == 2 else ())

    return detail


def _window(value: Any, axes: int) -> tuple[int, ...]:
    size = _ints(value)
    return size * axes if len(size) == 1 else size


def _axes(count: int) -> Callable[[str, Any, Any], Detail]:
    return lambda kind, args, kwargs: (kind, (("axes", count),), ())


def _gelu(kind: str, args: Any, kwargs: Any) -> Detail:
    return kind, (("approximate", str(kwargs.get("approximate", "none"))),), ()


def _pow(kind: str, args: Any, kwargs: Any) -> Detail:
    exponent = _at(args, 1, None)
    return kind, (("exponent", exponent if isinstance(exponent, int | float) else None),), ()


def _attention(kind: str, args: Any, kwargs: Any) -> Detail:
    return kind, (("causal", bool(_at(args, 5, kwargs.get("is_causal", False)))),), ()


def _recurrent(kind: str, args: Any, kwargs: Any) -> Detail:
    """Where its weights stand among the tensors: after the input, the sizes of a packed one, and the states."""
    before, weights = args[1 : 3 if isinstance(args[3], list | tuple) else 2], args[2]
    if isinstance(args[3], list | tuple):
        weights = args[3]
    first = 1 + sum(len(a) if isinstance(a, list | tuple) else 1 for a in before)
    return kind, (("weights", (first, len(weights))),), ()


def _put(kind: str, args: Any, kwargs: Any) -> Detail:
    """index_put, adding where it should accumulate."""
    adds = bool(_at(args, 3, kwargs.get("accumulate", False)))
    kind = {"scatter": "scatter_add", "copy": "scatter_reduce"}[kind] if adds else kind
    return kind, (("stored", _chosen(*args[:3])),), ()


def _chosen(x: torch.Tensor, indices: Any, values: torch.Tensor) -> int:
    """Elements that a list of indices stands for: those of an axis without one all, and a mask holds everywhere, unless
    there is a value for each place where it does."""
    given = [i for i in indices if i is not None]
    masks = [i.numel() for i in given if i.dtype in MASKS]
    known = held(x, indices, values) if masks else None
    picks = torch.broadcast_shapes(*(i.shape for i in given if i.dtype not in MASKS)).numel()
    axes, rest = iter(x.shape), 1
    for i in indices:
        size = [next(axes) for _ in range(i.dim() if i is not None and i.dtype in MASKS else 1)]
        rest *= size[0] if i is None else 1
    return (known or max(picks, *masks, 1)) * rest * prod(axes) if given else x.numel()


def _stored(count: Callable[[Any], int]) -> Callable[[str, Any, Any], Detail]:
    return lambda kind, args, kwargs: (kind, (("stored", count(args)),), ())


def _slices(args: Any) -> int:
    """x, axis, index: as many slices as there are indices."""
    x, axis, chosen = args[:3]
    axis %= max(1, x.dim())
    rest = prod(n for place, n in enumerate(x.shape) if place != axis)
    return int(chosen.numel() * rest)


def _multiply(kind: str, args: Any, kwargs: Any) -> Detail:
    complex_ = any(isinstance(a, torch.Tensor) and a.is_complex() for a in args)
    return ("complex_mul" if complex_ else kind), (), ()


def _bag(kind: str, args: Any, kwargs: Any) -> Detail:
    return kind, (("weighted", _at(args, 6, kwargs.get("per_sample_weights")) is not None),), ()


def _trilinear(kind: str, args: Any, kwargs: Any) -> Detail:
    """Three tensors in one space; each has an axis of length 1 wherever it is expanded. The first two are multiplied
    and summed over the axes that the third does not have, then the third joins."""
    missing, summed = args[3:6], args[6]
    space = torch.broadcast_shapes(*(_unsqueezed(t, axes) for t, axes in zip(args[:3], missing, strict=True)))
    first = prod(n for axis, n in enumerate(space) if not (axis in missing[0] and axis in missing[1]))
    second = prod(n for axis, n in enumerate(space) if not (axis in missing[2] and axis in summed))
    return kind, (("products", (int(first), int(second))),), ()


def _unsqueezed(t: torch.Tensor, axes: Any) -> list[int]:
    shape = [int(n) for n in t.shape]
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return shape


def _sorted(place: int) -> Callable[[str, Any, Any], Detail]:
    """`place` is where the axis stands among the arguments; it is the last one where nothing else is said."""

    def detail(kind: str, args: Any, kwargs: Any) -> Detail:
        return kind, (("rows", _along(args[0], (_at(args, place, kwargs.get("dim", -1)),))),), ()

    return detail


def _softmax(kind: str, args: Any, kwargs: Any) -> Detail:
    """Along the last axis where nothing else is said."""
    axis = _at(args, 1, kwargs.get("dim", -1))
    last = not args[0].dim() or axis in (-1, args[0].dim() - 1)
    return kind, (() if last else (("axis", int(axis)),)), ()


def _along(x: torch.Tensor, axes: Any) -> tuple[int, ...]:
    return tuple(int(x.shape[axis]) for axis in axes) if x.dim() else (1,)


def _fft(kind: str, args: Any, kwargs: Any) -> Detail:
    return kind, (("rows", _along(args[0], args[1])),), ()


def _fft_to_real(kind: str, args: Any, kwargs: Any) -> Detail:
    """The last axis comes with half of its spectrum, and its true length as an argument."""
    return kind, (("rows", (*_along(args[0], args[1][:-1]), int(args[3]))),), ()


DETAILS: dict[str, Callable[[str, Any, Any], Detail]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _conv),
    **dict.fromkeys(
        ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), lambda k, a, kw: _conv(k, a, kw, transposed=True)
    ),
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "batch_norm": _batch_norm,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _legit_train,
    "_native_batch_norm_legit_functional": _legit_train,
    "native_batch_norm_backward": _batch_norm_backward,
    "native_layer_norm_backward": _layer_norm_backward,
    **dict.fromkeys(("max_pool1d", "max_pool1d_with_indices"), _max_pool(1)),
    **dict.fromkeys(("max_pool2d", "max_pool2d_with_indices"), _max_pool(2)),
    **dict.fromkeys(("max_pool3d", "max_pool3d_with_indices"), _max_pool(3)),
    **{f"avg_pool{n}d": _average(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d_backward": _average(n, 2) for n in (2, 3)},
    **{f"adaptive_{p}_pool{n}d": _axes(n) for p in ("avg", "max") for n in (1, 2, 3)},
    "_adaptive_avg_pool2d": _axes(2),
    "_adaptive_avg_pool3d": _axes(3),
    **dict.fromkeys(("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"), _bag),
    "_trilinear": _trilinear,
    **dict.fromkeys(("softmax", "_softmax", "_safe_softmax", "special_softmax"), _softmax),
    "fractional_max_pool2d": _window_only(2),
    "fractional_max_pool3d": _window_only(3),
    **dict.fromkeys(("sort", "argsort", "mode", "unique_dim"), _sorted(1)),
    **dict.fromkeys(("topk", "kthvalue"), _sorted(2)),
    "msort": lambda kind, args, kwargs: (kind, (("rows", _along(args[0], (0,))),), ()),
    **dict.fromkeys(
        ("_unique", "_unique2"), lambda kind, args, kwargs: (kind, (("rows", (int(args[0].numel()),)),), ())
    ),
    **dict.fromkeys(("_fft_r2c", "_fft_c2c"), _fft),
    "_fft_c2r": _fft_to_real,
    **dict.fromkeys(("gelu", "gelu_", "gelu_backward"), _gelu),
    **dict.fromkeys(("pow", "pow_"), _pow),
    "square": lambda kind, args, kwargs: (kind, (("exponent", 2),), ()),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
    **dict.fromkeys(("index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"), _put),
    **dict.fromkeys(
        ("index_fill_", "index_copy_", "index_add", "index_add_", "index_reduce", "index_reduce_"), _stored(_slices)
    ),
    **dict.fromkeys(
        ("scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"),
        _stored(lambda args: args[2].numel()),
    ),
    "put_": _stored(lambda args: args[1].numel()),
    "masked_scatter_": _stored(lambda args: args[0].numel()),  # a mask holds everywhere
    **dict.fromkeys(("mul", "mul_"), _multiply),
}
