"""What the torch frontend records: attention and recurrent nets whole, aliasing and in-place writes, autocast, values that
a meta tensor does not have, and a module that is left as it was found. Expected numbers are worked out in comments.
"""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from recording import Calls, cost_of, feeds, kernels, meta, on_meta, ops, reaches, traced  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from rooflens.costs.sheet import cost_sheet  # noqa: E402
from rooflens.errors import ModelError, ShapeError  # noqa: E402
from rooflens.graph.records import region  # noqa: E402

# paths


def test_ops_carry_module_paths_and_backward_ops_those_of_their_cause() -> None:
    net = on_meta(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Sequential(nn.Conv2d(4, 5, 1))))
    graph = traced(net, meta(1, 3, 8, 8), training=True, optimizer="sgd")
    assert [op.id for op in graph.ops if op.pass_ == "forward"] == ["0", "1", "2.0"]
    assert [op.id for op in graph.ops if op.pass_ == "backward"] == ["2.0@backward", "1@backward", "0@backward"]
    assert {op.id for op in graph.ops if op.pass_ == "optimizer"} == {
        f"{name}@optimizer" for name in ("0.weight", "0.bias", "2.0.weight", "2.0.bias")
    }
    assert {op.module for op in graph.ops} == {"0", "1", "2.0"}


@pytest.mark.parametrize("training", [False, True])
def test_a_lone_layer_is_named_by_what_it_does(training: bool) -> None:
    """The root module has no path, and an op without a name is no row of a table that anybody can point at."""
    graph = traced(on_meta(lambda: nn.LSTM(3, 4)), meta(5, 2, 3), training=training)
    forward = [op for op in graph.ops if op.pass_ == "forward"]
    assert [op.id for op in forward] == ["fill", "fill:2", "lstm"]
    assert {op.module for op in forward} == {""}
    assert [op.id for op in graph.ops if op.pass_ == "backward"] == ["lstm@backward"] * training


def test_a_module_called_twice_gives_two_ops_of_its_path_and_its_weight_counts_once() -> None:
    net = on_meta(lambda: Calls(lambda m, x: m.layer(m.layer(x)), layer=nn.Linear(4, 4)))
    graph = traced(net, meta(2, 4))
    assert [op.id for op in graph.ops] == ["layer", "layer:2"]
    assert graph.params == 4 * 4 + 4
    assert [cost_of(graph, op).param_bytes for op in graph.ops] == [80, 80]  # 20 floats each


def test_tied_weights_count_once_in_the_model_and_at_each_op() -> None:
    def build() -> Any:
        net = Calls(lambda m, x: m.head(m.table(x)), table=nn.Embedding(10, 4), head=nn.Linear(4, 10, bias=False))
        net.head.weight = net.table.weight
        return net

    graph = traced(on_meta(build), meta(2, 3, dtype=torch.int64))
    assert graph.params == 40
    assert graph.param_bytes == 160
    lookup, head = graph.ops
    assert cost_of(graph, lookup).param_bytes == 2 * 3 * 4 * 4  # only the rows that it returns
    assert cost_of(graph, head).param_bytes == 160


def test_a_failing_call_that_the_model_catches_does_not_shift_the_paths_behind_it() -> None:
    def forward(m: Any, x: Any) -> Any:
        try:
            x = m.wrong(x)
        except RuntimeError:
            x = m.right(x)
        return m.last(x)

    net = on_meta(lambda: Calls(forward, wrong=nn.Linear(5, 4), right=nn.Linear(4, 4), last=nn.ReLU()))
    assert [op.id for op in traced(net, meta(2, 4)).ops] == ["right", "last"]


def test_a_tensor_given_twice_is_one_input() -> None:
    """Self attention projects query, key and value in one product where the three are the same tensor."""
    x = meta(2, 5, 8)
    net = on_meta(lambda: nn.MultiheadAttention(8, 2, batch_first=True))
    same, different = traced(net, x, x, x), traced(net, x, meta(2, 5, 8), meta(2, 5, 8))
    assert (len(same.inputs), len(different.inputs)) == (1, 3)
    assert (len(ops(same, "linear")), len(ops(different, "linear"))) == (1 + 1, 3 + 1)  # and the output's
    pair = traced(Calls(lambda m, x, more: x + more["also"] + more["other"]), x, {"also": x, "other": meta(2, 5, 8)})
    assert len(pair.inputs) == 2


# in place, views, aliases


def test_a_write_in_place_is_what_later_readers_depend_on() -> None:
    net = on_meta(
        lambda: Calls(lambda m, x: m.b(m.act(m.a(x))), a=nn.Linear(4, 4), act=nn.ReLU(inplace=True), b=nn.Linear(4, 4))
    )
    graph = traced(net, meta(2, 4))
    assert feeds(graph) == {("a", "act"), ("act", "b")}
    assert cost_of(graph, graph.ops[1]).bytes == 2 * 32  # 8 floats read, 8 written


def test_a_partial_write_keeps_both_writers_and_moves_only_its_part() -> None:
    def forward(m: Any, x: Any) -> Any:
        y = m.a(x)
        y[:, :2] = 0.0
        return m.act(y)

    graph = traced(on_meta(lambda: Calls(forward, a=nn.Linear(4, 6), act=nn.ReLU())), meta(2, 4))
    (fill,) = [
        op
        for op in graph.ops
        if op.kind in ("fill", "copy") and not op.view and graph.tensors[op.outputs[0]].shape == (2, 2)
    ]
    assert reaches(graph, "a", "act") and (fill.id, "act") in feeds(graph)
    row = cost_of(graph, fill)
    assert row.output_bytes == 2 * 2 * 4
    assert row.input_bytes <= 4  # at most the number itself


