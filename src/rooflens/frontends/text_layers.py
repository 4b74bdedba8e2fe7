"""One parsed layer and the tensor that reaches it in; graph ops and the tensor that leaves it out.

Adding a layer is one row of ROWS and one small function. Op kinds, attributes and the order of tensors are those that
the torch frontend records for the same call; tests hold the two equal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from rooflens.frontends.text_grammar import MAX_RANK, Signature, read_usage
from rooflens.frontends.text_site import Attrs, Shape, Site, spelled
from rooflens.graph.records import BITS
from rooflens.ops.table import OPS

Rule = Callable[[Site, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    takes: Signature
    rule: Rule

    @property
    def name(self) -> str:
        return self.takes.usage.partition(" ")[0]


def _statistic(dtype: str) -> str:
    """Means and variances are kept in fp32 or wider."""
    return dtype if BITS[dtype] >= 32 else "fp32"


# convolutions and linear layers


def _conv(axes: int, transposed: bool = False) -> Rule:
    def rule(site: Site, x: int) -> int:
        batch, channels, *space = site.dims(x, axes + 2, axes + 2, _spatial(axes))
        out, groups = site.layer.number("OUT"), site.layer.number("g", 1)
        _check_groups(site, groups, channels, out)
        window = _Window.of(site, axes)
        size = window.grown(site, tuple(space)) if transposed else window.shrunk(site, tuple(space))
        weight = (channels, out // groups) if transposed else (out, channels // groups)
        ins: Shape = (x, site.param("weight", (*weight, *window.kernel)))
        if site.layer.arg("bias"):
            ins = (*ins, site.param("bias", (out,)))
        return site.op("conv", ins, (site.out((batch, out, *size)),), window.attrs(groups, transposed))

    return rule


def _spatial(axes: int) -> str:
    return f"{axes + 2} dimensions (batch, channel, {axes} of space)"


def _check_groups(site: Site, groups: int, *channels: int) -> None:
    for count in channels:
        if count % groups:
            site.refuse(f"{groups} groups do not divide {count} channels: choose g so that they do")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    kernel: Shape
    stride: Shape
    padding: Shape
    dilation: Shape

    @staticmethod
    def of(site: Site, axes: int, stride_is_kernel: bool = False) -> "_Window":
        layer, ones = site.layer, (1,) * axes
        kernel = layer.size("k", axes, ones)
        return _Window(
            kernel=kernel,
            stride=layer.size("s", axes, kernel if stride_is_kernel else ones),
            padding=layer.size("p", axes, (0,) * axes),
            dilation=layer.size("d", axes, ones),
        )

    def attrs(self, groups: int, transposed: bool) -> Attrs:
        return (
            ("stride", self.stride), ("padding", self.padding), ("dilation", self.dilation), ("groups", groups),
            ("transposed", transposed),
        )  # fmt: skip

    def _axes(self) -> list[tuple[int, int, int, int]]:
        return list(zip(self.kernel, self.stride, self.padding, self.dilation, strict=True))

    def shrunk(self, site: Site, space: Shape) -> Shape:
        """How often the window fits into each axis."""
        spare = [n + 2 * p - d * (k - 1) - 1 for n, (k, _, p, d) in zip(space, self._axes(), strict=True)]
        if min(spare) < 0:
            site.refuse(
                f"kernel {spelled(self.kernel)} with dilation {spelled(self.dilation)} is larger than its input "
                f"{spelled(space)} with padding {spelled(self.padding)}: use a smaller kernel or more padding"
            )
        return tuple(n // s + 1 for n, s in zip(spare, self.stride, strict=True))

    def grown(self, site: Site, space: Shape) -> Shape:
        """A transposed convolution's output: the size whose convolution would give the input."""
        size = tuple((n - 1) * s - 2 * p + d * (k - 1) + 1 for n, (k, s, p, d) in zip(space, self._axes(), strict=True))
        if min((*size, *space)) < 1:
            site.refuse(f"output {spelled(size)} of input {spelled(space)} would be empty: use less padding")
        return size


