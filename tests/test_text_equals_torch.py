"""The same network through layer text and torch costs the same: kernels, work, bytes, parameters, in both modes."""

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import pytest

from rooflens.costs.sheet import CostSheet, cost_sheet
from rooflens.errors import ModelError
from rooflens.frontends.text import parse_layers, text_graph
from rooflens.frontends.text_layers import LAYERS
from rooflens.fusion.partition import Partition, partition
from rooflens.graph.records import Graph

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from rooflens.frontends.pytorch.trace import trace_module  # noqa: E402

Net = Callable[[], nn.Module]


class Wired(nn.Module):
    """Modules, and the function that wires them."""

    def __init__(self, wiring: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.parts, self.wiring = nn.ModuleList(parts), wiring

    def forward(self, *tensors: Any) -> Any:
        return self.wiring(*self.parts, *tensors)


def chain(*parts: nn.Module) -> nn.Module:
    return nn.Sequential(*parts)


def conv(channels: int = 4) -> nn.Module:
    return nn.Conv2d(channels, 4, 1)


_C = "conv2d 4 k1 bias"  # a layer with parameters in front, so that the next one's input needs a gradient
_L = "linear 8 bias"
ACTIVATIONS = (*(nn.ReLU(), nn.ReLU6(), nn.GELU(), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.Hardswish()),)
_ACTIVATIONS = "relu | relu6 | gelu | silu | sigmoid | tanh | hardswish"

# layer text, the same in torch
NETS: dict[str, tuple[str, Net]] = {
    "conv1d": ("2x4x10 | conv1d 8 k3 s2 p1 bias", lambda: chain(nn.Conv1d(4, 8, 3, 2, 1))),
    "conv2d of the contract": (
        "8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2",
        lambda: chain(nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    ),
    "conv2d grouped, dilated, strided": (
        "2x4x20x20 | conv2d 8 k1x7 s2 p1 d2 g2 | conv2d 8 k3 s2x1 p0x1 g8",
        lambda: chain(
            nn.Conv2d(4, 8, (1, 7), 2, 1, 2, 2, bias=False), nn.Conv2d(8, 8, 3, (2, 1), (0, 1), groups=8, bias=False)
        ),
    ),
    "conv3d": (
        "2x4x5x5x5 | conv3d 8 k3 | conv3d 8 k1 bias",
        lambda: chain(nn.Conv3d(4, 8, 3, bias=False), nn.Conv3d(8, 8, 1)),
    ),
    "convtranspose1d": (
        "2x4x10 | convtranspose1d 8 k3 s2 p1 bias | conv1d 8 k1 bias",
        lambda: chain(nn.ConvTranspose1d(4, 8, 3, 2, 1), nn.Conv1d(8, 8, 1)),
    ),
    "convtranspose2d": (
        f"2x4x10x10 | {_C} | convtranspose2d 8 k3 s2 p1 d2 g2",
        lambda: chain(conv(), nn.ConvTranspose2d(4, 8, 3, 2, 1, groups=2, dilation=2, bias=False)),
    ),
    "convtranspose3d": (
        "2x4x5x5x5 | conv3d 4 k1 bias | convtranspose3d 8 k3 s2 p1 bias",
        lambda: chain(nn.Conv3d(4, 4, 1), nn.ConvTranspose3d(4, 8, 3, 2, 1)),
    ),
    "pools over all of space": (
        f"2x4x6x6 | {_C} | relu | avgpool 1 | {_C} | flatten | linear 8 bias",
        lambda: chain(conv(), nn.ReLU(), nn.AdaptiveAvgPool2d(1), conv(), nn.Flatten(), nn.Linear(4, 8)),
    ),
    "pools over all steps": (
        "2x4x6 | conv1d 4 k1 | relu | avgpool 1",
        lambda: chain(nn.Conv1d(4, 4, 1, bias=False), nn.ReLU(), nn.AdaptiveAvgPool1d(1)),
    ),
    "linear": ("3x4 | linear 8 bias | linear 2", lambda: chain(nn.Linear(4, 8), nn.Linear(8, 2, bias=False))),
    "linear on sequences": ("2x3x4 | linear 8 bias x2", lambda: chain(nn.Linear(4, 8), nn.Linear(8, 8))),
    "linear on a vector": ("4 | linear 8 bias | linear 2", lambda: chain(nn.Linear(4, 8), nn.Linear(8, 2, bias=False))),
    "activations": (f"2x4x3x3 | {_C} | {_ACTIVATIONS}", lambda: chain(conv(), *ACTIVATIONS)),
    "activation first": (f"2x4x3x3 | gelu | {_C}", lambda: chain(nn.GELU(), conv())),
    "batchnorm": (f"2x4x3x3 | {_C} | batchnorm x2", lambda: chain(conv(), nn.BatchNorm2d(4), nn.BatchNorm2d(4))),
    "batchnorm first": ("2x4x3x3 | batchnorm | relu", lambda: chain(nn.BatchNorm2d(4), nn.ReLU())),
    "batchnorm of a matrix": ("5x3 | linear 8 bias | batchnorm", lambda: chain(nn.Linear(3, 8), nn.BatchNorm1d(8))),
    "layernorm": (f"2x3x4 | {_L} | layernorm", lambda: chain(nn.Linear(4, 8), nn.LayerNorm(8))),
    "layernorm first": ("2x3x4 | layernorm", lambda: chain(nn.LayerNorm(4))),
    "rmsnorm": (f"2x3x4 | {_L} | rmsnorm", lambda: chain(nn.Linear(4, 8), nn.RMSNorm(8))),
    "groupnorm": (f"2x4x3x3 | {_C} | groupnorm g2", lambda: chain(conv(), nn.GroupNorm(2, 4))),
    "maxpool1d": ("2x4x10 | conv1d 4 k1 bias | maxpool1d k2", lambda: chain(nn.Conv1d(4, 4, 1), nn.MaxPool1d(2))),
    "maxpool2d": (f"2x4x10x10 | {_C} | maxpool2d k3 s2 p1", lambda: chain(conv(), nn.MaxPool2d(3, 2, 1))),
    "avgpool1d": ("2x4x10 | conv1d 4 k1 bias | avgpool1d k2", lambda: chain(nn.Conv1d(4, 4, 1), nn.AvgPool1d(2))),
    "avgpool2d": (f"2x4x10x10 | {_C} | avgpool2d k3 s2 p1", lambda: chain(conv(), nn.AvgPool2d(3, 2, 1))),
    "adaptive 1d": (
        "2x4x10 | conv1d 4 k1 bias | avgpool 3",
        lambda: chain(nn.Conv1d(4, 4, 1), nn.AdaptiveAvgPool1d(3)),
    ),
    "adaptive 2d": (f"2x4x10x9 | {_C} | avgpool 3", lambda: chain(conv(), nn.AdaptiveAvgPool2d(3))),
    "adaptive to one": (
        f"2x4x10x9 | {_C} | avgpool 1 | flatten | linear 5 bias",
        lambda: chain(conv(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)),
    ),
    "softmax": (f"2x3x4 | {_L} | softmax", lambda: chain(nn.Linear(4, 8), nn.Softmax(-1))),
    "embedding": ("2x3 | embedding 10 4 | linear 5", lambda: chain(nn.Embedding(10, 4), nn.Linear(4, 5, bias=False))),
    "lstm": (
        "2x3x4 | linear 8 bias | lstm 6",
        lambda: Wired(lambda a, b, x: b(a(x))[0], nn.Linear(4, 8), nn.LSTM(8, 6, batch_first=True)),
    ),
    "gru": (
        "2x3x4 | linear 8 bias | gru 6",
        lambda: Wired(lambda a, b, x: b(a(x))[0], nn.Linear(4, 8), nn.GRU(8, 6, batch_first=True)),
    ),
    "attention": (
        "2x3x5x4 | linear 4 bias | attention",
        lambda: Wired(lambda a, q, k, v: functional.scaled_dot_product_attention(a(q), k, v), nn.Linear(4, 4)),
    ),
    "attention, causal, grouped": (
        "2x4x5x4 | linear 4 bias | attention causal context=7 kvheads=2 | linear 3",
        lambda: Wired(
            lambda a, b, q, k, v: b(
                functional.scaled_dot_product_attention(a(q), k, v, is_causal=True, enable_gqa=True)
            ),
            nn.Linear(4, 4),
            nn.Linear(4, 3, bias=False),
        ),
    ),
    "flatten": (f"2x4x3x3 | {_C} | flatten | linear 5 bias", lambda: chain(conv(), nn.Flatten(), nn.Linear(36, 5))),
    "dropout": (f"2x4x3x3 | {_C} | dropout | {_C}", lambda: chain(conv(), nn.Dropout(), conv())),
    "dropout first": (f"2x4x3x3 | dropout | {_C}", lambda: chain(nn.Dropout(), conv())),
    "residual": (
        f"2x4x3x3 | {_C} as a | {_C} | relu | add a",
        lambda: Wired(lambda a, b, x: (lambda y: functional.relu(b(y)) + y)(a(x)), conv(), conv()),
    ),
    "residual from the input": (
        f"2x4x3x3 | {_C} | add input | relu",
        lambda: Wired(lambda a, x: functional.relu(a(x) + x), conv()),
    ),
    "a tensor added to itself": (
        f"2x4x3x3 | {_C} as a | add a",
        lambda: Wired(lambda a, x: (lambda y: y + y)(a(x)), conv()),
    ),
    "a tensor times itself": (
        f"2x4x3x3 | {_C} as a | mul a",
        lambda: Wired(lambda a, x: (lambda y: y * y)(a(x)), conv()),
    ),
    "squeeze and excite": (
        f"2x4x9x9 | {_C} as a | avgpool 1 | conv2d 2 k1 bias | relu | {_C} | sigmoid | mul a | {_C}",
        lambda: Wired(
            lambda a, se, b, x: (lambda y: b(se(y) * y))(a(x)),
            conv(),
            chain(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 2, 1), nn.ReLU(), conv(2), nn.Sigmoid()),
            conv(),
        ),
    ),
    "add with broadcast": (
        f"2x4x9x9 | {_C} as a | avgpool 1 | {_C} | add a",
        lambda: Wired(lambda a, b, x: (lambda y: b(y) + y)(a(x)), conv(), chain(nn.AdaptiveAvgPool2d(1), conv())),
    ),
    "concat": (
        f"2x4x3x3 | {_C} as a | {_C} | concat a | conv2d 4 k1 bias",
        lambda: Wired(lambda a, b, c, x: (lambda y: c(torch.cat([b(y), y], 1)))(a(x)), conv(), conv(), conv(8)),
    ),
    "concat of three": (
        f"2x4x3x3 | {_C} as a | {_C} as b | relu | concat a b input",
        lambda: Wired(
            lambda a, b, x: (lambda y: (lambda z: torch.cat([functional.relu(z), y, z, x], 1))(b(y)))(a(x)),
            conv(),
            conv(),
        ),
    ),
    # 2 x 3 items of 6 lie step by step behind a recurrent net: joining them copies, unless a norm has put them in order
    "steps in a row": (
        "2x3x4 | lstm 6 | relu | flatten | linear 8 bias",
        lambda: Wired(
            lambda a, b, x: b(functional.relu(a(x)[0]).flatten(1)), nn.LSTM(4, 6, batch_first=True), nn.Linear(18, 8)
        ),
    ),
    "steps in order again": (
        "2x3x4 | gru 6 | rmsnorm | flatten",
        lambda: Wired(lambda a, b, x: b(a(x)[0]).flatten(1), nn.GRU(4, 6, batch_first=True), nn.RMSNorm(6)),
    ),
    "one item has no order": (
        "1x3x4 | gru 6 | flatten",
        lambda: Wired(lambda a, x: a(x)[0].flatten(1), nn.GRU(4, 6, batch_first=True)),
    ),
    "a norm of groups wants both in order": (
        "2x4x6 | lstm 6 | groupnorm g2 | concat input",
        lambda: Wired(
            lambda a, b, x: torch.cat([b(a(x)[0]), x], 1), nn.LSTM(6, 6, batch_first=True), nn.GroupNorm(2, 4)
        ),
    ),
    "three readers": (
        f"2x4x3x3 | {_C} as a | {_C} | add a | {_C} | mul a | add a",
        lambda: Wired(
            lambda a, b, c, x: (lambda y: c(b(y) + y) * y + y)(a(x)), conv(), conv(), conv()
        ),
    ),
    "two readers behind a view": (
        f"2x4x3x3 | {_C} | flatten as a | linear 36 bias | add a",
        lambda: Wired(
            lambda a, b, x: (lambda y: b(y) + y)(a(x).flatten(1)), conv(), nn.Linear(36, 36)
        ),
    ),
}  # fmt: skip


def totals(graph: Graph) -> dict[str, int]:
    sheet = cost_sheet(graph)
    assert not sheet.coverage.opaque
    rows = sheet.rows
    return {
        "params": graph.params,
        "kernels": sum(not op.view for op in graph.ops),
        **{name: sum(getattr(r, name) for r in rows) for name in ("macs", "flops")},
        **{name: sum(getattr(r, name) for r in rows) for name in ("input_bytes", "output_bytes", "param_bytes")},
    }


def kinds(graph: Graph) -> Counter[str]:
    return Counter(op.kind for op in graph.ops if not op.view)


def rows(sheet: CostSheet) -> Counter[tuple[int, ...]]:
    return Counter(
        (r.macs, r.flops, r.input_bytes, r.output_bytes, r.param_bytes)
        for op, r in zip(sheet.graph.ops, sheet.rows, strict=True)
        if not op.view
    )


def groups(found: Partition) -> Counter[tuple[Any, ...]]:
    """Kernels, with the kinds of op in each."""
    ops = found.sheet.graph.ops
    kinds = [tuple(sorted(ops[place].kind for place in g.ops if not ops[place].view)) for g in found.groups]
    return Counter((k, g.cost.flops, g.cost.bytes) for k, g in zip(kinds, found.groups, strict=True) if k)


def in_torch(graph: Graph, build: Net, dtype: Any = None, **mode: Any) -> Graph:
    """Through torch, with inputs of the shapes that the text's graph has."""
    with torch.device("meta"):
        module = build()
        given = [graph.tensors[i] for i in graph.inputs if not graph.tensors[i].name.startswith("grad_output")]
        args = tuple(torch.empty(t.shape, dtype=torch.int64 if t.dtype == "int64" else None) for t in given)
    return trace_module(module, args, {}, name="net", source="net", dtype=dtype, **mode)


@pytest.mark.parametrize("name", NETS)
def test_inference(name: str) -> None:
    text, build = NETS[name]
    ours = text_graph(text)
    theirs = in_torch(ours, build)
    assert totals(ours) == totals(theirs)
    assert kinds(ours) == kinds(theirs)
    assert rows(cost_sheet(ours)) == rows(cost_sheet(theirs))


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", ["none", "adamw", "sgd"])
@pytest.mark.parametrize("name", NETS)
def test_training(name: str, optimizer: str, dtype: str) -> None:
    text, build = NETS[name]
    ours = text_graph(text, dtype=dtype, training=True, optimizer=optimizer)
    wanted = {"fp32": None, "bf16": torch.bfloat16}[dtype]
    theirs = in_torch(ours, build, dtype=wanted, training=True, optimizer=optimizer)
    assert totals(ours) == totals(theirs)
    assert kinds(ours) == kinds(theirs)
    assert rows(cost_sheet(ours)) == rows(cost_sheet(theirs))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", NETS)
def test_fused_they_are_equal_too(name: str, training: bool) -> None:
    """Which kernels remain, and what they move: a pool's backward, for one, must join the same loops."""
    text, build = NETS[name]
    ours = text_graph(text, training=training)
    theirs = in_torch(ours, build, training=training)
    for level in ("chain", "residual"):
        assert groups(partition(cost_sheet(ours), level)) == groups(partition(cost_sheet(theirs), level))


@pytest.mark.parametrize("name", NETS)
def test_shapes_are_torch_shapes(name: str) -> None:
    text, build = NETS[name]
    ours = text_graph(text)
    theirs = in_torch(ours, build)
    assert ours.tensors[ours.outputs[0]].shape == theirs.tensors[theirs.outputs[0]].shape


@pytest.mark.parametrize("name", NETS)
def test_order_of_tensors_is_torchs(name: str) -> None:
    """Op for op the same shapes in the same places."""
    text, build = NETS[name]
    ours = text_graph(text)
    theirs = in_torch(ours, build)
    for a, b in zip(ours.ops, theirs.ops, strict=True):
        assert a.kind == b.kind
        assert [ours.tensors[i].shape for i in a.inputs] == [theirs.tensors[i].shape for i in b.inputs]
        assert [ours.tensors[o].shape for o in a.outputs] == [theirs.tensors[o].shape for o in b.outputs]


def test_windows_against_torch_for_many_sizes() -> None:
    for size, kernel, stride, padding, dilation in (
        (n, k, s, p, d) for n in (7, 12) for k in (1, 2, 3) for s in (1, 2, 3) for p in (0, 1, 2) for d in (1, 2)
    ):
        window = f"k{kernel} s{stride} p{padding} d{dilation}"
        with torch.device("meta"):
            x = torch.empty(1, 2, size, size)
            there = nn.Conv2d(2, 2, kernel, stride, padding, dilation)(x).shape
            back = nn.ConvTranspose2d(2, 2, kernel, stride, padding, dilation=dilation)(x).shape
        for layer, shape in (("conv2d", there), ("convtranspose2d", back)):
            ours = text_graph(f"1x2x{size}x{size} | {layer} 2 {window}")
            assert ours.tensors[ours.outputs[0]].shape == tuple(shape), (layer, window)


def test_nothing_to_train_is_refused_as_in_torch() -> None:
    with pytest.raises(ModelError, match="trainable parameters"):
        text_graph("2x8 | relu", training=True)
    with pytest.raises(ModelError, match="trainable parameters"):
        trace_module(nn.ReLU(), (torch.empty(2, 8, device="meta"),), {}, name="x", source="x", training=True)


def test_every_layer_kind_is_in_the_table() -> None:
    used = {layer.name for text, _ in NETS.values() for layer in parse_layers(text).layers}
    assert used == LAYERS.keys() - {"scan"}  # torch has no such function


def test_the_contracts_example_by_hand() -> None:
    """Counted with pencil and paper, for both frontends."""
    text, build = NETS["conv2d of the contract"]
    pixels = 32 * 32
    macs = 8 * pixels * 128 * 64 * 9
    conv_out, pool_out = 8 * 128 * pixels, 8 * 128 * pixels // 4
    flops = 2 * macs + conv_out + conv_out + pool_out * 3
    for graph in (ours := text_graph(text), in_torch(ours, build)):
        found = totals(graph)
        assert found["macs"] == macs == 603_979_776
        assert found["flops"] == flops
        assert found["params"] == 128 * 64 * 9 + 128
        assert found["input_bytes"] == 4 * (8 * 64 * pixels + conv_out + conv_out)
        assert found["output_bytes"] == 4 * (conv_out + conv_out + pool_out)
        assert found["param_bytes"] == 4 * (prod((128, 64, 9)) + 128)