def test_views_of_views_see_a_write_through_any_of_them() -> None:
    def forward(m: Any, x: Any) -> Any:
        y = m.a(x)
        whole = y.view(2, 2, 3)
        whole.transpose(0, 1)[0].mul_(2)
        return m.act(y)

    graph = traced(on_meta(lambda: Calls(forward, a=nn.Linear(4, 6), act=nn.ReLU())), meta(2, 4))
    (scaled,) = ops(graph, "mul")
    assert reaches(graph, "a", scaled.id) and reaches(graph, scaled.id, "act")
    assert cost_of(graph, scaled).bytes == 2 * (2 * 3 * 4)  # one of two slices of 2 x 3, read and written


def test_add_in_place_reads_both_and_writes_one() -> None:
    graph = traced(Calls(lambda m, x, y: x.clone().add_(y)), meta(2, 4), meta(2, 4))
    (add,) = ops(graph, "add")
    assert (cost_of(graph, add).input_bytes, cost_of(graph, add).output_bytes) == (64, 32)


def test_a_tensor_and_its_transpose_are_the_same_bytes() -> None:
    graph = traced(Calls(lambda m, x: x @ x.T), meta(3, 5))
    (product,) = ops(graph, "matmul")
    row = cost_of(graph, product)
    assert (row.macs, row.input_bytes, row.output_bytes) == (3 * 3 * 5, 15 * 4, 9 * 4)


@pytest.mark.parametrize("how", ["chunk", "split", "slice", "unbind"])
def test_parts_of_one_projection_are_three_different_tensors(how: str) -> None:
    def parts(y: Any) -> Any:
        if how == "unbind":
            return y.view(2, 5, 3, 4).unbind(2)
        if how == "slice":
            return y[..., :4], y[..., 4:8], y[..., 8:]
        return y.chunk(3, -1) if how == "chunk" else y.split(4, -1)

    def forward(m: Any, x: Any) -> Any:
        q, k, v = parts(m.qkv(x))
        return scaled_dot_product_attention(q, k, v)

    graph = traced(on_meta(lambda: Calls(forward, qkv=nn.Linear(4, 12))), meta(2, 5, 4))
    (attention,) = ops(graph, "attention")
    assert len({region(graph.tensors[i]) for i in attention.inputs}) == 3
    assert cost_of(graph, attention).input_bytes == 3 * 2 * 5 * 4 * 4
    assert reaches(graph, "qkv", attention.id)


def test_an_expanded_tensor_counts_its_stored_elements() -> None:
    graph = traced(Calls(lambda m, x: x.expand(8, 4) * 2), meta(1, 4))
    (product,) = ops(graph, "mul")
    row = cost_of(graph, product)
    assert (row.flops, row.input_bytes, row.output_bytes) == (32, 16, 128)


def test_dropout_in_evaluation_is_a_view() -> None:
    for drop in (nn.Dropout(), nn.Dropout2d(), nn.AlphaDropout()):
        graph = traced(nn.Sequential(nn.ReLU(), drop, nn.ReLU()), meta(2, 4, 3, 3))
        assert [op.view for op in graph.ops] == [False, True, False]
        assert reaches(graph, "0", "2")


def test_a_result_that_is_written_into_a_given_tensor_is_that_tensor() -> None:
    def forward(m: Any, x: Any, w: Any) -> Any:
        out, both = x.new_empty(2, 3), x.new_empty(4, 3)
        torch.mm(x, w, out=out)
        torch.cat((out, out), out=both)
        return m.act(both)

    graph = traced(Calls(forward, act=nn.ReLU()), meta(2, 5), meta(5, 3))
    assert kernels(graph) == ["matmul", "concat", "relu"]
    assert feeds(graph) == {("matmul", "concat"), ("concat", "act")}
    assert [cost_of(graph, op).output_bytes for op in graph.ops] == [2 * 3 * 4, 4 * 3 * 4, 4 * 3 * 4]


WIDER = {
    "mm": (lambda m, x, w: torch.mm(x, w, out_dtype=torch.float32), 0),
    "addmm": (lambda m, x, w: torch.addmm(meta(3), x, w, out_dtype=torch.float32), 2 * 3),
    "bmm": (lambda m, x, w: torch.bmm(x[None], w[None], out_dtype=torch.float32), 0),
}


@pytest.mark.parametrize("case", sorted(WIDER))
def test_a_product_may_have_a_wider_type_than_its_operands(case: str) -> None:
    forward, alu = WIDER[case]
    half = torch.bfloat16
    graph = traced(Calls(forward), meta(2, 5, dtype=half), meta(5, 3, dtype=half))
    (product,) = [op for op in graph.ops if not op.view]
    row = cost_of(graph, product)
    assert (row.macs, row.alu, row.output_bytes) == (2 * 5 * 3, alu, 2 * 3 * 4)


# attention is one op


def _mha(forward: Callable[..., Any], **options: Any) -> Any:
    return on_meta(lambda: Calls(forward, attention=nn.MultiheadAttention(8, 2, **options)))


def _padding(*shape: int) -> Any:
    return meta(*shape, dtype=torch.bool)