def _linear(site: Site, x: int) -> int:
    *lead, features = site.dims(x, 1, MAX_RANK, "at least one dimension")
    out = site.layer.number("OUT")
    ins: Shape = (x, site.param("weight", (out, features)))
    if site.layer.arg("bias"):
        ins = (*ins, site.param("bias", (out,)))
    return site.op("linear", ins, (site.out((*lead, out)),))


# element by element


def _pointwise(kind: str, attrs: Attrs = ()) -> Rule:
    return lambda site, x: site.op(kind, (x,), (site.out(site.shape(x)),), attrs)


def _dropout(site: Site, x: int) -> int:
    """With p = 0.5 in training; in inference nothing happens to its input."""
    shape = site.shape(x)
    if not site.training:
        return site.view("dropout_eval", x, shape)
    return site.op("dropout", (x,), (site.out(shape), site.out(shape, "bool")))


def _join(kind: str) -> Rule:
    def rule(site: Site, x: int) -> int:
        other = site.references[0]
        _check_floating(site, other)
        return site.op(kind, (x, other), (site.out(_broadcast(site, site.shape(x), site.shape(other))),))

    return rule


def _broadcast(site: Site, a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True))
    if any(p != q and 1 not in (p, q) for p, q in pairs):
        site.refuse(
            f"shapes {spelled(a)} and {spelled(b)} do not go together: each dimension must be equal, or 1 in one"
        )
    return tuple(q if p == 1 else p for p, q in pairs)


def _concat(site: Site, x: int) -> int:
    """Along the channels, axis 1."""
    first = site.dims(x, 2, MAX_RANK, "at least two dimensions")
    for other in site.references:
        _check_floating(site, other)
        shape = site.shape(other)
        if len(shape) != len(first) or (shape[0], *shape[2:]) != (first[0], *first[2:]):
            site.refuse(
                f"shapes {spelled(first)} and {spelled(shape)} differ beside axis 1: they cannot be joined there"
            )
    ins = (x, *site.references)
    channels = sum(site.shape(i)[1] for i in ins)
    return site.op("concat", ins, (site.out((first[0], channels, *first[2:])),))


def _check_floating(site: Site, x: int) -> None:
    if site.builder.tensors[x].dtype == "int64":
        site.refuse("the network's input holds indices here, which cannot be calculated with: name another layer")


# norms and softmax


def _batchnorm(site: Site, x: int) -> int:
    """Training finds the statistics, keeps them for backward and writes the running ones."""
    shape = site.dims(x, 2, 5, "2 to 5 dimensions (batch, channel, space)")
    vector = (shape[1],)
    ins = (
        x, site.param("weight", vector), site.param("bias", vector),
        site.buffer("running_mean", vector), site.buffer("running_var", vector),
    )  # fmt: skip
    if not site.training:
        return site.op("batchnorm", ins, (site.out(shape),))
    kept = tuple(site.out(vector, _statistic(site.dtype)) for _ in range(2))
    return site.op("batchnorm_train", ins, (site.out(shape), *kept, site.out(vector), site.out(vector)))


def _layernorm(site: Site, x: int) -> int:
    shape = site.dims(x, 1, MAX_RANK, "at least one dimension")
    ins = (x, site.param("weight", shape[-1:]), site.param("bias", shape[-1:]))
    return site.op("layernorm", ins, (site.out(shape), *_kept(site, (*shape[:-1], 1), _statistic(site.dtype), 2)))


def _rmsnorm(site: Site, x: int) -> int:
    shape = site.dims(x, 1, MAX_RANK, "at least one dimension")
    ins = (x, site.param("weight", shape[-1:]))
    return site.op("rmsnorm", ins, (site.out(shape), *_kept(site, (*shape[:-1], 1), "fp32", 1)))


def _groupnorm(site: Site, x: int) -> int:
    shape = site.dims(x, 2, MAX_RANK, "at least two dimensions (batch, channel)")
    groups = site.layer.number("g")
    _check_groups(site, groups, shape[1])
    if site.training and _steps_first(site, x):
        x = _copy(site, x, shape)  # autograd's kernel wants its input in order; torch hands it over so
    ins = (x, site.param("weight", shape[1:2]), site.param("bias", shape[1:2]))
    return site.op("groupnorm", ins, (site.out(shape), *_kept(site, (shape[0], groups), site.dtype, 2)))


