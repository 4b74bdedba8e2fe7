"""Graph in, Flow out: which kernel wrote each piece of memory, and which kernels read it.

Views are looked through: what counts is the tensor that owns the bytes. A kernel is an op that is not a view.
"""

from dataclasses import dataclass

from rooflens.graph.records import Graph

NOBODY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """`reads` and `views` are by place of the op, `writers` and `readers` by id of the tensor that owns the memory."""

    reads: tuple[tuple[int, ...], ...]  # distinct owners that the kernel reads, in the order of its inputs
    writers: tuple[int, ...]  # place of the kernel that wrote it; NOBODY for inputs, parameters, buffers and states
    readers: tuple[tuple[int, ...], ...]  # places, in the order they run
    kept: frozenset[int]  # owners that stay written whoever reads them: results, and what outlives the run

    def writer_of(self, owner: int) -> int:
        return self.writers[owner]


def flow_of(graph: Graph) -> Flow:
    owner = [t.base for t in graph.tensors]
    writers = [NOBODY] * len(owner)
    readers: list[list[int]] = [[] for _ in owner]
    reads: list[tuple[int, ...]] = []
    for place, op in enumerate(graph.ops):
        if op.view:
            reads.append(())
            continue
        found = tuple(dict.fromkeys([owner[i] for i in op.inputs]))
        reads.append(found)
        for base in found:
            readers[base].append(place)
        for o in op.outputs:
            writers[owner[o]] = place
    return Flow(
        reads=tuple(reads),
        writers=tuple(writers),
        readers=tuple(tuple(r) for r in readers),
        kept=frozenset(owner[o] for o in graph.outputs) | _lasting(graph),
    )


def _lasting(graph: Graph) -> frozenset[int]:
    """What an op writes into a parameter, buffer, state or input keeps that tensor's name."""
    return frozenset(t.base for t in graph.tensors if t.role == "activation" and t.name)