# batch 2, 5 queries, 5 keys, width 8: projections of q, k, v and output 4 x 10 rows x 8 x 8 macs = 2560; scores per
# head 5 x 5 with 4 macs for q kT and 4 for the values, 2 heads, 2 items: 2 x 2 x 25 x 8 = 800
MHA = {
    "weights": (lambda m, x: m.attention(x, x, x)[0], {}, (5, 2, 8)),
    "no weights": (lambda m, x: m.attention(x, x, x, need_weights=False)[0], {}, (5, 2, 8)),
    "batch first": (lambda m, x: m.attention(x, x, x)[0], {"batch_first": True}, (2, 5, 8)),
    "no weights, batch first": (
        lambda m, x: m.attention(x, x, x, need_weights=False)[0], {"batch_first": True}, (2, 5, 8)),
    "padding": (lambda m, x: m.attention(x, x, x, key_padding_mask=_padding(2, 5))[0], {}, (5, 2, 8)),
    "mask": (lambda m, x: m.attention(x, x, x, attn_mask=meta(5, 5), need_weights=False)[0], {}, (5, 2, 8)),
    "mask by place": (lambda m, x: m.attention(x, x, x, None, True, meta(5, 5))[0], {}, (5, 2, 8)),
    "by head": (lambda m, x: m.attention(x, x, x, average_attn_weights=False)[0], {}, (5, 2, 8)),
    "separate widths": (lambda m, x: m.attention(x, x, x)[0], {"kdim": 8, "vdim": 8}, (5, 2, 8)),
}  # fmt: skip


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("case", sorted(MHA))
def test_multi_head_attention_is_one_op(case: str, training: bool) -> None:
    forward, options, shape = MHA[case]
    graph = traced(_mha(forward, **options), meta(*shape), training=training)
    assert len(ops(graph, "attention")) == 1 and not ops(graph, "softmax")
    assert len(ops(graph, "attention_backward", "backward")) == int(training)
    rows = [r for r, op in zip(cost_sheet(graph).rows, graph.ops, strict=True) if op.pass_ == "forward"]
    assert sum(r.macs for r in rows) == 2560 + 800


@pytest.mark.parametrize("training", [False, True])
def test_unbatched_multi_head_attention_is_one_op(training: bool) -> None:
    graph = traced(_mha(lambda m, x: m.attention(x, x, x)[0]), meta(5, 8), training=training)
    assert len(ops(graph, "attention")) == 1
    rows = [r for r, op in zip(cost_sheet(graph).rows, graph.ops, strict=True) if op.pass_ == "forward"]
    assert sum(r.macs for r in rows) == (2560 + 800) // 2


def test_averaged_weights_have_the_shape_that_torch_returns() -> None:
    shapes = []
    for average in (True, False):
        forward = lambda m, x, a=average: m.attention(x, x, x, average_attn_weights=a)  # noqa: E731
        real = Calls(forward, attention=nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True))
        graph = traced(real, meta(5, 2, 8))
        shapes.append(
            ([graph.tensors[i].shape for i in graph.outputs], [tuple(t.shape) for t in real(torch.zeros(5, 2, 8))])
        )
        assert any("weights" in text for text in graph.assumptions)
    assert all(ours == theirs for ours, theirs in shapes)


LAYERS = {
    "encoder layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16), ((5, 2, 8),), 1),
    "encoder layer, batch first": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), ((2, 5, 8),), 1),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 3, enable_nested_tensor=False),
                ((5, 2, 8),), 3),
    "decoder layer": (lambda: nn.TransformerDecoderLayer(8, 2, 16), ((5, 2, 8), (7, 2, 8)), 2),
    "transformer": (lambda: nn.Transformer(8, 2, 2, 2, 16, batch_first=True), ((2, 7, 8), (2, 5, 8)), 6),
}  # fmt: skip


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("case", sorted(LAYERS))
def test_transformer_layers_have_one_attention_op_each(case: str, training: bool) -> None:
    build, shapes, count = LAYERS[case]
    graph = traced(
        on_meta(build), *(meta(*s) for s in shapes), training=training, optimizer="adamw" if training else "none"
    )
    assert len(ops(graph, "attention")) == count and not ops(graph, "softmax")
    assert len(ops(graph, "attention_backward", "backward")) == (count if training else 0)
    assert not cost_sheet(graph).coverage.opaque


@pytest.mark.parametrize("training", [False, True])
def test_an_encoder_with_a_padding_mask_does_not_become_ragged(training: bool) -> None:
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    mask = {"src_key_padding_mask": torch.zeros(2, 5, dtype=torch.bool)}
    graph = traced(net, torch.zeros(2, 5, 8), kwargs=mask, training=training)
    assert len(ops(graph, "attention")) == 2 and not cost_sheet(graph).coverage.opaque


def _inside(q: Any, k: Any, v: Any, **options: Any) -> Any:
    return scaled_dot_product_attention(q, k, v, **options)


# 2 items, 4 heads, 5 queries, 7 keys, q and k of 8, v of 6: 2 x 4 x 35 scores, 8 + 6 macs and 6 alu each
ATTENTION = {
    "plain": ({}, 4, 6),
    "causal": ({"is_causal": True}, 4, 6),
    "scaled": ({"scale": 0.5}, 4, 6),
    "boolean mask": ({"attn_mask": meta(5, 7, dtype=torch.bool)}, 4, 7),
    "bias": ({"attn_mask": meta(2, 4, 5, 7)}, 4, 7),
    "grouped queries": ({"enable_gqa": True}, 2, 6),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("case", sorted(ATTENTION))
def test_attention_inside_another_function_is_one_op(case: str, training: bool) -> None:
    options, heads, alu = ATTENTION[case]
    net = on_meta(lambda: Calls(lambda m, q, k, v: _inside(m.wide(q), k, v, **options), wide=nn.Linear(8, 8)))
    graph = traced(net, meta(2, 4, 5, 8), meta(2, heads, 7, 8), meta(2, heads, 7, 6), training=training)
    (attention,) = ops(graph, "attention")
    row = cost_of(graph, attention)
    assert (row.macs, row.alu) == (280 * (8 + 6), 280 * alu)
    assert not ops(graph, "softmax") and not ops(graph, "matmul")


def test_the_gradient_of_a_learnt_attention_bias_reaches_the_optimizer() -> None:
    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(4, 5, 5))

        def forward(self, x: Any) -> Any:
            return F.scaled_dot_product_attention(x, x, x, attn_mask=self.bias[None].expand(2, 4, 5, 5))

    graph = traced(Biased(), meta(2, 4, 5, 8), training=True, optimizer="adamw")
    assert [op.id for op in graph.ops if op.pass_ == "optimizer"] == ["bias@optimizer"]


