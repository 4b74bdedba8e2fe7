"""One op in, the textbook's view of it out: operations and bytes per output element at a stated reuse.

`none`: each operand use of an interior output element is a read, weights stay on chip (a 3x3 convolution reads 9 and
writes 1). `line-buffer`: every input element comes from outside once, and the window is kept in line buffers.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod

from rooflens.costs.sheet import OpCost
from rooflens.graph.records import BITS, STORED_ROLES, Op, Tensor
from rooflens.ops.reduce import covered

MODES = ("none", "line-buffer", "compulsory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """`apart_bytes_per_output` is what the members of a group move when each runs by itself."""

    mode: str
    ops_per_output: float
    bytes_per_output: float
    apart_bytes_per_output: float

    @property
    def intensity(self) -> float | None:
        return self.ops_per_output / self.bytes_per_output if self.bytes_per_output else None

    @property
    def apart_intensity(self) -> float | None:
        return self.ops_per_output / self.apart_bytes_per_output if self.apart_bytes_per_output else None


def reuse_of(op: Op, tensors: tuple[Tensor, ...], cost: OpCost, mode: str) -> Reuse | None:
    """None where the view has no meaning: views, opaque ops, ops whose outputs are not made one by one, and `compulsory`,
    which `bytes` already tells."""
    return reuse_together(((op, cost),), tensors, mode, frozenset(op.outputs))


def reuse_together(
    members: Sequence[tuple[Op, OpCost]], tensors: tuple[Tensor, ...], mode: str, written: Collection[int]
) -> Reuse | None:
    """Of ops that run as one: per output element of the first of them, what all of them do, and read and write outside
    the group. `written` are the outputs that reach memory."""
    running = [(op, cost) for op, cost in members if not op.view]
    if mode == "compulsory" or not running or any(cost.opaque or not op.outputs for op, cost in running):
        return None
    count = prod(tensors[running[0][0].outputs[0]].shape)
    inside = {tensors[o].base for op, _ in running for o in op.outputs}
    moved = [_moved(op, tensors, cost.unit, mode, inside, written) for op, cost in running]
    apart = [_moved(op, tensors, cost.unit, mode, (), op.outputs) for op, cost in running]
    if not count or any(m is None for m in moved):
        return None
    return Reuse(
        mode=mode,
        ops_per_output=sum(cost.flops for _, cost in running) / count,
        bytes_per_output=sum(m for m in moved if m is not None) / count,
        apart_bytes_per_output=sum(m for m in apart if m is not None) / count,
    )


def _moved(
    op: Op, tensors: tuple[Tensor, ...], unit: str, mode: str, inside: Collection[int], written: Collection[int]
) -> float | None:
    """Bytes of all outputs of one op: as many times what one of them takes."""
    ins, outs = [tensors[i] for i in op.inputs], [tensors[o] for o in op.outputs]
    uses = _uses(op, ins, outs, unit) if mode == "none" else _once(op, ins, outs)
    if uses is None:
        return None
    read = sum(times * BITS[t.dtype] / 8 for t, times in uses if t.base not in inside)
    return prod(outs[0].shape) * (read + (BITS[outs[0].dtype] / 8 if op.outputs[0] in written else 0.0))


def _operands(ins: list[Tensor]) -> list[Tensor]:
    return [t for t in ins if t.role not in STORED_ROLES]


def _once(op: Op, ins: list[Tensor], outs: list[Tensor]) -> "Uses":
    """Every input element comes in once. Under a moving window that is as many as the window moves on by."""
    count, found = prod(outs[0].shape), _operands(ins)
    uses = [(t, t.elements / count if count else 0.0) for t in found]
    fresh = _fresh(op, ins)
    return [(found[0], fresh), *uses[1:]] if found and fresh is not None else uses


def _fresh(op: Op, ins: list[Tensor]) -> float | None:
    """Input elements that an interior output of a convolution or pool is the first to read; None for other ops."""
    if op.attr("transposed") or op.kind not in ("conv", "maxpool", "avgpool"):
        return None
    kernel = ins[1].shape[2:] if op.kind == "conv" else op.attr("kernel")
    assert isinstance(kernel, tuple)
    stride = op.attr("stride", 1 if op.kind == "conv" else kernel)
    steps = stride if isinstance(stride, tuple) else (int(stride or 1),) * len(kernel)
    if len(steps) != len(kernel):
        return None
    dilation = op.attr("dilation", 1)
    spread = dilation if isinstance(dilation, tuple) and len(dilation) == len(kernel) else (1,) * len(kernel)
    moved = prod(min(s, d * (k - 1) + 1) for s, k, d in zip(steps, kernel, spread, strict=True))
    return moved * ins[0].shape[1] / ins[1].shape[0] if op.kind == "conv" else float(moved)


def _uses(op: Op, ins: list[Tensor], outs: list[Tensor], unit: str) -> "Uses | None":
    """What is read for one output element when nothing that was read before is still at hand."""
    if op.kind in _USES:
        return _USES[op.kind](op, ins, outs)
    if unit == "matrix" or op.kind in _UNDEFINED or (op.kind.endswith("_backward") and op.attr("kernel")):
        return None
    return _elementwise(op, ins, outs)


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
    "concat": lambda op, ins, outs: [(t, prod(t.shape) / prod(outs[0].shape)) for t in ins],  # one of them each
}
_UNDEFINED = ("scan", "scan_backward", "sort", "fft")  # an output is made from whole rows, or from the one before it
