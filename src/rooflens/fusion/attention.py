"""Finished clusters in, the same clusters with each written-out attention as one out: a product of two activations, a
softmax over its rows, the product with it.

Scores that nobody else reads stay on chip, block by block, as in an attention that is one op. Nothing outside reads what
is between the two products, so that all of it may run as late as the second one does.
"""

from rooflens.fusion import rules as r
from rooflens.fusion.chain import Chains, Cluster
from rooflens.fusion.flow import NOBODY
from rooflens.fusion.merge import merge, outside_of
from rooflens.graph.records import STORED_ROLES, Op, producers
from rooflens.ops.table import OPS

_STRAIGHT = frozenset({"view", "flatten", "expand", "dropout_eval", "identity"})  # views that leave rows where they are


def merge_attention(chains: Chains) -> None:
    """Scores, softmax and the product with it, where nobody else reads what is between them."""
    softmaxes = {id(c): c for c in chains.of if c is not None and c.norm == "softmax"}
    made = producers(chains.graph) if softmaxes else {}
    for rows in softmaxes.values():
        scores = [o for o in outside_of(chains, rows) if _is_scores(chains, rows, o)]
        reader = _reader(chains, rows, made)
        if scores and reader is not None:
            last = max(scores, key=chains.flow.writers.__getitem__)
            merge(chains, rows, last, r.ATTENTION)
            _follow(chains, last, reader)


def _only_softmax(chains: Chains, rows: Cluster, scores: int) -> bool:
    """Along the last axis, besides what is done to each score. What else it adds (a mask, a bias found by index) may be
    computed where it is read."""
    graph, of_scores = chains.graph, {scores}
    for place in sorted(rows.ops):
        op = graph.ops[place]
        in_place = OPS[op.kind].role in r.ELEMENTWISE or op.kind == "cast"
        if not of_scores.isdisjoint(chains.flow.reads[place]):
            of_scores.update(graph.tensors[o].base for o in op.outputs)
            if not in_place and (op.kind != "softmax" or op.attr("axis") is not None):
                return False
        elif not in_place and OPS[op.kind].role not in ("move", "lookup"):
            return False
    return True


def _is_scores(chains: Chains, rows: Cluster, owner: int) -> bool:
    """Is it a product of two activations that only this softmax reads, row by row?"""
    flow, graph = chains.flow, chains.graph
    writer = flow.writers[owner]
    product = chains.of[writer] if writer != NOBODY else None
    if product is None or graph.ops[writer].pass_ != graph.ops[rows.last].pass_:
        return False
    if not _is_one_product(chains, product) or not _is_of_activations(chains, graph.ops[product.ops[0]]):
        return False
    made = [
        graph.tensors[o] for place in rows.ops for o in graph.ops[place].outputs if graph.ops[place].kind == "softmax"
    ]
    tensor = graph.tensors[owner]
    alike = tensor.elements == rows.space and all(t.shape[-1:] == tensor.shape[-1:] for t in made)
    return alike and _all_read_it(chains, rows, owner) and _only_softmax(chains, rows, owner)


def _is_one_product(chains: Chains, cluster: Cluster) -> bool:
    """Not two already, with a softmax between them."""
    return cluster.kind == r.PRODUCT and not any(chains.graph.ops[p].kind == "softmax" for p in cluster.ops)


def _is_of_activations(chains: Chains, op: Op) -> bool:
    tensors = chains.graph.tensors
    return op.kind in ("matmul", "addmm") and all(tensors[i].role not in STORED_ROLES for i in op.inputs[-2:])


def _all_read_it(chains: Chains, rows: Cluster, owner: int) -> bool:
    """Nobody else of its pass reads it, and it is no result."""
    flow, pass_ = chains.flow, chains.graph.ops[rows.last].pass_
    mine = [chains.of[p] is rows for p in flow.readers[owner] if chains.graph.ops[p].pass_ == pass_]
    return owner not in flow.kept and all(mine)


def _reader(chains: Chains, rows: Cluster, made: dict[int, int]) -> int | None:
    """Place of the one product that reads what the softmax made, as its left side and row by row."""
    flow, graph = chains.flow, chains.graph
    pass_ = graph.ops[rows.last].pass_
    wrote = {graph.tensors[o].base for place in rows.ops for o in graph.ops[place].outputs}
    if wrote & flow.kept:
        return None
    found = {
        p for o in wrote for p in flow.readers[o] if chains.of[p] is not rows and graph.ops[p].pass_ == pass_
    }  # fmt: skip
    if len(found) != 1:
        return None
    (place,) = found
    op = graph.ops[place]
    if op.kind != "matmul" or not _is_straight(chains, op.inputs[0], made):
        return None
    product, sides = chains.of[place], [graph.tensors[i].base in wrote for i in op.inputs]
    return place if product is not None and _is_one_product(chains, product) and sides == [True, False] else None


def _is_straight(chains: Chains, tensor: int, made: dict[int, int]) -> bool:
    """Is it seen as it was written, not transposed or in part?"""
    while tensor in made and chains.graph.ops[made[tensor]].view:
        op = chains.graph.ops[made[tensor]]
        if op.kind not in _STRAIGHT:
            return False
        tensor = op.inputs[0]
    return True


def _follow(chains: Chains, owner: int, reader: int) -> None:
    """What made the scores goes where they are read: the merged kernel runs as late as that."""
    first, product = chains.of[chains.flow.writers[owner]], chains.of[reader]
    assert first is not None and product is not None
    for place in product.ops:
        chains.merged_by[place] = r.ATTENTION, reader
    for place in first.ops:
        chains.of[place] = product
    product.ops = first.ops + product.ops
