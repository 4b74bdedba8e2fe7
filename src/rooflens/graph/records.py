"""What a network is: tensors with a storage type, ops in the order they run, and the edges between them.

Frontends build a Graph; every later stage only reads it. A tensor that is a view names the tensor that owns its
storage (`base`), so that a value read through two views counts once and a view moves nothing.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from rooflens.errors import GraphError

BITS = {
    "fp64": 64, "fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "uint8": 8, "int4": 4, "fp4": 4,
    "bool": 8, "int16": 16, "int32": 32, "int64": 64, "complex64": 64, "complex128": 128, "uint16": 16, "uint32": 32,
    "uint64": 64, "complex32": 32,
}  # fmt: skip
FLOATS = frozenset({"fp64", "fp32", "tf32", "bf16", "fp16", "fp8"})
PASSES = ("forward", "backward", "optimizer")
STORED_ROLES = frozenset({"param", "buffer"})

Attr = int | float | bool | str | None | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """`elements` are the distinct stored ones: an expanded (broadcast) dimension counts once."""

    id: int
    shape: tuple[int, ...]
    dtype: str
    role: str  # input | param | buffer | state | gradient (given to backward) | activation
    base: int
    elements: int
    offset: int = 0
    name: str = ""
    trainable: bool = False

    @property
    def bytes(self) -> int:
        return stored_bytes(self.elements, self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One call that a user would name. `view` ops move nothing and launch nothing."""

    id: str
    kind: str
    module: str
    pass_: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attrs: tuple[tuple[str, Attr], ...] = ()
    view: bool = False

    def attr(self, name: str, default: Attr = None) -> Attr:
        for key, value in self.attrs:
            if key == name:
                return value
        return default


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    name: str
    source: str
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    params: int
    param_bytes: int
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Which ops could not be counted, so that nothing is silently zero."""

    ops: int
    opaque: tuple[tuple[str, int, str], ...]  # kind, count, id of an example

    @property
    def share_counted(self) -> float:
        return 1.0 if self.ops == 0 else 1.0 - sum(n for _, n, _ in self.opaque) / self.ops


def stored_bytes(elements: int, dtype: str) -> int:
    return (elements * BITS[dtype] + 7) // 8


def elements_of(shape: tuple[int, ...]) -> int:
    return prod(shape)


def region(tensor: Tensor) -> tuple[int, int, int]:
    """Two tensors with equal regions are the same bytes, whatever shape they are seen in."""
    return tensor.base, tensor.offset, tensor.elements


def verify(graph: Graph) -> Graph:
    """The graph itself, or a GraphError naming the first op that does not hold together."""
    _verify_tensors(graph)
    _verify_ops(graph)
    return graph


def _verify_tensors(graph: Graph) -> None:
    count = len(graph.tensors)
    for place, tensor in enumerate(graph.tensors):
        if tensor.id != place:
            raise GraphError(f"tensor {tensor.id} stands at place {place}: ids must be places")
        if not 0 <= tensor.base < count or tensor.dtype not in BITS:
            raise GraphError(f"tensor {place}: base {tensor.base} or dtype '{tensor.dtype}' is unknown")


def _verify_ops(graph: Graph) -> None:
    produced = {t.id for t in graph.tensors if t.role != "activation" and t.base == t.id}
    ids: set[str] = set()
    tensors = graph.tensors
    for op in graph.ops:
        if op.id in ids:
            raise GraphError(f"op id '{op.id}' is used twice")
        ids.add(op.id)
        for i in op.inputs:
            if i not in produced and tensors[i].base not in produced:
                raise GraphError(f"op '{op.id}' reads tensor {i} before any op wrote it")
        for o in op.outputs:
            if o in produced:
                raise GraphError(f"op '{op.id}' writes tensor {o}, which another op wrote")
            produced.add(o)


def producers(graph: Graph) -> dict[int, int]:
    """Tensor id to the place of the op that wrote it; a view without an op of its own has its base's writer."""
    found = {o: place for place, op in enumerate(graph.ops) for o in op.outputs}
    for tensor in graph.tensors:
        if tensor.id not in found and tensor.base in found:
            found[tensor.id] = found[tensor.base]
    return found


def edges(graph: Graph) -> Iterator[tuple[int, int, int]]:
    """(producing op, reading op, tensor), by place."""
    wrote = producers(graph)
    for place, op in enumerate(graph.ops):
        for i in dict.fromkeys(op.inputs):
            if i in wrote and wrote[i] != place:
                yield wrote[i], place, i


def graph_hash(graph: Graph) -> str:
    """A content hash that is the same in every process."""
    digest = hashlib.sha256()
    for t in graph.tensors:
        digest.update(f"{t.shape}{t.dtype}{t.role}{t.base}.{t.offset}.{t.elements};".encode())
    for op in graph.ops:
        row = (op.id, op.kind, op.pass_, op.inputs, op.outputs, op.attrs)
        digest.update(json.dumps(row, ensure_ascii=True).encode())
    return digest.hexdigest()[:16]


def retyped(graph: Graph, activation: str, weight: str, matrix_weights: frozenset[int] | None = None) -> Graph:
    """The same graph with its floating tensors stored in other types; `matrix_weights` limits which params change."""

    def change(t: Tensor) -> Tensor:
        if t.dtype not in FLOATS:
            return t
        is_weight = t.role in STORED_ROLES and (matrix_weights is None or t.base in matrix_weights)
        return Tensor(  # not dataclasses.replace: four times slower, and advice retypes every tensor of the graph
            id=t.id, shape=t.shape, dtype=weight if is_weight else activation, role=t.role, base=t.base,
            elements=t.elements, offset=t.offset, name=t.name, trainable=t.trainable,
        )  # fmt: skip

    tensors = tuple(change(t) for t in graph.tensors)
    param_bytes = unique_param_bytes(tensors)
    return replace(graph, tensors=tensors, param_bytes=param_bytes)


def unique_param_bytes(tensors: tuple[Tensor, ...]) -> int:
    return sum(t.bytes for t in tensors if t.role in STORED_ROLES and t.base == t.id)
