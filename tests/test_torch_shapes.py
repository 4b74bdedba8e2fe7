"""The frontend's own shape functions against torch's meta kernels: shape, type and strides, on a seeded grid.

Each family makes many argument lists, wrong ones among them. Where torch raises, a rule must leave the answer to torch
(return None); where a rule answers, it must answer as torch does. Two keep the strides of the real kernels, which
the meta kernels do not have: attention (flash kernels leave the heads next to each other) and convolutions (channels
last stays).
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rooflens.frontends.pytorch.names import ROWS  # noqa: E402
from rooflens.frontends.pytorch.shapes import SHAPES  # noqa: E402

Case = tuple[tuple[Any, ...], dict[str, Any]]
DTYPES = (torch.float32, torch.float32, torch.bfloat16, torch.float64, torch.int64)
BAD = object()


def _tensor(rng: random.Random, shape: tuple[int, ...], dtype: Any = torch.float32) -> Any:
    """In one of the layouts that models use: plain, channels last, transposed, sliced, expanded."""
    layout = rng.choice(("plain", "plain", "plain", "last", "transposed", "sliced", "expanded"))
    if layout == "last" and len(shape) in (4, 5):
        order = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        return torch.empty(shape, dtype=dtype, device="meta").to(memory_format=order)
    if layout == "transposed" and len(shape) > 1:
        return torch.empty((*shape[:-2], shape[-1], shape[-2]), dtype=dtype, device="meta").transpose(-1, -2)
    if layout == "sliced" and shape:
        return torch.empty((*shape[:-1], shape[-1] + 3), dtype=dtype, device="meta")[..., : shape[-1]]
    if layout == "expanded" and shape:
        return torch.empty((1, *shape[1:]), dtype=dtype, device="meta").expand(shape)
    return torch.empty(shape, dtype=dtype, device="meta")


def _shape(rng: random.Random, least: int = 0, most: int = 5) -> tuple[int, ...]:
    return tuple(rng.choice((1, 2, 3, 4, 6, 0)) for _ in range(rng.randint(least, most)))


def _any(rng: random.Random, least: int = 0, most: int = 5) -> Any:
    return _tensor(rng, _shape(rng, least, most), rng.choice(DTYPES))


def _unary(rng: random.Random) -> Case:
    return (_any(rng),), {}


def _near(rng: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The same shape, one that broadcasts, or one that does not fit."""
    kind = rng.random()
    if kind < 0.4:
        return shape
    if kind < 0.9:
        return tuple(n if rng.random() < 0.5 else 1 for n in shape)[rng.randint(0, len(shape)) :]
    return (*shape, 2)


def _binary(rng: random.Random) -> Case:
    shape = _shape(rng)
    dtype = rng.choice(DTYPES)
    if rng.random() < 0.2:
        return (_tensor(rng, shape, dtype), rng.choice((2, 0.5))), {}
    other = dtype if rng.random() < 0.8 else rng.choice(DTYPES)
    pair = [_tensor(rng, shape, dtype), _tensor(rng, _near(rng, shape), other)]
    rng.shuffle(pair)
    return tuple(pair), {}


def _power(rng: random.Random) -> Case:
    return ((rng.choice((2, 0.5)), _any(rng)), {}) if rng.random() < 0.2 else _binary(rng)


def _clamp(rng: random.Random) -> Case:
    x = _any(rng)
    return (x, *rng.choice(((0.0, 6.0), (0.0, None), (None, 1.0), (_tensor(rng, _near(rng, tuple(x.shape))),)))), {}


def _gradient(rng: random.Random) -> Case:
    (g, x), _ = _same_pair(rng)
    return (g, x), {}


def _same_pair(rng: random.Random) -> Case:
    shape = _shape(rng, 1)
    return (_tensor(rng, shape), _tensor(rng, shape)), {}


def _softmax_gradient(rng: random.Random) -> Case:
    (g, y), _ = _same_pair(rng)
    return (g, y, rng.randrange(-g.dim(), g.dim()), torch.float32), {}


