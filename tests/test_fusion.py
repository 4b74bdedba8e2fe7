"""Fusion: the numbers of two networks unit by unit, the table of rules, and what must hold for any graph."""

import csv
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import Calls, on_meta, traced
from torch import nn

import rooflens
from rooflens.costs.sheet import cost_sheet
from rooflens.frontends.load import load_model
from rooflens.frontends.request import Request
from rooflens.fusion import tile, tiles
from rooflens.fusion.edges import edges_of, groups_of
from rooflens.fusion.partition import LEVELS, Partition, partition
from rooflens.fusion.rules import FITS, RULES, TIGHT
from rooflens.graph.records import Graph
from rooflens.hardware.load import load_chip

UNITS = Path(__file__).parent / "data" / "fusion_units.csv"  # counted by hand from torchvision's modules and shapes

# level, bn: units, kernels, bytes
RESNET18 = {
    ("none", "kept"): (69, 68, 116_950_592), ("chain", "kept"): (32, 31, 78_616_128),
    ("chain", "folded"): (32, 31, 78_558_528), ("residual", "kept"): (24, 23, 72_595_008),
    ("residual", "folded"): (24, 23, 72_537_408),
}  # fmt: skip
MOBILENET_V2 = {
    ("none", "kept"): (153, 151, 173_065_024), ("chain", "kept"): (66, 64, 70_793_792),
    ("chain", "folded"): (66, 64, 70_589_120), ("residual", "kept"): (56, 54, 69_062_720),
    ("residual", "folded"): (56, 54, 68_858_048),
}  # fmt: skip
BOTH = [
    (m, *key, want)
    for m, rows in (("resnet18", RESNET18), ("mobilenet_v2", MOBILENET_V2))
    for key, want in rows.items()
]


@pytest.mark.parametrize(("model", "level", "bn", "wanted"), BOTH)
def test_totals_of_a_level(model: str, level: str, bn: str, wanted: tuple[int, int, int]) -> None:
    d = rooflens.fuse(model, fusion=level, bn=bn).to_dict()
    after = d["fusion"]["after"]
    assert (after["units"], after["kernels"], after["bytes"]) == wanted
    assert d["totals"]["bytes"] == after["bytes"] == sum(g["bytes"] for g in d["groups"])
    assert after["macs"] == d["fusion"]["before"]["macs"]
    assert after["flops"] == d["fusion"]["before"]["flops"]


@pytest.mark.parametrize(
    ("model", "level", "bn"), [m[:3] for m in BOTH if m[1:3] in (("chain", "kept"), ("residual", "folded"))]
)
def test_every_unit(model: str, level: str, bn: str) -> None:
    with UNITS.open() as file:
        rows = [r for r in csv.DictReader(file) if (r["model"], r["level"], r["bn"]) == (model, level, bn)]
    d = rooflens.fuse(model, fusion=level, bn=bn).to_dict()
    views = {op["id"] for op in d["ops"] if op["view"]}
    fields = ("flops", "input_bytes", "output_bytes", "param_bytes")
    ours = sorted((2 * g["macs"], *(g[f] for f in fields)) for g in d["groups"] if not views.issuperset(g["ops"]))
    assert ours == sorted((int(r["flops_2xmac"]), *(int(r[f]) for f in fields)) for r in rows)


@pytest.mark.parametrize(
    ("model", "level", "intensity"),
    [
        ("resnet18", "none", 31.0), ("resnet18", "chain", 46.2), ("resnet18", "residual", 50.0),
        ("mobilenet_v2", "none", 3.48), ("mobilenet_v2", "chain", 8.50), ("mobilenet_v2", "residual", 8.71),
    ],
)  # fmt: skip
def test_mac_intensity(model: str, level: str, intensity: float) -> None:
    found = rooflens.fuse(model, fusion=level).to_dict()["totals"]["mac_intensity_flop_per_byte"]
    assert float(f"{found:.3g}") == intensity


