"""Finished clusters in, the same clusters with products merged into the loops that alone read them.

`late epilogue`: an activation written as several ops. `residual add`: the add, and what follows it, joins the product
that runs last. Nothing outside reads such a product, so that it may run as late as the loop does.
"""

from rooflens.fusion import rules as r
from rooflens.fusion.chain import Chains, Cluster
from rooflens.fusion.flow import NOBODY
from rooflens.graph.records import STORED_ROLES
from rooflens.ops.table import OPS

_ADDS = frozenset({"add"})


def merge_activations(chains: Chains) -> None:
    """Loops that read one product and nothing else but weights."""
    for loop in clusters_of(chains):
        if loop.kind == r.LOOP and _elementwise(chains, loop):
            outside = outside_of(chains, loop)
            if len(outside) == 1 and _only_reader(chains, loop, outside[0]):
                merge(chains, loop, outside[0], r.ACTIVATION)


def merge_residuals(chains: Chains) -> None:
    """A loop whose add joins two branches goes to the product that runs last, where that is one and nobody else reads it."""
    for loop in clusters_of(chains):
        if loop.kind != r.LOOP or not _elementwise(chains, loop):
            continue
        found = [(chains.of[chains.flow.writers[o]], o) for o in _added(chains, loop)]
        last = max(found, key=lambda f: f[0].last if f[0] else NOBODY, default=None)
        if last is not None and _only_reader(chains, loop, last[1]):
            merge(chains, loop, last[1], r.JOIN)


def clusters_of(chains: Chains) -> list[Cluster]:
    """In the order of their last members, in which they may run."""
    found = {id(c): c for c in chains.of if c is not None}
    return sorted(found.values(), key=lambda c: c.last)


def _elementwise(chains: Chains, loop: Cluster) -> bool:
    """Moves change places, which a product's output cannot do on its way to memory."""
    return all(OPS[chains.graph.ops[place].kind].role in r.ELEMENTWISE for place in loop.ops)


def outside_of(chains: Chains, loop: Cluster) -> list[int]:
    """Activations that it reads from memory."""
    tensors, flow = chains.graph.tensors, chains.flow
    found = dict.fromkeys(o for place in loop.ops for o in flow.reads[place])
    return [
        o for o in found
        if tensors[o].role not in STORED_ROLES and tensors[o].elements > 1
        and (flow.writers[o] == NOBODY or chains.of[flow.writers[o]] is not loop)
    ]  # fmt: skip


def _added(chains: Chains, loop: Cluster) -> list[int]:
    """What its adds read of other kernels."""
    flow = chains.flow
    return [
        o for place in loop.ops if chains.graph.ops[place].kind in _ADDS for o in flow.reads[place]
        if flow.writers[o] != NOBODY and chains.of[flow.writers[o]] is not loop
    ]  # fmt: skip


def _only_reader(chains: Chains, loop: Cluster, owner: int) -> bool:
    """Is it a product's output, as large as the loop and of its type, that nobody else of this pass reads?"""
    flow, graph = chains.flow, chains.graph
    writer = flow.writers[owner]
    if writer == NOBODY or owner in flow.kept:
        return False
    product, tensor = chains.of[writer], graph.tensors[owner]
    pass_ = graph.ops[loop.last].pass_
    return (
        product is not None
        and product.kind == r.PRODUCT
        and graph.ops[writer].pass_ == pass_
        and tensor.elements == loop.space
        and tensor.dtype == graph.tensors[graph.ops[loop.last].outputs[0]].dtype
        and all(chains.of[p] is loop for p in flow.readers[owner] if graph.ops[p].pass_ == pass_)
    )


def merge(chains: Chains, loop: Cluster, owner: int, rule: str) -> None:
    product = chains.of[chains.flow.writers[owner]]
    assert product is not None
    for place in loop.ops:
        chains.of[place] = product
        chains.merged_by[place] = rule, chains.flow.writers[owner]
    product.ops += loop.ops
    product.last = max(product.last, loop.last)
