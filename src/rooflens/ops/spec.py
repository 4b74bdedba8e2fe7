"""What a kind of op means: one OpSpec row each, pure functions of shapes.

Row in: an op's tensors and attributes. Row out: its work as macs, alu and special, counted per the contract's table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from rooflens.graph.records import Attr, Op, Tensor


class Work(NamedTuple):
    """A named tuple and not a dataclass: one is made per op, and a 100,000-op graph feels the difference."""

    macs: int = 0
    alu: int = 0
    special: int = 0


Shapes = tuple[tuple[int, ...], ...]
WorkRule = Callable[[Op, list[Tensor], list[Tensor]], Work]
ShareRule = Callable[[Op, list[Tensor], list[Tensor]], Sequence[int]]  # elements of each input, or of each output


@dataclass(frozen=True, slots=True, kw_only=True)
class Grad:
    """One backward kernel of an op. Tokens: g the output's gradient, y the output, i0 i1 … inputs, d0 d1 … their
    gradients; a T behind one means that it is read as a transposed matrix."""

    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A worked example, counted by hand: fp32 tensors in, work and bytes out."""

    inputs: Shapes
    outputs: Shapes
    params: Shapes = ()
    attrs: tuple[tuple[str, Attr], ...] = ()
    macs: int = 0
    flops: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSpec:
    kind: str
    family: str
    unit: str  # matrix | vector: the kind of unit whose roof is above it
    role: str  # what fusion may do with it: see ROLES
    formula: str
    work: WorkRule
    example: Example
    backward: tuple[Grad, ...] = ()
    reads: ShareRule | None = None  # how much of each input, where it is not all (a lookup, not a sweep)
    writes: ShareRule | None = None  # how much of each output, where it is not all (an indexed store)


ROLES = {
    "matmul": "a product whose kernel can go on with what is done to each of its outputs",
    "gradient": "products that write several gradients: nothing joins them",
    "attention": "one kernel of its own",
    "recurrent": "one kernel of its own",
    "scan": "one kernel of its own",
    "affine": "a scale and a shift a channel: element by element",
    "pointwise": "element by element",
    "norm": "needs a whole row before it can write the first element",
    "reduction": "a row becomes one element",
    "move": "copies and joins, which a generated kernel does with its indices",
    "lookup": "rows found by index, which a generated kernel can start from",
    "index": "moves that a kernel of their own does",
    "pool": "one kernel of its own",
    "own": "one kernel of its own",
    "update": "an optimizer's update of one parameter",
    "view": "moves nothing",
}


def grad(kind: str, reads: str, writes: str) -> Grad:
    return Grad(kind=kind, reads=tuple(reads.split()), writes=tuple(writes.split()))


def numel(tensor: Tensor) -> int:
    return prod(tensor.shape)


def per_output(alu: int, special: int = 0) -> WorkRule:
    """So many operations for each element of the first output."""

    def rule(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
        count = prod(outs[0].shape)
        return Work(0, alu * count, special * count)

    return rule


def per_input(alu: int, special: int = 0) -> WorkRule:
    """So many operations for each element of the first input: reductions."""

    def rule(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
        count = prod(ins[0].shape)
        return Work(0, alu * count, special * count)

    return rule


def first_read(count: Callable[[Op, list[Tensor], list[Tensor]], int]) -> ShareRule:
    """At most so many elements of the first input, all of the others."""
    return lambda op, ins, outs: [count(op, ins, outs), *(t.elements for t in ins[1:])]


def first_written(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Sequence[int]:
    """The others are bookkeeping for a backward that may never come."""
    return [outs[0].elements, *(0 for _ in outs[1:])]


def nothing(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    return Work()


def spelled(alu: int, special: int, per: str) -> str:
    """The formula column of `rooflens ops list`."""
    parts = [f"{alu} alu" if alu else "", f"{special} special" if special else ""]
    return " + ".join(p for p in parts if p) + f" per {per}" if alu or special else "0"


_SHAPE = (2, 3, 4)  # 24 elements, the worked example of every row that counts per element


def pointwise(kind: str, alu: int, special: int = 0, *, reads: int = 1, backward: tuple[Grad, ...] = ()) -> OpSpec:
    """A row whose every output element costs the same."""
    return OpSpec(
        kind=kind,
        family="pointwise",
        unit="vector",
        role="pointwise",
        formula=spelled(alu, special, "output element"),
        work=per_output(alu, special),
        backward=backward,
        example=Example(
            inputs=(_SHAPE,) * reads, outputs=(_SHAPE,), flops=24 * (alu + special), bytes=24 * 4 * (reads + 1)
        ),
    )
