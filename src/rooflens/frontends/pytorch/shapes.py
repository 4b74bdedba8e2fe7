"""Own shape functions for the hot ATen ops: meta tensors in, the output's meta tensor out.

Most of a meta pass is spent in torch's shape kernels written in Python. These answer the common cases; each returns None
for a case that it does not know, and torch's own kernel then answers. Tests hold them equal to torch's, strides included.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import torch

Shape = tuple[int, ...]
ShapeRule = Callable[..., Any]
_empty = torch.empty
_META = torch.device("meta")


def _dense(x: torch.Tensor) -> bool:
    """Without holes or overlaps, so that an output keeps the very strides."""
    return prod(x.shape) == 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))


def like(x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor | None:
    dtype = x.dtype if dtype is None else dtype
    if x.is_contiguous():
        return _empty(x.shape, dtype=dtype, device=_META)
    if x.numel() and _dense(x):
        return torch.empty_strided(x.shape, x.stride(), dtype=dtype, device=_META)
    return None


def _new(x: torch.Tensor, shape: Shape | torch.Size, channels_last_of: torch.Tensor | None = None) -> torch.Tensor:
    layout = memory_format(channels_last_of) if channels_last_of is not None else torch.contiguous_format
    return _empty(shape, dtype=x.dtype, device=_META, memory_format=layout)


_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def memory_format(x: torch.Tensor) -> torch.memory_format:
    """The layout that torch reads from the strides: it may have holes, and one channel counts as channels first."""
    last = _LAST.get(x.dim())
    if last is None or (x.stride(1) != 1 and x.is_contiguous()):
        return torch.contiguous_format
    return last if _channels_last(x.shape, x.stride()) else torch.contiguous_format


def _channels_last(shape: Shape, stride: Shape) -> bool:
    """As c10's is_channels_last_strides: steps grow from channels over width and height to the batch."""
    least = 0
    for axis in (1, *range(len(shape) - 1, 1, -1), 0):
        ambiguous = axis == 0 and least == stride[1]
        if stride[1] == 0 or shape[axis] == 0 or stride[axis] < least or ambiguous:
            return False
        least = stride[axis] * max(1, shape[axis])
    return True


def unary(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor | None:
    return like(x) if x.is_floating_point() else None


def clamp(x: torch.Tensor, *bounds: Any, **kwargs: Any) -> torch.Tensor | None:
    tensors = any(isinstance(b, torch.Tensor) for b in (*bounds, *kwargs.values()))
    return None if tensors else unary(x)


def binary(x: Any, y: Any, *args: Any, **kwargs: Any) -> torch.Tensor | None:
    """Equal types; one operand has the whole shape and is contiguous, or both agree in everything."""
    if isinstance(y, int | float):
        return like(x) if isinstance(x, torch.Tensor) and x.is_floating_point() else None
    if (
        not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor))
        or x.dtype != y.dtype
        or not x.is_floating_point()
    ):
        return None
    if x.shape == y.shape:
        return like(x) if x.stride() == y.stride() else None
    whole = _broadcast(x.shape, y.shape)
    if whole is None or not (x.is_contiguous() and y.is_contiguous()):
        return None
    return _empty(whole, dtype=x.dtype, device=_META) if x.dim() and y.dim() else None


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    """None where torch should complain."""
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    if any(p != q and p != 1 and q != 1 for p, q in zip(a, b, strict=True)):
        return None
    return tuple(q if p == 1 else p for p, q in zip(a, b, strict=True))


def in_place(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor | None:
    """Numbers, and tensors of the very shape and type; a tensor of overlapping elements is torch's to refuse."""
    others = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]
    fits = all(o.shape == x.shape and o.dtype == x.dtype for o in others)
    return x if fits and x.is_floating_point() and (x.is_contiguous() or _dense(x)) else None


def _is_vector(b: torch.Tensor | None, size: int, dtype: torch.dtype) -> bool:
    return b is None or (tuple(b.shape) == (size,) and b.dtype == dtype)


def linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor | None:
    if w.dim() != 2 or x.dim() < 1 or x.shape[-1] != w.shape[1] or x.dtype != w.dtype:
        return None
    return _new(x, (*x.shape[:-1], w.shape[0])) if _is_vector(b, w.shape[0], x.dtype) else None


def mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        return None
    return _new(a, (a.shape[0], b.shape[1]))


def addmm(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **kwargs: Any) -> torch.Tensor | None:
    return mm(a, b) if b.dim() == 2 and _is_vector(c, b.shape[1], a.dtype) else None


def bmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    if a.dim() != 3 or b.dim() != 3 or a.shape[2] != b.shape[1] or a.shape[0] != b.shape[0] or a.dtype != b.dtype:
        return None
    return _new(a, (a.shape[0], a.shape[1], b.shape[2]))


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    if a.dim() < 2 or b.dim() < 2 or a.shape[-1] != b.shape[-2] or a.dtype != b.dtype:
        return None
    batch = _broadcast(a.shape[:-2], b.shape[:-2])
    return None if batch is None else _new(a, (*batch, a.shape[-2], b.shape[-1]))


def bilinear(
    a: torch.Tensor, b: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor | None:
    same = a.dim() and b.dim() and a.shape[:-1] == b.shape[:-1] and a.dtype == b.dtype == w.dtype
    if not same or w.dim() != 3 or tuple(w.shape[1:]) != (a.shape[-1], b.shape[-1]):
        return None
    return _new(a, (*a.shape[:-1], w.shape[0])) if _is_vector(bias, w.shape[0], a.dtype) else None


def grouped_mm(
    a: torch.Tensor, b: torch.Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> torch.Tensor | None:
    """torch's meta kernel knows bf16 only; the real kernels know more."""
    if a.dim() not in (2, 3) or b.dim() not in (2, 3) or a.shape[-1] != b.shape[-2]:
        return None
    flat = a.dim() == b.dim() == 2
    groups = (offs.shape[0],) if flat else (a.shape[0],) if a.dim() == b.dim() == 3 else ()
    return _empty((*groups, a.shape[-2], b.shape[-1]), dtype=out_dtype or a.dtype, device=_META)


def recurrent(x: torch.Tensor, *args: Any) -> tuple[torch.Tensor, ...] | None:
    """x, states, weights, biased, layers, dropout, training, both ways, batch first; packed sequences have their
    batch sizes second, and no batch axis."""
    packed = isinstance(args[2], list | tuple)
    states, weights = args[1:3] if packed else args[:2]
    states = tuple(states) if isinstance(states, list | tuple) else (states,)
    if x.shape[-1] != weights[0].shape[-1] or x.dtype != weights[0].dtype:
        return None
    ways = 2 if args[7 if packed else 6] else 1
    rows = x.shape[:-1]
    order = (1, 0, 2) if not packed and x.dim() == 3 and args[7] else tuple(range(x.dim()))  # torch runs step by step
    out = torch.empty_permuted((*rows, states[0].shape[-1] * ways), order, dtype=x.dtype, device=_META)
    return out, *(torch.empty_like(s, memory_format=torch.contiguous_format) for s in states)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Any = None,
    p: float = 0.0,
    causal: bool = False,
    **kwargs: Any,
) -> torch.Tensor | None:
    """Laid out as flash kernels leave it, [batch, step, head, dim] in memory, so that joining heads is a view."""
    batch = _attended(q, k, v, bool(kwargs.get("enable_gqa", False)))
    if batch is None or not _masks(mask, (*batch, q.shape[-2], k.shape[-2])):
        return None
    if q.dim() != 4:
        return _new(q, (*batch, q.shape[-2], v.shape[-1]))
    shape = (*batch, q.shape[-2], v.shape[-1])
    return torch.empty_permuted(shape, (0, 2, 1, 3), dtype=q.dtype, device=_META)


def _attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grouped: bool) -> Shape | None:
    """The batch axes of the result; with grouped queries several heads of q share one of k and v."""
    n = q.dim()
    if n < 2 or k.dim() != n or v.dim() != n or len({q.dtype, k.dtype, v.dtype}) > 1:
        return None
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        return None
    if grouped and n > 2:
        shared = k.shape[-3] > 0 and k.shape[-3] == v.shape[-3] and q.shape[-3] % k.shape[-3] == 0
        rest = _broadcast(_broadcast(q.shape[:-3], k.shape[:-3]) or (), v.shape[:-3])
        return (*rest, q.shape[-3]) if shared and rest is not None else None
    both = _broadcast(q.shape[:-2], k.shape[:-2])
    return None if both is None else _broadcast(both, v.shape[:-2])


