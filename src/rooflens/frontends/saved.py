"""A saved analysis in, its Graph out: priced again on another chip or in another setting, without the model it came from."""

from pathlib import Path
from typing import Any

from rooflens.errors import ConfigError, FormatError
from rooflens.frontends.request import Loaded, Request, check_batch, stored
from rooflens.graph.records import BITS, Graph, Op, Tensor, verify
from rooflens.jsonfile import read_json

SCHEMA = "rooflens.analysis/1"


def load_saved(path: Path, request: Request) -> Loaded:
    document = read_json(str(path))
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise FormatError(f"{path}: not a saved analysis ({SCHEMA}): give a result of 'rooflens analyze --format json'")
    try:
        graph, settings = _graph(document), document["settings"]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ConfigError(
            f"{path}: a field is missing or has the wrong type ({error!r}): save the result again"
        ) from None
    _check_same_run(path, settings, request)
    check_batch(request, (settings["batch"],) if settings["batch"] else (), "the saved result's batch")
    dtype = request.dtype or settings["dtype"]
    if request.dtype not in (None, settings["dtype"]):
        graph = _converted(path, graph, settings["dtype"], dtype)
    return Loaded(graph=graph, dtype=dtype, batch=settings["batch"])


def _check_same_run(path: Path, settings: dict[str, Any], request: Request) -> None:
    """What changes which ops run cannot be changed without the model."""
    if request.training != (settings["mode"] == "training"):
        raise FormatError(f"{path}: was saved in {settings['mode']}: analyse the model itself for another --mode")
    if request.input is not None:
        raise FormatError(f"{path}: a saved result has its shapes: analyse the model itself for another --input")


def _converted(path: Path, graph: Graph, before: str, after: str) -> Graph:
    if before != "fp32" or after not in ("tf32", "int8", "fp8"):
        raise FormatError(f"{path}: was saved in {before}: analyse the model itself for --dtype {after}")
    return stored(graph, after)


def _graph(document: dict[str, Any]) -> Graph:
    seen: dict[int, Tensor] = {}
    for t in document["tensors"]:
        seen[t["tensor"]] = _tensor(t)
    tensors = tuple(seen[i] for i in range(len(seen)))
    model = document["model"]
    ops = tuple(_op(op) for op in document["ops"])
    return verify(
        Graph(
            name=str(model["name"]),
            source=str(model["source"]),
            tensors=tensors,
            ops=ops,
            inputs=tuple(t.id for t in tensors if t.role == "input" and t.base == t.id),
            outputs=tuple(int(o) for o in document["outputs"]),
            params=int(model["params"]),
            param_bytes=int(model["param_bytes"]),
            assumptions=(),
        )
    )


def _tensor(t: dict[str, Any]) -> Tensor:
    if t["dtype"] not in BITS:
        raise ValueError(f"dtype {t['dtype']}")
    return Tensor(
        id=int(t["tensor"]), shape=tuple(int(n) for n in t["shape"]), dtype=t["dtype"], role=str(t["role"]), base=int(t["base"]),
        elements=int(t["elements"]), offset=int(t["offset"]), name=str(t["name"]), trainable=bool(t["trainable"]),
    )  # fmt: skip


def _op(op: dict[str, Any]) -> Op:
    attrs = tuple((str(k), tuple(v) if isinstance(v, list) else v) for k, v in op["attrs"].items())
    return Op(
        id=str(op["id"]), kind=str(op["kind"]), module=str(op["module"]), pass_=str(op["pass"]), attrs=attrs, view=bool(op["view"]),
        inputs=tuple(int(t["tensor"]) for t in op["inputs"]), outputs=tuple(int(t["tensor"]) for t in op["outputs"]),
    )  # fmt: skip