def _off(rng: random.Random, size: int) -> int:
    """Sometimes a size that does not fit."""
    return size + 1 if rng.random() < 0.1 else size


def _bias(rng: random.Random, size: int, dtype: Any) -> Any:
    return None if rng.random() < 0.4 else _tensor(rng, (_off(rng, size),), dtype)


def _linear(rng: random.Random) -> Case:
    dtype = rng.choice((torch.float32, torch.bfloat16))
    inner, out = rng.choice((1, 4, 6)), rng.choice((1, 3, 5))
    x = _tensor(rng, (*_shape(rng, 0, 3), _off(rng, inner)), dtype)
    return (x, _tensor(rng, (out, inner), dtype), _bias(rng, out, dtype)), {}


def _bilinear(rng: random.Random) -> Case:
    dtype = rng.choice((torch.float32, torch.bfloat16))
    first, second, out = rng.choice((1, 4, 6)), rng.choice((1, 3)), rng.choice((1, 5))
    lead = _shape(rng, 0, 3)
    pair = _tensor(rng, (*lead, _off(rng, first)), dtype), _tensor(rng, (*_near(rng, lead), second), dtype)
    return (*pair, _tensor(rng, (out, first, second), dtype), _bias(rng, out, dtype)), {}


def _mm(rng: random.Random) -> Case:
    m, k, n = (rng.choice((0, 1, 2, 5)) for _ in range(3))
    return (_tensor(rng, (m, k)), _tensor(rng, (_off(rng, k), n))), {}


def _addmm(rng: random.Random) -> Case:
    (a, b), _ = _mm(rng)
    return (_tensor(rng, rng.choice(((b.shape[1],), (a.shape[0], b.shape[1]), (1,), (a.shape[0] + 2,)))), a, b), {}


def _bmm(rng: random.Random) -> Case:
    batch, m, k, n = (rng.choice((1, 2, 3)) for _ in range(4))
    return (_tensor(rng, (batch, m, k)), _tensor(rng, (_off(rng, batch), _off(rng, k), n))), {}


def _matmul(rng: random.Random) -> Case:
    batch, (m, k, n) = _shape(rng, 0, 3), (rng.choice((1, 2, 3)) for _ in range(3))
    a, b = (*batch, m, k), (*_near(rng, batch), _off(rng, k), n)
    return (_tensor(rng, a[rng.choice((0, len(a) - 1)) :]), _tensor(rng, b)), {}


def _attention(rng: random.Random) -> Case:
    batch, heads, steps, keys, dim, out = (rng.choice((1, 2, 4)) for _ in range(6))
    lead = rng.choice(((batch, heads), (batch, heads), (batch,)))
    k_lead = tuple(_off(rng, n) for n in lead)
    kwargs: dict[str, Any] = {}
    if len(lead) == 2 and rng.random() < 0.3:
        lead, kwargs = (batch, heads * 2), {"enable_gqa": True}
    mask = rng.choice((None, None, (steps, keys), (*lead[:1], *(1,) * (len(lead) - 1), steps, keys), (steps, keys + 2)))
    given = None if mask is None else torch.empty(mask, device="meta")
    q, k, v = ((*lead, steps, _off(rng, dim)), (*k_lead, keys, dim), (*k_lead, keys, out))
    return (_tensor(rng, q), _tensor(rng, k), _tensor(rng, v), given), kwargs


