"""What single torch calls cost: which of their tensors they read, how much of them, what they write. Every expected
number is worked out here from the sizes, 4 bytes a float and 8 an index."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from rooflens.costs.sheet import OpCost, cost_sheet  # noqa: E402
from rooflens.errors import ModelError  # noqa: E402
from rooflens.frontends.pytorch.trace import trace_module  # noqa: E402
from rooflens.graph.records import Graph  # noqa: E402

FLOAT, INDEX = 4, 8


class Call(nn.Module):
    """A function of a module with one trainable number, `module.one`, and of its inputs."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function, self.one = function, nn.Parameter(torch.ones(()))
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args)


def meta(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.empty(shape, dtype=dtype, device="meta")


def index(*shape: int) -> Any:
    return meta(*shape, dtype=torch.int64)


def traced(function: Callable[..., Any], *args: Any, training: bool = False, **parts: Any) -> Graph:
    with torch.device("meta"):
        module = Call(function, **{name: build() for name, build in parts.items()})
    return trace_module(module, args, {}, name="call", source="test", training=training)


def cost(graph: Graph, kind: str, pass_: str = "forward") -> OpCost:
    """Of the one op of this kind."""
    (row,) = [
        row
        for op, row in zip(graph.ops, cost_sheet(graph).rows, strict=True)
        if (op.kind, op.pass_) == (kind, pass_) and not op.view
    ]
    return row


def moved(row: OpCost) -> tuple[int, int]:
    return row.input_bytes + row.param_bytes, row.output_bytes


# tensors that only lend their shape

LIKE: dict[str, Callable[[Any], Any]] = {
    "zeros_like": torch.zeros_like, "ones_like": torch.ones_like, "full_like": lambda x: torch.full_like(x, 2.0),
    "new_zeros": lambda x: x.new_zeros(x.shape), "new_ones": lambda x: x.new_ones(x.shape),
    "new_full": lambda x: x.new_full(x.shape, 2.0), "rand_like": torch.rand_like, "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 9),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(LIKE))
def test_what_is_made_in_the_shape_of_a_tensor_does_not_read_it(name: str) -> None:
    graph = traced(lambda m, x: LIKE[name](x), meta(10, 8))
    assert moved(cost(graph, "random" if "rand" in name else "fill")) == (0, 80 * FLOAT)


def test_what_is_drawn_into_a_new_tensor_does_not_read_the_old_one() -> None:
    """As an exported program writes x.uniform_()."""
    graph = traced(lambda m, x: torch.ops.aten.uniform(x), meta(10, 8))
    assert moved(cost(graph, "random")) == (0, 80 * FLOAT)


@pytest.mark.parametrize("draw", [torch.bernoulli, torch.poisson, torch.normal])
def test_what_is_drawn_from_probabilities_reads_them(draw: Callable[..., Any]) -> None:
    graph = traced(lambda m, x: draw(x), meta(10, 8))
    assert moved(cost(graph, "random")) == (80 * FLOAT, 80 * FLOAT)


# losses


@pytest.mark.parametrize("weighted", [False, True])
def test_a_loss_that_picks_one_class_a_row_reads_one_element_a_row(weighted: bool) -> None:
    """32 rows of 1000 classes: log-probabilities picked, targets, class weights; out come the loss and total weight."""

    def loss(m: Any, x: Any, target: Any, *weight: Any) -> Any:
        return F.nll_loss(x * m.one, target, *weight)

    weights = (meta(1000),) if weighted else ()
    graph = traced(loss, meta(32, 1000), index(32), *weights, training=True)
    row = cost(graph, "nll_loss")
    assert moved(row) == (32 * FLOAT + 32 * INDEX + 1000 * FLOAT * weighted, 2 * FLOAT)
    assert row.flops == 32
    back = cost(graph, "nll_loss_backward", "backward")
    assert moved(back) == (FLOAT + 32 * INDEX + 1000 * FLOAT * weighted + FLOAT, 32_000 * FLOAT)
    assert back.flops == 32


def test_a_loss_per_pixel_picks_one_element_a_pixel() -> None:
    """2 images of 5 classes on 3x4 pixels: 24 picks."""
    graph = traced(lambda m, x, target: F.nll_loss(x, target), meta(2, 5, 3, 4), index(2, 3, 4))
    assert moved(cost(graph, "nll_loss"))[0] == 24 * (FLOAT + INDEX)


# tables

_TABLE, _PICKED = 1000 * 16, 4 * 5 * 16  # rows of 16; 4 bags of 5


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("training", [False, True])
def test_a_bag_reads_the_rows_that_it_joins(mode: str, training: bool) -> None:
    graph = traced(
        lambda m, x: m.bag(x), index(4, 5), training=training, bag=lambda: nn.EmbeddingBag(1000, 16, mode=mode)
    )
    row = cost(graph, "embedding_bag")
    assert moved(row) == (_PICKED * FLOAT + 20 * INDEX + 4 * INDEX, 4 * 16 * FLOAT)  # and where each bag starts
    assert row.flops == _PICKED


def test_the_gradient_of_a_bag_adds_to_the_rows_that_it_joined() -> None:
    graph = traced(lambda m, x: m.bag(x), index(4, 5), training=True, bag=lambda: nn.EmbeddingBag(1000, 16))
    back = cost(graph, "embedding_backward", "backward")
    assert moved(back) == (4 * 16 * FLOAT + 20 * INDEX, _TABLE * FLOAT)
    assert back.flops == _PICKED
    assert not cost_sheet(graph).coverage.opaque


def test_a_bag_with_a_weight_for_each_index_multiplies_and_adds() -> None:
    def weighted(m: Any, x: Any, w: Any) -> Any:
        return m.bag(x, per_sample_weights=w * m.one)

    graph = traced(weighted, index(4, 5), meta(4, 5), training=True,
                   bag=lambda: nn.EmbeddingBag(1000, 16, mode="sum"))  # fmt: skip
    assert cost(graph, "embedding_bag").flops == 2 * _PICKED
    back = cost(graph, "bag_weights_backward", "backward")
    assert back.flops == 2 * _PICKED
    assert moved(back) == ((4 * 16 + _PICKED) * FLOAT + 20 * INDEX, 20 * FLOAT)


# indexed stores: 100 rows of 8


def _put(y: Any, *places: Any) -> Any:
    y[places] = 1.0
    return y


def _mask(*shape: int) -> Any:
    return meta(*shape, dtype=torch.bool)


STORES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int, int]] = {
    # call, its tensors, bytes read, elements written
    "a number at 4 rows": (_put, (index(4),), 4 * INDEX + FLOAT, 4 * 8),
    "a number at 3 columns": (lambda y, i: _put(y, slice(None), i), (index(3),), 3 * INDEX + FLOAT, 100 * 3),
    "a number at 4 places": (_put, (index(4), index(4)), 2 * 4 * INDEX + FLOAT, 4),
    "a number at 4 x 3 places": (_put, (index(4, 1), index(3)), 7 * INDEX + FLOAT, 12),
    "a row at 4 rows": (lambda y, i, v: y.index_put_((i,), v), (index(4), meta(8)), 4 * INDEX + 8 * FLOAT, 32),
    "rows at 4 rows": (lambda y, i, v: y.index_copy_(0, i, v), (index(4), meta(4, 8)), 4 * INDEX + 32 * FLOAT, 32),
    "index_fill_": (lambda y, i: y.index_fill_(0, i, 2.0), (index(4),), 4 * INDEX, 32),
    "index_fill_ of columns": (lambda y, i: y.index_fill_(-1, i, 2.0), (index(3),), 3 * INDEX, 300),
    "scatter_ of a number": (lambda y, i: y.scatter_(1, i, 2.0), (index(100, 2),), 200 * INDEX, 200),
    "scatter_ of a part": (
        lambda y, i, v: y.scatter_(1, i, v), (index(100, 2), meta(100, 8)), 200 * (INDEX + FLOAT), 200),
    "put_": (lambda y, i, v: y.put_(i, v), (index(5), meta(5)), 5 * (INDEX + FLOAT), 5),
    "a number where a mask holds": (_put, (_mask(100, 8),), 800 + FLOAT, 800),
    "a number at masked rows": (_put, (_mask(100),), 100 + FLOAT, 800),
    "masked_scatter_": (lambda y, b, v: y.masked_scatter_(b, v), (_mask(100, 8), meta(800)), 800 * (1 + FLOAT), 800),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(STORES))