def _kept(site: Site, shape: Shape, dtype: str, count: int) -> Shape:
    """Statistics that only a training step writes down, for its backward."""
    return tuple(site.out(shape, dtype) for _ in range(count)) if site.training else ()


def _softmax(site: Site, x: int) -> int:
    return site.op("softmax", (x,), (site.out(site.dims(x, 1, MAX_RANK, "at least one dimension")),))


# pools


def _pool(kind: str, axes: int) -> Rule:
    def rule(site: Site, x: int) -> int:
        *lead, _ = site.dims(x, axes + 2, axes + 2, _spatial(axes))
        window = _Window.of(site, axes, stride_is_kernel=True)
        if any(2 * p > k for k, p in zip(window.kernel, window.padding, strict=True)):
            site.refuse(f"padding {spelled(window.padding)} is more than half of the window {spelled(window.kernel)}")
        shape = (*lead[:2], *window.shrunk(site, site.shape(x)[2:]))
        outs: Shape = (site.out(shape),)
        if kind == "maxpool" and site.training:
            outs = (*outs, site.out(shape, "int64"))
        attrs: Attrs = (("kernel", window.kernel), ("stride", window.stride), ("padding", window.padding))
        if kind == "maxpool":
            attrs = (*attrs, ("dilation", window.dilation))
        return site.op(kind, (x,), outs, attrs)

    return rule


def _adaptive(site: Site, x: int) -> int:
    """One number for all axes of space: a square."""
    shape = site.dims(x, 3, 5, "3 to 5 dimensions (batch, channel, 1 to 3 of space)")
    axes = len(shape) - 2
    if 0 in shape[2:]:
        site.refuse(f"input {spelled(shape)} has no elements to average: give it some space")
    pooled = (*shape[:2], *(site.layer.number("OUT"),) * axes)
    if site.training and site.layer.number("OUT") == 1:
        return _mean(site, x, pooled)
    return site.op("adaptive_avgpool", (x,), (site.out(pooled),), (("axes", axes),))


def _mean(site: Site, x: int, pooled: Shape) -> int:
    """What autograd makes of a pool over all of space, in two dimensions at least: its backward is a division, which a
    compiler fuses with what comes before."""
    if len(pooled) > 3:
        return site.op("mean", (x,), (site.out(pooled),))
    batch, channels, steps = site.shape(x)
    flat = site.view("view", x, (batch, channels, 1, steps))
    return site.view("view", site.op("mean", (flat,), (site.out((*pooled, 1)),)), pooled)


# sequences


def _attention(site: Site, x: int) -> int:
    """softmax(q kT) v on batch x heads x steps x size. What arrives is q. In a network k and v come from elsewhere, so
    they are two more inputs of the graph, `LABEL.k` and `LABEL.v`, with kvheads for heads and context for steps."""
    batch, heads, steps, size = site.dims(x, 4, 4, "4 dimensions (batch, heads, steps, size)")
    kv_heads, context = site.layer.number("kvheads", heads), site.layer.number("context", steps)
    if kv_heads != heads and heads % kv_heads:
        site.refuse(f"kvheads={kv_heads} does not divide {heads} heads: choose one that does")
    keys = (batch, kv_heads, context, size)
    ins = (x, site.given("k", keys), site.given("v", keys))
    causal = site.layer.arg("causal") is not None
    return site.op("attention", ins, (site.out((batch, heads, steps, size)),), (("causal", causal),))


def _embedding(site: Site, x: int) -> int:
    shape = site.shape(x)
    if site.builder.tensors[x].dtype != "int64":
        site.refuse("reads indices, so it can only be the first layer: put it right behind the shape")
    table = site.param("weight", (site.layer.number("VOCAB"), site.layer.number("DIM")))
    return site.op("embedding", (table, x), (site.out((*shape, site.layer.number("DIM"))),))


