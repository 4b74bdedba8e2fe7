"""Graph in, CostSheet out: work and bytes of every op, from the OPS table and the bytes convention.

FLOP = 2 macs + alu + special. Bytes = distinct inputs, outputs and parameters, each once at its stored type; views move
nothing. What caches or re-reads change is the mapping's business.
"""

from dataclasses import dataclass
from typing import NamedTuple

from rooflens.costs.traffic import Access, reads, writes
from rooflens.costs.weights import STORED_WHOLE, WeightStore
from rooflens.graph.records import FLOATS, STORED_ROLES, Coverage, Graph, Op, Tensor
from rooflens.ops.table import OPS

FLOP_CONVENTION = "flops = 2*macs + alu + special"
BYTES_CONVENTION = (
    "distinct inputs, outputs and parameters of each op, each once at its stored type; views move nothing"
)


class OpCost(NamedTuple):
    """One op's work and bytes; `opaque` work is unknown and stands as None in every report. A named tuple, because one
    is made for each op."""

    macs: int
    alu: int
    special: int
    input_bytes: int
    output_bytes: int
    param_bytes: int
    dtype: str
    unit: str
    opaque: bool = False

    @property
    def flops(self) -> int:
        return flop(self.macs, self.alu, self.special)

    @property
    def bytes(self) -> int:
        return self.input_bytes + self.output_bytes + self.param_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSheet:
    graph: Graph
    rows: tuple[OpCost, ...]
    coverage: Coverage
    weights: WeightStore = STORED_WHOLE

    def traffic(self, place: int) -> tuple[list[Access], list[Access]]:
        """What the op at `place` reads and writes, region by region: the sums of its row."""
        op, tensors = self.graph.ops[place], self.graph.tensors
        if op.view:
            return [], []
        ins, outs = [tensors[i] for i in op.inputs], [tensors[o] for o in op.outputs]
        spec = OPS.get(op.kind)
        return list(reads(op, spec, ins, outs, self.weights)), writes(op, spec, ins, outs)


def flop(macs: int, alu: int, special: int) -> int:
    """The one place that turns work into FLOP."""
    return 2 * macs + alu + special


def cost_sheet(graph: Graph, tf32: bool = False, weights: WeightStore = STORED_WHOLE) -> CostSheet:
    """`tf32`: matrix work on fp32 tensors runs at the tf32 rate, as torch does when its switches allow it."""
    tensors = graph.tensors
    rows = tuple(_cost(op, tensors, tf32, weights) for op in graph.ops)
    return CostSheet(graph=graph, rows=rows, coverage=_coverage(graph, rows), weights=weights)


_VIEW = OpCost(0, 0, 0, 0, 0, 0, "fp32", "vector")


def _cost(op: Op, tensors: tuple[Tensor, ...], tf32: bool, weights: WeightStore) -> OpCost:
    if op.view:
        return _VIEW
    ins, outs = [tensors[i] for i in op.inputs], [tensors[o] for o in op.outputs]
    spec = OPS.get(op.kind)
    read = params = 0
    for access in reads(op, spec, ins, outs, weights):
        if access.stored:
            params += access.bytes
        else:
            read += access.bytes
    written = sum(access.bytes for access in writes(op, spec, ins, outs))
    dtype = compute_dtype(ins, outs)
    if spec is None:
        return OpCost(0, 0, 0, read, written, params, dtype, "vector", True)
    if tf32 and dtype == "fp32" and spec.unit == "matrix":
        dtype = "tf32"
    macs, alu, special = spec.work(op, ins, outs)
    return OpCost(macs, alu, special, read, written, params, dtype, spec.unit)


def compute_dtype(ins: list[Tensor], outs: list[Tensor]) -> str:
    """The type the work is done in: that of the first floating activation, else of any tensor."""
    both = [*ins, *outs]
    for t in both:
        if t.dtype in FLOATS and t.role not in STORED_ROLES:
            return t.dtype
    for t in both:
        if t.dtype in FLOATS or t.dtype == "int8":
            return t.dtype
    return both[0].dtype if both else "fp32"


def _coverage(graph: Graph, rows: tuple[OpCost, ...]) -> Coverage:
    found: dict[str, tuple[int, str]] = {}
    for op, row in zip(graph.ops, rows, strict=True):
        if row.opaque:
            count, example = found.get(op.kind, (0, op.id))
            found[op.kind] = (count + 1, example)
    opaque = tuple((kind, count, example) for kind, (count, example) in sorted(found.items()))
    return Coverage(ops=len(graph.ops), opaque=opaque)