# recurrent nets are one op


def _weights_of(gates: int, size: int, hidden: int, layers: int, ways: int, out: int) -> int:
    """Elements of the weight matrices: input to hidden and hidden to hidden, per layer and direction."""
    first = ways * gates * hidden * (size + out)
    rest = (layers - 1) * ways * gates * hidden * (out * ways + out)
    return first + rest + (layers * ways * out * hidden if out != hidden else 0)


RECURRENT = {
    "lstm": (lambda: nn.LSTM(3, 4), 4, 1, 1, 4),
    "lstm layers": (lambda: nn.LSTM(3, 4, 2), 4, 2, 1, 4),
    "lstm both ways": (lambda: nn.LSTM(3, 4, 2, bidirectional=True), 4, 2, 2, 4),
    "lstm batch first": (lambda: nn.LSTM(3, 4, batch_first=True), 4, 1, 1, 4),
    "lstm projected": (lambda: nn.LSTM(3, 4, 2, proj_size=2), 4, 2, 1, 2),
    "gru": (lambda: nn.GRU(3, 4, 2), 3, 2, 1, 4),
    "gru both ways": (lambda: nn.GRU(3, 4, bidirectional=True, batch_first=True), 3, 1, 2, 4),
    "rnn": (lambda: nn.RNN(3, 4, 2), 1, 2, 1, 4),
    "rnn relu": (lambda: nn.RNN(3, 4, nonlinearity="relu"), 1, 1, 1, 4),
}
# alu and special a hidden unit and step: gates, their joining, see rooflens ops show
UNIT = {"lstm": (10, 8), "gru": (8, 5), "rnn": (0, 1)}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("case", sorted(RECURRENT))
@pytest.mark.parametrize("unbatched", [False, True])
def test_recurrent_nets_are_one_op(case: str, training: bool, unbatched: bool) -> None:
    build, gates, layers, ways, out = RECURRENT[case]
    kind = case.partition(" ")[0]
    net = on_meta(build)
    rows = 6 if unbatched else 12  # 6 steps of 2 items
    x = meta(6, 3) if unbatched else meta(2, 6, 3) if net.batch_first else meta(6, 2, 3)
    graph = traced(net, x, training=training)
    (op,) = ops(graph, kind)
    row, macs = cost_of(graph, op), rows * _weights_of(gates, 3, 4, layers, ways, out)
    biases = 2 * gates * 4 * layers * ways
    assert row.macs == macs
    assert (row.alu, row.special) == tuple(
        rows * (b + n * 4 * layers * ways) for n, b in zip(UNIT[kind], (biases, 0), strict=True)
    )
    if training:
        (back,) = ops(graph, f"{kind}_backward", "backward")
        assert cost_of(graph, back).macs == 2 * macs - rows * ways * gates * 4 * 3  # nobody asks for the input's
    assert graph.tensors[graph.outputs[0]].shape == (*x.shape[:-1], out * ways)


def test_a_whole_call_in_training_brings_no_op_of_its_own() -> None:
    """Nor does laying out its output; and one that fails, and is caught, does not stop the recording."""

    def forward(m: Any, x: Any) -> Any:
        try:
            m.net(x[..., :2])
        except RuntimeError:
            x = m.act(x)
        y = m.net(x)[0].unflatten(-1, (2, 4)).transpose(1, 2)
        return scaled_dot_product_attention(y, y, y).mul_(2)

    net = on_meta(lambda: Calls(forward, net=nn.LSTM(3, 8, batch_first=True), act=nn.ReLU()))
    graph = traced(net, meta(2, 5, 3), training=True)
    kinds = [op.kind for op in graph.ops if op.pass_ == "forward" and op.kind != "fill"]  # the first states are zeros
    assert kinds == ["slice", "relu", "lstm", "view", "transpose", "attention", "mul"]


@pytest.mark.parametrize("training", [False, True])
def test_a_packed_sequence_runs_its_true_steps(training: bool) -> None:
    def forward(m: Any, x: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([6, 4]), batch_first=True)
        out, _ = nn.utils.rnn.pad_packed_sequence(m.net(packed)[0], batch_first=True)
        return out

    graph = traced(
        on_meta(lambda: Calls(forward, net=nn.LSTM(3, 4, batch_first=True))), meta(2, 6, 3), training=training
    )
    (op,) = ops(graph, "lstm")
    assert cost_of(graph, op).macs == (6 + 4) * 4 * 4 * (3 + 4)  # ten steps in all, four gates of 4 x (3 + 4)
    assert graph.tensors[graph.outputs[0]].shape == (2, 6, 4)


# layout and types


def test_channels_last_keeps_its_layout_and_its_counts() -> None:
    build = lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 1))  # noqa: E731
    plain, last = (traced(on_meta(build), meta(2, 3, 9, 9), channels_last=c) for c in (False, True))
    assert kernels(plain) == kernels(last)
    assert cost_sheet(plain).rows == cost_sheet(last).rows