def test_an_indexed_store_writes_the_elements_that_are_chosen(name: str) -> None:
    call, tensors, read, written = STORES[name]
    graph = traced(lambda m, x, *given: call(x.clone(), *given), meta(100, 8), *tensors)
    assert moved(cost(graph, "scatter")) == (read, written * FLOAT)
    masked = any(t.dtype == torch.bool for t in tensors)
    assert any("select every element" in text for text in graph.assumptions) == masked


KNOWN: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], int]] = {
    # where a mask of this shape holds, values of that shape: elements written
    "3 rows": (lambda y, b, v: _set(y, v, b), (100,), (3, 8), 24),
    "5 elements": (lambda y, b, v: _set(y, v, b), (100, 8), (5,), 5),
    "2 columns": (lambda y, b, v: _set(y, v, slice(None), b), (8,), (100, 2), 200),
}


def _set(y: Any, values: Any, *places: Any) -> Any:
    y[places] = values
    return y


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_values_tell_at_how_many_places_a_mask_holds(name: str) -> None:
    call, mask, values, written = KNOWN[name]
    graph = traced(lambda m, x, b, v: call(x.clone(), b, v), meta(100, 8), _mask(*mask), meta(*values))
    assert moved(cost(graph, "scatter")) == (_mask(*mask).numel() + written * FLOAT, written * FLOAT)
    assert not graph.assumptions


