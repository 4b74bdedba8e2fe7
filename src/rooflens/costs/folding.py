"""Graph in, the same Graph out with each batchnorm that follows a convolution or a linear layer folded into its weights.

What is left of it is its shift: one vector, or nothing where the layer before has a bias that takes it up. The op stays,
so that units, flops and layer names are the same with and without folding.
"""

from collections import Counter
from dataclasses import replace

from rooflens.graph.records import Graph, Op

_TAKES = {"conv": 2, "linear": 2}  # how many inputs it has without a bias
_SHIFT = 2  # place of the bias among the inputs of a batchnorm


def folded(graph: Graph) -> Graph:
    writer = {o: op for op in graph.ops for o in op.outputs}
    readers = Counter(i for op in graph.ops for i in set(op.inputs))
    return replace(graph, ops=tuple(_folded(op, writer, readers, graph) for op in graph.ops))


def _folded(op: Op, writer: dict[int, Op], readers: Counter[int], graph: Graph) -> Op:
    if op.kind != "batchnorm":
        return op
    before = writer.get(op.inputs[0])
    if before is None or before.kind not in _TAKES or readers[op.inputs[0]] > 1 or op.inputs[0] in graph.outputs:
        return op
    biased = len(before.inputs) > _TAKES[before.kind]
    left = () if biased or len(op.inputs) <= _SHIFT else (op.inputs[_SHIFT],)
    return replace(op, inputs=(op.inputs[0], *left))