def test_a_norm_in_front_makes_no_gradient_that_nobody_asked_for() -> None:
    """Gradients of weight and bias, 4 channels each, whatever the layout; none of the image."""
    for last in (False, True):
        net = on_meta(lambda: nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 8, 3)))
        graph = traced(net, meta(2, 4, 8, 8), training=True, channels_last=last)
        (op,) = ops(graph, "batchnorm_backward", "backward")
        assert [graph.tensors[o].shape for o in op.outputs] == [(4,), (4,)]


def test_flattening_a_channels_last_activation_copies_it() -> None:
    """[n, c, h, w] with the channels innermost is no [n, c*h*w] without moving."""
    net = on_meta(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 9, 2)))
    assert kernels(traced(net, meta(1, 3, 5, 5))) == ["conv", "linear"]
    assert kernels(traced(net, meta(1, 3, 5, 5), channels_last=True)) == ["conv", "copy", "linear"]


@pytest.mark.parametrize("training", [False, True])
def test_autocast_computes_products_in_bf16_and_norms_in_fp32(training: bool) -> None:
    def forward(m: Any, x: Any) -> Any:
        y = m.norm(m.b(m.a(m.a(x))))
        return (y @ y.transpose(-1, -2)).softmax(-1)

    net = on_meta(lambda: Calls(forward, a=nn.Linear(8, 8), b=nn.Linear(8, 8), norm=nn.LayerNorm(8)))
    graph = traced(net, meta(2, 4, 8), autocast=torch.bfloat16, training=training)
    types = {kind: {graph.tensors[op.outputs[0]].dtype for op in ops(graph, kind)} for kind in kernels(graph)}
    assert types["linear"] == types["matmul"] == {"bf16"}
    assert types["layernorm"] == types["softmax"] == {"fp32"}
    weights = [op for op in ops(graph, "cast") if graph.tensors[op.inputs[0]].role == "param"]
    assert len(weights) == 4  # a.weight and a.bias once though called twice, and b's
    assert not cost_sheet(graph).coverage.opaque


@pytest.mark.parametrize("training", [False, True])
def test_autocast_reaches_the_other_products(training: bool) -> None:
    def forward(m: Any, x: Any) -> Any:
        y = m.up(x).flatten(2)
        return torch.baddbmm(y, torch.bmm(y, y.transpose(1, 2)), torch.einsum("bij,bij->bij", y, y)) + m.bias

    net = on_meta(lambda: Calls(forward, up=nn.ConvTranspose2d(3, 4, 2), bias=nn.Parameter(torch.zeros(1, 4, 1))))
    graph = traced(
        net, meta(2, 3, 4, 4), autocast=torch.bfloat16, training=training, optimizer="sgd" if training else "none"
    )
    types = {kind: {graph.tensors[op.outputs[0]].dtype for op in ops(graph, kind)} for kind in kernels(graph)}
    assert types["conv"] == types["matmul"] == types["addmm"] == {"bf16"}
    if training:  # gradients of fp32 weights are fp32
        gradients = {graph.tensors[op.inputs[1]].dtype for op in graph.ops if op.pass_ == "optimizer"}
        assert gradients == {"fp32"}


@pytest.mark.parametrize("training", [False, True])
def test_autocast_casts_the_weights_of_convolutions_and_recurrent_nets(training: bool) -> None:
    net = on_meta(
        lambda: Calls(lambda m, x: m.net(m.conv(x).transpose(1, 2))[0], conv=nn.Conv1d(3, 4, 3), net=nn.GRU(4, 5))
    )
    graph = traced(net, meta(2, 3, 8), autocast=torch.bfloat16, training=training)
    (conv,), (gru,) = ops(graph, "conv"), ops(graph, "gru")
    assert {graph.tensors[op.outputs[0]].dtype for op in (conv, gru)} == {"bf16"}
    assert cost_of(graph, gru).macs == 2 * 6 * 3 * 5 * (4 + 5)  # 12 rows, 3 gates of 5 x (4 + 5)


def test_whole_models_change_their_type_but_not_their_integers() -> None:
    net = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 4))
    graph = traced(net, torch.zeros(2, 3, dtype=torch.int64), dtype=torch.bfloat16)
    assert {t.dtype for t in graph.tensors if t.role == "param"} == {"bf16"}
    assert graph.tensors[graph.inputs[0]].dtype == "int64"


# values that a meta tensor does not have


def _set(x: Any, mask: Any) -> Any:
    x = x.clone()
    x[mask] = 0.0
    return x


