"""A saved analysis in, its Graph out: priced again on another chip or in another setting, without the model it came from."""

from pathlib import Path
from typing import Any

from rooflens.errors import ConfigError, FormatError, GraphError
from rooflens.frontends.request import Loaded, Request, check_batch, stored
from rooflens.graph.records import BITS, Graph, Op, Tensor, graph_hash, unique_param_bytes, verify
from rooflens.jsonfile import read_json
from rooflens.ops.table import OPS
from rooflens.resultfile import checked_analysis

# What was decided when the ops were recorded cannot be changed without the model; the rest holds unless asked otherwise.
_RECORDED = ("mode", "optimizer", "layout", "autocast")
_KEPT = ("sparsity", "weight_density", "reuse", "fusion", "bn")


def load_saved(path: Path, request: Request) -> Loaded:
    document = checked_analysis(str(path), read_json(str(path)))
    settings = document["settings"]
    graph = _graph(path, document)
    _check_same_run(path, settings, request)
    check_batch(request, (settings["batch"],) if settings["batch"] is not None else (), "the saved result's batch")
    dtype = request.dtype or settings["dtype"]
    if request.dtype not in (None, settings["dtype"]):
        graph = _converted(path, graph, settings["dtype"], dtype)
    kept = tuple((name, settings[name]) for name in (*_RECORDED, *_KEPT))
    return Loaded(graph=graph, dtype=dtype, batch=settings["batch"], settings=kept)


def _check_same_run(path: Path, settings: dict[str, Any], request: Request) -> None:
    asked = dict(request.given)
    for name in _RECORDED:
        if name in asked and asked[name] != settings[name]:
            raise FormatError(
                f"{path}: was saved with {name} {settings[name]}: analyse the model itself for another --{name}"
            )
    if request.input is not None:
        raise FormatError(f"{path}: a saved result has its shapes: analyse the model itself for another --input")


def _converted(path: Path, graph: Graph, before: str, after: str) -> Graph:
    if before != "fp32" or after not in ("tf32", "int8", "fp8"):
        raise FormatError(f"{path}: was saved in {before}: analyse the model itself for --dtype {after}")
    return stored(graph, after)


def _graph(path: Path, document: dict[str, Any]) -> Graph:
    tensors = tuple(_tensor(path, place, t, len(document["tensors"])) for place, t in enumerate(document["tensors"]))
    model = document["model"]
    graph = Graph(
        name=model["name"],
        source=model["source"],
        tensors=tensors,
        ops=tuple(_op(path, place, op, len(tensors)) for place, op in enumerate(document["ops"])),
        inputs=tuple(t.id for t in tensors if t.role == "input" and t.base == t.id),
        outputs=tuple(_known(path, f"outputs[{i}]", o, len(tensors)) for i, o in enumerate(document["outputs"])),
        params=sum(t.elements for t in tensors if t.role == "param" and t.base == t.id and t.trainable),
        param_bytes=unique_param_bytes(tensors),
        assumptions=tuple(model["assumptions"]),
        notes=tuple(model["notes"]),
    )
    return _whole(path, graph, model["graph_hash"])


def _whole(path: Path, graph: Graph, written: str) -> Graph:
    try:
        verify(graph)
    except GraphError as error:
        raise _fault(path, "ops", str(error)) from None
    for place, op in enumerate(graph.ops):
        _check_work(path, place, op, graph.tensors)
    if graph_hash(graph) != written:
        raise _fault(path, "model.graph_hash", "is not that of its ops and tensors, so they were changed")
    return graph


def _check_work(path: Path, place: int, op: Op, tensors: tuple[Tensor, ...]) -> None:
    """The rules of ops trust what a frontend gives them, and this one read it from a file."""
    spec = OPS.get(op.kind)
    if spec is None or op.view:
        return
    try:
        work = spec.work(op, [tensors[i] for i in op.inputs], [tensors[o] for o in op.outputs])
        fits = all(isinstance(n, int) and n >= 0 for n in work)
    except Exception:  # whatever a formula meets in shapes and attributes that it was not made for
        fits = False
    if not fits:
        raise _fault(
            path, f"ops[{place}]", f"('{op.id}', {op.kind}) has inputs, outputs or attrs that do not fit together"
        )


def _tensor(path: Path, place: int, t: dict[str, Any], count: int) -> Tensor:
    where = f"tensors[{place}]"
    if t["tensor"] != place:
        raise _fault(path, f"{where}.tensor", f"is {t['tensor']}, not its place {place}")
    if t["dtype"] not in BITS:
        raise _fault(path, f"{where}.dtype", f"is '{t['dtype']}', not one of {' '.join(BITS)}")
    return Tensor(
        id=place, shape=tuple(t["shape"]), dtype=t["dtype"], role=t["role"], base=_known(path, f"{where}.base", t["base"], count),
        elements=t["elements"], offset=t["offset"], name=t["name"], trainable=t["trainable"],
    )  # fmt: skip


def _op(path: Path, place: int, op: dict[str, Any], count: int) -> Op:
    attrs = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in op["attrs"].items())
    inputs, outputs = (
        tuple(_known(path, f"ops[{place}].{side}[{i}].tensor", t["tensor"], count) for i, t in enumerate(op[side]))
        for side in ("inputs", "outputs")
    )
    return Op(
        id=op["id"], kind=op["kind"], module=op["module"], pass_=op["pass"], attrs=attrs, view=op["view"], inputs=inputs,
        outputs=outputs,
    )  # fmt: skip


def _known(path: Path, where: str, tensor: int, count: int) -> int:
    if tensor >= count:
        raise _fault(path, where, f"is {tensor}, beyond the {count} tensors")
    return tensor


def _fault(path: Path, where: str, what: str) -> ConfigError:
    return ConfigError(f"{path}: field '{where}' {what}: save the result again")