def test_patterns_of_chain() -> None:
    d = rooflens.fuse("resnet18").to_dict()
    assert {k: v["count"] for k, v in d["fusion"]["patterns"].items()} == {
        "conv+bn": 11, "conv+bn+relu": 9, "add+relu": 8, "single": 4,
    }  # fmt: skip
    plain = [g["id"] for g in d["groups"] if g["pattern"] == "conv+bn"]
    assert sum("downsample" in i for i in plain) == 3
    d = rooflens.fuse("mobilenet_v2").to_dict()
    assert {k: v["count"] for k, v in d["fusion"]["patterns"].items()} == {
        "conv+bn+relu6": 35, "conv+bn": 17, "single": 14,
    }  # fmt: skip
    groups_of_conv = {op["id"]: op["attrs"].get("groups", 1) for op in d["ops"] if op["kind"] == "conv"}
    assert sum(g["pattern"] == "conv+bn+relu6" and groups_of_conv[g["id"]] > 1 for g in d["groups"]) == 17


@pytest.mark.parametrize(("model", "floor"), [("resnet18", 47_402_560), ("mobilenet_v2", 14_762_048)])
def test_nothing_moves_less_than_the_floor(model: str, floor: int) -> None:
    """Input, output, parameters and buffers once each."""
    d = rooflens.fuse(model, fusion="tile", on="tpu-v5e").to_dict()
    image, classes = 4 * 3 * 224 * 224, 4 * 1000
    assert floor == image + classes + sum(op["param_bytes"] for op in d["ops"])
    assert floor <= d["fusion"]["after"]["bytes"] < rooflens.fuse(model, fusion="residual").to_dict()["totals"]["bytes"]


# the table of rules


def _example(text: str, **options: Any) -> dict[str, Any]:
    """Layer text, or a formula of q, k and v."""
    if "@" not in text:
        return rooflens.fuse(text, **options).to_dict()
    names = {"softmax": torch.softmax, "relu": torch.relu}
    module = Calls(lambda m, q, k, v: eval(text, {**names, "q": q, "k": k, "v": v}))
    shapes = ((2, 4, 16, 8), (2, 4, 8, 16), (2, 4, 16, 8))
    return rooflens.fuse(module, tuple(torch.empty(s, device="meta") for s in shapes), **options).to_dict()


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_each_rule_fuses_its_example_and_leaves_the_other(rule: Any) -> None:
    d = _example(rule.fuses, on=FITS, fusion=rule.level)
    assert any(e["rule"] == rule.name for e in d["fusion"]["edges"])
    d = _example(rule.cuts, on=TIGHT, fusion=rule.level)
    assert all(e["rule"] != rule.name for e in d["fusion"]["edges"])
    assert any((e["reason"] or "").startswith(rule.reason) for e in d["fusion"]["edges"])


def _reasons(
    module: nn.Module, *shapes: tuple[int, ...], level: str = "residual", **options: Any
) -> dict[tuple[str, str], str]:
    inputs = tuple(torch.empty(s, device="meta") for s in shapes)
    d = rooflens.fuse(module, inputs, fusion=level, **options).to_dict()
    return {(e["from"], e["to"]): e["rule"] or e["reason"] for e in d["fusion"]["edges"]}


def test_a_cycle_through_the_outside_is_cut() -> None:
    """Sigmoid joins relu; the pool, which is a kernel of its own, reads relu; so the add cannot join them."""

    def forward(m: Any, x: Any) -> Any:
        a = torch.relu(x)
        b = torch.sigmoid(a)
        return b + m.pool(a)

    found = _reasons(Calls(forward, pool=nn.MaxPool2d(3, 1, 1)), (1, 4, 8, 8))
    assert found["relu", "sigmoid"] == "pointwise chain"
    assert found["sigmoid", "add"] == "join order (cycle through the outside: pool reads the group first)"


@pytest.mark.parametrize(
    "between",
    [
        lambda x: torch.relu(x.flatten(2)).view(1, 8, 8, 8),  # the activation sees another shape
        lambda x: torch.relu(x)[:, :, 1:, 1:],  # the next convolution sees a part
        lambda x: torch.relu(x).view(1, 16, 4, 8),
    ],
)
def test_tiles_stop_where_places_are_numbered_anew(between: Any) -> None:
    """Which tile of the one would hold what a tile of the other needs is not what windows say."""
    parts = {"one": nn.Conv2d(8, 8, 1), "two": nn.LazyConv2d(4, 1)}
    module = Calls(lambda m, x: m.two(between(m.one(x))), **parts)
    module(torch.zeros(1, 8, 8, 8))
    d = rooflens.fuse(module, torch.zeros(1, 8, 8, 8), fusion="tile", on=FITS).to_dict()
    assert d["fusion"]["level"] == "tile"
    assert all("one" not in g["ops"] or "two" not in g["ops"] for g in d["groups"])


