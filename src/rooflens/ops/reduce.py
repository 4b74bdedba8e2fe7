"""Pools and reductions: what they read is what they cost.

A max-pool of k x k compares k*k-1 times; an average pool adds each element it reads once (scaling is not counted).
"""

from math import gcd, prod

from rooflens.graph.records import Op, Tensor
from rooflens.ops.spec import (
    Example,
    Grad,
    OpSpec,
    ShareRule,
    Work,
    WorkRule,
    first_read,
    first_written,
    grad,
    per_input,
    per_output,
)


def _window(op: Op) -> int:
    kernel = op.attr("kernel")
    assert isinstance(kernel, tuple)
    return prod(kernel)


def _maxpool(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    return Work(0, prod(outs[0].shape) * (_window(op) - 1))


def _avgpool(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    return Work(0, _averaged(op, ins[0].shape, outs[0].shape))


def _avgpool_backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    return Work(0, _averaged(op, outs[0].shape, ins[0].shape))


def _averaged(op: Op, x: tuple[int, ...], y: tuple[int, ...]) -> int:
    """Elements of x that the windows of y read. Without a stride they stand side by side."""
    kernel = op.attr("kernel")
    assert isinstance(kernel, tuple)
    axes = len(kernel)
    stride, padding = op.attr("stride", kernel), op.attr("padding", (0,) * axes)
    assert isinstance(stride, tuple) and isinstance(padding, tuple)
    along = [windowed(*axis) for axis in zip(x[-axes:], y[-axes:], kernel, stride, padding, strict=True)]
    return prod(y[:-axes]) * prod(along)


def windowed(size: int, pieces: int, kernel: int, stride: int, padding: int) -> int:
    """Elements read along one axis by so many windows: what they hold of the padding before and behind is not read."""
    beyond = (pieces - 1) * stride + kernel - padding - size
    before, behind = range(padding, 0, -stride)[:pieces], range(beyond, 0, -stride)[:pieces]
    return pieces * kernel - sum(before) - sum(behind)


def covered(size: int, pieces: int) -> int:
    """Elements read along one axis by an adaptive pool. Window i goes from floor(i size / pieces) to the ceiling of its
    end, so neighbours share an element wherever their border is not whole: at all but gcd - 1 of the inner borders."""
    return size + pieces - gcd(size, pieces) if size else 0


def _adaptive(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """The spatial axes are those in which the shapes differ from batch and channel on."""
    x, y = ins[0].shape, outs[0].shape
    axes = op.attr("axes", 2)
    assert isinstance(axes, int)
    read = prod(covered(a, b) for a, b in zip(x[-axes:], y[-axes:], strict=True))
    return Work(0, prod(y[:-axes]) * read)


def _sort(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """A comparison sort of each row: n log2 n comparisons."""
    return Work(0, prod(ins[0].shape) * _levels(op, ins[0]))


def _fft(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """5 n log2 n for each transformed axis; what is real on one side has half of its spectrum on the other."""
    return Work(0, 5 * max(prod(ins[0].shape), prod(outs[0].shape)) * _levels(op, ins[0]))


def _levels(op: Op, x: Tensor) -> int:
    """log2 of a row, rounded up. `rows` says how long they are along each axis in question, else it is the last one."""
    rows = op.attr("rows", x.shape[-1:] or (1,))
    assert isinstance(rows, tuple)
    return sum(max(1, (n - 1).bit_length()) for n in rows)


def _search(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Halving: log2 of the boundaries + 1 comparisons for each value."""
    others = [t.shape[-1] for t in ins if t.shape and t.shape != outs[0].shape]
    boundaries = min(others or outs[0].shape[-1:] or (1,))
    return Work(0, prod(outs[0].shape) * boundaries.bit_length())


def _distance(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Subtract, square and add per feature of each pair, then a root."""
    pairs = prod(outs[0].shape)
    return Work(0, 3 * pairs * ins[0].shape[-1], pairs)


def _looked_up(op: Op, ins: list[Tensor], outs: list[Tensor]) -> int:
    """Elements of the rows that a bag joins; the table comes first, then the indices."""
    return prod(ins[1].shape) * ins[0].shape[-1]


def _bag(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """A sum, and a product where every index has a weight of its own."""
    return Work(0, _looked_up(op, ins, outs) * (2 if op.attr("weighted") else 1))


def _bag_weights_backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Each weight's gradient is its row times its bag's gradient: a product and a sum per element."""
    return Work(0, 2 * _looked_up(op, ins[1:], outs))


def _bag_weights_backward_reads(op: Op, ins: list[Tensor], outs: list[Tensor]) -> list[int]:
    return [ins[0].elements, _looked_up(op, ins[1:], outs), *(t.elements for t in ins[2:])]


def _per_row(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """One pick for each target, which is the second input."""
    return Work(0, prod(ins[1].shape))


def _states(op: Op, ins: list[Tensor], outs: list[Tensor]) -> int:
    """Each label and the blanks around it at each step of each item: the second output."""
    return outs[1].elements


def _ctc(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """A state is reached from three: their maximum 2, differences 3, exps 3, sum 2, log, and what is added back 2."""
    states = _states(op, ins, outs)
    return Work(0, 9 * states, 4 * states)


def _ctc_backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """The same from behind, joined with the forward's states (the last input) and added to their label's share
    (1 + 3 alu, 2 special); then each log-probability's gradient (4 alu, 2 exps)."""
    states, n = prod(ins[-1].shape), prod(outs[0].shape)
    return Work(0, 13 * states + 4 * n, 6 * states + 2 * n)


def _distance_backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Inputs are the gradient of each pair, both sets and the distances: a division a pair; subtract, scale and add per
    feature."""
    pairs = prod(ins[0].shape)
    return Work(0, 3 * pairs * ins[1].shape[-1], pairs)


def _picked(op: Op, ins: list[Tensor], outs: list[Tensor]) -> int:
    return ins[1].elements


def _row(
    kind: str,
    formula: str,
    work: WorkRule,
    example: Example,
    role: str = "reduction",
    backward: tuple[Grad, ...] = (),
    reads: ShareRule | None = None,
    writes: ShareRule | None = None,
) -> OpSpec:
    role = "own" if kind in _OWN else role
    return OpSpec(
        kind=kind, family="pool" if role == "pool" else "reduction", unit="vector", role=role, formula=formula,
        work=work, example=example, backward=backward, reads=reads, writes=writes,
    )  # fmt: skip


# No loop over rows: each output needs its row in order, several passes, or places found by index.
_OWN = frozenset({
    "cumulative", "logcumsumexp", "sort", "search", "histogram", "fold", "distance", "distance_backward", "embedding_bag",
    "bag_weights_backward", "ctc_loss", "ctc_loss_backward", "fft",
})  # fmt: skip


def _all_to_one(flops: int) -> Example:
    return Example(inputs=((2, 3, 4),), outputs=((2, 3),), flops=24 * flops, bytes=4 * 30)


_K2 = (("kernel", (2, 2)),)
_K3_P1 = (("kernel", (3, 3)), ("stride", (1, 1)), ("padding", (1, 1)))
_POOLED = Example(inputs=((1, 2, 4, 4),), outputs=((1, 2, 2, 2),), attrs=_K2, flops=8 * 3, bytes=4 * 40)
ROWS = (
    _row("maxpool", "window - 1 alu per output", _maxpool, _POOLED, "pool", (grad("maxpool_backward", "g y1", "d0"),)),
    # 3x3 windows with padding 1 on 4x4: along each axis two read 3 elements, those at the borders 2: 10 x 10
    _row("avgpool", "1 alu per input element that a window reads", _avgpool,
         Example(inputs=((1, 2, 4, 4),), outputs=((1, 2, 4, 4),), attrs=_K3_P1, flops=2 * 100, bytes=4 * 64), "pool",
         (grad("avgpool_backward", "g", "d0"),)),
    _row("adaptive_avgpool", "1 alu per input element read", _adaptive,
         Example(inputs=((1, 2, 4, 4),), outputs=((1, 2, 1, 1),), flops=32, bytes=4 * 34), "pool",
         (grad("adaptive_avgpool_backward", "g", "d0"),)),
    _row("adaptive_maxpool", "1 alu per input element read", _adaptive,
         Example(inputs=((1, 2, 4, 4),), outputs=((1, 2, 1, 1),), flops=32, bytes=4 * 34), "pool",
         (grad("maxpool_backward", "g y1", "d0"),)),
    _row("maxpool_backward", "1 alu per gradient element", per_input(1),
         Example(inputs=((1, 2, 2, 2),), outputs=((1, 2, 4, 4),), flops=8, bytes=4 * 40), "pool"),
    _row("avgpool_backward", "1 alu per element that a window of the gradient reaches", _avgpool_backward,
         Example(inputs=((1, 2, 2, 2),), outputs=((1, 2, 4, 4),), attrs=_K2, flops=32, bytes=4 * 40), "pool"),
    _row("adaptive_avgpool_backward", "1 alu per output element", per_output(1),
         Example(inputs=((1, 2, 2, 2),), outputs=((1, 2, 4, 4),), flops=32, bytes=4 * 40), "pool"),
    _row("mean", "1 alu per input element", per_input(1), _all_to_one(1), backward=(grad("div", "g", "d0"),)),
    _row("sum", "1 alu per input element", per_input(1), _all_to_one(1)),
    _row("prod", "1 alu per input element", per_input(1), _all_to_one(1)),
    _row("extremum", "1 alu per input element", per_input(1), _all_to_one(1)),  # max, min, argmax, any, all
    _row("var", "4 alu per input element", per_input(4), _all_to_one(4)),  # mean, then subtract, square, add
    _row("vector_norm", "2 alu per input element", per_input(2), _all_to_one(2)),
    _row("logsumexp", "2 alu + 1 special per input element", per_input(2, 1), _all_to_one(3)),
    _row("cumulative", "1 alu per input element", per_input(1),
         Example(inputs=((2, 3, 4),), outputs=((2, 3, 4),), flops=24, bytes=4 * 48)),
    _row("sort", "log2(row) alu per input element", _sort,
         Example(inputs=((3, 4),), outputs=((3, 4),), flops=24, bytes=4 * 24)),
    _row("logcumsumexp", "3 alu + 2 special per input element", per_input(3, 2),
         Example(inputs=((2, 3, 4),), outputs=((2, 3, 4),), flops=24 * 5, bytes=4 * 48)),
    # 3 values among 7 boundaries: 3 comparisons each
    _row("search", "log2(boundaries + 1) alu per value", _search,
         Example(inputs=((7,), (2, 3)), outputs=((2, 3),), flops=18, bytes=4 * 19)),
    _row("histogram", "1 alu per input element", per_input(1), Example(inputs=((24,),), outputs=((5,),), flops=24, bytes=116)),
    _row("fold", "1 alu per input element", per_input(1),  # overlapping patches added up
         Example(inputs=((2, 3, 4),), outputs=((2, 3, 4),), flops=24, bytes=4 * 48)),
    # 2 x 5 pairs of 4 features
    _row("distance", "3 alu per feature + 1 special, per pair", _distance,
         Example(inputs=((2, 4), (5, 4)), outputs=((2, 5),), flops=10 * 13, bytes=4 * (8 + 20 + 10))),
    _row("distance_backward", "3 alu per feature + 1 special, per pair", _distance_backward,
         Example(inputs=((2, 5), (2, 4), (5, 4), (2, 5)), outputs=((2, 4),), flops=10 * 13,
                 bytes=4 * (10 + 8 + 20 + 10 + 8))),
    # 3 bags of 2 rows of 4, of a table of 10 rows; which bag a row went to is bookkeeping
    _row("embedding_bag", "1 alu per element looked up, 2 where indices have weights", _bag,
         Example(inputs=((10, 4), (3, 2)), outputs=((3, 4), (6,)), flops=24, bytes=4 * (24 + 6 + 12)),
         reads=first_read(_looked_up), writes=first_written),
    # cross entropy after log_softmax: one pick a row of 4, and its sum over 3 rows; 3 picks and 3 targets are read
    _row("nll_loss", "1 alu per row", _per_row,
         Example(inputs=((3, 4), (3,)), outputs=((1,),), flops=3, bytes=4 * (3 + 3 + 1)), reads=first_read(_picked)),
    # the gradient, targets and total weight in, a matrix out that is zero but for one element a row
    _row("nll_loss_backward", "1 alu per row", _per_row,
         Example(inputs=((1,), (3,), (1,)), outputs=((3, 4),), flops=3, bytes=4 * (1 + 3 + 1 + 12))),
    # the same bags: 6 rows of 4, each times the gradient of its bag
    _row("bag_weights_backward", "2 alu per element looked up", _bag_weights_backward,
         Example(inputs=((3, 4), (10, 4), (3, 2)), outputs=((6,),), flops=48, bytes=4 * (12 + 24 + 6 + 6)),
         reads=_bag_weights_backward_reads),
    # 5 steps of 2 items, 10 classes; 3 labels a item make 7 states a step, 70 in all
    _row("ctc_loss", "9 alu + 4 special per state and step", _ctc,
         Example(inputs=((5, 2, 10), (2, 3)), outputs=((2,), (2, 5, 7)), flops=70 * 13,
                 bytes=4 * (70 + 6 + 2 + 70)), reads=first_read(_states)),
    _row("ctc_loss_backward", "13 alu + 6 special per state and step, + 4 alu + 2 special per output", _ctc_backward,
         Example(inputs=((2,), (5, 2, 10), (2, 3), (2,), (2, 5, 7)), outputs=((5, 2, 10),), flops=70 * 19 + 100 * 6,
                 bytes=4 * (2 + 100 + 6 + 2 + 70 + 100))),
    _row("mse_loss", "3 alu per input element", per_input(3),
         Example(inputs=((2, 3, 4),) * 2, outputs=((1,),), flops=72, bytes=4 * 49)),
    # per class: the distance to the row's own class and the margin 2, clamp, sum
    _row("margin_loss", "4 alu per input element", per_input(4),
         Example(inputs=((3, 4), (3,)), outputs=((1,),), flops=48, bytes=4 * 16)),
    _row("margin_loss_backward", "4 alu per output element", per_output(4),
         Example(inputs=((1,), (3, 4), (3,)), outputs=((3, 4),), flops=48, bytes=4 * 28)),
    _row("bce_loss", "4 alu + 2 special per input element", per_input(4, 2),
         Example(inputs=((2, 3, 4),) * 2, outputs=((1,),), flops=144, bytes=4 * 49)),
    _row("mse_loss_backward", "2 alu per output element", per_output(2),
         Example(inputs=((1,), (2, 3, 4), (2, 3, 4)), outputs=((2, 3, 4),), flops=48, bytes=4 * 73)),
    # g (x - t) / (x (1 - x))
    _row("bce_loss_backward", "4 alu + 1 special per output element", per_output(4, 1),
         Example(inputs=((1,), (2, 3, 4), (2, 3, 4)), outputs=((2, 3, 4),), flops=120, bytes=4 * 73)),
    # 3 x 4, along both axes: 2 + 2 levels
    _row("fft", "5 log2(row) alu per element of the longer side and axis", _fft,
         Example(inputs=((3, 4),), outputs=((3, 4),), attrs=(("rows", (3, 4)),), flops=5 * 12 * 4, bytes=4 * 24)),
)  # fmt: skip
