"""Layer text: what it reads, what it costs (counted by hand), what it refuses and how it says so. No torch here."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rooflens.costs.sheet import CostSheet, OpCost, cost_sheet
from rooflens.errors import ConfigError, DtypeError, FileError, InputError, ModelError, ShapeError, SyntaxFault
from rooflens.frontends.text import parse_layers, text_graph
from rooflens.frontends.text_grammar import MAX_DIM
from rooflens.frontends.text_layers import LAYERS, ROWS
from rooflens.frontends.text_toml import read_net
from rooflens.graph.records import Graph, graph_hash

BIGGEST = "9223372036854775807"  # 2^63 - 1


def sheet(text: str, **mode: object) -> CostSheet:
    return cost_sheet(text_graph(text, **mode))  # type: ignore[arg-type]


def costs(text: str, **mode: object) -> dict[str, OpCost]:
    found = sheet(text, **mode)
    return {op.id: row for op, row in zip(found.graph.ops, found.rows, strict=True)}


def output(graph: Graph) -> tuple[int, ...]:
    return graph.tensors[graph.outputs[0]].shape


def ids(graph: Graph) -> list[str]:
    return [op.id for op in graph.ops]


# what it costs


def test_the_contracts_example() -> None:
    """8 x 128 x 32 x 32 outputs of 64 x 9 taps each; bias 1 an output; relu 1; max-pool of 2x2 compares 3 times."""
    found = costs("8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2")
    conv, relu, pool = found["conv1"], found["relu1"], found["maxpool1"]
    assert conv.macs == 1_048_576 * 576 == 603_979_776
    assert conv.flops == 2 * 603_979_776 + 1_048_576
    assert (conv.input_bytes, conv.output_bytes) == (4 * 524_288, 4 * 1_048_576)
    assert conv.param_bytes == 4 * (73_728 + 128)
    assert (relu.flops, relu.bytes) == (1_048_576, 2 * 4 * 1_048_576)
    assert (pool.flops, pool.bytes) == (3 * 262_144, 4 * (1_048_576 + 262_144))


def test_the_seeds_textbook_layers() -> None:
    """One channel, 3x3: 9 macs an output; relu 1; 2x2 max-pool 3 an output."""
    found = costs("1x1x34x34 | conv2d 1 k3 | relu | maxpool2d k2")
    assert found["conv1"].flops == 18 * 32 * 32
    assert found["relu1"].flops == 32 * 32
    assert found["maxpool1"].flops == 3 * 16 * 16


@pytest.mark.parametrize(
    ("text", "shape", "macs", "flops", "params"),
    [
        # 2x5 outputs, 3 macs each
        ("2x3 | linear 5", (2, 5), 30, 60, 15),
        ("2x3 | linear 5 bias", (2, 5), 30, 70, 20),
        # 4 x 4 outputs of 2 channels from 2 of 4 channels, 9 taps
        ("1x4x6x6 | conv2d 2 k3 g2", (1, 2, 4, 4), 32 * 18, 64 * 18, 36),
        # each of 2x2 inputs of 3 channels is spread over 2 x 9 outputs
        ("1x3x2x2 | convtranspose2d 2 k3 s2", (1, 2, 5, 5), 12 * 18, 24 * 18, 54),
        # an LSTM of 4: 16 x (3 + 4) macs a step and row; 2 x 16 biases, 10 alu and 8 special a unit
        ("2x5x3 | lstm 4", (2, 5, 4), 10 * 112, 2 * 1120 + 10 * 32 + 10 * 4 * 18, 16 * 7 + 32),
        ("2x5x3 | gru 4", (2, 5, 4), 10 * 84, 2 * 840 + 10 * 24 + 10 * 4 * 13, 12 * 7 + 24),
        # 2 heads x 3 x 3 scores of 4 + 4 macs, 6 alu each
        ("1x2x3x4 | attention", (1, 2, 3, 4), 18 * 8, 2 * 144 + 6 * 18, 0),
        ("1x2x3x4 | attention causal context=5", (1, 2, 3, 4), 30 * 8, 2 * 240 + 6 * 30, 0),
        # 15 channels and steps of 4 states: 2 macs, 2 alu, 1 exp
        ("1x5x3 | scan 4", (1, 5, 3), 2 * 60, 4 * 60 + 2 * 60 + 60, 12),
        ("2x7 | embedding 100 4", (2, 7, 4), 0, 0, 400),
        ("2x3x4x4 | batchnorm", (2, 3, 4, 4), 0, 2 * 96, 6),
        ("2x3x4 | layernorm", (2, 3, 4), 0, 8 * 24, 8),
        ("2x3x4 | rmsnorm", (2, 3, 4), 0, 5 * 24, 4),
        ("2x4x3 | groupnorm g2", (2, 4, 3), 0, 8 * 24, 8),
        ("2x3x4 | softmax", (2, 3, 4), 0, 5 * 24, 0),
        ("1x2x9x9 | maxpool2d k3 s2 p1", (1, 2, 5, 5), 0, 8 * 50, 0),
        ("1x2x9x9 | avgpool2d k3", (1, 2, 3, 3), 0, 162, 0),
        ("1x2x7x7 | avgpool 1", (1, 2, 1, 1), 0, 98, 0),
        ("1x2x10 | avgpool 3", (1, 2, 3), 0, 2 * 12, 0),  # windows 0-4, 3-7, 6-10: 12 of 10 elements
        ("2x4x3x3 | flatten", (2, 36), 0, 0, 0),
        ("2x3 | add input", (2, 3), 0, 6, 0),
        ("2x3x4 | concat input", (2, 6, 4), 0, 0, 0),
    ],
)
def test_counted_by_hand(text: str, shape: tuple[int, ...], macs: int, flops: int, params: int) -> None:
    found = sheet(text)
    assert output(found.graph) == shape
    assert sum(r.macs for r in found.rows) == macs
    assert sum(r.flops for r in found.rows) == flops
    assert found.graph.params == params


def test_attention_reads_three_tensors_and_shares_heads() -> None:
    """q 1x8x16x64; k and v 1x2x32x64, as two more inputs with names."""
    graph = text_graph("1x8x16x64 | attention kvheads=2 context=32 as attn")
    assert [(graph.tensors[i].name, graph.tensors[i].shape) for i in graph.inputs] == [
        ("input", (1, 8, 16, 64)),
        ("attn.k", (1, 2, 32, 64)),
        ("attn.v", (1, 2, 32, 64)),
    ]
    (row,) = cost_sheet(graph).rows
    assert row.input_bytes == 4 * (8 * 16 * 64 + 2 * 2 * 32 * 64)
    assert any("k and v" in a for a in graph.assumptions)


def test_scan_by_hand() -> None:
    """x and delta 2x5x3, B and C 2x5x4, A 3x4; backward: 6 macs, 4 alu, 1 exp a state; A gets a gradient."""
    found = costs("2x5x3 | scan 4", training=True)
    assert found["scan1"].input_bytes == 4 * (30 + 30 + 40 + 40)
    assert found["scan1"].param_bytes == 4 * 12
    back = found["scan1@backward"]
    assert (back.macs, back.alu, back.special) == (6 * 120, 4 * 120, 120)
    assert back.output_bytes == 4 * 12


@pytest.mark.parametrize(
    ("dtype", "size"), [("fp32", 4), ("tf32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1), ("int8", 1)]
)
def test_dtype_is_that_of_every_tensor(dtype: str, size: int) -> None:
    graph = text_graph("2x3 | linear 5 bias", dtype=dtype)
    (row,) = cost_sheet(graph).rows
    assert (row.input_bytes, row.output_bytes, row.param_bytes) == (6 * size, 10 * size, 20 * size)
    assert graph.param_bytes == 20 * size


def test_indices_stay_whole_numbers() -> None:
    graph = text_graph("2x7 | embedding 100 4", dtype="bf16")
    (row,) = cost_sheet(graph).rows
    assert row.input_bytes == 8 * 14  # int64
    assert row.param_bytes == row.output_bytes == 2 * 56  # only the rows it returns


def test_views_cost_nothing_and_are_not_kernels() -> None:
    graph = text_graph("2x3x4 | dropout | flatten | linear 5")
    assert [op.kind for op in graph.ops if op.view] == ["dropout_eval", "flatten"]
    assert graph.tensors[graph.ops[2].inputs[0]].base == graph.inputs[0]


def test_a_zero_dimension_is_zero_work() -> None:
    for text in (
        "0x3x8x8 | conv2d 4 k3 | batchnorm | relu | flatten | linear 5",
        "0x4x8 | lstm 3",
        "0x2x3x4 | attention",
    ):
        found = sheet(text)
        assert sum(r.flops for r in found.rows) == 0
    assert sheet("0x3x8x8 | conv2d 4 k3 | relu", training=True, optimizer="adamw").graph.ops


def test_dimensions_up_to_two_to_the_63_are_counted_exactly() -> None:
    (row,) = cost_sheet(text_graph(f"{BIGGEST}x{BIGGEST} | linear {BIGGEST} bias")).rows
    assert row.macs == MAX_DIM**3
    assert row.flops == 2 * MAX_DIM**3 + MAX_DIM**2


# training


def test_training_by_hand() -> None:
    """Two linear layers: the first needs no gradient of its input."""
    found = sheet("3x4 | linear 8 bias | linear 2", training=True, optimizer="adamw")
    back = [(op.kind, r.macs) for op, r in zip(found.graph.ops, found.rows, strict=True) if op.pass_ == "backward"]
    assert back == [("matmul", 48), ("matmul", 48), ("matmul", 96), ("sum", 0)]
    steps = [op.module for op in found.graph.ops if op.pass_ == "optimizer"]
    assert steps == ["linear1", "linear1", "linear2"]
    assert [t.name for t in found.graph.tensors if t.role == "gradient" and t.base == t.id] == ["grad_output0"]


def test_a_tensor_with_two_readers_adds_its_gradients() -> None:
    graph = text_graph("2x4 | linear 4 as a | linear 4 | add a", training=True)
    assert [op.kind for op in graph.ops if op.pass_ == "backward"].count("add") == 1
    graph = text_graph("2x4 | linear 4 | add input", training=True)
    assert "add" not in [op.kind for op in graph.ops if op.pass_ == "backward"]


def test_training_needs_something_to_train() -> None:
    for text in ("2x4 | relu", "2x4", "1x2x3x4 | attention"):
        with pytest.raises(ModelError, match="trainable"):
            text_graph(text, training=True)


def test_an_average_to_one_spreads_its_gradient() -> None:
    """A gradient of 2x4x1x1 becomes 2x4x9x9."""
    found = costs("2x4x9x9 | conv2d 4 k1 | avgpool 1", training=True)
    back = found["avgpool1@backward"]
    assert (back.input_bytes, back.output_bytes) == (4 * 8, 4 * 648)


# names and repeats


def test_ids_are_layer_and_position_or_what_the_text_says() -> None:
    graph = text_graph("2x4x8x8 | conv2d 4 k1 | relu | conv2d 4 k1 as last | relu6 | convtranspose2d 4 k1 | relu")
    assert ids(graph) == ["conv1", "relu1", "last", "relu6_1", "convtranspose1", "relu2"]
    assert [t.name for t in graph.tensors if t.role == "param"] == [
        "conv1.weight",
        "last.weight",
        "convtranspose1.weight",
    ]


def test_a_given_id_wins_over_a_position() -> None:
    assert ids(text_graph("2x4 | relu | linear 4 as relu1 | relu")) == ["relu2", "relu1", "relu3"]


def test_a_repeat_has_parameters_of_its_own() -> None:
    graph = text_graph("2x4 | linear 4 bias x3 | linear 4 x2 as tail | add tail")
    assert ids(graph) == ["linear1", "linear2", "linear3", "tail.1", "tail.2", "add1"]
    assert graph.params == 3 * 20 + 2 * 16
    assert graph.ops[-1].inputs == (graph.ops[-2].outputs[0],) * 2


def test_a_lone_xn_is_the_repeat() -> None:
    (layer,) = parse_layers("2x4 | relu x3").layers
    assert (layer.repeat, layer.args) == (3, ())
    (layer,) = parse_layers("2x4x8x8 | conv2d 4 k3x3 x2 as a").layers
    assert (layer.repeat, layer.id, layer.size("k", 2, ())) == (2, "a", (3, 3))


def test_ids_may_look_like_arguments() -> None:
    assert ids(text_graph("2x4 | relu as k3 | linear 4 as bias | add k3 | mul bias"))[-2:] == ["add1", "mul1"]


def test_parsed_layers_know_their_columns() -> None:
    net = parse_layers("8x64x32x32 |conv2d  128 k3|  relu")
    assert net.shape == (8, 64, 32, 32)
    assert [(x.name, x.column) for x in net.layers] == [("conv2d", 13), ("relu", 30)]
    assert [a.column for a in net.layers[0].args] == [21, 25]


def test_spaces_and_line_breaks_do_not_matter() -> None:
    one = text_graph("2x4x8x8|conv2d 4 k3|relu", source="x")
    two = text_graph("  2 x 4 x 8 x 8\n | conv2d   4\tk3 \n|relu ", source="x")
    assert one == two
    assert graph_hash(one) == graph_hash(two)


def test_the_hash_does_not_change() -> None:
    text = "2x4x8x8 | conv2d 4 k3 p1 as a | batchnorm | relu | add a"
    assert graph_hash(text_graph(text)) == graph_hash(text_graph(text))


def test_rows_are_unique_and_say_what_they_take() -> None:
    assert len(LAYERS) == len(ROWS)
    assert all(row.takes.usage.startswith(row.name) for row in ROWS)


# what it refuses


@pytest.mark.parametrize(
    ("text", "error", "column", "says"),
    [
        ("", SyntaxFault, 1, "no shape"),
        ("relu", SyntaxFault, 1, "'relu' is no shape"),
        ("8x | relu", SyntaxFault, 1, "no shape"),
        ("8x64x32x32 | con2d 128 k3", SyntaxFault, 14, "unknown layer 'con2d'. Did you mean conv2d"),
        ("8x64 | ReLU", SyntaxFault, 8, "Did you mean relu"),
        ("8x64 | zzz", SyntaxFault, 8, "Known are conv1d"),
        ("8x64 |", SyntaxFault, 7, "a layer is missing"),
        ("8x64 | | relu", SyntaxFault, 7, "a layer is missing"),
        ("8x64 | linear", SyntaxFault, 8, "linear needs OUT: write linear OUT [bias]"),
        ("8x64 | linear bias", SyntaxFault, 8, "linear needs OUT"),
        ("8x4x8x8 | conv2d 4", SyntaxFault, 11, "conv2d needs kK, such as k3"),
        ("8x4 | embedding 100", SyntaxFault, 7, "embedding needs DIM"),
        ("8x4 | groupnorm", SyntaxFault, 7, "groupnorm needs gG"),
        ("8x4 | relu | add", SyntaxFault, 14, "add needs ID"),
        ("8x4 | linear 0", SyntaxFault, 14, "OUT must be 1 or more, not 0"),
        ("8x4 | linear -3", SyntaxFault, 14, "OUT must be 1 or more, not -3"),
        ("8x4x8x8 | conv2d 4 k0", SyntaxFault, 20, "k in k0 must be 1 or more"),
        ("8x4x8x8 | conv2d 4 k3 s0", SyntaxFault, 23, "must be 1 or more"),
        ("8x4x8x8 | conv2d 4 k3 p-1", SyntaxFault, 23, "must be 0 or more"),
        ("-8x4 | relu", ShapeError, 1, "must be 0 or more, not -8"),
        ("8x4 | relu x0", SyntaxFault, 12, "a repeat must be 1 or more"),
        ("8x4 | relu x2 x3", SyntaxFault, 12, "is a repeat"),
        ("8x4 | linear x2 4", SyntaxFault, 14, "is a repeat"),
        ("8x4 | relu 5", SyntaxFault, 12, "relu takes no arguments"),
        ("8x4 | linear 5 6", SyntaxFault, 16, "one number too many"),
        ("8x4 | linear 5 bais", SyntaxFault, 16, "Did you mean bias"),
        ("8x4 | linear 5 bias bias", SyntaxFault, 21, "second time"),
        ("8x4x8x8 | conv2d 4 k3 k5", SyntaxFault, 23, "second time"),
        ("8x4x8x8 | conv2d 4 k3x3x3", SyntaxFault, 20, "has 3 sizes where conv2d has 2 axes"),
        ("8x4x8x8 | conv2d 4 q3", SyntaxFault, 20, "cannot read 'q3'"),
        ("8x4x8x8 | conv2d 3.5 k3", SyntaxFault, 18, "cannot read '3.5'"),
        ("1x4x8x8 | attention contxt=3", SyntaxFault, 21, "Did you mean context="),
        ("1x4x8x8 | attention context=many", SyntaxFault, 21, "context needs a whole number"),
        ("1x4x8x8 | attention context=0", SyntaxFault, 21, "context must be 1 or more"),
        ("8x4 | add skip", SyntaxFault, 11, "no earlier layer is called 'skip'"),
        ("8x4 | relu as skip | add skp", SyntaxFault, 26, "Did you mean skip"),
        ("8x4 | add a as a", SyntaxFault, 11, "no earlier layer is called 'a'"),
        ("8x4 | add input input", SyntaxFault, 17, "takes one ID"),
        ("8x4 | relu as a | relu as a", SyntaxFault, 27, "names an earlier layer already"),
        ("8x4 | relu as input", SyntaxFault, 15, "already names the network's input"),
        ("8x4 | relu as x3", SyntaxFault, 15, "is no ID"),
        ("8x4 | relu as", SyntaxFault, 12, "'as' takes one ID"),
        ("8x4 | relu as a b", SyntaxFault, 12, "'as' takes one ID"),
        ("8x64 | conv2d 4 k3", ShapeError, 8, "layer 'conv1' (conv2d): takes 4 dimensions"),
        ("8x4x3x3 | conv2d 4 k5", ShapeError, 11, "kernel 5x5 with dilation 1x1 is larger than its input 3x3"),
        ("8x4x0x3 | conv2d 4 k1", ShapeError, 11, "larger than its input"),
        ("8x3x8x8 | conv2d 4 k3 g2", ShapeError, 11, "2 groups do not divide 3 channels"),
        ("8x4x8x8 | conv2d 3 k3 g2", ShapeError, 11, "2 groups do not divide 3 channels"),
        ("8x4x3x3 | convtranspose2d 4 k1 p2", ShapeError, 11, "would be empty"),
        ("8x4x3x3 | maxpool2d k4", ShapeError, 11, "larger than its input"),
        ("8x4x8x8 | maxpool2d k2 p2", ShapeError, 11, "more than half of the window"),
        ("8x4x0x0 | avgpool 1", ShapeError, 11, "no elements to average"),
        ("8x4 | avgpool 1", ShapeError, 7, "3 to 5 dimensions"),
        ("8x6x3 | groupnorm g4", ShapeError, 9, "4 groups do not divide 6 channels"),
        ("8 | batchnorm", ShapeError, 5, "2 to 5 dimensions"),
        ("2x8x4 | attention", ShapeError, 9, "4 dimensions (batch, heads, steps, size), not 2x8x4"),
        ("2x8x4x4 | attention kvheads=3", ShapeError, 11, "kvheads=3 does not divide 8 heads"),
        ("2x8 | lstm 4", ShapeError, 7, "3 dimensions"),
        ("2x8 | scan 4", ShapeError, 7, "3 dimensions"),
        ("2x8 | relu | embedding 10 4", ShapeError, 14, "only be the first layer"),
        ("2x8 | embedding 10 4 | add input", ShapeError, 24, "holds indices"),
        ("2x8 | linear 4 | add input", ShapeError, 18, "shapes 2x4 and 2x8 do not go together"),
        ("2x8x4 | linear 5 | concat input", ShapeError, 20, "differ beside axis 1"),
        (f"{MAX_DIM + 1}x2 | relu", ShapeError, 1, "beyond 2^63-1"),
        ("8x4 | linear " + "9" * 5000, ShapeError, 14, "beyond 2^63-1"),
        (f"1x{BIGGEST}x2 | flatten", ShapeError, 27, "beyond 2^63-1"),
        (f"1x2x2 | lstm {BIGGEST}", ShapeError, 9, "beyond 2^63-1"),
        ("x".join("2" * 9) + " | relu", ShapeError, 1, "9 dimensions"),
    ],
)
def test_faults_say_where_and_what(text: str, error: type[InputError], column: int, says: str) -> None:
    with pytest.raises(error) as caught:
        text_graph(text)
    message = str(caught.value)
    assert message.startswith(f"column {column}: "), message
    assert says in message
    assert "\n" not in message


def test_thousands_of_zeros_are_a_number() -> None:
    assert parse_layers("0" * 5000 + "8x4 | relu").shape == (8, 4)


def test_a_huge_repeat_is_refused_at_once() -> None:
    began = time.perf_counter()
    for text in ("8x4 | relu x1000000000", "8x4 | relu x999999 | relu x2", f"8x4 | relu x{BIGGEST}"):
        with pytest.raises(SyntaxFault, match="the limit is 1000000"):
            text_graph(text)
    assert time.perf_counter() - began < 1.0


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(DtypeError, match="Did you mean"):
        text_graph("8x4 | relu", dtype="fp31")
    with pytest.raises(SyntaxFault, match="optimizer"):
        text_graph("8x4 | linear 4", training=True, optimizer="adam")


_ARGS = (
    *("as", "input", "a", "bias", "causal", "k3", "k1x7", "k2", "s2", "p1", "d2", "g2", "x2", "x0", "4", "8", "0"),
    *("context=4", "kvheads=2", "kvheads=", "=", "k", "x", "-1", "é", "²", "٣", "k٣"),
)
_WORDS = st.sampled_from([*LAYERS, *_ARGS, BIGGEST, str(MAX_DIM + 1)])
_SHAPES = st.sampled_from(
    [
        "2x8",
        "2x8x8x8",
        "1x4x8",
        "1x4x8x8x8",
        "0x4x8x8",
        "2x0x4",
        "8",
        "",
        "x",
        "2x",
        f"{BIGGEST}x{BIGGEST}x4x4",
        "1x1x1x1",
    ]
)
_LAYER = st.lists(_WORDS, max_size=5).map(" ".join)


def runs_or_is_refused(text: str, training: bool) -> None:
    """Anything but an InputError is a defect. Averages to 2^63 pieces are left to the table of ops."""
    try:
        graph = text_graph(text, training=training, optimizer="adamw" if training else "none")
    except InputError as error:
        assert "\n" not in str(error)
        return
    if f"avgpool {BIGGEST}" not in text:
        assert not cost_sheet(graph).coverage.opaque


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_SHAPES, st.lists(_LAYER, max_size=6), st.booleans())
def test_random_layers_never_crash(shape: str, layers: list[str], training: bool) -> None:
    runs_or_is_refused(" | ".join((shape, *layers)), training)


_VALID = {
    4: """conv2d 8 k3 p1 | conv2d 8 k1 g2 bias | convtranspose2d 4 k2 s2 | batchnorm | groupnorm g2 | maxpool2d k2
    | avgpool 2 | relu | gelu | attention causal | flatten | add input | mul input | concat input | dropout | softmax
    | layernorm | linear 8 bias | conv2d 8 k1 x2 as a""",
    3: """linear 8 | lstm 4 | gru 4 | scan 4 | rmsnorm | conv1d 8 k1 | maxpool1d k2 | avgpool1d k2 | silu | tanh x3
    | flatten | add input | embedding 9 4""",
}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from((3, 4)), st.data(), st.booleans())
def test_random_networks_never_crash(rank: int, data: st.DataObject, training: bool) -> None:
    layers = data.draw(st.lists(st.sampled_from(_VALID[rank].split("|")), max_size=8))
    runs_or_is_refused(" | ".join(("2x8x8x8" if rank == 4 else "2x8x8", *layers)), training)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_random_text_never_crashes(text: str) -> None:
    runs_or_is_refused(text, False)
    runs_or_is_refused(f"2x8x8 | {text}", True)


# the toml file


def write(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "net.toml"
    path.write_text(content)
    return path


def test_a_file_of_layers(tmp_path: Path) -> None:
    net = read_net(
        write(tmp_path, 'input = "2x4"\nlayers = ["linear 4 bias", {text = "relu x2", id = "r"}, "linear 4 | add r"]\n')
    )
    assert (net.name, net.dtype) == ("net", None)
    assert text_graph(net.text) == text_graph(net.text)
    assert ids(text_graph(net.text)) == ["linear1", "r.1", "r.2", "linear2", "add1"]


def test_a_file_of_layer_tables(tmp_path: Path) -> None:
    net = read_net(
        write(
            tmp_path,
            'name = "stem"\ndtype = "bf16"\ninput = "8x64x32x32"\n[[layer]]\ntext = "conv2d 128 k3 p1 bias"\nid = "c"\n'
            '[[layer]]\ntext = "relu"\n',
        )
    )
    assert (net.name, net.dtype) == ("stem", "bf16")
    assert net.text == "8x64x32x32 | conv2d 128 k3 p1 bias as c | relu"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "input: is missing"),
        ("input = 3", "input: must be text in quotes, not int"),
        ('input = "8y4"\nlayers = []', "input: column 1: '8y4' is no shape"),
        ('input = "8x4"', "layers: give a list"),
        ('input = "8x4"\nlayers = ["relu"]\n[[layer]]\ntext = "relu"', "exactly one of the two"),
        ('input = "8x4"\nlayers = "relu"', "layers: must be a list, not str"),
        ('input = "8x4"\nlayers = ["relu", "rel"]', "layers[1]: column 1: unknown layer 'rel'. Did you mean relu"),
        ('input = "8x4"\nlayers = ["relu", 3]', "layers[1]: must be layer text"),
        ('input = "8x4"\nlayers = [{text = "relu", name = "a"}]', "layers[0]: unknown field 'name'"),
        ('input = "8x4"\nlayers = [{id = "a"}]', "layers[0]: must be layer text"),
        ('input = "8x4"\nlayers = [{text = "relu", id = "a | relu"}]', "layers[0]: must be layer text"),
        ('input = "8x4"\n[[layer]]\ntext = "add b"', "layer[0]: column 5: no earlier layer is called 'b'"),
        ('input = "8x4"\nlayers = []\ndtype = "fp31"', "dtype: 'fp31' is unknown. Did you mean"),
        ('input = "8x4"\nlayers = []\nlayerz = []', "unknown field 'layerz'. Did you mean layer"),
        ("input = ", "not valid TOML"),
    ],
)
def test_a_faulty_file_names_file_and_field(tmp_path: Path, content: str, says: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(ConfigError) as caught:
        read_net(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileError):
        read_net(tmp_path / "none.toml")


# speed


def test_it_needs_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from rooflens.frontends.text import text_graph; from rooflens.costs.sheet import cost_sheet; "
        "cost_sheet(text_graph('8x64x32x32 | conv2d 128 k3 p1 bias | relu')); "
        "assert not {'torch', 'numpy', 'tomllib', 'pydantic'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_layers_are_read_in_good_time() -> None:
    began = time.perf_counter()
    assert len(text_graph("8x64 | linear 64 bias x20000").ops) == 20_000
    assert time.perf_counter() - began < 3.0
