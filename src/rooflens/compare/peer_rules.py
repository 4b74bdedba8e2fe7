"""One of our ops in, what another counter counts for it out: one function a counter, written from that counter's own
source (fvcore 0.1.5 nn/flop_count.py and jit_handles.py, ptflops 0.7 pytorch_ops.py, torchinfo 1.8 layer_info.py, thop
0.1.1 profile.py and vision/calc_func.py, torch utils/flop_counter.py).

A claim holds for one part of an op (its products, its bias, ...). A part without a claim is one that it does not count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from rooflens.costs.sheet import OpCost
from rooflens.graph.records import STORED_ROLES, Op, Tensor
from rooflens.ops.spec import numel
from rooflens.ops.table import OPS

BIAS, INNER, GATES = "biases", "softmax, scale and mask inside attention", "gates and biases of recurrent nets"
PRODUCTS = {
    "conv": "convolutions", "linear": "linear layers", "matmul": "matrix products", "addmm": "matrix products",
    "grouped_mm": "matrix products", "bilinear": "bilinear layers", "attention": "attention",
    "lstm": "recurrent nets", "gru": "recurrent nets", "rnn": "recurrent nets",
}  # fmt: skip
_RESTS = {"attention": INNER, "lstm": GATES, "gru": GATES, "rnn": GATES}
_GATE_WORK = {"lstm": (10, 8), "gru": (8, 5), "rnn": (0, 1)}  # ours: alu and special a hidden unit
_ACTIVATIONS = frozenset((
    "relu", "relu6", "leaky_relu", "prelu", "elu", "sigmoid", "silu", "tanh", "hardswish", "hardsigmoid", "softplus",
    "logsigmoid", "mish", "glu", "gelu",
))  # fmt: skip
_NOUNS = {"softmax": "softmax", "log_softmax": "softmax", "embedding": "embeddings"}
_FAMILIES = {
    "norm": "norms", "pool": "pools", "pointwise": "element-wise arithmetic", "reduction": "reductions",
    "move": "resizes and stores", "scan": "scans",
}  # fmt: skip
_PLURAL = {
    "batchnorm": "batch norms", "layernorm": "layer norms", "groupnorm": "group norms", "maxpool": "max pools",
    "avgpool": "average pools", "adaptive_avgpool": "adaptive average pools", "adaptive_maxpool": "adaptive max pools",
    "relu": "ReLU", "relu6": "ReLU6", "gelu": "GELU", "silu": "SiLU", "elu": "ELU", "prelu": "PReLU",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """An op with what a counter can know about it: the module it runs in, and under which names the counter met it."""

    op: Op
    cost: OpCost
    ins: tuple[Tensor, ...]
    outs: tuple[Tensor, ...]
    flop_per_mac: int
    device: str
    class_name: str  # torch's own classes without their path, all others with it
    leaf: bool
    module_shape: tuple[int, ...]  # what the module returns
    dim: int | None  # the module's own, where it has one (nn.Softmax)
    hidden: bool  # inside a module that ptflops counts as a whole
    seen: frozenset[str]

    @property
    def read(self) -> int:
        return numel(self.ins[0])

    @property
    def written(self) -> int:
        return numel(self.outs[0])

    @property
    def affine(self) -> bool:
        return any(t.role == "param" for t in self.ins)


class Claim(NamedTuple):
    """`text` names the rule where the amount is not ours."""

    part: str
    amount: int
    text: str


Rule = Callable[[Site], list[Claim]]


def noun(kind: str) -> str:
    if kind in _ACTIVATIONS:
        return "activations"
    return _NOUNS.get(kind) or _FAMILIES.get(OPS[kind].family if kind in OPS else "", kind)


def parts(site: Site) -> dict[str, int]:
    """Our own count of the op, with a multiply-add worth what the counter takes it for."""
    kind, cost = site.op.kind, site.cost
    products, rest = site.flop_per_mac * cost.macs, cost.alu + cost.special
    if kind in PRODUCTS:
        return {PRODUCTS[kind]: products, _RESTS.get(kind, BIAS): rest}
    return {noun(kind): products + rest}


def _products(site: Site) -> list[Claim]:
    part = PRODUCTS[site.op.kind]
    return [Claim(part, site.flop_per_mac * site.cost.macs, part)]


def _bias(site: Site) -> Claim:
    return Claim(BIAS, site.cost.alu, BIAS)


def _each(site: Site, count: int, times: int, per: str, how: str = "as") -> Claim:
    """So much for each of `count` elements, and how that differs from ours."""
    part = noun(site.op.kind)
    ours = parts(site)[part]
    against = f", not {ours // count}" if count and ours % count == 0 else ""
    name = _PLURAL.get(site.op.kind, site.op.kind)
    return Claim(part, times * count, f"{name} counted {how} {times} per {per}{against}")


def _gates(site: Site, each: dict[str, int]) -> list[Claim]:
    """Products and biases as ours, and so much for each hidden unit's gates."""
    kind, cost = site.op.kind, site.cost
    alu, special = _GATE_WORK[kind]
    units = cost.special // special
    text = f"gates of {kind.upper()} counted as {each[kind]} per hidden unit, not {alu + special}"
    return [*_products(site), Claim(GATES, cost.alu - alu * units + each[kind] * units, text)]


