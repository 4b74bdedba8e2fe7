"""One op in, the textbook's view of it out: operations and bytes per output element at a stated reuse.

`none`: each operand use of an interior output element is a read, weights stay on chip (a 3x3 convolution reads 9 and
writes 1). `line-buffer`: every input element comes from outside once, and the window is kept in line buffers.
"""

from dataclasses import dataclass
from math import prod

from rooflens.costs.sheet import OpCost
from rooflens.graph.records import BITS, STORED_ROLES, Op, Tensor

MODES = ("none", "line-buffer", "compulsory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    mode: str
    ops_per_output: float
    bytes_per_output: float

    @property
    def intensity(self) -> float | None:
        return self.ops_per_output / self.bytes_per_output if self.bytes_per_output else None


def reuse_of(op: Op, tensors: tuple[Tensor, ...], cost: OpCost, mode: str) -> Reuse | None:
    """None where the view has no meaning: views, opaque ops, and `compulsory`, which `bytes` already tells."""
    if mode == "compulsory" or op.view or cost.opaque or not op.outputs:
        return None
    out = tensors[op.outputs[0]]
    count = prod(out.shape)
    if not count:
        return None
    moved = _reads(op, tensors, count) if mode == "none" else _once(op, tensors, count)
    return Reuse(mode=mode, ops_per_output=cost.flops / count, bytes_per_output=moved + BITS[out.dtype] / 8)


def _operands(op: Op, tensors: tuple[Tensor, ...]) -> list[Tensor]:
    return [tensors[i] for i in op.inputs if tensors[i].role not in STORED_ROLES]


def _once(op: Op, tensors: tuple[Tensor, ...], count: int) -> float:
    return sum(t.bytes for t in _operands(op, tensors)) / count


def _reads(op: Op, tensors: tuple[Tensor, ...], count: int) -> float:
    """Bytes read for one output element when nothing that was read before is still at hand."""
    operands = _operands(op, tensors)
    if not operands:
        return 0.0
    first = operands[0]
    return _uses(op, tensors, first, count) * BITS[first.dtype] / 8 + sum(
        (_uses(op, tensors, t, count) if op.kind in ("matmul", "addmm") else 1) * BITS[t.dtype] / 8
        for t in operands[1:]
    )


def _uses(op: Op, tensors: tuple[Tensor, ...], operand: Tensor, count: int) -> float:
    """How many elements of an operand one output element is made from."""
    kernel = op.attr("kernel")
    if op.kind == "conv":
        weight, groups = tensors[op.inputs[1]].shape, op.attr("groups")
        channels = weight[0] // groups if op.attr("transposed") and isinstance(groups, int) else weight[1]
        return prod(weight[2:]) * channels
    if isinstance(kernel, tuple):
        return prod(kernel)
    if op.kind in ("linear", "matmul", "addmm"):
        return operand.shape[-1] if operand.shape else 1
    return max(1.0, prod(operand.shape) / count)