VALUES: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x * 2 if (x > 0).all() else x,
    "item": lambda x: x * x.sum().item(),
    "int": lambda x: x.narrow(0, 0, int(x.long().sum())),
    "equal": lambda x: x * 2 if torch.equal(x, x + 1) else x,
    "allclose": lambda x: x * 2 if torch.allclose(x, x + 1) else x,
    "tolist": lambda x: x * len(x.detach().long().tolist()),
    "cpu": lambda x: x * int(x.detach().cpu().numpy().sum()),
    "narrow": lambda x: torch.narrow(x, 0, x.detach().long().sum(), 3),
    "nonzero": lambda x: x[torch.nonzero(x[:, 0])[:, 0]],
    "where": lambda x: x[torch.where(x[:, 0] > 0)],
    "mask": lambda x: x[x > 0],
    "mask of rows": lambda x: x[x[:, 0] > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x * torch.unique(x.detach().long()).shape[0],
    "repeat_interleave": lambda x: x.repeat_interleave(x[:, 0].long(), 0),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("case", sorted(VALUES))
def test_values_are_assumed_and_the_assumption_is_listed(case: str, training: bool) -> None:
    net = on_meta(lambda: Calls(lambda m, x: VALUES[case](m.layer(x)), layer=nn.Linear(4, 4)))
    graph = traced(net, meta(3, 4), training=training)
    assert [text for text in graph.assumptions if "(in the model)" in text]
    assert not cost_sheet(graph).coverage.opaque


def test_a_mask_that_is_written_through_reads_its_values_only() -> None:
    graph = traced(Calls(lambda m, x: _set(x, x > 0)), meta(3, 4))
    assert not cost_sheet(graph).coverage.opaque


def test_values_of_constants_are_known() -> None:
    """A loop over a table that the model holds on the CPU runs as often as the table says."""
    table = torch.tensor([1, 2, 0])
    net = Calls(lambda m, x: sum(x for n in m.table.tolist() for _ in range(n)))
    net.table = table
    assert len(ops(traced(net, meta(2, 4)), "add")) == 3  # 0 + x + x + x


def test_a_constant_on_the_cpu_meets_meta_tensors() -> None:
    net = Calls(lambda m, x: x * m.scale + m.scale)
    net.scale = torch.ones(4)
    graph = traced(net, meta(2, 4))
    product, _ = graph.ops
    row = cost_of(graph, product)
    assert (row.input_bytes, row.param_bytes, row.output_bytes) == (32, 16, 32)
    assert graph.params == 0
    assert net.scale.device.type == "cpu"


@pytest.mark.parametrize("training", [False, True])
def test_a_buffer_that_the_model_makes_and_fills_step_by_step_depends_on_every_step(training: bool) -> None:
    def forward(m: Any, x: Any) -> Any:
        out = torch.zeros(3, 8, 8)  # no device: on the CPU for a model on the CPU
        for step in range(3):
            out[step] = m.layer(x[step])
        return m.act(out)

    net = Calls(forward, layer=nn.Linear(8, 8), act=nn.ReLU())
    graph = traced(net, torch.zeros(3, 8, 8), training=training)
    assert all(reaches(graph, name, "act") for name in ("layer", "layer:2", "layer:3"))


# the mode of the module


class Frozen(nn.Module):
    """A norm that keeps its statistics while the rest trains, the usual way."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x: Any) -> Any:
        return self.norm(self.conv(x))


def test_a_norm_that_the_model_freezes_stays_frozen_in_training() -> None:
    net = nn.Sequential(Frozen(), nn.BatchNorm2d(4))
    net[0].norm.train()  # as found, and as left
    graph = traced(net, meta(2, 3, 4, 4), training=True)
    assert [op.kind for op in graph.ops if "norm" in op.kind and op.pass_ == "forward"] == [
        "batchnorm",
        "batchnorm_train",
    ]
    assert [m.training for m in net.modules()] == [True] * 5
    assert {op.kind for op in traced(net, meta(2, 3, 4, 4)).ops} == {"conv", "batchnorm"}
    assert [m.training for m in net.modules()] == [True] * 5


def test_a_module_that_refuses_its_mode_says_so_and_is_left_as_it_was() -> None:
    class Refuses(nn.Linear):
        def train(self, mode: bool = True) -> Any:
            super().train(mode)
            raise NotImplementedError("only evaluation" if mode else "only training")

    net = Refuses(4, 4)
    with pytest.raises(ModelError, match=r"eval\(\) raised NotImplementedError: only training"):
        traced(net, meta(2, 4))
    assert net.training and net.weight.device.type == "cpu"


# what goes wrong


def test_a_layer_that_raises_is_named() -> None:
    def fails(m: Any, x: Any) -> Any:
        raise KeyError("no such head")

    net = nn.Sequential(nn.ReLU(), nn.Sequential(Calls(fails)))
    with pytest.raises(ModelError, match=r"layer '1\.0' raised KeyError: 'no such head'"):
        traced(net, meta(2, 4))


def test_a_layer_that_stumbles_over_an_answer_is_told_of_it() -> None:
    """By itself it may run: here the answer led it where no values would."""

    def fails(m: Any, x: Any) -> Any:
        if (x > 5).any().item():
            raise KeyError("no room")

    with pytest.raises(ModelError, match=r"raised KeyError.*the value of a tensor was asked for \(item\)"):
        traced(nn.Sequential(Calls(fails)), meta(2, 4))


def test_a_layer_that_rejects_its_shape_is_named() -> None:
    net = on_meta(lambda: nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(5, 4))))
    with pytest.raises(ShapeError, match=r"layer '1\.0' rejects its input.*--input"):
        traced(net, meta(2, 4))


def test_a_size_that_the_model_itself_asserts_is_a_shape_error() -> None:
    """torchvision's vision transformer asserts its image's height and width before any layer runs."""

    def checks(m: Any, x: Any) -> Any:
        torch._assert(x.shape[-2] == 8, f"Wrong image height! Expected 8 but got {x.shape[-2]}!")
        torch._assert(x.shape[-1] == 8, f"Wrong image width! Expected 8 but got {x.shape[-1]}!")

    for shape in ((1, 3, 7, 8), (1, 3, 8, 7)):
        with pytest.raises(ShapeError, match=r"rejects its input.*but got 7.*--input"):
            traced(Calls(checks), meta(*shape))


def test_a_batch_of_one_that_a_norm_cannot_train_on_says_so() -> None:
    net = on_meta(lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
    with pytest.raises(ShapeError, match=r"layer '1'.*--batch 2"):
        traced(net, meta(1, 4), training=True)


def test_a_backward_that_raises_is_a_model_error() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise RuntimeError("no gradient today")

    net = on_meta(lambda: Calls(lambda m, x: Broken.apply(m.layer(x)), layer=nn.Linear(4, 4)))
    with pytest.raises(ModelError, match=r"no gradient today: run .* first, or analyse it in inference"):
        traced(net, meta(2, 4), training=True)


def test_an_op_that_nobody_knows_is_opaque_and_not_zero() -> None:
    graph = traced(Calls(lambda m, x: torch.linalg.inv(x)), meta(4, 4))
    assert cost_sheet(graph).coverage.opaque


# the module is left alone


def _state(module: Any) -> list[Any]:
    return [
        *(id(p) for p in module.parameters()), *(id(b) for b in module.buffers()),
        *(p.grad for p in module.parameters()), *(m.training for m in module.modules()),
        *(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in module.modules()),
    ]  # fmt: skip


@pytest.mark.parametrize("training", [False, True])
def test_the_module_is_left_as_it_was_found(training: bool) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten(), nn.Linear(4, 2))
    net[1].eval()
    values = [t.clone() for t in net.state_dict().values()]
    before, hooks = _state(net), len(torch.nn.modules.module._global_forward_hooks)
    attention = F.multi_head_attention_forward
    traced(net, torch.zeros(2, 3, 3, 3), training=training, optimizer="adamw" if training else "none")
    with pytest.raises(ShapeError):
        traced(net, torch.zeros(2, 5, 3, 3), training=training)
    assert _state(net) == before
    assert all(torch.equal(a, b) for a, b in zip(values, net.state_dict().values(), strict=True))
    assert len(torch.nn.modules.module._global_forward_hooks) == hooks
    assert F.multi_head_attention_forward is attention
    assert net(torch.zeros(2, 3, 3, 3)).shape == (2, 2)


class Keeps(nn.Module):
    """Whatever a forward pass may leave on its module."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.seen: list[Any] = []
        self.by_size: dict[int, Any] = {}
        self.last: Any = None

    def forward(self, x: Any) -> Any:
        self.last = self.layer(x)
        self.seen.append(x)
        self.by_size[x.shape[0]] = x
        self.register_buffer("table", x * 2, persistent=False)
        self.layer.count = x.sum()
        self.late = nn.ReLU()
        self.scale = nn.Parameter(torch.ones(4, device=x.device))
        return self.late(self.last + self.table) * self.scale


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("on", ["cpu", "meta"])
def test_what_a_forward_pass_keeps_on_its_module_does_not_stay(training: bool, on: str) -> None:
    with torch.device(on):
        net = nn.Sequential(Keeps())
    for _ in range(2):
        traced(net, meta(2, 4), training=training)
        keeps = net[0]
        assert keeps.last is None and keeps.seen == [] and keeps.by_size == {}
        assert not hasattr(keeps, "table") and not keeps._non_persistent_buffers_set
        assert not hasattr(keeps.layer, "count")
        assert [name for name, _ in net.named_modules()] == ["", "0", "0.layer"]
        assert list(net.state_dict()) == ["0.layer.weight", "0.layer.bias"]


def test_chance_is_the_same_every_time_and_the_dice_stay_where_they_were() -> None:
    """A model that skips layers by chance (LayerDrop): equal graphs, whatever the user's generators say."""
    net = Calls(lambda m, x: m.layer(x) if torch.rand([]) < 0.5 else x * 2, layer=nn.Linear(4, 4))
    graphs = []
    for seed in range(8):
        torch.manual_seed(seed)
        state = torch.random.get_rng_state()
        graphs.append(traced(net, meta(2, 4)))
        assert torch.equal(torch.random.get_rng_state(), state)
    assert all(graph == graphs[0] for graph in graphs)


def test_a_named_tuple_goes_in_as_it_is() -> None:
    from collections import namedtuple

    pair = namedtuple("pair", "left right")
    graph = traced(Calls(lambda m, x: x.left + x.right), pair(meta(2, 4), meta(2, 4)))
    assert [op.kind for op in graph.ops] == ["add"]


def test_a_meta_module_stays_as_it_was_and_gets_no_gradients() -> None:
    net = on_meta(lambda: nn.Linear(4, 4))
    before = _state(net)
    traced(net, meta(2, 4), training=True, optimizer="sgd")
    assert _state(net) == before


def test_no_memory_in_proportion_to_the_weights_is_taken() -> None:
    """A layer of 4 TB on meta; a real module's weights (64 MB) are not copied."""
    huge = on_meta(lambda: nn.Linear(1_000_000, 1_000_000, bias=False))
    graph = traced(huge, meta(1, 1_000_000), training=True, optimizer="adamw")
    assert graph.params == 10**12
    resource = pytest.importorskip("resource")
    real = nn.Linear(4000, 4000, bias=False)
    traced(real, meta(1, 4000), training=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    traced(real, meta(1, 4000), training=True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16_000  # kB


def test_a_hundred_traces_do_not_grow_memory() -> None:
    net = on_meta(
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    )
    run = lambda: traced(net, meta(2, 3, 8, 8), training=True, optimizer="adamw")  # noqa: E731
    tracemalloc.start()
    try:
        held = []
        for _ in range(2):
            for _ in range(100):
                run()
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
        assert held[1] - held[0] < 50_000  # less than one graph in the second hundred
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_runs_the_forward_again_in_the_backward(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    net = on_meta(lambda: Calls(
        lambda m, x: checkpoint(m.block, m.first(x), use_reentrant=reentrant),
        first=nn.Linear(4, 4), block=nn.Sequential(nn.Linear(4, 4), nn.ReLU())))  # fmt: skip
    graph = traced(net, meta(2, 4), training=True, optimizer="sgd")
    assert kernels(graph) == ["linear", "linear", "relu"]
    assert sorted(kernels(graph, "backward")) == sorted(
        ["linear", "relu", "relu_backward", "matmul", "matmul", "sum", "matmul", "sum"]
    )
    assert len(ops(graph, "sgd_step", "optimizer")) == 4


# backward work


def test_the_backward_of_a_convolution_is_twice_its_forward_less_the_image_gradient() -> None:
    """Grouped: 4 groups of 2 channels. Forward macs: 8 outputs x 6 x 6 x 2 channels x 9 taps."""
    net = on_meta(lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, groups=4)))
    graph = traced(net, meta(1, 3, 10, 10), training=True)
    first, second = 8 * 8 * 8 * 3 * 9, 8 * 6 * 6 * 2 * 9
    assert [cost_of(graph, op).macs for op in ops(graph, "conv")] == [first, second]
    assert [cost_of(graph, op).macs for op in ops(graph, "conv_backward", "backward")] == [2 * second, first]


def test_the_backward_of_a_linear_layer_is_twice_its_forward_less_the_input_gradient() -> None:
    net = on_meta(lambda: nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2)))
    graph = traced(net, meta(7, 3), training=True)
    # 7 rows: the second layer's two products of 7 x 5 x 2, the first one's weight gradient 7 x 3 x 5
    assert sum(cost_of(graph, op).macs for op in ops(graph, "matmul", "backward")) == 2 * 70 + 105


