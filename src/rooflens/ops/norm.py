"""Normalisations and softmax. Per element, everything included: layer-like norms 8, rmsnorm 5, softmax 5, batchnorm 2
in inference (its scale and shift are known) and 8 in training, where it must find them."""

from math import prod

from rooflens.graph.records import Op, Tensor
from rooflens.ops.spec import Example, Grad, OpSpec, Shapes, Work, grad, spelled

_X = (2, 3, 4)


def _row(
    kind: str, alu: int, reads: Shapes, params: Shapes = (), backward: tuple[Grad, ...] = (), role: str = "norm"
) -> OpSpec:
    elements = sum(prod(s) for s in (*reads, *params, _X))

    def work(op: Op, ins: list[Tensor], outs: list[Tensor]) -> Work:
        """Per element of the normalised tensor, which is always the first input."""
        return Work(0, alu * prod(ins[0].shape))

    return OpSpec(
        kind=kind,
        family="norm",
        unit="vector",
        role=role,
        formula=spelled(alu, 0, "element"),
        work=work,
        backward=backward,
        example=Example(inputs=reads, params=params, outputs=(_X,), flops=24 * alu, bytes=4 * elements),
    )


_G2 = (_X, _X)
ROWS = (
    _row("batchnorm", 2, (_X,), ((3,),) * 4, role="affine"),
    _row("batchnorm_train", 8, (_X,), ((3,),) * 4,
         (grad("batchnorm_backward", "g i0 i1 y1 y2", "d0 d1 d2"),)),
    _row("layernorm", 8, (_X,), ((4,), (4,)), (grad("layernorm_backward", "g i0 i1 y1 y2", "d0 d1 d2"),)),
    _row("groupnorm", 8, (_X,), ((3,), (3,)), (grad("groupnorm_backward", "g i0 i1 y1 y2", "d0 d1 d2"),)),
    _row("rmsnorm", 5, (_X,), ((4,),), (grad("rmsnorm_backward", "g i0 i1 y1", "d0 d1"),)),
    _row("softmax", 5, (_X,), (), (grad("softmax_backward", "g y", "d0"),)),
    _row("log_softmax", 5, (_X,), (), (grad("log_softmax_backward", "g y", "d0"),)),
    _row("local_response_norm", 8, (_X,)),
    _row("weight_norm", 3, (_X, (2,))),  # square, sum, product with g / norm
    # backward, per element: normalise again 2, two sums 3, mix and scale 4; layer-like norms also scale the gradient
    # and sum it for weight and bias: 4 more; rmsnorm has one sum and no bias
    _row("batchnorm_backward", 9, _G2, ((3,),) * 3),
    _row("layernorm_backward", 13, _G2, ((4,),) * 2),
    _row("groupnorm_backward", 13, _G2, ((3,),) * 2),
    _row("rmsnorm_backward", 9, _G2, ((4,),)),
    _row("softmax_backward", 4, _G2),  # product, sum, subtraction, product
    _row("log_softmax_backward", 4, _G2),  # exp, sum, product, subtraction
    _row("weight_norm_backward", 5, (*_G2, (2,))),  # product and sum for g; scale, product, subtraction for v
)  # fmt: skip