def _missed(site: Site) -> list[Claim]:
    """A counter that knows no rule for the module misses what it does without calling its children."""
    text = "nn.MultiheadAttention not counted, neither its projections nor its attention"
    return [Claim(part, 0, text) for part in parts(site)]


def torch_counter(site: Site) -> list[Claim]:
    """Products alone. On the CPU fused attention has no rule."""
    fused = site.op.kind == "attention" and site.device == "cpu"
    return _products(site) if site.op.kind in PRODUCTS and not fused else []


def fvcore(site: Site) -> list[Claim]:
    kind = site.op.kind
    if kind == "attention" or kind in _GATE_WORK or "aten::_native_multi_head_attention" in site.seen:
        return []
    if kind in PRODUCTS:
        return _products(site)
    if kind == "batchnorm":
        return [_each(site, site.read, 2 if site.affine else 1, "element")]
    if kind in ("layernorm", "groupnorm"):
        return [_each(site, site.read, 5 if site.affine else 4, "element")]
    if kind == "adaptive_avgpool" and site.op.attr("axes") == 2:
        return [_each(site, site.read, 1, "input element")]
    factor = {"resize_nearest": 1, "resize_bilinear": 4, "grid_sample": 4}.get(kind)
    return [_each(site, site.written, factor, "output element")] if factor and len(site.outs[0].shape) == 4 else []


_HOOKED_POOLS = frozenset(f"{a}{p}Pool{n}d" for a in ("", "Adaptive") for p in ("Max", "Avg") for n in (1, 2, 3))
_HOOKED_NORMS = frozenset(f"{kind}Norm{n}d" for kind in ("Batch", "Instance") for n in (1, 2, 3)) | {"GroupNorm"}
_HOOKED_ACTIVATIONS = frozenset(("ReLU", "PReLU", "ELU", "LeakyReLU", "ReLU6", "GELU"))
_CONVOLUTIONS = frozenset(f"Conv{t}{n}d" for t in ("", "Transpose") for n in (1, 2, 3))
_TIMM_ATTENTION = ("timm.models.vision_transformer.Attention", "timm.layers.attention.Attention")
PTFLOPS_WHOLE = ("MultiheadAttention", *_TIMM_ATTENTION)
_POOL_FUNCTION = {
    "maxpool": "max_pool",
    "avgpool": "avg_pool",
    "adaptive_avgpool": "adaptive_avg_pool",
    "adaptive_maxpool": "adaptive_max_pool",
}