def test_a_result_of_the_model_stays_written() -> None:
    def forward(m: Any, x: Any) -> Any:
        y = m.conv(x)
        return y, torch.relu(y)

    module = Calls(forward, conv=on_meta(lambda: nn.Conv2d(4, 4, 1)))
    assert _reasons(module, (1, 4, 8, 8)) == {("conv", "relu"): "graph output"}


def test_a_change_of_type_ends_a_product() -> None:
    module = Calls(lambda m, x: m.conv(x).to(torch.bfloat16), conv=on_meta(lambda: nn.Conv2d(4, 4, 1)))
    assert _reasons(module, (1, 4, 8, 8)) == {("conv", "cast"): "dtype change (fp32 to bf16)"}


def test_what_backward_reads_is_saved_for_it_and_stays_written() -> None:
    module = on_meta(lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 4)))
    inputs = torch.empty(4, 8, device="meta")
    d = rooflens.fuse(module, inputs, mode="training", optimizer="none").to_dict()
    found = {(e["from"], e["to"]): e["rule"] or e["reason"] for e in d["fusion"]["edges"]}
    assert found["0", "1"] == "epilogue"
    saved = [(a, b.partition("@")[0]) for (a, b), why in found.items() if why == "saved for backward"]
    assert saved == [
        ("1", "2"),
        ("0", "1"),
    ]  # the second layer's weight gradient reads what GELU wrote, and GELU's what it read
    fused = next(g for g in d["groups"] if g["id"] == "0")
    assert fused["ops"] == ["0", "1"] and fused["output_bytes"] == 2 * 4 * 8 * 4


def test_the_residual_add_joins_the_branch_that_runs_last() -> None:
    """torchvision runs the downsampling convolution after the second one."""
    d = rooflens.fuse("resnet18", fusion="residual").to_dict()
    found = {(e["from"], e["to"]): e["rule"] or e["reason"] for e in d["fusion"]["edges"]}
    assert found["layer2.0.downsample.1", "layer2.0.add"] == "residual add"
    assert found["layer2.0.bn2", "layer2.0.add"] == "join order"
    assert found["layer1.0.relu:2", "layer1.1.add"] == "fork (1 other reader)"


def test_pools_stay_single_however_a_global_one_is_written() -> None:
    """Training takes an adaptive pool apart into a mean over space."""
    for mode in ("inference", "training"):
        d = rooflens.fuse("resnet18", mode=mode, batch=2).to_dict()
        pools = {
            op["id"]
            for op in d["ops"]
            if op["module"] in ("maxpool", "avgpool") and op["pass"] == "forward" and not op["view"]
        }
        assert len(pools) == 2
        assert all(g["ops"] == [p] for p in pools for g in d["groups"] if p in g["ops"])


def test_a_rotary_embedding_is_one_kernel() -> None:
    def rotate(x: Any) -> Any:
        half = x.shape[-1] // 2
        return torch.cat((-x[..., half:], x[..., :half]), dim=-1)

    module = Calls(lambda m, q, cos, sin: q * cos + rotate(q) * sin)
    d = rooflens.fuse(module, tuple(torch.empty(1, 2, 6, 8, device="meta") for _ in range(3))).to_dict()
    kernels = {op["id"] for op in d["ops"] if not op["view"]}
    assert [sorted(set(g["ops"]) & kernels) for g in d["groups"] if set(g["ops"]) & kernels] == [sorted(kernels)]
    # q, cos, sin and the result are all that moves
    assert d["totals"]["bytes"] == 4 * 4 * 2 * 6 * 8


def test_a_norm_that_is_written_out_is_one_kernel() -> None:
    def forward(m: Any, x: Any) -> Any:
        return m.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    module = Calls(forward, weight=nn.Parameter(torch.empty(32, device="meta")))
    d = rooflens.fuse(module, torch.empty(4, 16, 32, device="meta")).to_dict()
    assert d["fusion"]["after"]["kernels"] == 1
    assert d["totals"]["bytes"] == 4 * (2 * 4 * 16 * 32 + 32)