def _masks(mask: Any, scores: Shape) -> bool:
    return mask is None or _broadcast(mask.shape, scores) == scores


def _tuple(value: Any, n: int) -> Shape:
    if isinstance(value, int):
        return (value,) * n
    return tuple(value) * n if len(value) == 1 else tuple(value)


def _conv_size(x: torch.Tensor, w: torch.Tensor, stride: Any, padding: Any, dilation: Any) -> Shape | None:
    n = w.dim() - 2
    if isinstance(padding, str) or x.dim() != n + 2:
        return None
    s, p, d = _tuple(stride, n), _tuple(padding, n), _tuple(dilation, n)
    size = tuple((x.shape[i + 2] + 2 * p[i] - d[i] * (w.shape[i + 2] - 1) - 1) // s[i] + 1 for i in range(n))
    return size if min(size) > 0 else None


def conv(
    x: torch.Tensor,
    w: torch.Tensor,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> torch.Tensor | None:
    size = _conv_size(x, w, stride, padding, dilation)
    if size is None or x.shape[1] != w.shape[1] * groups or x.dtype != w.dtype or w.shape[0] % groups:
        return None
    if not _is_vector(b, w.shape[0], x.dtype):
        return None
    return _conv_like(x, w, (x.shape[0], w.shape[0], *size))


def _conv_like(x: torch.Tensor, w: torch.Tensor, shape: Shape | torch.Size) -> torch.Tensor:
    """channels_last in either operand makes the output so. torch's meta kernel never does, its real ones do."""
    return _empty(shape, dtype=x.dtype, device=_META, memory_format=_either(x, w))


def _either(x: torch.Tensor, w: torch.Tensor) -> torch.memory_format:
    layout = memory_format(x)
    return layout if layout != torch.contiguous_format else memory_format(w)


def convolution(
    x: torch.Tensor,
    w: torch.Tensor,
    b: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    out: Any,
    groups: int,
) -> torch.Tensor | None:
    return None if transposed else conv(x, w, b, stride, padding, dilation, groups)


def convolution_backward(
    g: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    bias: Any,
    s: Any,
    p: Any,
    d: Any,
    t: bool,
    o: Any,
    n: int,
    mask: Any,
) -> tuple[torch.Tensor | None, ...] | None:
    """Both gradients have the layout that the convolution ran in."""
    return (
        _conv_like(x, w, x.shape) if mask[0] else None,
        _conv_like(x, w, w.shape) if mask[1] else None,
        _new(x, tuple(bias)) if mask[2] else None,
    )


def _per_channel(x: torch.Tensor, vectors: Any) -> bool:
    return x.dim() > 1 and all(v is None or tuple(v.shape) == (x.shape[1],) for v in vectors)


def batch_norm(x: torch.Tensor, w: Any, b: Any, mean: Any, var: Any, train: bool, *args: Any) -> torch.Tensor | None:
    return like(x) if _per_channel(x, (w, b, mean, var)) else None


def native_batch_norm(
    x: torch.Tensor, w: Any, b: Any, mean: Any, var: Any, train: bool, *args: Any
) -> tuple[torch.Tensor, ...] | None:
    out = like(x)
    if out is None or not train or x.dtype in (torch.bfloat16, torch.float16) or not _per_channel(x, (w, b, mean, var)):
        return None
    return out, _new(x, (x.shape[1],)), _new(x, (x.shape[1],))


def _norm_backward(g: torch.Tensor, x: torch.Tensor, w: Any, mask: Any, size: Any) -> tuple[Any, ...] | None:
    out = like(x)
    if out is None or not g.is_contiguous() or not x.is_contiguous():
        return None
    return out if mask[0] else None, *(_new(x, size) if wanted else None for wanted in mask[1:])


def native_batch_norm_backward(
    g: torch.Tensor, x: torch.Tensor, w: Any, rm: Any, rv: Any, m: Any, v: Any, train: bool, eps: float, mask: Any
) -> tuple[Any, ...] | None:
    same = w is None or w.dtype == x.dtype
    found = _norm_backward(g, x, w, mask, (x.shape[1],)) if same else None
    if found is not None or mask[0]:
        return found
    made = torch.ops.aten.native_batch_norm_backward.default(g, x, w, rm, rv, m, v, train, eps, mask)
    return None, *made[1:]  # torch's shape kernel makes the input's gradient whether it is asked for or not


def normalised(x: torch.Tensor, shape: Any, vectors: Any) -> bool:
    wanted = tuple(shape)
    fits = len(wanted) > 0 and tuple(x.shape[-len(wanted) :]) == wanted
    return fits and all(v is None or (tuple(v.shape) == wanted and v.dtype == x.dtype) for v in vectors)


def layer_norm(x: torch.Tensor, shape: Any, w: Any = None, b: Any = None, *args: Any) -> torch.Tensor | None:
    vectors = (w, b) if isinstance(b, torch.Tensor) else (w,)  # rms_norm has its epsilon there
    if not x.is_contiguous() or not normalised(x, shape, vectors):
        return None
    return _empty(x.shape, dtype=x.dtype, device=_META)


def group_norm(x: torch.Tensor, groups: int, w: Any = None, b: Any = None, *args: Any) -> torch.Tensor | None:
    if x.dim() < 2 or groups < 1 or x.shape[1] % groups or not x.is_contiguous() or not _per_channel(x, (w, b)):
        return None
    return _empty(x.shape, dtype=x.dtype, device=_META)


def native_layer_norm(x: torch.Tensor, shape: Any, w: Any, b: Any, eps: float) -> tuple[torch.Tensor, ...] | None:
    if not x.is_contiguous() or x.dtype != torch.float32 or not normalised(x, shape, (w, b)):
        return None
    stats = (*x.shape[: x.dim() - len(shape)], *(1,) * len(shape))
    return _new(x, x.shape), _new(x, stats), _new(x, stats)


def native_layer_norm_backward(
    g: torch.Tensor, x: torch.Tensor, shape: Any, mean: Any, rstd: Any, w: Any, b: Any, mask: Any
) -> tuple[Any, ...] | None:
    return _norm_backward(g, x, w, mask, tuple(shape))


def softmax(x: torch.Tensor, dim: int, dtype: Any = None) -> torch.Tensor | None:
    """The third argument is a type, or for `_softmax` whether to leave half precision: that is torch's to answer."""
    if not x.is_contiguous() or not x.is_floating_point() or not -x.dim() <= dim < x.dim() or dtype is True:
        return None
    return _empty(x.shape, dtype=dtype or x.dtype, device=_META)


def softmax_gradient(g: torch.Tensor, y: torch.Tensor, *args: Any) -> torch.Tensor | None:
    return first_gradient(g, y) if g.is_contiguous() and y.is_contiguous() else None


def first_gradient(g: torch.Tensor, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor | None:
    """Backward of an element-wise op: like the gradient where that agrees with the saved tensor."""
    same = isinstance(x, torch.Tensor) and g.shape == x.shape and g.dtype == x.dtype and g.stride() == x.stride()
    return like(g) if same else None


def _pooled(x: torch.Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> Shape | None:
    if ceil or x.dim() != 4:
        return None
    k, p, d = _tuple(kernel, 2), _tuple(padding, 2), _tuple(dilation, 2)
    s = _tuple(stride, 2) if stride else k
    if any(2 * p[i] > k[i] for i in (0, 1)):
        return None
    size = tuple((x.shape[i + 2] + 2 * p[i] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i in (0, 1))
    return (*x.shape[:2], *size) if min(size) > 0 else None


def max_pool2d(
    x: torch.Tensor, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> torch.Tensor | None:
    shape = _pooled(x, kernel, stride, padding, dilation, ceil)
    return None if shape is None else _new(x, shape, channels_last_of=x)


def max_pool2d_with_indices(x: torch.Tensor, *args: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    out = max_pool2d(x, *args)
    if out is None:
        return None
    return out, _empty(out.shape, dtype=torch.int64, device=_META, memory_format=memory_format(x))


def max_pool2d_with_indices_backward(g: torch.Tensor, x: torch.Tensor, *args: Any) -> torch.Tensor:
    return _new(x, x.shape, channels_last_of=x)


def avg_pool2d(
    x: torch.Tensor, kernel: Any, stride: Any = None, padding: Any = 0, ceil: bool = False, *args: Any
) -> torch.Tensor | None:
    shape = _pooled(x, kernel, stride, padding, 1, ceil)
    return None if shape is None else _new(x, shape, channels_last_of=x)


def adaptive_avg_pool2d(x: torch.Tensor, size: Any) -> torch.Tensor | None:
    if x.dim() != 4:
        return None
    return _new(x, (*x.shape[:2], *_tuple(size, 2)), channels_last_of=x)


def cat(tensors: Any, dim: int = 0) -> torch.Tensor | None:
    first = tensors[0]
    same = all(t.dtype == first.dtype and t.dim() == first.dim() and t.is_contiguous() for t in tensors)
    if not same or not -first.dim() <= dim < first.dim():
        return None
    dim %= first.dim()
    rest = [(*t.shape[:dim], *t.shape[dim + 1 :]) for t in tensors]
    if any(r != rest[0] for r in rest) or any(
        t.dim() == 4 and memory_format(t) != torch.contiguous_format for t in tensors
    ):
        return None
    shape = list(first.shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    return _empty(shape, dtype=first.dtype, device=_META)


def reduce(x: torch.Tensor, dims: Any = None, keep: bool = False, *, dtype: Any = None) -> torch.Tensor | None:
    """sum and mean over given axes."""
    if dtype not in (None, x.dtype) or not x.is_floating_point() or not dims or not x.is_contiguous():
        return None
    given = (dims,) if isinstance(dims, int) else tuple(dims)
    axes = {d % x.dim() for d in given if -x.dim() <= d < x.dim()}
    if len(axes) != len(given):
        return None
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes)
    return _empty(shape, dtype=x.dtype, device=_META)


_UNARY = "relu gelu silu hardtanh relu6 hardswish hardsigmoid sigmoid tanh neg rsqrt sqrt exp square abs cos sin"
_BACKWARD = (
    "threshold_backward hardtanh_backward gelu_backward silu_backward sigmoid_backward tanh_backward hardswish_backward "
    "hardsigmoid_backward leaky_relu_backward"
)
SHAPES: dict[str, ShapeRule] = {
    **dict.fromkeys(_UNARY.split(), unary),
    **dict.fromkeys([f"{name}_" for name in _UNARY.split()], in_place),
    **dict.fromkeys(("add", "sub", "mul", "div", "pow"), binary),
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "clamp_"), in_place),
    "clamp": clamp,
    **dict.fromkeys(_BACKWARD.split(), first_gradient),
    "linear": linear, "bilinear": bilinear, "mm": mm, "addmm": addmm, "bmm": bmm, "matmul": matmul,
    "scaled_dot_product_attention": attention, "_grouped_mm": grouped_mm,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), recurrent),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), conv),
    "convolution": convolution, "convolution_backward": convolution_backward,
    "batch_norm": batch_norm, "native_batch_norm": native_batch_norm,
    "native_batch_norm_backward": native_batch_norm_backward,
    "layer_norm": layer_norm, "rms_norm": layer_norm, "group_norm": group_norm,
    "native_layer_norm": native_layer_norm, "native_layer_norm_backward": native_layer_norm_backward,
    "softmax": softmax, "_softmax": softmax, "_softmax_backward_data": softmax_gradient,
    "max_pool2d": max_pool2d, "max_pool2d_with_indices": max_pool2d_with_indices,
    "max_pool2d_with_indices_backward": max_pool2d_with_indices_backward,
    "avg_pool2d": avg_pool2d, "adaptive_avg_pool2d": adaptive_avg_pool2d, "cat": cat,
    "sum": reduce, "mean": reduce,
}  # fmt: skip
