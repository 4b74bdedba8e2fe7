"""Matrix work: convolutions, linear layers, matrix products, attention, recurrent nets. Macs from true shapes.

Sources: a convolution does one mac per output element, kernel tap and input channel of its group; attention is
softmax(q kT) v with 5 operations a score for the softmax, 1 for the scale and 1 where a mask is added. Causal attention
counts the full score matrix, as every FLOP counter does; what a kernel skips is the mapping's matter.
"""

from collections.abc import Collection
from math import prod

from rooflens.graph.records import STORED_ROLES, Op, Tensor
from rooflens.ops.spec import Example, Grad, OpSpec, ShareRule, Work, WorkRule, grad, numel


def _conv(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Weights are [out, in/groups, k…]; those of a transposed convolution [in, out/groups, k…], swept by the input."""
    swept = ins[0] if op.attr("transposed") else outs[0]
    macs = prod(swept.shape) * prod(ins[1].shape[1:]) * _parts(ins[1])
    return Work(macs, numel(outs[0]) if len(ins) > 2 else 0)


def _conv_backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Inputs are the gradient, the input and the weight; `mask` says which of input, weight and bias get gradients."""
    gradient, x, weight = ins[:3]
    swept = x if op.attr("transposed") else gradient
    to_x, to_weight, to_bias = _asked(op, 3)
    macs = prod(swept.shape) * prod(weight.shape[1:])
    return Work(macs * (to_x + to_weight), numel(gradient) if to_bias else 0)


def _conv_backward_reads(op: Op, ins: list[Tensor], outs: list[Tensor]) -> list[int]:
    """The input makes the weight's gradient, the weight the input's."""
    to_x, to_weight, _ = _asked(op, 3)
    return _all_but([place for place, wanted in ((1, to_weight), (2, to_x)) if not wanted], ins)


def _conv_steps(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Weights are [k, in, out], of a sequence that has its channels last."""
    n = numel(outs[0])
    return Work(n * prod(ins[1].shape[:2]), n)


def _linear(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    n = prod(outs[0].shape)
    return Work(n * ins[0].shape[-1] * _parts(ins[0]), n if len(ins) > 2 else 0)


def _matmul(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    inner = ins[0].shape[-1] if ins[0].shape else 1
    return Work(prod(outs[0].shape) * inner * _parts(ins[0]))


def _parts(factor: Tensor) -> int:
    """A product of complex numbers and its sum are four real ones."""
    return 4 if factor.dtype.startswith("complex") else 1


def _addmm(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Inputs are what is added, then the two factors; the second may be a vector."""
    first, second = ins[1:3]
    columns = second.shape[-1] if len(second.shape) > 1 else 1
    return Work(prod(first.shape) * columns * _parts(first), numel(outs[0]))


def _grouped_mm(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Rows [t, k] meet the matrix [g, k, n] of their group; where both are flat it is the sum that is split."""
    flat = len(ins[0].shape) == len(ins[1].shape) == 2
    groups = outs[0].shape[0] if flat else 1
    return Work(prod(outs[0].shape) * ins[0].shape[-1] // max(1, groups))


def _bilinear(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    n, weight = prod(outs[0].shape), ins[2]
    return Work(n * (prod(weight.shape[1:]) + weight.shape[-1]), n if len(ins) > 3 else 0)


def _bilinear_backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Inputs are the gradient, both inputs and the weight. Each gradient is a product over out x in1 x in2 and a second
    one: of the input's, over in1 x in2 or out x in2; of the weight's, over out x in1."""
    out, one, two = ins[3].shape
    seconds = (one * two, out * two, out * one)
    products = sum(out * one * two + n for n, wanted in zip(seconds, _asked(op, 3), strict=True) if wanted)
    return Work(prod(ins[0].shape[:-1]) * products)


def _bilinear_backward_reads(op: Op, ins: list[Tensor], outs: list[Tensor]) -> list[int]:
    """Each of the three is read for the gradients of the other two."""
    asked = _asked(op, 3)
    return _all_but([1 + place for place in range(3) if sum(asked) == asked[place]], ins)


def _trilinear(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    products = op.attr("products")
    assert isinstance(products, tuple)
    return Work(sum(products))


def _scores(out: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[int, int, int]:
    """Score elements, head size of q and k, head size of v. Rows are the output's: q may be broadcast over the batch."""
    return prod(out.shape[:-1]) * k.shape[-2], q.shape[-1], v.shape[-1]


def _attention(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    scores, d, dv = _scores(outs[0], *ins[:3])
    return Work(scores * (d + dv), scores * (7 if len(ins) > 3 else 6))


def _attention_backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Inputs are gradient, q, k, v, …; `mask` says which of q, k, v and attention mask get gradients. Per score: q kT,
    softmax 5 and scale 1 again, dv, and for the others dp, its product, row sum, subtraction and product, dq, dk."""
    scores, d, dv = _scores(*ins[:4])
    to_q, to_k, to_v, to_mask = _asked(op, 4)
    through = bool(to_q or to_k or to_mask)
    return Work(scores * (d * (1 + to_q + to_k) + dv * (to_v + through)), scores * (10 if through else 6))


def _attention_backward_reads(op: Op, ins: list[Tensor], outs: list[Tensor]) -> list[int]:
    """The values and the output (a row sum is made of it) are read for what goes through the softmax only."""
    to_q, to_k, _, to_mask = _asked(op, 4)
    unread = () if to_q or to_k or to_mask else (3, len(ins) - 1)
    return _all_but(unread, ins)


def _all_but(unread: Collection[int], ins: list[Tensor]) -> list[int]:
    return [0 if place in unread else t.elements for place, t in enumerate(ins)]


def _asked(op: Op, count: int) -> tuple[int, ...]:
    """Which of a backward's gradients are asked for: all, where nothing else is said."""
    mask = op.attr("mask")
    return mask if isinstance(mask, tuple) else (1,) * count


def _weights(op: Op, ins: list[Tensor], axes: int) -> list[int]:
    """Places of matrices or vectors. `weights` (first place, count) says where; without it they are the stored ones."""
    span = op.attr("weights")
    if isinstance(span, tuple):
        places = range(span[0], span[0] + span[1])
        return [p for p in places if len(ins[p].shape) == axes]
    return [p for p, t in enumerate(ins) if p and t.role in STORED_ROLES and len(t.shape) == axes]


def _recurrent(gates: int, alu: int, special: int) -> WorkRule:
    """x [steps, batch, features] in either order: each weight matrix is used once per step. A projection of the
    hidden state has fewer rows than the gates, and no gates of its own."""

    def rule(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
        rows = prod(ins[0].shape[:-1])
        matrices = [ins[p] for p in _weights(op, ins, 2)]
        biases = sum(numel(ins[p]) for p in _weights(op, ins, 1))
        gated = [t.shape[0] for t in matrices if t.shape[0] == matrices[0].shape[0]]
        hidden = sum(gated) // (2 * gates)
        macs = rows * sum(numel(t) for t in matrices)
        return Work(macs, rows * (biases + alu * hidden), rows * special * hidden)

    return rule


def _recurrent_backward(rule: WorkRule) -> WorkRule:
    """Inputs are the gradient, those of the forward, and its output. Each product again for each weight gradient that
    is asked for, and for what the weight was multiplied with: hidden states always, the net's input where asked for."""

    def backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
        given, asked = ins[1:], _asked(op, len(ins))
        matrices = _weights(op, given, 2)
        stopped = () if asked[0] else _first_layer(op, given)
        products = [p for p in matrices if p not in stopped] + [p for p in matrices if asked[p]]
        macs = prod(given[0].shape[:-1]) * sum(numel(given[p]) for p in products)
        return Work(macs, 2 * rule(op, given, outs).alu, 0)

    return backward


def _recurrent_backward_reads(op: Op, ins: list[Tensor], outs: list[Tensor]) -> list[int]:
    """The net's input makes gradients of the first layer's weights, and those make the input's."""
    asked = _asked(op, len(ins))
    if all(asked):
        return _all_but((), ins)
    first = _first_layer(op, ins[1:])
    unread = () if asked[0] else tuple(1 + p for p in first)
    return _all_but(unread if any(asked[p] for p in first) else (*unread, 1), ins)


def _first_layer(op: Op, given: list[Tensor]) -> list[int]:
    """Places of the weights that the net's input meets: one, or two where it is read in both directions. A direction
    has two matrices, and a third of fewer rows where hidden states are projected."""
    places = _weights(op, given, 2)
    rows = [given[p].shape[0] for p in places]
    each = 3 if len(rows) > 2 and rows[2] != rows[0] else 2
    ways = given[-1].shape[-1] // given[places[1]].shape[1]
    return places[: each * ways : each]


def _scan(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """x, delta [b,s,d], a [d,n], b, c [b,s,n]: h = exp(delta a) h + (delta x) b; y = c h: 2 macs, 2 alu, 1 exp a state."""
    states = numel(ins[0]) * ins[2].shape[-1]
    return Work(2 * states, 2 * states, states)


def _scan_backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    states = numel(ins[1]) * ins[3].shape[-1]
    return Work(6 * states, 4 * states, states)


def _row(
    kind: str,
    formula: str,
    work: WorkRule,
    example: Example,
    role: str = "matmul",
    backward: tuple[Grad, ...] = (),
    reads: ShareRule | None = None,
) -> OpSpec:
    family = "matrix" if role in ("matmul", "gradient") else role
    unit = "vector" if role == "scan" else "matrix"
    return OpSpec(
        kind=kind,
        family=family,
        unit=unit,
        role=role,
        formula=formula,
        work=work,
        example=example,
        backward=backward,
        reads=reads,
    )


ROWS = (
    _row("conv", "out x cin/groups x kernel macs, + 1 alu per output with bias", _conv,
         # 8x8 outputs of 4 channels, each 3 channels x 9 taps: 256 x 27 macs; (3 + 4) x 64 + 108 floats
         Example(inputs=((1, 3, 8, 8),), params=((4, 3, 3, 3),), outputs=((1, 4, 8, 8),), macs=6912, flops=13824,
                 bytes=4 * (192 + 108 + 256)),
         backward=(grad("conv_backward", "g i0 i1", "d0 d1 d2"),)),
    _row("conv_backward", "macs of the forward for each of input and weight gradient asked for, + 1 alu per gradient for the bias",
         _conv_backward,
         Example(inputs=((1, 4, 8, 8), (1, 3, 8, 8)), params=((4, 3, 3, 3),), outputs=((1, 3, 8, 8), (4, 3, 3, 3)),
                 attrs=(("mask", (1, 1, 0)),), macs=13824, flops=27648, bytes=4 * (256 + 192 + 108 + 192 + 108)),
         role="gradient", reads=_conv_backward_reads),
    # 6 of 8 steps of 2 items, 4 channels out, 3 taps of 5 channels in
    _row("conv_steps", "out x cin x kernel macs, + 1 alu per output", _conv_steps,
         Example(inputs=((8, 2, 5),), params=((3, 5, 4), (4,)), outputs=((6, 2, 4),), macs=48 * 15, flops=48 * 31,
                 bytes=4 * (80 + 60 + 4 + 48))),
    _row("linear", "out x in macs per row, + 1 alu per output with bias", _linear,
         Example(inputs=((2, 5),), params=((3, 5), (3,)), outputs=((2, 3),), macs=30, flops=66, bytes=4 * (10 + 18 + 6)),
         backward=(grad("matmul", "g i1", "d0"), grad("matmul", "gT i0", "d1"), grad("sum", "g", "d2"))),
    _row("matmul", "m x n x k macs per batch", _matmul,
         Example(inputs=((4, 2, 5), (4, 5, 3)), outputs=((4, 2, 3),), macs=120, flops=240, bytes=4 * (40 + 60 + 24))),
    _row("addmm", "m x n x k macs, + 1 alu per output", _addmm,
         Example(inputs=((3,), (2, 5), (5, 3)), outputs=((2, 3),), macs=30, flops=66, bytes=4 * (3 + 10 + 15 + 6))),
    # 6 rows of 5, spread over 4 groups, each times its group's 5x3
    _row("grouped_mm", "rows x k x n macs", _grouped_mm,
         Example(inputs=((6, 5), (4, 5, 3), (4,)), outputs=((6, 3),), macs=90, flops=180,
                 bytes=4 * (30 + 60 + 4 + 18))),
    _row("bilinear", "out x (in1 x in2 + in2) macs per row", _bilinear,
         Example(inputs=((2, 3), (2, 4)), params=((5, 3, 4),), outputs=((2, 5),), macs=10 * 16, flops=320,
                 bytes=4 * (6 + 8 + 60 + 10)),
         backward=(grad("bilinear_backward", "g i0 i1 i2", "d0 d1 d2"), grad("sum", "g", "d3"))),
    # per row: 60 + 12 for the first input's gradient, 60 + 20 for the second's, 60 + 15 for the weight's
    _row("bilinear_backward", "out x in1 x in2 macs per row for each gradient asked for, + its second product",
         _bilinear_backward,
         Example(inputs=((2, 5), (2, 3), (2, 4)), params=((5, 3, 4),), outputs=((2, 3), (2, 4), (5, 3, 4)),
                 macs=2 * (72 + 80 + 75), flops=4 * 227, bytes=4 * (10 + 6 + 8 + 60 + 6 + 8 + 60)),
         role="gradient", reads=_bilinear_backward_reads),
    # a bilinear layer as torch takes it apart: 2 x 5 x 3 x 4 products with the weight, 2 x 5 x 4 with the second input
    _row("trilinear", "macs of the first product and of the second", _trilinear,
         Example(inputs=((2, 3), (5, 3, 4), (2, 4)), outputs=((2, 5),), attrs=(("products", (120, 40)),), macs=160,
                 flops=320, bytes=4 * (6 + 60 + 8 + 10))),
    _row("attention", "scores x (dq + dv) macs, + 6 alu a score (7 with a mask)", _attention,
         Example(inputs=((1, 2, 3, 4),) * 3, outputs=((1, 2, 3, 4),), macs=2 * 9 * 8, flops=2 * 144 + 6 * 18,
                 bytes=4 * 24 * 4), role="attention",
         backward=(grad("attention_backward", "g i0 i1 i2 i3 y", "d0 d1 d2 d3"),)),
    _row("attention_backward", "scores x (3 dq + 2 dv) macs, + 10 alu a score; less for gradients not asked for",
         _attention_backward,
         Example(inputs=((1, 2, 3, 4),) * 5, outputs=((1, 2, 3, 4),) * 3, macs=18 * 20, flops=2 * 360 + 180,
                 bytes=4 * 24 * 8), role="attention", reads=_attention_backward_reads),
    # per hidden unit of an LSTM: 3 sigmoids (2 alu, 2 special), 2 tanh, 3 to join the gates, 1 for the output
    _row("lstm", "macs of its weights per step, + biases, 10 alu + 8 special a hidden unit", _recurrent(4, 10, 8),
         Example(inputs=((5, 2, 3),), params=((16, 3), (16, 4), (16,), (16,)), outputs=((5, 2, 4),),
                 macs=10 * 112, flops=2 * 1120 + 10 * 32 + 10 * 4 * 18, bytes=4 * (30 + 144 + 40)), role="recurrent",
         backward=(grad("lstm_backward", "g i* y", "d*"),)),
    # per hidden unit of a GRU: 2 sigmoids, 1 tanh, 4 to mix old and new and the reset
    _row("gru", "macs of its weights per step, + biases, 8 alu + 5 special a hidden unit", _recurrent(3, 8, 5),
         Example(inputs=((5, 2, 3),), params=((12, 3), (12, 4), (12,), (12,)), outputs=((5, 2, 4),),
                 macs=10 * 84, flops=2 * 840 + 10 * 24 + 10 * 4 * 13, bytes=4 * (30 + 108 + 40)), role="recurrent",
         backward=(grad("gru_backward", "g i* y", "d*"),)),
    _row("rnn", "macs of its weights per step, + biases, 1 special a hidden unit", _recurrent(1, 0, 1),
         Example(inputs=((5, 2, 3),), params=((4, 3), (4, 4), (4,), (4,)), outputs=((5, 2, 4),), macs=10 * 28,
                 flops=560 + 80 + 40, bytes=4 * (30 + 36 + 40)), role="recurrent",
         backward=(grad("rnn_backward", "g i* y", "d*"),)),
    *(_row(f"{kind}_backward", f"twice the macs and alu of {kind}; less for gradients not asked for",
           _recurrent_backward(_recurrent(gates, alu, special)),
           Example(inputs=((5, 2, 4), (5, 2, 3)), params=((gates * 4, 3), (gates * 4, 4)), outputs=((5, 2, 3),),
                   macs=2 * 10 * gates * 28, flops=4 * 10 * gates * 28 + 2 * 10 * alu * 4,
                   bytes=4 * (40 + 30 + gates * 28 + 30)), role="recurrent",
           reads=_recurrent_backward_reads)
      for kind, gates, alu, special in (("lstm", 4, 10, 8), ("gru", 3, 8, 5), ("rnn", 1, 0, 1))),
    _row("scan", "2 macs + 2 alu + 1 special per batch, step, channel and state", _scan,
         Example(inputs=((1, 5, 3), (1, 5, 3)), params=((3, 4),), outputs=((1, 5, 3),), macs=120,
                 flops=240 + 120 + 60, bytes=4 * (15 + 15 + 12 + 15)), role="scan",
         backward=(grad("scan_backward", "g i*", "d*"),)),
    _row("scan_backward", "6 macs + 4 alu + 1 special per batch, step, channel and state", _scan_backward,
         Example(inputs=((1, 5, 3),) * 3, params=((3, 4),), outputs=((1, 5, 3),), macs=360,
                 flops=720 + 240 + 60, bytes=4 * (45 + 12 + 15)), role="scan"),
)  # fmt: skip
