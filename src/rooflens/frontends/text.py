"""Layer text in, a verified Graph out: `8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2`.

It needs no torch, so that a question about one layer is answered at once; its graphs cost exactly what the torch
frontend's graphs of the same network cost, in inference and in training.
"""

import re
from collections.abc import Iterator

from rooflens.errors import DtypeError, nearest
from rooflens.frontends.backward import ASSUMPTION, record_backward
from rooflens.frontends.optimizer import record_step
from rooflens.frontends.text_grammar import INPUT, ParsedLayer, ParsedNet, parse
from rooflens.frontends.text_layers import LAYERS, SIGNATURES
from rooflens.frontends.text_site import Site
from rooflens.graph.build import GraphBuilder
from rooflens.graph.records import FLOATS, Graph

DTYPES = (*sorted(FLOATS), "int8", "int4", "fp4")
_ASSUMED = {
    "attention": "the tensor that reaches an attention layer is its q; k and v are further inputs of the graph",
    "scan": "delta, B and C of a scan layer are further inputs of the graph",
    "dropout": "dropout drops half of its input",
}


def parse_layers(text: str) -> ParsedNet:
    """The text's layers with their arguments and columns; a SyntaxFault or ShapeError names the column at fault."""
    return parse(text, SIGNATURES)


def text_graph(
    text: str,
    *,
    dtype: str = "fp32",
    training: bool = False,
    optimizer: str = "none",
    name: str | None = None,
    source: str | None = None,
) -> Graph:
    """`dtype` is that of every tensor but indices, masks and kept statistics."""
    net = parse_layers(text)
    builder = GraphBuilder()
    out = _forward(builder, net, _stored(dtype), training)
    if training:
        record_step(builder, optimizer, record_backward(builder, out))
    return builder.build(
        name or "layers",
        source or text,
        inputs=tuple(t.id for t in builder.tensors if t.role == "input" and t.base == t.id),
        outputs=(out,),
        assumptions=_assumptions(net, training),
    )


def _stored(dtype: str) -> str:
    if dtype not in DTYPES:
        raise DtypeError(
            f"--dtype {dtype}: layer text has no such type.{nearest(dtype, DTYPES)} Use one of {' '.join(DTYPES)}"
        )
    return "fp32" if dtype == "tf32" else dtype  # a rate of calculation, not a way to store


def _assumptions(net: ParsedNet, training: bool) -> tuple[str, ...]:
    used = {layer.name for layer in net.layers}
    found = [what for name, what in _ASSUMED.items() if name in used and (name != "dropout" or training)]
    return (*found, ASSUMPTION) if training else tuple(found)


def _forward(builder: GraphBuilder, net: ParsedNet, dtype: str, training: bool) -> int:
    """Layer after layer; the last one's output."""
    indices = bool(net.layers) and net.layers[0].name == "embedding"
    x = builder.tensor(net.shape, "int64" if indices else dtype, "input", name=INPUT)
    known = {INPUT: x}
    for layer, label in labelled(net.layers):
        references = tuple(known[r] for r in layer.references)
        site = Site(builder=builder, layer=layer, label=label, dtype=dtype, training=training, references=references)
        x = LAYERS[layer.name].rule(site, x)
        if layer.id:
            known[layer.id] = x
    return x


def labelled(layers: tuple[ParsedLayer, ...]) -> Iterator[tuple[ParsedLayer, str]]:
    """Each layer as often as it is repeated, with a label of its own: conv1, conv2, or the ID that the text gives."""
    taken = {layer.id for layer in layers}
    counts: dict[str, int] = {}
    for layer in layers:
        for turn in range(layer.repeat):
            yield layer, _given(layer, turn) if layer.id else _counted(layer.name, counts, taken)


def _given(layer: ParsedLayer, turn: int) -> str:
    return layer.id if layer.repeat == 1 else f"{layer.id}.{turn + 1}"


def _counted(name: str, counts: dict[str, int], taken: set[str]) -> str:
    """conv2d is numbered conv1, conv2, …; relu6 is numbered relu6_1, lest it look like the 61st relu."""
    stem = re.sub(r"[123]d$", "", name)
    stem = f"{stem}_" if stem[-1].isdigit() else stem
    while True:
        counts[stem] = counts.get(stem, 0) + 1
        label = f"{stem}{counts[stem]}"
        if label not in taken:
            return label
