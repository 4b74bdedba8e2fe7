"""What each kernel computes in, the kernels of each of our ops out, those ops among them that the compiler merged into
others so that nothing is left under their own name."""

from rooflens.benches.inductor_kernels import Lowered, computed
from rooflens.benches.inductor_record import Recorded
from rooflens.graph.records import Graph, Op, edges, producers
from rooflens.ops.table import OPS

_FOLDS_NORMS = frozenset({"conv", "linear"})

Kernels = tuple[frozenset[int], ...]


def kernels_of_ops(record: Recorded, lowered: Lowered) -> Kernels:
    graph = record.graph
    direct = _direct(record, lowered)
    writer, readers, alive = producers(graph), _readers(graph), _depending(graph)
    found = dict(enumerate(direct))
    for place in reversed(range(len(graph.ops))):  # readers first
        op = graph.ops[place]
        if not direct[place] and place in alive and not _only_moves(op):
            folded = direct[writer[op.inputs[0]]] if _is_folded(graph, op, writer) else frozenset()
            found[place] = folded or frozenset().union(*(found[r] for r in readers.get(place, ())))
    return tuple(frozenset() if op.view else found[place] for place, op in enumerate(graph.ops))


def _direct(record: Recorded, lowered: Lowered) -> Kernels:
    """Per op, the kernels that compute a value which came from its node; of a copy, also those that end in its shape."""
    by_node: dict[tuple[str, str], set[int]] = {}
    values = {v.name: v for v in lowered.values}
    for kernel, names in enumerate(computed(lowered)):
        for value in (values[n] for n in names if n in values):
            by_node.setdefault((value.source, value.role), set()).add(kernel)
    node_of = {place: node for node, places in record.made for place in places}

    def kernels(place: int, op: Op) -> frozenset[int]:
        found = by_node.get((node_of[place], "result"), set())
        return frozenset(found or (by_node.get((node_of[place], "shape"), set()) if _only_moves(op) else found))

    return tuple(kernels(place, op) for place, op in enumerate(record.graph.ops))


def _readers(graph: Graph) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for wrote, read, _ in edges(graph):
        found.setdefault(wrote, []).append(read)
    return found


def _depending(graph: Graph) -> set[int]:
    """Ops that an input of the graph reaches: all others are folded when nothing is left of them."""
    writer = producers(graph)
    alive: set[int] = set()
    for place, op in enumerate(graph.ops):
        if any(graph.tensors[i].role == "input" or writer.get(i) in alive for i in op.inputs):
            alive.add(place)
    return alive


def _only_moves(op: Op) -> bool:
    """Where nothing is left of a copy, or of padding by nothing, it is not merged into its reader but not needed."""
    return op.kind in OPS and OPS[op.kind].role == "move"


def _is_folded(graph: Graph, op: Op, writer: dict[int, int]) -> bool:
    """A normalisation whose scale went into the weights before it, rather than into what reads it."""
    before = writer.get(op.inputs[0])
    return op.kind == "batchnorm" and before is not None and graph.ops[before].kind in _FOLDS_NORMS