def test_attention_is_one_kernel_at_every_level() -> None:
    for level in LEVELS:
        d = rooflens.fuse("vit_b_16", fusion=level, on="h100-sxm").to_dict()
        attention = {op["id"] for op in d["ops"] if op["kind"] == "attention"}
        assert len(attention) == 12
        assert all(g["ops"] == [a] for a in attention for g in d["groups"] if a in g["ops"])


# 2 items of 4 heads, 16 queries and keys of size 8: an operand is 1024 floats, the scores are 2048
_SIDE, _SCORES = 4 * 1024, 4 * 2048
_MASK = torch.empty(16, 16, device="meta")


@pytest.mark.parametrize(
    ("text", "kernels", "moved"),
    [
        ("softmax(q @ k, -1) @ v", 1, 4 * _SIDE),
        ("softmax(q @ k * 0.5 + mask, -1) @ v", 1, 4 * _SIDE + 4 * 16 * 16),
        ("dropout(softmax((q @ k).float(), 3).to(q.dtype)) @ v", 1, 4 * _SIDE),
        ("softmax(q @ k, -2) @ v", 3, 4 * _SIDE + 4 * _SCORES),  # along the queries: no row is ready before all are
        ("softmax(q @ k, -1).transpose(-1, -2) @ v", 3, 4 * _SIDE + 4 * _SCORES),
        ("v.transpose(-1, -2) @ softmax(q @ k, -1)", 3, 4 * _SIDE + 4 * _SCORES),
        ("(lambda a: (a @ v, a))(softmax(q @ k, -1))", 3, 4 * _SIDE + 4 * _SCORES),  # weights are a result too
        ("(lambda s: (softmax(s, -1) @ v) * s.mean())(q @ k)", 4, 4 * _SIDE + 5 * _SCORES + 2 * 4),
    ],
)
def test_written_out_attention(text: str, kernels: int, moved: int) -> None:
    """As one kernel it moves q, k, v, the result and a mask; in parts also what is written and read between them."""
    names = {
        "softmax": torch.softmax, "mask": _MASK, "dropout": lambda x: nn.functional.dropout(x, training=False)
    }  # fmt: skip
    module = Calls(lambda m, q, k, v: eval(text, {**names, "q": q, "k": k, "v": v}))
    shapes = ((2, 4, 16, 8), (2, 4, 8, 16), (2, 4, 16, 8))
    d = rooflens.fuse(module, tuple(torch.empty(s, device="meta") for s in shapes)).to_dict()
    assert (d["fusion"]["after"]["kernels"], d["totals"]["bytes"]) == (kernels, moved)
    graph = d["fusion"]["edges"]
    assert all((e["rule"] is None) != (e["reason"] is None) for e in graph)


def test_the_attention_of_swin_is_one_kernel() -> None:
    """Its bias is found by index; half of its blocks have a mask as well."""
    d = rooflens.fuse("swin_t").to_dict()
    kind = {op["id"]: op["kind"] for op in d["ops"]}
    units = [[kind[o] for o in g["ops"]] for g in d["groups"] if "softmax" in (kind[o] for o in g["ops"])]
    assert len(units) == 12
    assert all(unit.count("matmul") == 2 and unit.count("gather") == 1 for unit in units)


def test_attention_in_training_keeps_what_backward_reads() -> None:
    """Scores go unwritten, the softmax is written: its gradient reads it."""
    scale = nn.Parameter(torch.empty(1, device="meta"))
    module = Calls(lambda m, q, k, v: torch.softmax(m.scale * q @ k, -1) @ v, scale=scale)
    shapes = ((2, 4, 16, 8), (2, 4, 8, 16), (2, 4, 16, 8))
    inputs = tuple(torch.empty(s, device="meta") for s in shapes)
    d = rooflens.fuse(module, inputs, mode="training", optimizer="none").to_dict()
    unit = next(g for g in d["groups"] if g["pattern"] == "matmul+softmax+matmul")
    assert (unit["input_bytes"], unit["output_bytes"]) == (3 * _SIDE, _SIDE + _SCORES)