@pytest.mark.parametrize("name", ["index_add_", "index_put_"])
def test_an_indexed_sum_adds_one_number_a_chosen_element(name: str) -> None:
    def add(m: Any, x: Any, i: Any, v: Any) -> Any:
        y = x.clone()
        return y.index_add_(0, i, v) if name == "index_add_" else y.index_put_((i,), v, accumulate=True)

    row = cost(traced(add, meta(100, 8), index(4), meta(4, 8)), "scatter_add")
    assert moved(row) == (4 * INDEX + 32 * FLOAT, 32 * FLOAT)
    assert row.flops == 32


def test_an_indexed_sum_into_a_copy_adds_a_broadcast_value_everywhere_it_is_put() -> None:
    graph = traced(lambda m, x, i, v: x.index_put((i,), v, accumulate=True), meta(100, 8), index(4), meta(8))
    row = cost(graph, "scatter_reduce")
    assert row.flops == 4 * 8
    assert moved(row) == (800 * FLOAT + 4 * INDEX + 8 * FLOAT, 800 * FLOAT)


# gradients that nobody asks for

_X, _IH, _HH = 2 * 4 * 8, 64 * 8, 64 * 16  # 2 sequences of 4 steps; an LSTM's matrices from 8 features to 16 hidden


@pytest.mark.parametrize("asked", [False, True])
def test_the_backward_of_a_recurrent_net_makes_no_gradient_of_an_input_that_has_none(asked: bool) -> None:
    """8 rows: each matrix once for its own gradient, the hidden states' once more, the input's where it is asked for."""
    graph = traced(
        lambda m, x: m.net(x * m.one if asked else x)[0],
        meta(2, 4, 8),
        training=True,
        net=lambda: nn.LSTM(8, 16, batch_first=True),
    )
    back = cost(graph, "lstm_backward", "backward")
    assert back.macs == 8 * (_IH + 2 * _HH + _IH * asked)
    vectors, state, out = 2 * 64, 2 * 16, 2 * 4 * 16
    weights = _IH * asked + _HH + vectors
    assert back.param_bytes == weights * FLOAT
    assert back.input_bytes == (out + _X + 2 * state + out) * FLOAT
    assert back.output_bytes == (_IH + _HH + vectors + _X * asked) * FLOAT


def test_the_first_layer_of_a_recurrent_net_is_read_in_both_directions() -> None:
    """Two layers both ways: the second one's input has 32 features, and its gradient is needed by the first."""
    graph = traced(
        lambda m, x: m.net(x)[0], meta(2, 4, 8), training=True, net=lambda: nn.LSTM(8, 16, 2, bidirectional=True)
    )
    first, second = 2 * (_IH + _HH), 2 * (64 * 32 + _HH)
    assert cost(graph, "lstm").macs == 8 * (first + second)
    assert cost(graph, "lstm_backward", "backward").macs == 8 * (2 * (first + second) - 2 * _IH)


