"""Graph in, Flow out: which kernel wrote each piece of memory, and which kernels read it.

Views are looked through: what counts is the tensor that owns the bytes. A kernel is an op that is not a view.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rooflens.graph.records import Graph

NOBODY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """`reads` is by place of the op, `writers` and `readers` by id of the tensor that owns the memory."""

    reads: Sequence[Sequence[int]]  # distinct owners that the kernel reads, in the order of its inputs
    writers: Sequence[int]  # place of the kernel that wrote it; NOBODY for inputs, parameters, buffers and states
    readers: Sequence[Sequence[int]]  # places, in the order they run
    kept: frozenset[int]  # owners that stay written whoever reads them: results, and what outlives the run


def flow_of(graph: Graph) -> Flow:
    owner = [t.base for t in graph.tensors]
    writers = [NOBODY] * len(owner)
    readers: list[list[int]] = [[] for _ in owner]
    reads: list[tuple[int, ...]] = []
    for place, op in enumerate(graph.ops):
        if op.view:
            reads.append(())
            continue
        found = tuple({owner[i]: None for i in op.inputs})
        reads.append(found)
        for base in found:
            readers[base].append(place)
        for o in op.outputs:
            writers[owner[o]] = place
    return Flow(
        reads=reads,
        writers=writers,
        readers=readers,
        kept=frozenset(owner[o] for o in graph.outputs) | _lasting(graph),
    )


def _lasting(graph: Graph) -> frozenset[int]:
    """What an op writes into a parameter, buffer, state or input keeps that tensor's name."""
    return frozenset(t.base for t in graph.tensors if t.role == "activation" and t.name)
