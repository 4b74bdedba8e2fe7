"""Zoo names, `file.py:function` and module objects in, Loaded out."""

import importlib.util
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rooflens.errors import ModelError, RooflensError, ShapeError, nearest
from rooflens.frontends.pytorch.compat import prepare_torchvision
from rooflens.frontends.pytorch.trace import own_dtype, trace_module
from rooflens.frontends.pytorch.tracker import TORCH_DTYPES
from rooflens.frontends.request import Loaded, Request, autocast_dtype, check_batch, input_shape, recorded_dtype, stored
from rooflens.graph.records import Graph

Args = tuple[tuple[Any, ...], dict[str, Any]]
IMAGE = (1, 3, 224, 224)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A module and the inputs it will be recorded with."""

    name: str
    module: nn.Module
    inputs: Args
    notes: tuple[str, ...] = ()


def load_zoo_model(model: str, request: Request) -> Loaded:
    found = module_of(model, request)
    loaded = load_module(found.module, found.inputs, request, name=found.name, source=model, default_dtype="fp32")
    return replace(loaded, graph=replace(loaded.graph, notes=(*loaded.graph.notes, *found.notes)))


def load_function(model: str, request: Request) -> Loaded:
    """Runs the user's own function; it returns a module, or a module and its inputs."""
    path, _, name = model.rpartition(":")
    module, inputs = _built(model, path, name)
    inputs = inputs if request.inputs is None else request.inputs
    return load_given(module, inputs, request, name=name, source=model)


def load_given(module: nn.Module, inputs: Any, request: Request, *, name: str, source: str) -> Loaded:
    """An input that had to be invented is said to be so, in the report and where the model rejects it."""
    args, kwargs = given_inputs(inputs, request)
    if inputs is not None or request.input is not None:
        return load_module(module, (args, kwargs), request, name=name, source=source)
    invented = "no input was given, so an image of " + "x".join(str(n) for n in args[0].shape) + " was taken"
    try:
        loaded = load_module(module, (args, kwargs), request, name=name, source=source)
    except (ShapeError, ModelError) as error:
        raise type(error)(f"{error} ({invented})") from None
    return replace(loaded, graph=replace(loaded.graph, assumptions=(*loaded.graph.assumptions, invented)))


def module_of(model: str, request: Request) -> Found:
    """The module behind a zoo name or `file.py:function`."""
    path, _, name = model.rpartition(":")
    if path.endswith(".py"):
        module, inputs = _built(model, path, name)
        return Found(name=name, module=module, inputs=given_inputs(inputs, request))
    from rooflens.frontends.pytorch.zoo import load_zoo

    found = load_zoo(model)
    if request.inputs is not None:
        return Found(name=model, module=found.module, inputs=given_inputs(request.inputs, request), notes=found.notes)
    shape = input_shape(request, found.input_shape)
    if len(shape) != len(found.input_shape):
        usual = "x".join(map(str, found.input_shape))
        raise ShapeError(f"--input {request.input}: {model} takes {len(found.input_shape)} dimensions, such as {usual}")
    args = tuple(made_input(shape) for _ in range(found.copies))
    return Found(name=model, module=found.module, inputs=(args, {}), notes=found.notes)