def ptflops(site: Site) -> list[Claim]:
    """Modules by hooks, some functions by patches: a module that calls such a function is counted twice."""
    hooked = [] if site.hidden else _ptflops_hook(site)
    return hooked if site.op.kind in PRODUCTS and hooked else _ptflops_twice(site, hooked)


def _ptflops_hook(site: Site) -> list[Claim]:
    name, kind = site.class_name, site.op.kind
    if (name in _CONVOLUTIONS and kind == "conv") or (name in ("Linear", "MultiheadAttention") and kind == "linear"):
        return [*_products(site), _bias(site)]
    if name in ("LSTM", "GRU", "RNN") and kind in _GATE_WORK:
        return _gates(site, {"lstm": 10, "gru": 7, "rnn": 1})
    if name in PTFLOPS_WHOLE and kind == "attention":
        return [*_products(site), _ptflops_inner(site)]
    if name in _HOOKED_NORMS:
        return [_each(site, site.read, 2 if site.affine else 1, "element")]
    if name == "LayerNorm":  # its flag is called elementwise_affine, which is not what is asked for
        return [_each(site, site.read, 1, "element")]
    if name in _HOOKED_POOLS:
        return [_each(site, site.read, 1, "input element")]
    return [_each(site, site.written, 1, "element")] if name in _HOOKED_ACTIVATIONS else []


def _ptflops_inner(site: Site) -> Claim:
    scores = numel(site.outs[0]) // site.outs[0].shape[-1] * site.ins[1].shape[-2]
    queries = numel(site.outs[0]) // site.outs[0].shape[-1] * site.ins[0].shape[-1]
    return Claim(INNER, scores + queries, "inside attention, 1 per score and 1 per element of q")


def _ptflops_twice(site: Site, hooked: list[Claim]) -> list[Claim]:
    called = _ptflops_function(site)
    if not (hooked and called):
        return hooked or called
    times = (hooked[0].amount + called[0].amount) // max(1, called[0].amount)
    per = "input element" if OPS[site.op.kind].family == "pool" else "element"
    return [_each(site, called[0].amount, times, per, "twice," if times > 1 else "as")]


def _ptflops_function(site: Site) -> list[Claim]:
    """Only where it was seen to be called by that name: x.relu() and torch.relu are not patched."""
    kind, seen = site.op.kind, site.seen
    if kind in _POOL_FUNCTION:
        found = any(name.startswith(_POOL_FUNCTION[kind]) for name in seen)
        return [_each(site, site.read, 1, "input element")] if found else []
    if kind in ("relu", "prelu", "elu", "relu6", "gelu", "silu", "softmax") and kind in seen:
        return [_each(site, site.read, 1, "element")]
    if kind.startswith("resize_") and "interpolate" in seen:
        return [_each(site, site.written, 1, "output element")]
    if kind in ("add", "mul") and kind in seen:
        return [_each(site, site.written, 1, "element")]
    if kind == "matmul" and seen & {"matmul", "mm", "bmm"}:
        return _products(site)
    if kind == "addmm" and seen & {"addmm", "baddbmm"}:
        return [*_products(site), Claim(BIAS, site.read, f"{BIAS} of addmm counted once, not per row")]
    return []


def torchinfo(site: Site) -> list[Claim]:
    """Leaf modules by their weight and bias: each once per sample, in convolutions once per output position."""
    if site.class_name == "MultiheadAttention":
        return _missed(site)
    if not site.leaf:
        return []
    convolution, kind = "Conv" in site.class_name.rpartition(".")[2], site.op.kind
    out = site.module_shape
    times = prod((*out[:1], *out[2:])) if convolution else out[0] if out else 1
    found = {t.name.rpartition(".")[2]: numel(t) for t in site.ins if t.role in STORED_ROLES}
    if kind in PRODUCTS and kind != "attention":
        return _torchinfo_products(site, times, found)
    counted = times * sum(n for name, n in found.items() if name in ("weight", "bias"))
    what = _PLURAL.get(kind, noun(kind))
    note = "the whole table once per sample" if kind == "embedding" else "their weight and bias once per sample"
    return [Claim(noun(kind), counted, f"{what} counted as {note}")] if counted else []