@pytest.mark.parametrize("others", [0, 1])
def test_overlapping_parts_of_one_tensor(others: int) -> None:
    """By itself the subtraction reads two parts of 16; so it does in a group, unless another member reads parts as well:
    together they are then no more than the tensor of 17, or than what the one that reads most of it would read."""

    def forward(m: Any, x: Any) -> Any:
        y = torch.relu(x[:, 1:] - x[:, :-1])
        return y + (x[:, 1:] + x[:, :-1]) if others else y

    d = rooflens.fuse(Calls(forward), torch.empty(1, 17, device="meta")).to_dict()
    edges = [(e["from"], e["to"], e["rule"], e["bytes"]) for e in d["fusion"]["edges"]]
    part = 16 * 4
    assert edges[0] == ("sub", "relu", "pointwise chain", 2 * part)
    assert [e for e in edges if e[2] == "shared read"] == [("sub", "add", "shared read", 2 * part)] * others
    assert d["totals"]["bytes"] == 2 * part + part
    assert sum(e[3] for e in edges) == d["fusion"]["before"]["bytes"] - d["fusion"]["after"]["bytes"]


def test_an_opaque_op_is_never_fused() -> None:
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return torch._foreach_lgamma([x])[0]

    def forward(m: Any, x: Any) -> Any:
        return torch.relu(Odd.apply(torch.relu(x)))

    d = rooflens.fuse(Calls(forward), torch.empty(4, 4, device="meta")).to_dict()
    if not d["coverage"]["opaque"]:
        pytest.skip("torch takes this op apart, so that nothing here is opaque")
    assert {e["reason"] for e in d["fusion"]["edges"]} == {"opaque op"}


# what must hold for any graph

REASONS = {
    "fork", "join order", "capacity", "unlisted pair", "graph output", "saved for backward", "dtype change", "opaque op"
}  # fmt: skip


def check(graph: Graph, found: Partition) -> None:
    """Every op once, an order that can run, no path out of a group and back, and bytes followed to the last one."""
    of = groups_of(found)
    assert sorted(i for g in found.groups for i in g.ops) == list(range(len(graph.ops)))
    wrote = {graph.tensors[o].base: place for place, op in enumerate(graph.ops) if not op.view for o in op.outputs}
    for place, op in enumerate(graph.ops):
        for i in op.inputs:
            before = wrote.get(graph.tensors[i].base, place)
            assert of[before] <= of[place], op.id  # groups run in their order: convex as well
    traffic = [found.sheet.traffic(place) for place in range(len(graph.ops))]
    readers: dict[int, set[int]] = defaultdict(set)
    for place, (reads, _) in enumerate(traffic):
        for a in reads:
            readers[a.region[0]].add(place)
    assert [g.cost.bytes for g in found.groups] == [_bytes(graph, traffic, readers, set(g.ops)) for g in found.groups]
    edges = edges_of(found)
    saved = sum(row.bytes for row in found.sheet.rows) - sum(g.cost.bytes for g in found.groups)
    assert sum(e.bytes for e in edges if e.rule is not None) == saved
    assert all((e.rule is None) != (e.reason is None) for e in edges)
    assert all(e.reason is None or e.reason.partition(" (")[0] in REASONS for e in edges)
    assert all((of[e.before] == of[e.after]) == (e.rule is not None) for e in edges)