def test_frozen_weights_of_a_recurrent_net_get_no_gradient() -> None:
    def build() -> nn.Module:
        return nn.LSTM(8, 16, batch_first=True).requires_grad_(False)

    graph = traced(lambda m, x: m.net(x * m.one)[0], meta(2, 4, 8), training=True, net=build)
    back = cost(graph, "lstm_backward", "backward")
    assert back.macs == 8 * (_IH + _HH)
    state, out = 2 * 16, 2 * 4 * 16
    assert back.input_bytes == (out + 2 * state + out) * FLOAT  # not the net's input, which makes weight gradients


# 8 x 8 scores of size 4: q kT is computed again (4 macs), softmax and scale too (6 alu); the values' gradient is 4 macs,
# what goes on through the softmax 4 for its own, 4 alu, and 4 for each of q and k
_SCORES, _HEAD = 64, 8 * 4
ATTENDED = {"q": (4 + 4 + 4, 10, 5), "k": (4 + 4 + 4, 10, 5), "v": (4 + 4, 6, 3), "qkv": (4 + 4 + 4 + 4 + 4, 10, 5)}


@pytest.mark.parametrize("asked", sorted(ATTENDED))
def test_the_backward_of_attention_makes_the_gradients_that_are_asked_for(asked: str) -> None:
    def attend(m: Any, *given: Any) -> Any:
        q, k, v = (t * m.one if name in asked else t for name, t in zip("qkv", given, strict=True))
        return F.scaled_dot_product_attention(q, k, v)

    graph = traced(attend, *(meta(1, 8, 4) for _ in range(3)), training=True)
    back, (macs, alu, read) = cost(graph, "attention_backward", "backward"), ATTENDED[asked]
    assert (back.macs, back.alu) == (_SCORES * macs, _SCORES * alu)
    assert moved(back) == (read * _HEAD * FLOAT, len(asked) * _HEAD * FLOAT)


@pytest.mark.parametrize("asked", ["input", "weight", "both"])
def test_the_backward_of_a_convolution_reads_what_its_gradients_are_made_of(asked: str) -> None:
    """3 to 4 channels of 8x8 with 3x3 kernels: the weight's gradient is made of the input, the input's of the weight."""

    def build() -> nn.Module:
        return nn.Conv2d(3, 4, 3, padding=1, bias=False).requires_grad_(asked != "input")

    graph = traced(
        lambda m, x: m.conv(x if asked == "weight" else x * m.one), meta(1, 3, 8, 8), training=True, conv=build
    )
    back, image, weight, out = cost(graph, "conv_backward", "backward"), 3 * 64, 4 * 3 * 9, 4 * 64
    to_image, to_weight = asked != "weight", asked != "input"
    assert moved(back) == (
        (out + image * to_weight + weight * to_image) * FLOAT,
        (image * to_image + weight * to_weight) * FLOAT,
    )


# along which axes

SORTS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "sort": (lambda x: x.sort(0), 2048 * 10), "sort of the last axis": (lambda x: x.sort(), 2048 * 1),
    "stable": (lambda x: x.sort(dim=0, stable=True), 2048 * 10), "argsort": (lambda x: x.argsort(0), 2048 * 10),
    "topk": (lambda x: x.topk(3, 0), 2048 * 10), "kthvalue": (lambda x: x.kthvalue(3, 0), 2048 * 10),
    "msort": (torch.msort, 2048 * 10), "unique": (torch.unique, 2048 * 11),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SORTS))
def test_a_sort_counts_the_axis_that_it_sorts(name: str) -> None:
    """1024 rows of 2: log2 is 10 along the rows, 1 across them, 11 of all."""
    call, compared = SORTS[name]
    assert cost(traced(lambda m, x: call(x), meta(1024, 2)), "sort").flops == compared


_N = 2 * 64 * 14 * 12  # log2 of 14 and of 12 is 4, of 64 it is 6, of 2 it is 1
FFTS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "fft": (torch.fft.fft, 4), "fft over channels": (lambda x: torch.fft.fft(x, dim=1), 6),
    "fft2": (torch.fft.fft2, 4 + 4), "rfft": (torch.fft.rfft, 4), "rfft2": (torch.fft.rfft2, 4 + 4),
    "fftn": (torch.fft.fftn, 1 + 6 + 4 + 4),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FFTS))