def test_the_gradients_of_attention_go_back_through_its_heads_without_a_copy() -> None:
    """They have the layout of q, k and v, views of the projections: joining their heads again is a view."""

    def forward(m: Any, x: Any) -> Any:
        q, k, v = (part(x).view(2, 5, 2, 4).transpose(1, 2) for part in (m.q, m.k, m.v))
        return scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 5, 8)

    parts = ("q", "k", "v")
    graph = traced(on_meta(lambda: Calls(forward, **{n: nn.Linear(8, 8) for n in parts})), meta(2, 5, 8), training=True)
    back = kernels(graph, "backward")
    # per projection the gradients of weight and bias; x is an input and has none
    assert sorted(back) == ["attention_backward", *["matmul"] * 3, *["sum"] * 3]


def test_gradients_that_add_up_belong_to_the_layer_that_made_the_last_of_them() -> None:
    net = on_meta(lambda: Calls(lambda m, x: m.layer(m.layer(x)), layer=nn.Linear(4, 4)))
    graph = traced(net, meta(2, 4), training=True)
    assert [op.module for op in ops(graph, "add", "backward")] == ["layer", "layer"]  # of its weight, and of its bias


def test_a_residual_is_added_by_the_layer_whose_gradient_comes_last() -> None:
    """x + b(relu(a(x))): the gradient of x is that of the sum and that of `a`."""
    net = on_meta(lambda: Calls(
        lambda m, x: (y := m.first(x)) + m.b(m.act(m.a(y))),
        first=nn.Linear(4, 4), a=nn.Linear(4, 4), act=nn.ReLU(), b=nn.Linear(4, 4)))  # fmt: skip
    graph = traced(net, meta(2, 4), training=True)
    assert [op.module for op in ops(graph, "add", "backward")] == ["a"]
    assert [op.module for op in ops(graph, "relu_backward", "backward")] == ["act"]
    assert all(op.module for op in graph.ops if op.pass_ == "backward")


