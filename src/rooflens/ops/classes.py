"""One op in, the name of the class that it is calibrated in out: kinds whose kernels reach about the same share of a roof.

Coarser than a kind (all element-wise ops load, compute and store alike) and finer (a convolution of three channels and a
depthwise one are not the same to any machine).
"""

from math import prod

from rooflens.graph.records import Op, Tensor
from rooflens.ops.table import OPS

FEW_CHANNELS = 4
FEW_ROWS = 32  # products with fewer rows read their weights more than they compute
_BACKWARD = "_backward"
_BY_ROLE = {
    "pointwise": "pointwise", "move": "copy", "lookup": "embedding", "index": "embedding", "reduction": "reduction",
    "recurrent": "recurrent", "scan": "scan", "gradient": "gemm", "matmul": "gemm",
}  # fmt: skip
_BY_KIND = {"cumulative": "scan", "concat": "concat", "log_softmax": "softmax", "batchnorm_train": "batchnorm train"}


_LAYS = ("conv", "batchnorm", "groupnorm", "maxpool", "avgpool", "adaptive")


def cares_for_layout(op_class: str) -> bool:
    """Whether its kernels are others where channels lie side by side."""
    return op_class.startswith(_LAYS)


def class_of(op: Op, tensors: tuple[Tensor, ...]) -> str:
    """`… backward` for what only a backward pass runs."""
    kind = op.kind.removesuffix(_BACKWARD)
    found = _forward(kind, op, [tensors[i] for i in op.inputs], [tensors[o] for o in op.outputs])
    return found if kind == op.kind else f"{found} backward"


def _forward(kind: str, op: Op, ins: list[Tensor], outs: list[Tensor]) -> str:
    if kind == "conv":
        return _conv(op, ins)
    if kind == "attention":
        return "attention decode" if ins and ins[0].shape[-2] < FEW_ROWS else "attention"
    spec = OPS.get(op.kind) or OPS.get(kind)
    role = spec.role if spec else ""
    if kind in _BY_KIND:
        return _BY_KIND[kind]
    if role == "matmul":
        return "gemm of few rows" if outs and _rows(outs[0]) < FEW_ROWS else "gemm"
    if role == "pointwise" and _spreads(ins, outs):
        return "broadcast"
    return _BY_ROLE.get(role, kind)


def _rows(out: Tensor) -> int:
    return prod(out.shape[:-1])


def _spreads(ins: list[Tensor], outs: list[Tensor]) -> bool:
    """Whether one of the operands is smaller than the result."""
    size = max((prod(t.shape) for t in outs), default=0)
    return any(1 < prod(t.shape) < size for t in ins)


def _conv(op: Op, ins: list[Tensor]) -> str:
    """By what its kernel has to be good at."""
    weight = next((t.shape for t in ins if t.role == "param" and len(t.shape) > 2), ins[1].shape)
    groups = op.attr("groups", 1)
    if op.attr("transposed"):
        return "conv transposed"
    if isinstance(groups, int) and groups > 1:
        return "conv depthwise" if weight[1] == 1 else "conv grouped"
    if weight[1] <= FEW_CHANNELS:
        return "conv of few channels"
    return "conv 1x1" if prod(weight[2:]) == 1 else "conv"