def test_a_fourier_transform_counts_each_axis_that_it_goes_along(name: str) -> None:
    call, levels = FFTS[name]
    assert cost(traced(lambda m, x: call(x), meta(2, 64, 14, 12)), "fft").flops == 5 * _N * levels


def test_a_fourier_transform_back_costs_what_it_cost_forth() -> None:
    graph = traced(lambda m, x: torch.fft.irfft2(x, s=(14, 12)), meta(2, 64, 14, 7, dtype=torch.complex64))
    assert cost(graph, "fft").flops == 5 * _N * (4 + 4)


POOLS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], int]] = {
    # along an axis of 4 two windows of 3 are whole, the two at the borders read 2: 10
    "2d": (lambda x: F.avg_pool2d(x, 3, 1, 1), (1, 1, 4, 4), 10 * 10),
    "without the padding in its count": (
        lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), (1, 1, 4, 4), 10 * 10),
    "3d": (lambda x: F.avg_pool3d(x, 3, 1, 1), (1, 1, 4, 4, 4), 10 ** 3),
    "1d": (lambda x: F.avg_pool1d(x, 3, 1, 1), (2, 3, 4), 6 * 10),
    # windows at -1, 1, 3 of 5: 2, 3, 2 elements
    "strided": (lambda x: F.avg_pool1d(x, 3, 2, 1), (1, 1, 5), 2 + 3 + 2),
    # windows at 0, 2, 4 of 5, the last one only begun
    "rounded up": (lambda x: F.avg_pool1d(x, 2, 2, ceil_mode=True), (1, 1, 5), 2 + 2 + 1),
    "one window for all": (lambda x: F.avg_pool1d(x, 4, 4, 1), (1, 1, 3), 3),
    "unpadded": (lambda x: F.avg_pool2d(x, 2), (1, 3, 4, 4), 3 * 4 * 4),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(POOLS))
@pytest.mark.parametrize("training", [False, True])
def test_an_average_pool_counts_the_elements_that_are_there(name: str, training: bool) -> None:
    call, shape, read = POOLS[name]
    graph = traced(lambda m, x: call(x * m.one if training else x), meta(*shape), training=training)
    assert cost(graph, "avgpool").flops == read
    if training:
        assert cost(graph, "avgpool_backward", "backward").flops == read


@pytest.mark.parametrize("call", [torch.matmul, F.linear, lambda x, y: torch.addmm(y, x, y)])
def test_a_complex_product_is_four_real_ones(call: Callable[..., Any]) -> None:
    graph = traced(lambda m, *given: call(*given), *(meta(5, 5, dtype=torch.complex64) for _ in "xy"))
    assert cost_sheet(graph).rows[-1].macs == 4 * 5 * 5 * 5


# ops that torch leaves whole, and what it has no shapes for


def test_a_bilinear_layer_is_one_op_forth_and_back() -> None:
    """2 rows, 3 and 4 features to 5. Each gradient is 5 x 3 x 4 products and a second step: 3 x 4 for the first
    input, 5 x 3 for the weight; nobody asks for the second input's, so the first is read and both others are."""
    graph = traced(lambda m, x, y: m.net(x * m.one, y), meta(2, 3), meta(2, 4), training=True,
                   net=lambda: nn.Bilinear(3, 4, 5))  # fmt: skip
    assert cost(graph, "bilinear").macs == 2 * 5 * (3 * 4 + 4)
    back = cost(graph, "bilinear_backward", "backward")
    assert back.macs == 2 * (60 + 12) + 2 * (60 + 15)
    assert moved(back) == ((10 + 6 + 8 + 60) * FLOAT, (6 + 60) * FLOAT)
    assert not cost_sheet(graph).coverage.opaque


def test_frozen_bilinear_weights_leave_the_first_input_unread() -> None:
    graph = traced(lambda m, x, y: m.net(x * m.one, y), meta(2, 3), meta(2, 4), training=True,
                   net=lambda: nn.Bilinear(3, 4, 5, bias=False).requires_grad_(False))  # fmt: skip
    back = cost(graph, "bilinear_backward", "backward")
    assert back.macs == 2 * (60 + 12)
    assert moved(back) == ((10 + 8 + 60) * FLOAT, 6 * FLOAT)


