"""The table of fusions: what may run as one kernel, at which level, and why an edge that no row allows is cut.

Groups are of four classes. `product`: a convolution or matrix product with what is done to each of its outputs.
`loop`: a generated kernel that goes element by element. `rows`: a generated kernel that needs whole rows first (norms,
softmax, reductions). `alone`: a kernel of its own that nothing joins. Each row of the table has a network that fuses by
it, and one that must not: in layer text or, where that has no words for it, in torch's.
"""

from dataclasses import dataclass

LEVELS = ("none", "chain", "residual", "tile")
PRODUCT, LOOP, ROWS, ALONE = "product", "loop", "rows", "alone"

# What an op makes of a group that it starts; roles are those of the OPS table.
CLASS_OF_ROLE = {
    "matmul": PRODUCT, "affine": LOOP, "pointwise": LOOP, "move": LOOP, "lookup": LOOP, "norm": ROWS, "reduction": ROWS,
}  # fmt: skip
ELEMENTWISE = frozenset({"affine", "pointwise"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`fuses` and `cuts` are layer texts, or formulas of q, k and v; in `cuts` the pair that the rule speaks of stays apart,
    for `reason`."""

    name: str
    level: str
    before: str
    after: str
    what: str
    fuses: str
    cuts: str
    reason: str


def _rule(name: str, level: str, before: str, after: str, what: str, fuses: str, cuts: str, reason: str) -> Rule:
    return Rule(name=name, level=level, before=before, after=after, what=what, fuses=fuses, cuts=cuts, reason=reason)


EPILOGUE, ACTIVATION, CHAIN, INLINE = "epilogue", "late epilogue", "pointwise chain", "computed where read"
INTO_ROWS, OUT_OF_ROWS, SHARED, JOIN = "into rows", "after rows", "shared read", "residual add"
ATTENTION = "written-out attention"
MLP, POOLED, INVERTED, SEPARABLE = "MLP in tiles", "pool in tiles", "inverted residual in tiles", "separable in tiles"
BLOCK, DEPTH_FIRST = "residual block in tiles", "depth first"
FITS, TIGHT = "h100-sxm", "h100-sxm with sm.shared=64B"  # chips on which the examples of level tile fuse, and do not

_IMAGE = "1x8x8x8"
RULES = (
    _rule(EPILOGUE, "chain", "product", "affine or pointwise op of one activation",
          "a scale, shift or activation is applied to each output before it is written",
          f"{_IMAGE} | conv2d 8 k3 p1 | batchnorm | relu",
          f"{_IMAGE} | conv2d 8 k3 p1 as a | relu | maxpool2d k3 s1 p1 | add a", "fork"),
    _rule(ACTIVATION, "chain", "product", "loop that reads nothing else",
          "an activation written as several ops, all of which read the product's output",
          f"{_IMAGE} | conv2d 8 k3 p1 as a | sigmoid | mul a",
          f"{_IMAGE} | conv2d 8 k3 p1 as a | sigmoid | mul a | maxpool2d k3 s1 p1 | add a", "fork"),
    _rule(CHAIN, "chain", "loop", "affine, pointwise or move op over as many elements",
          "element-wise ops of one size share a loop; what others read stays written",
          f"{_IMAGE} | relu | sigmoid", f"{_IMAGE} | relu | maxpool2d k2", "unlisted pair"),
    _rule(INLINE, "chain", "loop", "affine, pointwise, move, norm or reduction op over more elements",
          "a small tensor with one reader (a mask, a half of a rotary pair) is computed where it is read",
          f"{_IMAGE} | relu as half | relu | concat half",
          f"{_IMAGE} | relu as half | maxpool2d k3 s1 p1 | concat half", "fork"),
    _rule(INTO_ROWS, "chain", "loop", "norm or reduction over as many elements",
          "a norm computes its input as it reads it",
          "4x16x32 | relu | layernorm", "4x16x32 | linear 32 | layernorm", "unlisted pair"),
    _rule(OUT_OF_ROWS, "chain", "rows", "affine, pointwise or move op over the same rows",
          "a norm's or softmax's output goes on through element-wise ops before it is written",
          "4x16x32 | layernorm | relu", "4x16x32 | layernorm | softmax", "unlisted pair"),
    _rule(ATTENTION, "chain", "matrix product", "softmax over its rows, then the product with it",
          "scores, their mask and softmax stay on chip, block by block, as in an attention that is one op",
          "softmax(q @ k, -1) @ v", "relu(q @ k) @ v", "unlisted pair"),
    _rule(JOIN, "residual", "product that runs last", "loop with the residual add, read by nobody else",
          "the residual add and its activation join the product whose output arrives last",
          f"{_IMAGE} | conv2d 8 k3 p1 | batchnorm | add input | relu",
          f"{_IMAGE} | conv2d 8 k3 p1 as a | add input | maxpool2d k3 s1 p1 | add a", "fork"),
    _rule(MLP, "tile", "linear", "linear", "rows go through several linear layers before the next rows start",
          "64x16 | linear 32 | relu | linear 16", "64x16 | linear 32 | relu | linear 16", "capacity"),
    _rule(POOLED, "tile", "convolution", "pool", "windows are pooled as they are made",
          f"{_IMAGE} | conv2d 8 k3 p1 | relu | maxpool2d k2", f"{_IMAGE} | conv2d 8 k3 p1 | relu | maxpool2d k2", "capacity"),
    _rule(INVERTED, "tile", "pointwise, depthwise", "pointwise convolution", "a whole inverted residual in tiles",
          f"{_IMAGE} | conv2d 48 k1 | relu6 | conv2d 48 k3 p1 g48 | relu6 | conv2d 8 k1 | add input",
          f"{_IMAGE} | conv2d 48 k1 | relu6 | conv2d 48 k3 p1 g48 | relu6 | conv2d 8 k1 | add input", "capacity"),
    _rule(SEPARABLE, "tile", "depthwise convolution", "pointwise convolution", "depthwise and pointwise in tiles",
          f"{_IMAGE} | conv2d 8 k3 p1 g8 | relu | conv2d 16 k1", f"{_IMAGE} | conv2d 8 k3 p1 g8 | relu | conv2d 16 k1",
          "capacity"),
    _rule(BLOCK, "tile", "convolution", "convolution with the residual add", "a whole residual block in tiles",
          f"{_IMAGE} | conv2d 8 k3 p1 | relu | conv2d 8 k3 p1 | add input | relu",
          f"{_IMAGE} | conv2d 8 k3 p1 | relu | conv2d 8 k3 p1 | add input | relu", "capacity"),
    _rule(DEPTH_FIRST, "tile", "convolution", "convolution or pool", "several convolutions in tiles",
          f"{_IMAGE} | conv2d 8 k3 p1 | relu | conv2d 8 k3 p1 | relu",
          f"{_IMAGE} | conv2d 8 k3 p1 | relu | conv2d 8 k3 p1 | relu", "capacity"),
)  # fmt: skip
RULE_NAMES = frozenset(r.name for r in RULES)

# Why an edge is cut. `{}` takes what is known of the edge; what begins alike is told apart in parentheses.
FORK = "fork ({} other reader{})"
JOIN_ORDER = "join order"
CAPACITY = "capacity (needs {}, has {})"
UNLISTED = "unlisted pair ({} then {})"
SHAPE = "unlisted pair (shape: {} elements then {})"
OUTPUT = "graph output"
SAVED = "saved for backward"
DTYPE = "dtype change ({} to {})"
OPAQUE = "opaque op"
NOT_ASKED = "unlisted pair (level none has no rules)"
CYCLE = "join order (cycle through the outside: {} reads the group first)"
