"""Element-wise ops. Counts per output element: an addition, product, comparison or selection is 1 alu; exp, log, tanh,
erf, sin, square root and division are 1 special each. The comment on a row spells its count out where it is not plain.
"""

from math import prod

from rooflens.graph.records import Op, Tensor
from rooflens.ops.spec import Example, Grad, OpSpec, Work, WorkRule, grad, pointwise


def _saved_output(kind: str) -> tuple[Grad, ...]:
    return (grad(kind, "g y", "d0"),)


def _saved_input(kind: str) -> tuple[Grad, ...]:
    return (grad(kind, "g i0", "d0"),)


def _gelu(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    n = prod(outs[0].shape)
    return Work(0, 8 * n, n) if op.attr("approximate") == "tanh" else Work(0, 4 * n, n)


def _gelu_backward(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    n = prod(outs[0].shape)
    return Work(0, 16 * n, n) if op.attr("approximate") == "tanh" else Work(0, 8 * n, 2 * n)


def _pow(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
    """Small whole powers are products; anything else goes through exp and log."""
    n, exponent = prod(outs[0].shape), op.attr("exponent")
    if exponent == 2 or exponent == 3:
        return Work(0, (int(exponent) - 1) * n, 0)
    return Work(0, 0, n)


def _by_attribute(
    kind: str, formula: str, work: WorkRule, reads: int, flops: int, backward: tuple[Grad, ...] = ()
) -> OpSpec:
    return OpSpec(
        kind=kind,
        family="pointwise",
        unit="vector",
        role="pointwise",
        formula=formula,
        work=work,
        backward=backward,
        example=Example(inputs=((2, 3, 4),) * reads, outputs=((2, 3, 4),), flops=24 * flops, bytes=96 * (reads + 1)),
    )


ROWS = (
    # arithmetic
    pointwise("add", 1, reads=2, backward=(grad("identity", "g", "d0 d1"),)),
    pointwise("sub", 1, reads=2),
    pointwise("mul", 1, reads=2, backward=(grad("mul", "g i1", "d0"), grad("mul", "g i0", "d1"))),
    pointwise("div", 0, 1, reads=2),
    pointwise("neg", 1),
    pointwise("abs", 1),
    pointwise("sign", 1),
    pointwise("round", 1),
    pointwise("remainder", 2, 1, reads=2),  # a division, a product, a subtraction
    pointwise("reciprocal", 0, 1),
    pointwise("sqrt", 0, 1),
    pointwise("rsqrt", 0, 1),
    pointwise("exp", 0, 1),
    pointwise("log", 0, 1),
    pointwise("trig", 0, 1),
    pointwise("erf", 0, 1),
    pointwise("minmax", 1, reads=2),
    pointwise("compare", 1, reads=2),
    pointwise("logical", 1, reads=2),
    pointwise("where", 1, reads=3),
    pointwise("masked_fill", 1, reads=2),
    pointwise("lerp", 3, reads=2),  # a + t (b - a)
    pointwise("addcmul", 2, reads=3),
    pointwise("addcdiv", 1, 1, reads=3),
    pointwise("complex_mul", 6, reads=2),  # 4 products, 2 additions
    pointwise("xlogy", 1, 1, reads=2),
    pointwise("logaddexp", 3, 2, reads=2),  # maximum, difference, exp, log, addition
    pointwise("logit", 1, 2),  # 1 - x, division, log
    pointwise("hypot", 3, 1, reads=2),  # two squares, addition, root
    pointwise("polar", 2, 2, reads=2),  # sin, cos, a product each
    pointwise("cross", 3, reads=2),  # two products, a subtraction
    pointwise("fake_quantize", 7),  # scale, shift, round, clamp 2, shift back, scale back
    _by_attribute("pow", "n-1 alu for small whole n, else 1 special, per output element", _pow, 1, 1),
    # activations
    pointwise("relu", 1, backward=_saved_output("relu_backward")),
    pointwise("relu6", 2, backward=_saved_input("relu6_backward")),
    pointwise("clamp", 2, backward=_saved_input("clamp_backward")),
    pointwise("leaky_relu", 2, backward=_saved_input("leaky_relu_backward")),  # compare, product
    pointwise("prelu", 2, reads=2),
    pointwise("elu", 3, 1),  # compare, exp, subtract, scale
    pointwise("sigmoid", 2, 2, backward=_saved_output("sigmoid_backward")),  # negate, exp, add, divide
    pointwise("silu", 3, 2, backward=_saved_input("silu_backward")),  # sigmoid and a product
    pointwise("tanh", 0, 1, backward=_saved_output("tanh_backward")),
    pointwise("hardswish", 5, backward=_saved_input("hardswish_backward")),  # add, clamp 2, product, scale
    pointwise("hardsigmoid", 4, backward=_saved_input("hardsigmoid_backward")),  # add, clamp 2, scale
    pointwise("softplus", 1, 2),  # exp, add, log
    pointwise("logsigmoid", 2, 2),
    pointwise("mish", 2, 3),  # softplus, tanh, product
    pointwise("glu", 3, 2),  # per output: sigmoid of one half, product with the other
    _by_attribute("gelu", "4 alu + 1 special (erf) or 8 alu + 1 special (tanh) per output element", _gelu, 1, 5,
           _saved_input("gelu_backward")),
    pointwise("dropout", 2, backward=(grad("dropout_backward", "g y1", "d0"),)),  # product with the mask, scale
    # their backward
    pointwise("relu_backward", 1, reads=2),
    pointwise("relu6_backward", 2, reads=2),
    pointwise("clamp_backward", 2, reads=2),
    pointwise("leaky_relu_backward", 2, reads=2),
    pointwise("prelu_backward", 4, reads=3),
    pointwise("elu_backward", 3, 1, reads=2),
    pointwise("sigmoid_backward", 3, reads=2),  # g y (1 - y)
    pointwise("silu_backward", 7, 2, reads=2),  # g s (1 + x (1 - s)) and the sigmoid itself
    pointwise("tanh_backward", 3, reads=2),  # g (1 - y y)
    pointwise("hardswish_backward", 5, reads=2),
    pointwise("hardsigmoid_backward", 3, reads=2),
    pointwise("softplus_backward", 2, 2, reads=2),
    pointwise("logsigmoid_backward", 4, 2, reads=2),
    pointwise("logit_backward", 2, 1, reads=2),  # g / (x (1 - x))
    pointwise("mish_backward", 6, 4, reads=2),
    pointwise("glu_backward", 7, 2, reads=2),
    _by_attribute("gelu_backward", "8 alu + 2 special (erf) or 16 alu + 1 special (tanh) per element", _gelu_backward, 2, 10),
    pointwise("dropout_backward", 2, reads=2),
)  # fmt: skip
