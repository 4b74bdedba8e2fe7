"""One op in, the textbook's view of it out: operations and bytes per output element at a stated reuse.

`none`: each operand use of an interior output element is a read, weights stay on chip (a 3x3 convolution reads 9 and
writes 1). `line-buffer`: every input element comes from outside once, and the window is kept in line buffers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, gcd, prod

from rooflens.costs.sheet import OpCost
from rooflens.graph.records import BITS, STORED_ROLES, Op, Tensor
from rooflens.ops.reduce import covered

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
    """None where the view has no meaning: views, opaque ops, ops whose outputs are not made one by one, and `compulsory`,
    which `bytes` already tells."""
    if mode == "compulsory" or op.view or cost.opaque or not op.outputs:
        return None
    out = tensors[op.outputs[0]]
    count = prod(out.shape)
    if not count:
        return None
    ins, outs = [tensors[i] for i in op.inputs], [tensors[o] for o in op.outputs]
    moved = _reads(op, ins, outs, cost.unit) if mode == "none" else _once(ins, count)
    if moved is None:
        return None
    return Reuse(mode=mode, ops_per_output=cost.flops / count, bytes_per_output=moved + BITS[out.dtype] / 8)


def _operands(ins: list[Tensor]) -> list[Tensor]:
    return [t for t in ins if t.role not in STORED_ROLES]


def _once(ins: list[Tensor], count: int) -> float:
    return sum(t.bytes for t in _operands(ins)) / count


def _reads(op: Op, ins: list[Tensor], outs: list[Tensor], unit: str) -> float | None:
    """Bytes read for one output element when nothing that was read before is still at hand."""
    if op.kind in _USES:
        uses = _USES[op.kind](op, ins, outs)
    elif unit == "matrix" or op.kind in _UNDEFINED or (op.kind.endswith("_backward") and op.attr("kernel")):
        return None
    else:
        uses = _elementwise(op, ins, outs)
    return sum(times * BITS[t.dtype] / 8 for t, times in uses)


Uses = list[tuple[Tensor, float]]  # an operand, and how many of its elements one output element is made from


def _elementwise(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Uses:
    """A window of the first operand, or its share of what is reduced; one element of every other."""
    kernel, operands = op.attr("kernel"), _operands(ins)
    if not operands:
        return []
    share = prod(kernel) if isinstance(kernel, tuple) else prod(operands[0].shape) / prod(outs[0].shape)
    return [(operands[0], max(1.0, share)), *((t, 1.0) for t in operands[1:])]


def _conv(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Uses:
    """The taps of each channel of the group. A stride spreads the taps of a transposed one over as many outputs."""
    groups, weight = op.attr("groups", 1), ins[1].shape
    assert isinstance(groups, int)
    if not op.attr("transposed"):
        return [(ins[0], prod(weight[1:]))]
    taps = zip(weight[2:], _axes(op, "stride", weight), _axes(op, "dilation", weight), strict=True)
    return [(ins[0], weight[0] // groups * prod(ceil(k * gcd(s, d) / s) for k, s, d in taps))]


def _axes(op: Op, name: str, weight: tuple[int, ...]) -> tuple[int, ...]:
    found = op.attr(name, 1)
    sizes = found if isinstance(found, tuple) else (int(found or 1),)
    return sizes if len(sizes) == len(weight) - 2 else sizes[:1] * (len(weight) - 2)


def _adaptive(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Uses:
    """The mean size of its windows, which overlap where the sizes do not divide."""
    axes = op.attr("axes", 2)
    assert isinstance(axes, int)
    x, y = ins[0].shape[-axes:], outs[0].shape[-axes:]
    return [(ins[0], prod(covered(a, b) / b for a, b in zip(x, y, strict=True)))]


def _attention(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Uses:
    """A row of q, all of k, a column of v, and of a mask one value a score."""
    q, k, v = ins[:3]
    context = k.shape[-2]
    return [(q, q.shape[-1]), (k, context * k.shape[-1]), (v, context), *((t, context) for t in ins[3:4])]


def _addmm(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Uses:
    added, first, second = ins[:3]
    inner = first.shape[-1]
    return [(t, n) for t, n in ((added, 1.0), (first, inner), (second, inner)) if t.role not in STORED_ROLES]


def _product(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Uses:
    """A row of one and a column of the other: as long as each other."""
    return [(t, ins[0].shape[-1]) for t in _operands(ins[:2])]


_USES: dict[str, Callable[[Op, list[Tensor], list[Tensor]], Uses]] = {
    "conv": _conv,
    "linear": lambda op, ins, outs: [(ins[0], ins[0].shape[-1])],
    "matmul": _product,
    "addmm": _addmm,
    "attention": _attention,
    "adaptive_avgpool": _adaptive,
    "adaptive_maxpool": _adaptive,
    "concat": lambda op, ins, outs: [(outs[0], 1.0)],  # one element of whichever operand it comes from
}
_UNDEFINED = ("scan", "scan_backward", "sort", "fft")  # an output is made from whole rows, or from the one before it