def _bytes(graph: Graph, traffic: Any, readers: dict[int, set[int]], members: set[int]) -> int:
    """By sets: what the group's ops read that none of them wrote, and what they wrote that somebody else still wants."""
    kernels = [i for i in members if not graph.ops[i].view]
    own = {graph.tensors[o].base for i in kernels for o in graph.ops[i].outputs}
    results = {graph.tensors[o].base for o in graph.outputs}
    wanted = {o for o in own if o in results or graph.tensors[o].name or not readers[o] or readers[o] - members}
    regions: dict[int, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
    alone: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for i in kernels:
        mine = {graph.tensors[o].base for o in graph.ops[i].outputs}
        for a in traffic[i][0]:
            if a.region[0] not in own - mine:
                regions[a.region[0]][a.region] = max(regions[a.region[0]][a.region], a.bytes)
                alone[a.region[0]][i] += a.bytes
    whole = {owner: max(graph.tensors[owner].bytes, *alone[owner].values()) for owner in regions}
    read = sum(min(sum(parts.values()), whole[owner]) for owner, parts in regions.items())
    return read + sum(a.bytes for i in kernels for a in traffic[i][1] if a.region[0] in wanted)


_LAYERS = (
    "conv2d 6 k3 p1", "conv2d 6 k1 bias", "conv2d 6 k3 p1 g6", "batchnorm", "relu", "sigmoid", "gelu", "softmax",
    "maxpool2d k3 s1 p1", "layernorm", "add {}", "mul {}", "concat {} | conv2d 6 k1", "dropout",
)  # fmt: skip


@st.composite
def nets(draw: st.DrawFn) -> str:
    layers, known = ["2x6x8x8", "conv2d 6 k1 as first"], ["input", "first"]
    for n in range(draw(st.integers(2, 14))):
        text = draw(st.sampled_from(_LAYERS)).format(draw(st.sampled_from(known)))
        layers.append(f"{text} as t{n}")
        known.append(f"t{n}")
    return " | ".join(layers)


@given(text=nets(), training=st.booleans(), chip=st.sampled_from((FITS, TIGHT, "kpu-t64")))
@settings(max_examples=120, deadline=None)
def test_any_network(text: str, training: bool, chip: str) -> None:
    from rooflens.frontends.text import text_graph

    graph = text_graph(text, training=training, optimizer="sgd" if training else "none")
    sheet, hardware = cost_sheet(graph), load_chip(chip)
    before = None
    for level in LEVELS:
        found = partition(sheet, level, hardware)
        check(graph, found)
        moved = sum(g.cost.bytes for g in found.groups)
        assert before is None or moved <= before
        before = moved
        assert sum(g.cost.macs - g.extra_macs for g in found.groups) == sum(r.macs for r in sheet.rows)


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("model", ["densenet121", "convnext_tiny", "swin_t", "maxvit_t", "timm:mobilenetv3_small_100"])
def test_real_networks(model: str, mode: str) -> None:
    from rooflens.frontends.load import load_model
    from rooflens.frontends.request import Request

    graph = load_model(model, Request(training=mode == "training", batch=2)).graph
    sheet = cost_sheet(graph)
    moved = []
    for level in LEVELS:
        found = partition(sheet, level, load_chip("h100-sxm"))
        check(graph, found)
        moved.append(sum(g.cost.bytes for g in found.groups))
    assert moved == sorted(moved, reverse=True)


def channel_attention(m: Any, x: Any) -> Any:
    y = torch.sigmoid(m.along(m.body(x).mean((2, 3)).unsqueeze(1)))
    return m.body(x * y.view(1, -1, 1, 1).expand_as(x))


# Tiles of a map of 8 by 8 end where its axes do. What goes through in tiles: the scaling and the convolution behind it.
OTHER_AXES = {
    "a window along the channels": (channel_attention, (1, 4, 8, 8), [["mul", "conv"]]),
    "patches in a row": (lambda m, x: m.body(x).flatten(2).transpose(1, 2) + m.places, (1, 4, 8, 8), []),
    "an image without a batch": (lambda m, x: torch.relu(m.body(torch.relu(m.body(x)))), (4, 8, 8), []),
    "channels in groups": (lambda m, x: torch.relu(m.body(x)).view(1, 2, 2, 8, 8) * 2, (1, 4, 8, 8), []),
}


@pytest.mark.parametrize(("forward", "shape", "tiled"), OTHER_AXES.values(), ids=OTHER_AXES)
def test_tiles_end_where_the_axes_do(forward: Any, shape: tuple[int, ...], tiled: list[list[str]]) -> None:
    def make() -> nn.Module:
        parts = {"body": nn.Conv2d(4, 4, 3, padding=1), "along": nn.Conv1d(1, 1, 3, padding=1)}
        return Calls(forward, **parts, places=nn.Parameter(torch.empty(1, 64, 4)))

    graph = traced(on_meta(make), torch.empty(shape, device="meta"))
    found = partition(cost_sheet(graph), "tile", load_chip(FITS))
    check(graph, found)
    runs = [[graph.ops[p] for p in g.ops] for g in found.groups if g.tile]
    assert [[op.kind for op in run if not op.view] for run in runs] == tiled


def test_the_same_partition_every_time() -> None:
    graph = traced(
        on_meta(lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))),
        torch.empty(1, 3, 16, 16, device="meta"),
    )
    sheet = cost_sheet(graph)
    assert partition(sheet, "tile", load_chip(FITS)) == partition(sheet, "tile", load_chip(FITS))