# names


def test_every_name_is_an_aten_op_and_every_kind_is_in_the_table() -> None:
    from rooflens.frontends.pytorch.attributes import DETAILS
    from rooflens.frontends.pytorch.guesses import DATA_DEPENDENT, READS_VALUES
    from rooflens.frontends.pytorch.missing import MISSING
    from rooflens.frontends.pytorch.names import ROWS
    from rooflens.frontends.pytorch.whole import WHOLE
    from rooflens.ops.table import OPS

    known = {name.partition("::")[2].partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    named = {*ROWS, *DETAILS, *DATA_DEPENDENT, *READS_VALUES, *(name.partition(".")[0] for name in WHOLE)}
    assert not named - known
    assert not {row.kind for row in ROWS.values()} - set(OPS)
    assert {*MISSING, *(name.partition(".")[0] for name in WHOLE)} <= set(ROWS)


def test_view_rows_have_view_kinds_and_the_rest_have_not() -> None:
    from rooflens.frontends.pytorch.names import ROWS
    from rooflens.ops.table import is_view_kind

    assert all(is_view_kind(row.kind) for row in ROWS.values() if row.how == "view")
    assert not any(is_view_kind(row.kind) for row in ROWS.values() if row.how == "kernel")


def test_a_checkpoint_is_computed_again_in_backward() -> None:
    """Four 64x64 linear layers on 8 rows: forward 4 products, backward 8, and the recomputation 4 more."""
    from torch.utils.checkpoint import checkpoint

    def run(module: Any, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(module.body, module.first(x), use_reentrant=False)  # type: ignore[no-any-return]

    def build() -> nn.Module:
        return Calls(run, first=nn.Linear(64, 64), body=nn.Sequential(*(nn.Linear(64, 64) for _ in range(4))))

    graph = traced(on_meta(build), meta(8, 64), training=True)
    macs = sum(row.macs for row in cost_sheet(graph).rows)
    product = 8 * 64 * 64
    assert macs == product * (5 + (1 + 4 * 2) + 4)  # forward; backward, none for the input; again
