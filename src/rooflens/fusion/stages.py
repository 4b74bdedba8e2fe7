"""A group in, the Stage that tiles see out; None for what cannot be cut into tiles (norms over rows, attention, scans).

`image` stages go over the space of [batch, channel, space…], `rows` stages over all but the last axis: each row of a
linear layer needs one row of its input.
"""

from collections.abc import Sequence
from math import prod

from rooflens.costs.sheet import CostSheet
from rooflens.fusion import rules as r
from rooflens.fusion.chain import Chains, Cluster
from rooflens.fusion.flow import NOBODY
from rooflens.fusion.tiles import Operand, Stage, Window, bytes_of
from rooflens.graph.records import STORED_ROLES, Op, Tensor
from rooflens.ops.table import OPS

_POOLS = frozenset({"maxpool", "avgpool"})


def stage_of(sheet: CostSheet, chains: Chains, cluster: Cluster) -> Stage | None:
    graph, ops = chains.graph, sorted(cluster.ops)
    first, last = graph.ops[ops[0]], graph.ops[ops[-1]]
    sign = (
        _sign(first, graph.tensors) if cluster.kind in (r.PRODUCT, r.ALONE) else "." if cluster.kind == r.LOOP else ""
    )
    rest = ops[1:] if sign != "." else ops
    if not sign or not all(OPS[graph.ops[p].kind].role in r.ELEMENTWISE for p in rest):
        return None
    if sign != "." and len({graph.tensors[o].shape for p in ops for o in graph.ops[p].outputs}) > 1:
        return None  # what follows the product sees it in another shape
    kind = "rows" if sign == "L" else "image" if sign != "." else _kind(graph.tensors[last.outputs[0]])
    out = graph.tensors[last.outputs[0]]
    if sign != "." and not _spans(first, graph.tensors, _size(out, kind), kind):
        return None
    operands = _operands(chains, ops, kind, sign != ".")
    if operands is None or any(len(graph.ops[p].outputs) > 1 for p in ops):
        return None
    return Stage(
        kind=kind,
        items=out.shape[0] if kind == "image" else 1,
        sign=sign,
        owner=out.base,
        size=_size(out, kind),
        bytes_per_place=_per_place(out, kind),
        operands=operands,
        param_bytes=sum(sheet.rows[p].param_bytes for p in ops),
        macs=sum(sheet.rows[p].macs for p in ops),
        adds=any(graph.ops[p].kind == "add" for p in ops),
    )


def _sign(op: Op, tensors: Sequence[Tensor]) -> str:
    """Of the op that a group starts with; empty where tiles do not go through it."""
    if op.kind in _POOLS and op.attr("stride") is not None:
        return "M"
    if op.kind == "linear":
        return "L"
    if op.kind != "conv" or op.attr("transposed") or not isinstance(op.attr("padding"), tuple):
        return ""
    weight = tensors[op.inputs[1]]
    if weight.role not in STORED_ROLES:
        return ""
    if op.attr("groups") == weight.shape[0] and weight.shape[1] == 1:
        return "D"
    return "P" if prod(weight.shape[2:]) == 1 else "C"


def _spans(op: Op, tensors: Sequence[Tensor], size: tuple[int, ...], kind: str) -> bool:
    """Whether the group's tiles lie along the axes that its first op's window moves along. They do not where a view
    behind that op gives its output other axes, or where an image comes without a batch."""
    return _size(tensors[op.outputs[0]], kind) == size and (kind == "rows" or len(size) == _moves_along(op, tensors))


def _moves_along(op: Op, tensors: Sequence[Tensor]) -> int:
    kernel = op.attr("kernel")
    return (
        len(tensors[op.inputs[1]].shape) - 2 if op.kind == "conv" else len(kernel) if isinstance(kernel, tuple) else 0
    )


def _kind(tensor: Tensor) -> str:
    """An element-wise group goes with its neighbours: a tensor of three axes or less is taken as rows."""
    return "image" if len(tensor.shape) > 3 else "rows"


def _size(tensor: Tensor, kind: str) -> tuple[int, ...]:
    return tensor.shape[2:] if kind == "image" else (prod(tensor.shape[:-1]),)


def _per_place(tensor: Tensor, kind: str) -> int:
    """Bytes at each place: its channels, or the width of its rows."""
    channels = tensor.shape[1] if kind == "image" else tensor.shape[-1] if tensor.shape else 1
    return bytes_of(channels, tensor.dtype)


def _operands(chains: Chains, ops: list[int], kind: str, windowed: bool) -> tuple[Operand, ...] | None:
    """What the group reads of others. The first op's input is read through its window, everything else element-wise."""
    graph, found = chains.graph, list[Operand]()
    mine = {graph.tensors[o].base for p in ops for o in graph.ops[p].outputs}
    out = graph.tensors[graph.ops[ops[-1]].outputs[0]]
    for place in ops:
        op = graph.ops[place]
        main = op.inputs[0] if windowed and place == ops[0] else None
        for i in dict.fromkeys(op.inputs):
            tensor = graph.tensors[i]
            if tensor.base in mine or tensor.role in STORED_ROLES or tensor.elements <= 1:
                continue
            windows = _windows(op, graph.tensors, len(_size(out, kind))) if i == main else None
            whole = _is_seen_whole(chains, tensor, kind)
            operand = _operand(tensor, kind, windows, out, spread=not whole and tensor.elements < prod(tensor.shape))
            if operand is None or (operand.windows and not whole):
                return None
            found.append(operand)
    return tuple(found)


def _is_seen_whole(chains: Chains, tensor: Tensor, kind: str) -> bool:
    """Do its places stand where they were written? A cut or folded view of another group's output has places of its own."""
    written = chains.graph.tensors[tensor.base]
    return chains.flow.writers[tensor.base] == NOBODY or _size(tensor, kind) == _size(written, kind)


def _operand(
    tensor: Tensor, kind: str, windows: tuple[Window, ...] | None, out: Tensor, *, spread: bool
) -> Operand | None:
    """`spread`: a view shows it at more places than it has values."""
    wanted = 3 if kind == "image" else 1
    if len(tensor.shape) < wanted:
        return None
    size = _size(tensor, kind)
    if windows is None:
        if spread or size != _size(out, kind):  # a factor a channel, held whole
            held = bytes_of(tensor.elements, tensor.dtype)
            return Operand(owner=tensor.base, bytes_per_place=held, windows=(), size=(1,))
        windows = (Window(),) * len(size)
    return Operand(owner=tensor.base, bytes_per_place=_per_place(tensor, kind), windows=windows, size=size)


def _windows(op: Op, tensors: Sequence[Tensor], axes: int) -> tuple[Window, ...]:
    if op.kind == "linear":
        return (Window(),) * axes
    kernel = tensors[op.inputs[1]].shape[2:] if op.kind == "conv" else _axes(op, "kernel", axes)
    return tuple(
        Window(*axis)
        for axis in zip(
            kernel, _axes(op, "stride", axes), _axes(op, "padding", axes, 0), _axes(op, "dilation", axes), strict=True
        )
    )


def _axes(op: Op, name: str, axes: int, default: int = 1) -> tuple[int, ...]:
    found = op.attr(name, default)
    values = found if isinstance(found, tuple) else (int(found or default),)
    return values if len(values) == axes else values[:1] * axes