def test_blocks_and_sizes() -> None:
    """A basic block is 2 convs, 2 norms, 2 relus and an add; with its branch 2 more. At `residual` a block is two units,
    with its branch three."""
    d = rooflens.fuse("resnet18", fusion="residual").to_dict()
    assert Counter((b["ops"], b["units"]) for b in d["fusion"]["blocks"]) == {(7, 2): 5, (9, 3): 3}
    assert sum(s["units"] for s in d["fusion"]["sizes"]) == 24
    assert d["fusion"]["ops_per_unit"] == {"mean": 69 / 24, "max": 4}


@pytest.mark.parametrize("count", [60, 600])
def test_blocks_that_repeat_are_tiled_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs have two to ten groups. Of equal groups there are nine shapes of run, and once more as many where the first
    reads the input: however deep the network is, no more are tiled."""
    tiled = []
    monkeypatch.setattr(tile, "fit", lambda run, room: tiled.append(len(run)) or tiles.fit(run, room))
    graph = load_model(f"1x8x8x8 | conv2d 8 k3 p1 x{count}", Request()).graph
    found = partition(cost_sheet(graph), "tile", load_chip(FITS))
    assert any(g.tile for g in found.groups)
    assert len(tiled) <= 2 * 9


def time_s(level: str, chip: str, **options: Any) -> float:
    e = rooflens.analyze("resnet18", fusion=level, on=chip, **options).prediction.estimate
    assert e is not None and e.device_time_s is not None
    return e.device_time_s if e.latency_s is None else e.latency_s


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize("chip", ["h100-sxm", "jetson-orin-nano", "epyc-9654", "mi250x", "rtx-4090"])
def test_tiles_that_cost_time_are_not_taken(chip: str, batch: int, dtype: str) -> None:
    """Work that tiles do again must not take longer than the bytes and launches that they save."""
    for execution in ("eager", "graph"):
        try:
            residual = time_s("residual", chip, batch=batch, dtype=dtype, execution=execution)
        except rooflens.RooflensError:
            continue  # no such type there
        assert time_s("tile", chip, batch=batch, dtype=dtype, execution=execution) <= residual * (1 + 1e-9)


@pytest.mark.parametrize(("peak", "units"), [("1TFLOPS", 2), ("1000TFLOPS", 1)])
def test_a_border_is_computed_again_where_bytes_are_dear(peak: str, units: int) -> None:
    """Two convolutions of 115.6 MMAC each, 3.5 MB one by one (4 x 803 kB of maps, 2 x 147 kB of weights) and 1.9 MB as
    one. At 1 TFLOP/s and 100 GB/s they take 462 us for their work and 35 us for their bytes, so more work is only slower;
    at 1000 TFLOP/s 0.5 us and 35 us, so it is free."""
    net = "1x64x56x56 | conv2d 64 k3 p1 | conv2d 64 k3 p1"
    chip = f"h100-sxm with peak.fp32.vector={peak}, memory.hbm.bandwidth=100GB/s, launch.eager=0s"
    d = rooflens.fuse(net, fusion="tile", on=chip).to_dict()["fusion"]
    assert (d["after"]["units"], d["extra_macs"] > 0) == (units, units == 1)
    assert d["before"]["bytes"] == 4 * 64 * 56 * 56 * 4 + 2 * 64 * 64 * 9 * 4
    if units == 2:  # whole, it holds what one of them reads and what it writes
        needs = re.fullmatch(r"capacity \(needs ([\d.]+) MB, has 233.5 kB\)", d["edges"][0]["reason"])
        assert needs and float(needs[1]) == pytest.approx(2 * 64 * 56 * 56 * 4 / 1e6, rel=1e-3)
