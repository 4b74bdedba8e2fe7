"""Our partition and a real compiler's kernels in, agreements and named differences out, edge by edge.

Edges are between ops that move data, after folding: a batchnorm that was folded belongs to its convolution, and an op
that the compiler needs no kernel for (a copy of what is in place already) is looked through. Two ops agree where both
sides have them in one kernel, or both apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rooflens.fusion.edges import edges_of, groups_of
from rooflens.fusion.partition import Partition
from rooflens.fusion.rules import SHARED
from rooflens.graph.records import FLOATS, STORED_ROLES, Graph, Op
from rooflens.ops.table import OPS

TOGETHER, APART = "fused", "cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeMatch:
    """Places of two ops, what each side does with them, why we do, the name of the difference, and the bytes between."""

    before: int
    after: int
    ours: str
    theirs: str
    why: str
    difference: str | None  # None where both agree; "" where no class explains it
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """A compiler's kernels, by op of the graph that both sides were given, and every edge judged."""

    compiler: str
    kernels: tuple[frozenset[int], ...]
    names: tuple[str, ...]
    edges: tuple[EdgeMatch, ...]


class _Met(NamedTuple):
    """What a difference is judged by: the two ops, what each side does, and how the compiler runs them."""

    before: Op
    after: Op
    ours: str
    theirs: str
    times_before: int  # in how many kernels the compiler computes the first op
    times_after: int
    in_epilogue: bool  # we have the first op in the epilogue of a product
    of_values: bool  # the first op depends on values: not only on sizes, positions and constants
    names: str  # of the kernels that compute the second op


def matches(groups: Partition, kernels: Sequence[frozenset[int]], names: Sequence[str]) -> tuple[EdgeMatch, ...]:
    """`kernels` per op of the partition's graph, as `benches.inductor` finds them."""
    of, ops = groups_of(groups), groups.sheet.graph.ops
    stands, valued = _stands_for(groups, kernels), _of_values(groups.sheet.graph)
    found: dict[tuple[int, int], EdgeMatch] = {}
    for edge in edges_of(groups):
        before, after = stands[edge.before], stands[edge.after]
        if edge.rule == SHARED or before is None or after is None or before == after or (before, after) in found:
            continue
        ours = TOGETHER if of[before] == of[after] else APART
        theirs = TOGETHER if kernels[before] & kernels[after] else APART
        met = _Met(
            ops[before], ops[after], ours, theirs, len(kernels[before]), len(kernels[after]),
            _in_epilogue(groups, of, before), valued[before], " ".join(names[k] for k in sorted(kernels[after])),
        )  # fmt: skip
        found[before, after] = EdgeMatch(
            before=before, after=after, ours=ours, theirs=theirs, why=edge.rule or edge.reason or "",
            difference=None if ours == theirs else _difference(met), bytes=edge.bytes,
        )  # fmt: skip
    return tuple(found.values())


def _of_values(graph: Graph) -> list[bool]:
    """By place: does it depend on a floating input or parameter? Masks and positions do not."""
    valued = {t.base for t in graph.tensors if t.role in ("input", *STORED_ROLES) and t.dtype in FLOATS}
    found = []
    for op in graph.ops:
        found.append(any(graph.tensors[i].base in valued for i in op.inputs))
        if found[-1]:
            valued.update(graph.tensors[o].base for o in op.outputs)
    return found


def _stands_for(groups: Partition, kernels: Sequence[frozenset[int]]) -> list[int | None]:
    """By place: the op itself, the one it is folded into, or None for what the compiler computes once and for all."""
    graph = groups.sheet.graph
    wrote: dict[int, int] = {}
    found: list[int | None] = []
    for place, op in enumerate(graph.ops):
        source = wrote.get(graph.tensors[op.inputs[0]].base) if op.inputs else None
        before = None if source is None else found[source]
        folded = (
            op.kind == "batchnorm"
            and before is not None
            and graph.ops[before].kind == "conv"
            and kernels[place] <= kernels[before]
        )
        found.append(before if folded or not kernels[place] else place)
        if not op.view:
            wrote.update({graph.tensors[o].base: place for o in op.outputs})
    return found


def _is_folded(groups: Partition, kernels: Sequence[frozenset[int]], before: int | None, place: int) -> bool:
    """Is it a batchnorm that went into the convolution before it?"""
    ops = groups.sheet.graph.ops
    if before is None or (ops[before].kind, ops[place].kind) != ("conv", "batchnorm"):
        return False
    return kernels[place] <= kernels[before]


def _in_epilogue(groups: Partition, of: Sequence[int], place: int) -> bool:
    ops = groups.sheet.graph.ops
    if _role(ops[place]) == "matmul":
        return False
    return any(_role(ops[other]) == "matmul" and other != place for other in groups.groups[of[place]].ops)


def _role(op: Op) -> str:
    return OPS[op.kind].role if op.kind in OPS else "opaque"


def _difference(met: _Met) -> str:
    return next((d.name for d in DIFFERENCES if met.ours == d.ours and d.holds(met)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A class of edges on which we and Inductor decide differently, and why that is."""

    name: str
    ours: str
    why: str
    holds: Callable[[_Met], bool]


def _row(name: str, ours: str, why: str, holds: Callable[[_Met], bool]) -> Difference:
    return Difference(name=name, ours=ours, why=why, holds=holds)


# In this order: the first that holds names the difference.
DIFFERENCES = (
    _row("extern GEMM without epilogue", TOGETHER,
         "MKL's matrix product writes its output before anything else is done to it",
         lambda m: _role(m.before) == "matmul" and m.before.kind != "conv"),
    _row("gone with the GEMM", APART,
         "what we put into a matrix product's epilogue stands in the compiler's next loop",
         lambda m: m.in_epilogue),
    _row("mean fused into its producers", APART,
         "a global pool is a mean, which joins the loop that makes its input; our pools stay single",
         lambda m: m.after.kind in ("adaptive_avgpool", "mean")),
    _row("average pool as a loop", APART,
         "a small average pool is computed where it is read; our pools stay single",
         lambda m: m.before.kind == "avgpool"),
    _row("masks and positions", APART,
         "what depends on sizes alone is computed wherever it is needed, at no cost of memory",
         lambda m: not m.of_values),
    _row("masks and positions", TOGETHER,
         "what depends on sizes alone is computed wherever it is needed, at no cost of memory",
         lambda m: not m.of_values),
    _row("computed again", APART,
         "a cheap loop is computed once more in each kernel that reads it, rather than written and read",
         lambda m: m.times_before > 1),
    _row("concat of its own", TOGETHER,
         "each part of a concat is copied into place by a kernel of its own",
         lambda m: "concat" in (m.before.kind, m.after.kind)),
    _row("product as a loop", APART,
         "small batched products read their scaled operand as they compute it",
         lambda m: m.after.kind == "matmul" and "loops" in m.names),
    _row("attention in parts", TOGETHER,
         "an attention that is written out runs as two library calls with a softmax between them",
         lambda m: m.before.kind in ("softmax", "cast") and m.after.kind == "matmul"),
    _row("norm after norm", APART,
         "two norms of the same rows share a kernel; ours have one norm each",
         lambda m: _role(m.before) == _role(m.after) == "norm"),
    _row("norm in two kernels", TOGETHER,
         "statistics and scaling are apart where the output is written in another order",
         lambda m: _role(m.after) == "norm" and m.times_after > 1),
)  # fmt: skip