def _conv(axes: int) -> Callable[[random.Random], Case]:
    def make(rng: random.Random) -> Case:
        groups, k = rng.choice((1, 1, 2)), rng.choice((1, 2, 3))
        cin, cout = groups * rng.choice((1, 2)), groups * rng.choice((1, 3))
        dtype = rng.choice((torch.float32, torch.bfloat16))
        x = _tensor(rng, (rng.choice((1, 2)), _off(rng, cin), *(rng.choice((2, 5, 7)) for _ in range(axes))), dtype)
        w = _tensor(rng, (_off(rng, cout), cin // groups, *(k,) * axes), dtype)
        stride, padding, dilation = rng.choice((1, 2)), rng.choice((0, 1)), rng.choice((1, 2))
        return (x, w, _bias(rng, w.shape[0], dtype), *((n,) * axes for n in (stride, padding, dilation)), groups), {}

    return make


def _convolution(rng: random.Random) -> Case:
    (x, w, b, stride, padding, dilation, groups), _ = _conv(2)(rng)
    return (x, w, b, stride, padding, dilation, False, (0, 0), groups), {}


def _convolution_backward(rng: random.Random) -> Case:
    """Wrong shapes cannot reach a backward; layouts can."""
    groups, cin, cout, k, p = rng.choice((1, 2)), 4, 6, rng.choice((1, 3)), rng.choice((0, 1))
    x, w = _tensor(rng, (2, cin, 7, 5)), _tensor(rng, (cout, cin // groups, k, k))
    g = _tensor(rng, (2, cout, 7 + 2 * p - k + 1, 5 + 2 * p - k + 1))
    mask = [rng.random() < 0.7 for _ in range(3)]
    return (g, x, w, [cout], [1, 1], [p, p], [1, 1], False, [0, 0], groups, mask), {}


def _channels(rng: random.Random, size: int, count: int) -> list[Any]:
    return [torch.empty((_off(rng, size),), device="meta") for _ in range(count)]


def _batch_norm(rng: random.Random) -> Case:
    x = _tensor(rng, (2, 4, *_shape(rng, 0, 3)))
    return (x, *_channels(rng, 4, 4), False, 0.1, 1e-5, False), {}


def _native_batch_norm(rng: random.Random) -> Case:
    args, _ = _batch_norm(rng)
    return (*args[:5], rng.random() < 0.7, 0.1, 1e-5), {}


def _batch_norm_backward(rng: random.Random) -> Case:
    shape = (2, 4, *(rng.choice((1, 3)) for _ in range(rng.choice((0, 2)))))
    vectors = [torch.empty(4, device="meta") for _ in range(5)]
    mask = [True, rng.random() < 0.8, rng.random() < 0.8]  # the meta kernel alone returns what the mask leaves out
    return (_tensor(rng, shape), _tensor(rng, shape), *vectors, True, 1e-5, mask), {}


def _layer_norm(rng: random.Random) -> Case:
    x = _tensor(rng, _shape(rng, 1, 4))
    size = list(x.shape[-rng.choice((1, 1, 2)) :])
    size[-1] = _off(rng, size[-1])
    vectors = rng.choice(((None, None), (torch.empty(size, device="meta"),) * 2))
    return (x, size, *vectors, 1e-5), {}


def _rms_norm(rng: random.Random) -> Case:
    (x, size, w, _, eps), _kwargs = _layer_norm(rng)
    return (x, size, w, eps), {}


def _layer_norm_backward(rng: random.Random) -> Case:
    shape = (2, rng.choice((1, 3)), 4)
    stats = [torch.empty((*shape[:2], 1), device="meta") for _ in range(2)]
    vectors = [torch.empty(4, device="meta") for _ in range(2)]
    return (_tensor(rng, shape), _tensor(rng, shape), [4], *stats, *vectors, [rng.random() < 0.8 for _ in range(3)]), {}


def _group_norm(rng: random.Random) -> Case:
    x = _tensor(rng, (2, 4, *_shape(rng, 0, 3)))
    return (x, rng.choice((1, 2, 4, 3)), *_channels(rng, 4, 2), 1e-5), {}


def _softmax(rng: random.Random) -> Case:
    x = _any(rng, 1)
    return (x, rng.randint(-x.dim() - 1, x.dim()), rng.choice((None, None, torch.float32))), {}


def _softmax_raw(rng: random.Random) -> Case:
    x = _any(rng, 1)
    return (x, rng.randint(-x.dim() - 1, x.dim()), False), {}


def _pool(average: bool) -> Callable[[random.Random], Case]:
    def make(rng: random.Random) -> Case:
        x = _tensor(rng, (rng.choice((1, 2)), rng.choice((1, 3)), rng.choice((2, 5, 8)), rng.choice((3, 8))))
        k = rng.choice((2, 3))
        ceil = rng.random() < 0.3
        rest = (ceil,) if average else (rng.choice((1, 2)), ceil)
        return (x, [k, k], rng.choice(([], [1, 1], [2, 2])), [rng.choice((0, 1, 2))] * 2, *rest), {}

    return make


def _max_pool_backward(rng: random.Random) -> Case:
    x = _tensor(rng, (2, 3, 8, 6))
    g = torch.empty((2, 3, 4, 3), device="meta")
    return (g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, torch.empty(g.shape, dtype=torch.int64, device="meta")), {}


def _adaptive(rng: random.Random) -> Case:
    return (_tensor(rng, (2, 3, rng.choice((4, 7)), 5)), [rng.choice((1, 2, 7)), rng.choice((1, 3))]), {}


def _cat(rng: random.Random) -> Case:
    shape = list(_shape(rng, 1, 4))
    dim = rng.randrange(len(shape))
    others = []
    for _ in range(rng.choice((1, 2, 3))):
        size = [_off(rng, n) if i != dim else rng.choice((1, 2, 5)) for i, n in enumerate(shape)]
        others.append(_tensor(rng, tuple(size), rng.choice(DTYPES) if rng.random() < 0.1 else torch.float32))
    return (others, rng.choice((dim, dim - len(shape), len(shape)))), {}


def _reduce(rng: random.Random) -> Case:
    x = _any(rng, 1)
    dims = [rng.randint(-x.dim(), x.dim()) for _ in range(rng.choice((1, 2)))]
    return (x, dims, rng.random() < 0.5), {}


def _recurrent(name: str, gates: int) -> Callable[[random.Random], Case]:
    def make(rng: random.Random) -> Case:
        size, hidden, layers, both, first = 3, 4, rng.choice((1, 2)), rng.random() < 0.5, rng.random() < 0.5
        ways = 2 if both else 1
        batch, steps = 2, 5
        x = torch.empty((batch, steps, size) if first else (steps, batch, size), device="meta")
        state = torch.empty((layers * ways, batch, hidden), device="meta")
        weights = []
        for layer in range(layers):
            for _ in range(ways):
                width = size if layer == 0 else hidden * ways
                weights += [(gates * hidden, width), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,)]
        tensors = [torch.empty(w, device="meta") for w in weights]
        states: Any = [state, state] if name == "lstm" else state
        return (x, states, tensors, True, layers, 0.0, False, both, first), {}

    return make


def _grouped(rng: random.Random) -> Case:
    groups, m, k, n = 4, 16, 8, 24
    make = {
        "rows": ((m, k), (groups, k, n)), "batch": ((groups, m, k), (groups, k, n)), "sum": ((m, k), (k, n)),
    }[rng.choice(("rows", "batch", "sum"))]  # fmt: skip
    a, b = (torch.empty(s, dtype=torch.bfloat16, device="meta") for s in make)
    b = torch.empty((*b.shape[:-2], n, k), dtype=torch.bfloat16, device="meta").transpose(-1, -2)
    offsets = None if a.dim() == b.dim() == 3 else torch.empty((groups,), dtype=torch.int32, device="meta")
    return (a, b, offsets), {}


_OWN: dict[str, Callable[[random.Random], Case]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"), _binary),
    "pow": _power, "clamp": _clamp, "clamp_": _clamp, "linear": _linear, "bilinear": _bilinear,
    "mm": _mm, "addmm": _addmm, "bmm": _bmm,
    "matmul": _matmul, "scaled_dot_product_attention": _attention, "conv1d": _conv(1), "conv2d": _conv(2),
    "conv3d": _conv(3), "convolution": _convolution, "convolution_backward": _convolution_backward,
    "batch_norm": _batch_norm, "native_batch_norm": _native_batch_norm,
    "native_batch_norm_backward": _batch_norm_backward, "layer_norm": _layer_norm, "rms_norm": _rms_norm,
    "group_norm": _group_norm, "native_layer_norm": _layer_norm, "native_layer_norm_backward": _layer_norm_backward,
    "softmax": _softmax, "_softmax": _softmax_raw, "_softmax_backward_data": _softmax_gradient,
    "max_pool2d": _pool(False), "max_pool2d_with_indices": _pool(False),
    "max_pool2d_with_indices_backward": _max_pool_backward, "avg_pool2d": _pool(True),
    "adaptive_avg_pool2d": _adaptive, "cat": _cat, "sum": _reduce, "mean": _reduce, "_grouped_mm": _grouped,
    "threshold_backward": lambda rng: ((*_gradient(rng)[0], 0), {}),
    "hardtanh_backward": lambda rng: ((*_gradient(rng)[0], 0.0, 6.0), {}),
    "leaky_relu_backward": lambda rng: ((*_gradient(rng)[0], 0.1, False), {}),
    "lstm": _recurrent("lstm", 4), "gru": _recurrent("gru", 3), "rnn_tanh": _recurrent("rnn", 1),
    "rnn_relu": _recurrent("rnn", 1),
}  # fmt: skip


def _cases(name: str) -> Iterator[Case]:
    rng = random.Random(name)
    make = _OWN.get(name) or (_gradient if name.endswith("_backward") else _unary)
    count = 20 if name in ("lstm", "gru", "rnn_tanh", "rnn_relu") else 150
    for _ in range(count):
        yield make(rng)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [t for v in value for t in _flat(v)]
    return [value]


def _strides(t: Any) -> tuple[int, ...]:
    """Those that say where an element lies: not of axes of one element, nor of an empty tensor (torch compares its own
    meta kernels with its real ones in this way)."""
    return tuple(step for n, step in zip(t.shape, t.stride(), strict=True) if n > 1) if t.numel() else ()


def _seen(value: Any, strides: bool) -> list[Any]:
    return [
        None if t is None else (tuple(t.shape), t.dtype, t.device.type, _strides(t) if strides else None)
        for t in _flat(value)
    ]


def _described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _seen(value, True)[0]
    return [_described(v) for v in value] if isinstance(value, list | tuple) else value


def _torch_says(name: str, args: Any, kwargs: Any) -> Any:
    try:
        return getattr(torch.ops.aten, name)(*args, **kwargs)
    except (RuntimeError, IndexError, ValueError, NotImplementedError):
        return BAD


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_rule_answers_as_torch_does(name: str) -> None:
    assert name in ROWS, "a shape rule without a row is never used"
    rule, answered = SHAPES[name], 0
    strides = name != "scaled_dot_product_attention" and not name.startswith("conv")
    with torch.inference_mode():
        for args, kwargs in _cases(name):
            ours = rule(*args, **kwargs)
            if ours is None:
                continue
            theirs = _torch_says(name, args, kwargs)
            shown = [_described(a) for a in args]
            assert theirs is not BAD, f"{name}{shown} {kwargs}: torch refuses what the rule answers"
            assert _seen(ours, strides) == _seen(theirs, strides), f"{name}{shown} {kwargs}"
            answered += 1
    assert answered >= 10, f"only {answered} of the cases were answered"


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("kernel", [1, 3])
def test_convolutions_keep_the_layout_that_the_real_kernels_leave(axes: int, kernel: int) -> None:
    rng, last = random.Random(kernel), {2: torch.channels_last, 3: torch.channels_last_3d}[axes]
    name, run = f"conv{axes}d", getattr(torch.nn.functional, f"conv{axes}d")
    for layout in (torch.contiguous_format, last):
        for channels in (2, 4, 8):
            batch = rng.choice((2, 3))  # a single small item takes a slow CPU path that forgets its layout
            x = torch.zeros((batch, channels, *(rng.choice((5, 6)),) * axes)).to(memory_format=layout)
            w = torch.zeros((6, channels, *(kernel,) * axes)).to(memory_format=layout)
            shaped = SHAPES[name](x.to("meta"), w.to("meta"))
            assert _strides(shaped) == _strides(run(x, w)), f"{name} {tuple(x.shape)} {layout}"