def test_a_bilinear_layer_that_was_taken_apart_costs_the_same() -> None:
    def apart(m: Any, x: Any, y: Any, w: Any) -> Any:
        return torch._trilinear(x, w, y, [1, 3], [0], [1, 2], [2, 3])

    assert cost(traced(apart, meta(2, 3), meta(2, 4), meta(5, 3, 4)), "trilinear").macs == 2 * 5 * (3 * 4 + 4)


def test_distances_go_back_pair_by_pair() -> None:
    """3 x 4 pairs of 5 features: subtract, scale, add, and a division a pair. Both sets and the distances are read."""
    graph = traced(lambda m, x, y: torch.cdist(x * m.one, y, p=1), meta(3, 5), meta(4, 5), training=True)
    back = cost(graph, "distance_backward", "backward")
    assert back.flops == 12 * (3 * 5 + 1)
    assert moved(back) == ((12 + 15 + 20 + 12) * FLOAT, 15 * FLOAT)


def test_a_masked_scatter_goes_back_as_a_lookup() -> None:
    graph = traced(
        lambda m, x, mask, v: x.masked_scatter(mask, v * m.one), meta(10, 8), _mask(10, 8), meta(80), training=True
    )
    assert moved(cost(graph, "gather", "backward")) == (80 * (FLOAT + 1), 80 * FLOAT)


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, int, int]] = {
    # call, its tensors, kind, macs, flops
    "addbmm": (torch.addbmm, (meta(3, 5), meta(2, 3, 4), meta(2, 4, 5)), "addmm", 2 * 3 * 4 * 5, 2 * 120 + 15),
    "addr": (torch.addr, (meta(3, 5), meta(3), meta(5)), "addcmul", 0, 15 * 2),
    "affine_grid": (  # each of 4 x 5 places is three numbers times a 3 x 2 matrix
        lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), (meta(2, 2, 3),), "matmul", 2 * 20 * 6, 2 * 240),
    "fractional_max_pool2d": (
        lambda x: F.fractional_max_pool2d(x, 2, output_size=3), (meta(1, 2, 8, 8),), "maxpool", 0, 2 * 9 * 3),
    "conv_tbc": (  # 6 of 8 steps of 2 items; 3 taps of 5 channels and a bias to each of 4
        torch.conv_tbc, (meta(8, 2, 5), meta(3, 5, 4), meta(4)), "conv_steps", 6 * 2 * 4 * 15, 48 * 31),
    "diag": (torch.diag, (meta(9, 9),), "gather", 0, 0),
    "mode": (lambda x: x.mode(0), (meta(8, 3),), "sort", 0, 24 * 3),
    "deg2rad": (torch.deg2rad, (meta(5),), "mul", 0, 5),
    "renorm": (lambda x: x.renorm(2, 0, 1.0), (meta(4, 5),), "weight_norm", 0, 20 * 3),
    "inner product of numbers": (torch.inner, (meta(), meta()), "matmul", 1, 2),
    "pdist": (F.pdist, (meta(4, 5),), "distance", 0, 6 * (3 * 5 + 1)),
    "multi_margin_loss": (F.multi_margin_loss, (meta(3, 7), index(3)), "margin_loss", 0, 21 * 4),
    "soft_margin_loss": (F.soft_margin_loss, (meta(3, 7), meta(3, 7)), "bce_loss", 0, 21 * 6),
    "embedding_renorm": (  # 6 rows of 4: square, add, scale
        lambda i, w: F.embedding(i, w, max_norm=1.0), (index(6), meta(10, 4)), "embedding_renorm", 0, 24 * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_call_that_torch_leaves_whole_is_counted(name: str) -> None:
    call, tensors, kind, macs, flops = CALLS[name]
    graph = traced(lambda m, *given: call(*given), *tensors)
    row = cost(graph, kind)
    assert (row.macs, row.flops) == (macs, flops)
    assert not cost_sheet(graph).coverage.opaque


def test_a_diagonal_is_read_where_it_stands() -> None:
    assert moved(cost(traced(lambda m, x: torch.diag(x), meta(9, 9)), "gather")) == (9 * FLOAT, 9 * FLOAT)


BACK: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, int]] = {
    # call, its tensors, kind of its backward, bytes that this reads: never the input, which only lends its shape
    "adaptive_max_pool2d": (
        lambda x: F.adaptive_max_pool2d(x, 3), (meta(1, 2, 9, 9),), "maxpool_backward", 18 * (FLOAT + INDEX)),
    "fractional_max_pool3d": (
        lambda x: F.fractional_max_pool3d(x, 2, output_size=3), (meta(1, 2, 9, 9, 9),), "maxpool_backward",
        54 * (FLOAT + INDEX)),
    "reflection": (lambda x: F.pad(x, (2, 3), "reflect"), (meta(2, 9),), "pad_backward", 28 * FLOAT),
    "replication": (lambda x: F.pad(x, (2, 3), "replicate"), (meta(2, 9),), "pad_backward", 28 * FLOAT),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BACK))