def made_input(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """On meta, where torch still counts a tensor's bytes, in 64 bits."""
    try:
        return torch.empty(shape, dtype=dtype, device="meta")
    except (RuntimeError, TypeError, OverflowError):
        raise ShapeError(
            f"an input of {'x'.join(map(str, shape))} has more bytes than torch can count in 64 bits: give a smaller batch "
            "or shape, or layer text, which has no such limit"
        ) from None


def _built(model: str, path: str, name: str) -> tuple[nn.Module, Any]:
    built = _call(_function(Path(path), name), model)
    module, inputs = built if isinstance(built, tuple) and len(built) == 2 else (built, None)
    if not isinstance(module, nn.Module):
        raise ModelError(
            f"{model}: returned {type(module).__name__}, not a torch module: return a module, or a module and its inputs"
        )
    return module, inputs


def load_module(
    module: nn.Module, inputs: Args, request: Request, *, name: str, source: str, default_dtype: str | None = None
) -> Loaded:
    """`default_dtype` None keeps the module's own types where the user asks for none."""
    dtype = request.dtype or default_dtype or own_dtype(module)
    cast = autocast_dtype(request)
    keep = request.dtype is None and default_dtype is None
    wanted = None if keep else TORCH_DTYPES["fp32" if cast else recorded_dtype(dtype)]
    with prints_aside():
        graph = trace_module(
            module,
            *inputs,
            name=name,
            source=source,
            dtype=wanted,
            training=request.training,
            optimizer=request.optimizer,
            autocast=TORCH_DTYPES[cast] if cast else None,
            channels_last=request.channels_last,
        )
    if keep and not cast:
        _check_types(graph)
    return Loaded(graph=stored(graph, dtype), dtype=dtype, batch=_batch(graph))


# Which inputs torch wants in one type. A product may have one factor only: the other is made inside, as in affine_grid.
_FACTORS = {"linear": (0, 1), "matmul": (0, 1), "addmm": (1, 2)}


def _check_types(graph: Graph) -> None:
    """On meta tensors torch lets these pass. Only what comes from outside is looked at: inside, a model may have set up
    casts of its own."""
    for op in graph.ops:
        pair = [graph.tensors[op.inputs[i]] for i in _FACTORS.get(op.kind, ()) if i < len(op.inputs)]
        if any(t.role == "input" for t in pair) and len({t.dtype for t in pair}) > 1:
            got = " and ".join(t.dtype for t in pair)
            raise ModelError(
                f"layer '{op.module or op.id}': mat1 and mat2 must have the same dtype, but got {got}: give inputs of the "
                "model's type, or choose one for all with --dtype"
            )


def prints_aside() -> AbstractContextManager[object]:
    """Results may be on their way to standard output: what a model prints goes to standard error."""
    return redirect_stdout(sys.stderr)


def _batch(graph: Graph) -> int | None:
    shapes = [graph.tensors[i].shape for i in graph.inputs]
    return shapes[0][0] if shapes and shapes[0] else None


def given_inputs(inputs: Any, request: Request) -> Args:
    """A tensor, a tuple of positional or a dict of keyword inputs; without any, an image of the asked shape."""
    inputs = tuple(inputs) if isinstance(inputs, list) else inputs
    if inputs is None:
        return (made_input(input_shape(request, IMAGE)),), {}
    args = inputs if isinstance(inputs, tuple) else () if isinstance(inputs, Mapping) else (inputs,)
    kwargs = dict(inputs) if isinstance(inputs, Mapping) else {}
    first = next((t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor)), None)
    if first is not None:
        check_batch(request, tuple(first.shape), "the given inputs")
        if request.input is not None:
            raise ModelError("--input beside inputs that are given: leave one of them out")
    return args, kwargs


def _function(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"rooflens_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{path}: not a Python file: name it as file.py:function")
    prepare_torchvision()  # the file may well import timm or transformers
    code = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        with prints_aside():
            spec.loader.exec_module(code)
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"{path}: raised {type(error).__name__} when imported: {error}: run it by itself first"
        ) from error
    finally:
        sys.path.remove(str(path.parent))
    if not callable(getattr(code, name, None)):
        known = [n for n, v in vars(code).items() if callable(v) and not n.startswith("_")]
        hint = nearest(name, known) or f" It has {' '.join(known) or 'none: write one that returns a module'}"
        raise ModelError(f"{path}: has no function '{name}'.{hint}")
    return getattr(code, name)


def _call(function: Any, model: str) -> Any:
    try:
        with prints_aside():
            return function()
    except RooflensError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(f"{model}: raised {type(error).__name__}: {error}: run it by itself first") from error
