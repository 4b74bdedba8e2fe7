"""A forward op and the gradient of its output in; its backward kernels and the gradients of its inputs out.

Both frontends that need it share this: layer text for everything, torch for the calls that it keeps whole. What runs is
said by the `backward` rules of the OPS table.
"""

from collections.abc import Callable
from math import prod

from rooflens.errors import ModelError
from rooflens.graph.build import GraphBuilder
from rooflens.graph.records import Attr, Op
from rooflens.ops.spec import Grad, OpSpec
from rooflens.ops.table import OPS

Record = Callable[[str, tuple[int, ...], tuple[int, ...], tuple[tuple[str, Attr], ...]], object]
ASSUMPTION = "backward starts from one given gradient per output; the loss itself is not counted"


def record_backward(builder: GraphBuilder, output: int) -> list[tuple[int, int]]:
    """The backward pass of all ops so far, from one given gradient of `output`: parameters with their gradients.

    Inputs of the graph get none, and an op that only they reach has no backward.
    """
    forward = tuple(builder.ops)
    needing = _needing(builder, forward)
    if output not in needing:
        raise ModelError("--mode training needs a model with trainable parameters and a floating output")
    t = builder.tensors[output]
    found = {output: builder.tensor(t.shape, t.dtype, "gradient", name="grad_output0")}
    for op in reversed(forward):
        if op.outputs[0] in found and any(i in needing for i in op.inputs):
            _through(builder, op, found, needing)
    return [(t.id, found[t.id]) for t in builder.tensors if t.trainable and t.id in found]


def _needing(builder: GraphBuilder, forward: tuple[Op, ...]) -> set[int]:
    """Parameters, and all that depends on one."""
    needing = {t.id for t in builder.tensors if t.trainable}
    for op in forward:
        if any(i in needing for i in op.inputs):
            needing.update(op.outputs)
    return needing


def _through(builder: GraphBuilder, op: Op, found: dict[int, int], needing: set[int]) -> None:
    """One op's backward kernels. Where a tensor has several readers, their gradients are added as they arrive."""
    record = _recorder(builder, op.id, op.module)
    gradients = derive(builder, record, op, found[op.outputs[0]], tuple(i in needing for i in op.inputs))
    for i, gradient in zip(op.inputs, gradients, strict=True):
        if gradient is None:
            continue
        if i in found:
            t = builder.tensors[i]
            total = builder.tensor(t.shape, t.dtype)
            record("add", (found[i], gradient), (total,), ())
            gradient = total
        found[i] = gradient


def _recorder(builder: GraphBuilder, label: str, module: str) -> Record:
    def record(kind: str, ins: tuple[int, ...], outs: tuple[int, ...], attrs: tuple[tuple[str, Attr], ...]) -> None:
        builder.op(kind, ins, outs, label=label, module=module, pass_="backward", attrs=attrs)

    return record


def derive(
    builder: GraphBuilder, record: Record, op: Op, gradient: int, needs: tuple[bool, ...]
) -> tuple[int | None, ...]:
    """Gradients of the op's inputs, None where not needed or where there is none."""
    found: dict[int, int] = {}
    if op.kind == "groupnorm" and _is_part(builder, gradient):
        gradient = _copied(builder, record, gradient)  # the one kernel that torch hands its gradient in order
    for rule in OPS[op.kind].backward:
        targets = [t for t in _targets(rule, len(op.inputs)) if t < len(needs) and needs[t]]
        if not targets:
            continue
        if rule.kind == "identity":
            found.update({t: _passed(builder, record, op, gradient, t) for t in targets})
        else:
            found.update(_kernel(builder, record, op, rule, gradient, targets))
    return tuple(found.get(i) for i in range(len(op.inputs)))


def _is_part(builder: GraphBuilder, tid: int) -> bool:
    """Whether it is the gradient of one operand of a concatenation, whose items then lie apart."""
    t = builder.tensors[tid]
    return t.shape[0] > 1 and t.elements < builder.tensors[t.base].elements