def test_a_backward_does_not_read_an_input_for_its_shape(name: str) -> None:
    call, (x,), kind, read = BACK[name]
    graph = traced(lambda m, x: call(x * m.one), x, training=True)
    back = cost(graph, kind, "backward")
    assert moved(back) == (read, x.numel() * FLOAT)


def test_an_index_fill_trains() -> None:
    """Its backward asks which indices differ, and those are taken to be all."""
    graph = traced(lambda m, x, i: (x * m.one).index_fill(0, i, m.one), meta(9, 8), index(4), training=True)
    assert not cost_sheet(graph).coverage.opaque


@pytest.mark.parametrize("given", ["lists", "tensors"])
def test_ctc_trains(given: str) -> None:
    """50 steps of 4 items and 20 classes; 10 labels make 21 states. 13 operations a state forth, 19 back and 6 more a
    log-probability. There are more states than log-probabilities, so all of those are read."""

    def loss(m: Any, x: Any, target: Any, *lengths: Any) -> Any:
        return F.ctc_loss((x * m.one).log_softmax(2), target, *(lengths or ((50,) * 4, (10,) * 4)))

    lengths = (index(4), index(4)) if given == "tensors" else ()
    graph = traced(loss, meta(50, 4, 20), index(4, 10), *lengths, training=True)
    states, inputs = 50 * 4 * 21, 50 * 4 * 20
    measures = 2 * 4 * INDEX if lengths else 0
    forth, back = cost(graph, "ctc_loss"), cost(graph, "ctc_loss_backward", "backward")
    assert (forth.flops, back.flops) == (states * 13, states * 19 + inputs * 6)
    assert moved(forth) == (inputs * FLOAT + 40 * INDEX + measures, (4 + states) * FLOAT)
    assert moved(back)[1] == inputs * FLOAT
    assert any("_ctc_loss" in text for text in graph.assumptions) == bool(lengths)


@pytest.mark.parametrize("layer", [nn.Embedding, nn.EmbeddingBag])
def test_a_sparse_gradient_is_counted_as_a_dense_one_and_that_is_said(layer: Any) -> None:
    graph = traced(lambda m, x: m.table(x), index(4, 5), training=True, table=lambda: layer(1000, 16, sparse=True))
    assert cost(graph, "embedding_backward", "backward").output_bytes == _TABLE * FLOAT
    assert any("sparse gradient" in text for text in graph.assumptions)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_a_quantised_module_says_what_to_do_instead() -> None:
    packed = Call(lambda m, x: torch.ops.quantized.linear_dynamic(x, m.matrix))
    weight = torch.quantize_per_tensor(torch.zeros(4, 4), 1.0, 0, torch.qint8)
    packed.matrix = torch.ops.quantized.linear_prepack(weight, None)
    with pytest.raises(ModelError, match=r"quantised \(linear_dynamic\).*--dtype int8"):
        trace_module(packed, (meta(2, 4),), {}, name="call", source="test")


def test_one_value_is_searched_among_boundaries() -> None:
    """Of 7 boundaries: 3 comparisons."""
    assert cost(traced(lambda m, x, b: torch.bucketize(x, b), meta(), meta(7)), "search").flops == 3


def test_a_complex_convolution_is_four_real_ones() -> None:
    """36 places, 4 channels out, 3 in, 9 taps."""
    x, w = (meta(*shape, dtype=torch.complex64) for shape in ((1, 3, 8, 8), (4, 3, 3, 3)))
    assert cost(traced(lambda m, *given: F.conv2d(*given), x, w), "conv").macs == 4 * 36 * 4 * 3 * 9