def _torchinfo_products(site: Site, times: int, found: dict[str, int]) -> list[Claim]:
    part = PRODUCTS[site.op.kind]
    if site.op.kind in _GATE_WORK:
        return _gates(site, {"lstm": 0, "gru": 0, "rnn": 0})
    text = (
        "once per output position" if "Conv" in site.class_name.rpartition(".")[2] else "once per sample, not per token"
    )
    return [
        Claim(part, times * found.get("weight", 0), f"{part} counted {text}"),
        Claim(BIAS, times * found.get("bias", 0), f"{BIAS} counted {text}"),
    ]


_THOP_NORMS = (_HOOKED_NORMS - {"GroupNorm"}) | {"LayerNorm", "SyncBatchNorm"}
_THOP_RESIZE = {  # by kind and rank: linear, bilinear and bicubic; trilinear has no rule
    **{("resize_nearest", rank): 1 for rank in (3, 4, 5)},
    ("resize_bilinear", 3): 5,
    ("resize_bilinear", 4): 11,
    ("resize_bicubic", 4): 259,
}


def thop(site: Site) -> list[Claim]:
    """Modules of a known exact class; functions and everything else count nothing."""
    name, kind = site.class_name, site.op.kind
    if name == "MultiheadAttention":
        return _missed(site)
    if name in _CONVOLUTIONS and kind == "conv":
        return [_thop_convolution(site)]
    if name == "Linear" and kind == "linear":
        return _products(site)
    if name in ("LSTM", "GRU", "RNN") and kind in _GATE_WORK:
        return _gates(site, {"lstm": 8, "gru": 7, "rnn": 1})
    if name in _THOP_NORMS:
        return [_each(site, site.read, 4 if site.affine else 2, "element")]
    if name.startswith("AdaptiveAvgPool") and kind == "adaptive_avgpool":
        return [_thop_adaptive(site)]
    if name.startswith("AvgPool") and kind == "avgpool":
        return [_each(site, site.written, 1, "output element")]
    if name == "PReLU":
        return [_each(site, site.read, 1, "element")]
    if name in ("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"):
        times = _THOP_RESIZE.get((kind, len(site.outs[0].shape)), 0)
        return [_each(site, site.written, times, "output element")]
    return [_thop_softmax(site, site.dim)] if name == "Softmax" and site.dim is not None else []


def _thop_convolution(site: Site) -> Claim:
    """Output elements times input channels of a group times kernel taps, transposed or not."""
    groups = site.op.attr("groups", 1)
    channels = site.ins[0].shape[1] // (groups if isinstance(groups, int) else 1)
    part = PRODUCTS["conv"]
    amount = site.written * channels * prod(site.ins[1].shape[2:])
    return Claim(part, amount, "transposed convolutions counted per output element")


def _thop_adaptive(site: Site) -> Claim:
    shape, out = site.ins[0].shape[2:], site.outs[0].shape[2:]
    window = prod(a / b for a, b in zip(shape, out, strict=True))
    text = "adaptive average pools counted as their window and 1 per output element"
    return Claim(noun(site.op.kind), int((window + 1) * site.written), text)


def _thop_softmax(site: Site, dim: int) -> Claim:
    width = site.ins[0].shape[dim]
    rows = site.read // max(1, width)
    return Claim("softmax", rows * (3 * width - 1), "softmax counted as 3 per element, less 1 a row")


RULES: dict[str, Rule] = {
    "FlopCounterMode": torch_counter,
    "fvcore": fvcore,
    "ptflops": ptflops,
    "torchinfo": torchinfo,
    "thop": thop,
}
