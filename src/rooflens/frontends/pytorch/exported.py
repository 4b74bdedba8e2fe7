"""A `.pt2` archive in, Loaded out, read by torch.export's own deserialiser, without its weights and without unpickling.

An archive may come from a stranger. Its zip is checked before anything is read, pickled parts are refused, expressions
that torch would evaluate must be plain arithmetic, and weights become meta tensors from their written shapes.
"""

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import fx, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode

from rooflens.errors import FormatError, RooflensError, ShapeError
from rooflens.frontends.pytorch.load import load_module, made_input
from rooflens.frontends.pytorch.recorder import Recorder
from rooflens.frontends.pytorch.symbols import bound_shapes
from rooflens.frontends.request import Loaded, Request

MAX_JSON_BYTES = 500_000_000
MAX_RATIO = 200  # text compresses some twenty times; a bomb thousands
_CURE = (
    "save it again with torch.export.save of torch 2.8 or newer, or name the code that builds it as file.py:function"
)
_EXPRESSION = re.compile(r"^[\w\s+\-*/(),.=<>&|~!%'\[\]]*$")
_NAME = re.compile(r"^[A-Za-z_][\w.]*$")


def load_exported(path: Path, request: Request) -> Loaded:
    graph, weights, constants = _read(path)
    module = _Exported(_deserialised(path, graph, weights, constants), path)
    args, bound = _inputs(module, request)
    asked = replace(request, batch=None, input=None)
    loaded = load_module(module, (tuple(args), {}), asked, name=path.stem, source=str(path))
    notes = tuple(f"symbolic dimension {name} of {path.name} taken as {n}" for name, n in bound.items())
    return replace(loaded, graph=replace(loaded.graph, assumptions=(*loaded.graph.assumptions, *notes)))


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            _check_zip(path, archive)
            return _documents(path, archive)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise FormatError(f"{path}: not a .pt2 archive ({_looks_like(path)}): {error}: {_CURE}") from None