def _copied(builder: GraphBuilder, record: Record, tid: int) -> int:
    t = builder.tensors[tid]
    copy = builder.tensor(t.shape, t.dtype)
    record("copy", (tid,), (copy,), ())
    return copy


def has_backward(spec: OpSpec) -> bool:
    return bool(spec.backward)


def _targets(rule: Grad, count: int) -> list[int]:
    return list(range(count)) if rule.writes == ("d*",) else [int(w[1:]) for w in rule.writes if int(w[1:]) < count]


def _kernel(
    builder: GraphBuilder, record: Record, op: Op, rule: Grad, gradient: int, targets: list[int]
) -> dict[int, int]:
    reads = [tid for token in rule.reads for tid in _read(builder, op, token, gradient)]
    attrs = op.attrs
    count = len(op.inputs) if rule.writes == ("d*",) else len(rule.writes)
    if count > 1:
        attrs = (*attrs, ("mask", tuple(int(i in targets) for i in range(count))))
    whole = builder.tensors[gradient].shape
    broadcast = OPS[op.kind].family == "pointwise"  # its gradient has the shape of its output, to be summed below
    outs: dict[int, int] = {}
    for t in targets:
        like = builder.tensors[op.inputs[t]]
        outs[t] = builder.tensor(whole if broadcast else like.shape, like.dtype)
    record(rule.kind, tuple(reads), tuple(outs.values()), attrs)
    return {t: _reduced(builder, record, tid, builder.tensors[op.inputs[t]].shape) for t, tid in outs.items()}


def _read(builder: GraphBuilder, op: Op, token: str, gradient: int) -> tuple[int, ...]:
    if token == "i*":
        return op.inputs
    transposed, token = token.endswith("T"), token.removesuffix("T")
    if token == "g":
        tid = gradient
    elif token[0] == "y":
        place = int(token[1:] or 0)
        if place >= len(op.outputs):
            return ()
        tid = op.outputs[place]
    else:
        if int(token[1:]) >= len(op.inputs):
            return ()
        tid = op.inputs[int(token[1:])]
    return (_transposed(builder, tid) if transposed else tid,)


def _transposed(builder: GraphBuilder, tid: int) -> int:
    """The matrix [columns, rows] that a weight gradient reads: a view, so it costs nothing."""
    t = builder.tensors[tid]
    columns = t.shape[-1]
    return _alias(builder, tid, (columns, prod(t.shape[:-1])))


def _alias(builder: GraphBuilder, tid: int, shape: tuple[int, ...]) -> int:
    t = builder.tensors[tid]
    return builder.tensor(shape, t.dtype, t.role, base=t.base, elements=min(t.elements, prod(shape)), offset=t.offset)


def _passed(builder: GraphBuilder, record: Record, op: Op, gradient: int, target: int) -> int:
    """The gradient goes through unchanged, as a view of another shape, a slice, or summed over broadcast axes."""
    shape = builder.tensors[op.inputs[target]].shape
    given = builder.tensors[gradient]
    if given.shape == shape:
        return gradient
    if OPS[op.kind].family == "pointwise":
        return _reduced(builder, record, gradient, shape)
    if op.kind == "concat":
        start = sum(prod(builder.tensors[i].shape) for i in op.inputs[:target])
        return builder.tensor(shape, given.dtype, base=given.base, offset=given.offset + start)
    return _alias(builder, gradient, shape)


def _reduced(builder: GraphBuilder, record: Record, tid: int, shape: tuple[int, ...]) -> int:
    """An input that was broadcast gets the sum over the axes it was stretched along."""
    t = builder.tensors[tid]
    if prod(t.shape) == prod(shape):
        return tid
    total = builder.tensor(shape, t.dtype)
    record("sum", (tid,), (total,), ())
    return total
