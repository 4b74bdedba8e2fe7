"""Ops that move data, look it up or make it: copies, casts, joins, gathers, resizes, fills; views, which do not even
move; and the optimizer's update of each parameter."""

from math import prod

from rooflens.graph.records import Op, Tensor
from rooflens.ops.spec import (
    Example,
    Grad,
    OpSpec,
    Work,
    WorkRule,
    first_read,
    grad,
    nothing,
    per_input,
    per_output,
    spelled,
)

_X = (2, 3, 4)


def _move(kind: str, alu: int = 0, reads: int = 1, backward: tuple[Grad, ...] = (), role: str = "index") -> OpSpec:
    work: WorkRule = per_output(alu) if alu else nothing
    return OpSpec(
        kind=kind, family="move", unit="vector", role=role, formula=spelled(alu, 0, "output element"), work=work,
        backward=backward,
        example=Example(inputs=(_X,) * reads, outputs=(_X,), flops=24 * alu, bytes=96 * (reads + 1)),
    )  # fmt: skip


def _returned(op: Op, ins: list[Tensor], outs: list[Tensor]) -> int:
    return outs[0].elements


def _rows(op: Op, ins: list[Tensor], outs: list[Tensor]) -> int:
    """Elements of the rows of a table, the first input, that the second names."""
    return prod(ins[1].shape) * ins[0].shape[-1]


def _lookup(kind: str, backward: tuple[Grad, ...] = ()) -> OpSpec:
    """Reads only the rows that it returns: 2 of 10 rows of 4, by 2 indices."""
    return OpSpec(
        kind=kind, family="move", unit="vector", role="lookup", formula="0", work=nothing, reads=first_read(_returned),
        backward=backward,
        example=Example(inputs=((10, 4), (2,)), outputs=((2, 4),), bytes=4 * (8 + 2 + 8)),
    )  # fmt: skip


def _stored(op: Op, ins: list[Tensor], outs: list[Tensor]) -> int:
    """`stored` says how many elements an indexed store writes: its values may be one number for all of them."""
    count = op.attr("stored")
    return count if isinstance(count, int) else prod(ins[0].shape)


def _store(kind: str, alu: int = 0) -> OpSpec:
    """Writes only where it is told to: one number into 2 rows of 4, of 10; the rest stays where it is."""
    return OpSpec(
        kind=kind, family="move", unit="vector", role="index", formula=spelled(alu, 0, "stored element"),
        work=lambda op, ins, outs: Work(0, alu * _stored(op, ins, outs)), reads=first_read(_stored),
        writes=lambda op, ins, outs: [_stored(op, ins, outs)],
        example=Example(inputs=((1,), (2,)), outputs=((10, 4),), attrs=(("stored", 8),), flops=8 * alu,
                        bytes=4 * (1 + 2 + 8)),
    )  # fmt: skip


def _view(kind: str, backward: tuple[Grad, ...] = (grad("identity", "g", "d0"),)) -> OpSpec:
    return OpSpec(
        kind=kind, family="view", unit="vector", role="view", formula="0", work=nothing, backward=backward,
        example=Example(inputs=(_X,), outputs=(_X,), bytes=0),
    )  # fmt: skip


def _update(kind: str, alu: int, special: int, tensors: int, written: int) -> OpSpec:
    """One fused update per parameter: reads it, its gradient and its state, writes it and its state."""
    return OpSpec(
        kind=kind, family="optimizer", unit="vector", role="update", formula=spelled(alu, special, "parameter"),
        work=per_output(alu, special),
        example=Example(inputs=(_X,) * tensors, outputs=(_X,) * written, flops=24 * (alu + special),
                        bytes=96 * (tensors + written)),
    )  # fmt: skip


VIEW_KINDS = ("view", "flatten", "transpose", "slice", "expand", "split", "dropout_eval", "identity")
ROWS = (
    _move("copy", backward=(grad("identity", "g", "d0"),), role="move"),
    _move("cast", role="move"),
    _move("concat", backward=(grad("identity", "g", "d*"),), role="move"),
    _move("pad", role="move"),
    # what was copied into the padding is added back
    OpSpec(kind="pad_backward", family="move", unit="vector", role="index", formula="1 alu per gradient element",
           work=per_input(1), example=Example(inputs=((4, 8),), outputs=((4, 6),), flops=32, bytes=4 * (32 + 24))),
    _move("roll", role="move"),
    _move("repeat", role="move"),
    _move("resize_nearest", role="lookup"),
    _move("resize_bilinear", alu=9),  # three blends of a + t (b - a)
    _move("resize_bicubic", alu=35),  # five blends of four taps: 4 products and 3 additions each
    _move("resize_backward", alu=9),
    _move("grid_sample", alu=13, reads=2),  # coordinates to pixels 4, three blends 9
    # coordinates 4, then per neighbour: scatter a product (2), and product and sum for each coordinate (4)
    _move("grid_sample_backward", alu=28, reads=3),
    _move("one_hot", role="lookup"),
    _move("tri", role="lookup"),
    OpSpec(kind="fill", family="move", unit="vector", role="lookup", formula="0", work=nothing,
           example=Example(inputs=(), outputs=(_X,), bytes=96)),
    OpSpec(kind="random", family="move", unit="vector", role="index", formula="0 (bits are not counted)", work=nothing,
           example=Example(inputs=(), outputs=(_X,), bytes=96)),
    _lookup("embedding", (grad("embedding_backward", "g i1", "d0"),)),
    _lookup("gather"),
    # 2 rows of 4 added into a copy of 10 rows
    OpSpec(kind="scatter_reduce", family="move", unit="vector", role="index", formula="1 alu per added element",
           work=lambda op, ins, outs: Work(0, _stored(op, ins, outs)),
           example=Example(inputs=((10, 4), (2,), (2, 4)), outputs=((10, 4),), attrs=(("stored", 8),), flops=8,
                           bytes=4 * (40 + 2 + 8 + 40))),
    _store("scatter"),
    _store("scatter_add", alu=1),
    # a gradient of 2 rows of 4, added into 10 rows
    OpSpec(kind="embedding_backward", family="move", unit="vector", role="index", formula="1 alu per element added",
           work=lambda op, ins, outs: Work(0, prod(ins[1].shape) * outs[0].shape[-1]),
           example=Example(inputs=((2, 4), (2,)), outputs=((10, 4),), flops=8, bytes=4 * (8 + 2 + 40))),
    # 2 rows of 4, of a table of 10, are measured and scaled where they stand
    OpSpec(kind="embedding_renorm", family="move", unit="vector", role="index", formula="3 alu per element looked up",
           work=lambda op, ins, outs: Work(0, 3 * _rows(op, ins, outs)), reads=first_read(_rows),
           writes=lambda op, ins, outs: [_rows(op, ins, outs)],
           example=Example(inputs=((10, 4), (2,)), outputs=((10, 4),), flops=24, bytes=4 * (8 + 2 + 8))),
    *(_view(kind) for kind in VIEW_KINDS),
    # decay 1, moments 3 + 4, bias-corrected denominator (sqrt, division) + 1, step (division) + 2
    _update("adamw_step", 11, 3, tensors=4, written=3),
    _update("sgd_step", 2, 0, tensors=2, written=1),
)  # fmt: skip