def _looks_like(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(16)
    kinds = ((b"PK", "a damaged zip"), (b"\x80", "a pickle"), (b"<", "a web page or XML"), (b"{", "JSON"))
    return next(
        (name for start, name in kinds if head.startswith(start)), "an empty file" if not head else "unknown bytes"
    )


def _check_zip(path: Path, archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    whole, packed = sum(i.file_size for i in entries), sum(i.compress_size for i in entries)
    if whole > MAX_RATIO * max(packed, 1) and whole > 1_000_000:
        raise FormatError(
            f"{path}: its {len(entries)} entries expand {whole // max(packed, 1)} times: refused as a zip bomb"
        )
    for info in entries:
        parts = PurePosixPath(info.filename.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts:
            raise FormatError(f"{path}: entry '{info.filename}' points outside the archive: it is refused; {_CURE}")
        if info.file_size > MAX_RATIO * max(info.compress_size, 1) and info.file_size > 1_000_000:
            times = info.file_size // max(info.compress_size, 1)
            raise FormatError(f"{path}: entry '{info.filename}' expands {times} times: refused as a zip bomb")
        if info.filename.endswith(".json") and info.file_size > MAX_JSON_BYTES:
            raise FormatError(
                f"{path}: entry '{info.filename}' holds {info.file_size} bytes of JSON, more than {MAX_JSON_BYTES}: refused"
            )


def _documents(path: Path, archive: zipfile.ZipFile) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    names = archive.namelist()
    models = [n for n in names if re.search(r"(^|/)models/[^/]+\.json$", n)]
    if len(models) != 1:
        raise FormatError(f"{path}: holds {len(models)} exported programs, one is wanted: {_CURE}")
    root, _, tail = models[0].rpartition("models/")
    stem = tail.removesuffix(".json")
    pickled = [n for n in names if n.endswith(".pt") and not n.startswith(f"{root}data/sample_inputs/")]
    if pickled:
        raise FormatError(f"{path}: '{pickled[0]}' is a pickle, which can run code: it is refused; {_CURE}")
    configs = [f"{root}data/{kind}/{stem}_{kind}_config.json" for kind in ("weights", "constants")]
    weights, constants = (_payload(path, archive, name) for name in configs)
    return _json(path, archive, models[0]), weights, constants


def _payload(path: Path, archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    config: dict[str, Any] = _json(path, archive, name).get("config", {}) if name in archive.namelist() else {}
    for key, entry in config.items():
        if entry.get("use_pickle") or entry.get("tensor_meta") is None:
            raise FormatError(f"{path}: '{key}' is stored as a pickle, which can run code: it is refused; {_CURE}")
    return config


def _json(path: Path, archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    try:
        found = json.loads(archive.read(name))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: entry '{name}' is not JSON: {error}: {_CURE}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path}: entry '{name}' is not a JSON object: {_CURE}")
    _check_words(path, found)
    return found


def _check_words(path: Path, value: Any) -> None:
    """torch evaluates expressions and writes names into generated code: only plain ones may pass."""
    for key, text in _words(value):
        plain = _EXPRESSION if key == "expr_str" else _NAME
        if not plain.match(text) or ("__" in text.strip("_") and key == "expr_str"):
            raise FormatError(
                f"{path}: {key} '{text[:60]}' is no plain {'expression' if key == 'expr_str' else 'name'}: it is refused"
            )


def _words(value: Any) -> Iterator[tuple[str, str]]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            for key, inner in item.items():
                if key in ("name", "as_name", "expr_str", "target") and isinstance(inner, str) and inner:
                    yield key, inner
                elif key != "metadata":
                    stack.append(inner)
        elif isinstance(item, list):
            stack.extend(item)


def _deserialised(path: Path, graph: dict[str, Any], weights: dict[str, Any], constants: dict[str, Any]) -> Any:
    from torch._export.serde import schema, serialize

    try:
        program = serialize._dict_to_dataclass(schema.ExportedProgram, graph)
        state = {k: _meta_weight(schema, serialize, e) for k, e in weights.items()}
        kept = {k: _meta_weight(schema, serialize, e) for k, e in constants.items()}
        return serialize.ExportedProgramDeserializer().deserialize(program, state, kept, b"")
    except RooflensError:
        raise
    except Exception as error:  # torch raises what it likes for a document that it does not know
        raise FormatError(
            f"{path}: torch {torch.__version__} cannot read it: {type(error).__name__}: {error}: {_CURE}"
        ) from error


def _meta_weight(schema: Any, serialize: Any, entry: dict[str, Any]) -> torch.Tensor:
    meta = serialize._dict_to_dataclass(schema.TensorMeta, entry["tensor_meta"])
    made = torch.empty_strided(
        serialize.deserialize_size(meta.sizes),
        serialize.deserialize_stride(meta.strides),
        dtype=serialize.deserialize_scalar_type(meta.dtype),
        device="meta",
    )
    return nn.Parameter(made, requires_grad=meta.requires_grad) if entry.get("is_param") else made


class _Exported(nn.Module):
    """The program's graph run node by node, so that ops keep the module paths that were written into it."""

    def __init__(self, program: Any, path: Path) -> None:
        super().__init__()
        self.program, self.path = program, path
        self.state = [(spec, self._adopt(spec)) for spec in program.graph_signature.input_specs]

    def _adopt(self, spec: Any) -> str | None:
        """Parameters and buffers become this module's own under a flat name; user inputs have none."""
        if spec.target is None:
            return None
        found = self.program.state_dict.get(spec.target, self.program.constants.get(spec.target))
        name: str = spec.target.replace(".", "__")
        if isinstance(found, nn.Parameter):
            self.register_parameter(name, found)
        elif isinstance(found, torch.Tensor):
            self.register_buffer(name, found)
        return name

    def forward(self, *args: Any) -> Any:
        given = iter(args)
        values = [next(given) if name is None else getattr(self, name) for _, name in self.state]
        return _Interpreter(self.program.graph_module).run(*values)


class _Interpreter(fx.Interpreter):
    """fx's own; each node runs where its module stood, and symbolic sizes are those of the tensors that really flow."""

    def run_node(self, n: fx.Node) -> Any:
        path, kind = _module_of(n)
        recorder = _get_current_dispatch_mode()
        try:
            if not isinstance(recorder, Recorder):
                return super().run_node(n)
            with recorder.at(path, plain=kind.startswith("torch.nn.modules.")):
                return super().run_node(n)
        except RooflensError:
            raise
        except Exception as error:
            raise ShapeError(f"node '{n.name}' of layer '{path}' rejects its input: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """fx appends the traceback of the exported code, which is not the user's."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _module_of(node: fx.Node) -> tuple[str, str]:
    """Path and class of the innermost module that the node was exported from."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return (str(stack[-1][0]), str(stack[-1][1])) if stack else ("", "")


def _inputs(module: _Exported, request: Request) -> tuple[list[torch.Tensor], dict[str, int]]:
    names = {spec.arg.name for spec, name in module.state if name is None}
    nodes = [n for n in module.program.graph.nodes if n.op == "placeholder" and n.name in names]
    examples = [n.meta["val"] for n in nodes]
    shapes, sizes = bound_shapes(
        examples, [n.name for n in nodes], module.program.range_constraints, request, str(module.path)
    )
    return [made_input(s, t.dtype) for s, t in zip(shapes, examples, strict=True)], sizes