def _recurrent(kind: str, gates: int, states: tuple[str, ...]) -> Rule:
    """One layer, one direction, with biases, from a state of zeros that is written first, as torch does."""

    def rule(site: Site, x: int) -> int:
        batch, steps, features = site.dims(x, 3, 3, "3 dimensions (batch, steps, features)")
        hidden = site.layer.number("HIDDEN")
        state = (1, batch, hidden)
        zeros = tuple(site.op("fill", (), (site.out(state),), part=name) for name in states)
        rows = gates * hidden
        weights = (
            ("weight_ih", (rows, features)),
            ("weight_hh", (rows, hidden)),
            ("bias_ih", (rows,)),
            ("bias_hh", (rows,)),
        )
        ins = (x, *zeros, *(site.param(name, shape) for name, shape in weights))
        return site.op(kind, ins, (site.out((batch, steps, hidden)), *(site.out(state) for _ in states)))

    return rule


def _scan(site: Site, x: int) -> int:
    """The selective scan of Mamba: h = exp(delta A) h + delta B x, y = C h. delta, B and C come from elsewhere in a
    network, so they are further inputs of the graph; A is the layer's own."""
    batch, steps, width = site.dims(x, 3, 3, "3 dimensions (batch, steps, width)")
    states = site.layer.number("STATE")
    delta, a = site.given("delta", (batch, steps, width)), site.param("A", (width, states))
    b, c = (site.given(name, (batch, steps, states)) for name in "BC")
    return site.op("scan", (x, delta, a, b, c), (site.out((batch, steps, width)),))


def _flatten(site: Site, x: int) -> int:
    """All but the batch. What lies in memory step by step has to be copied for it."""
    batch, *rest = site.dims(x, 1, MAX_RANK, "at least one dimension")
    if _steps_first(site, x):
        return _copy(site, x, (batch, prod(rest)))
    return site.view("flatten", x, (batch, prod(rest)))


def _copy(site: Site, x: int, shape: Shape) -> int:
    return site.op("copy", (x,), (site.out(shape),), part="copy")


def _steps_first(site: Site, x: int) -> bool:
    """Whether the items of a batch lie apart, step by step: as a recurrent net leaves them, and as ops that go element
    by element take them over from their first input."""
    shape = site.shape(x)
    if len(shape) != 3 or min(shape) < 1 or 1 in shape[:2]:
        return False
    for op in reversed(site.builder.ops):
        if x in op.outputs:
            if op.kind not in _KEEP_ORDER and OPS[op.kind].family != "pointwise":
                return op.kind in ("lstm", "gru")
            x = op.inputs[0]
    return False


_KEEP_ORDER = ("batchnorm", "batchnorm_train", "dropout_eval")


def _row(usage: str, rule: Rule) -> LayerRow:
    return LayerRow(takes=read_usage(usage), rule=rule)


_CONV, _POOL = "OUT kK [sS] [pP] [dD] [gG] [bias]", "kK [sS] [pP]"
ROWS = (
    *(_row(f"conv{n}d {_CONV}", _conv(n)) for n in (1, 2, 3)),
    *(_row(f"convtranspose{n}d {_CONV}", _conv(n, transposed=True)) for n in (1, 2, 3)),
    _row("linear OUT [bias]", _linear),
    *(_row(kind, _pointwise(kind)) for kind in ("relu", "relu6", "silu", "sigmoid", "tanh", "hardswish")),
    _row("gelu", _pointwise("gelu", (("approximate", "none"),))),
    _row("batchnorm", _batchnorm),
    _row("layernorm", _layernorm),
    _row("rmsnorm", _rmsnorm),
    _row("groupnorm gG", _groupnorm),
    *(_row(f"{kind}{n}d {_POOL}", _pool(kind, n)) for kind in ("maxpool", "avgpool") for n in (1, 2)),
    _row("avgpool OUT", _adaptive),
    _row("softmax", _softmax),
    _row("attention [causal] [context=N] [kvheads=N]", _attention),
    _row("embedding VOCAB DIM", _embedding),
    _row("lstm HIDDEN", _recurrent("lstm", 4, ("h0", "c0"))),
    _row("gru HIDDEN", _recurrent("gru", 3, ("h0",))),
    _row("scan STATE", _scan),
    _row("flatten", _flatten),
    _row("dropout", _dropout),
    _row("add ID", _join("add")),
    _row("mul ID", _join("mul")),
    _row("concat ID…", _concat),
)
LAYERS = {row.name: row for row in ROWS}
SIGNATURES = {row.name: row.takes for row in ROWS}
