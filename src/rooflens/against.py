"""A MODEL that torch can run in, what a compiler makes of it out: its kernels, and the graph that both sides are judged on."""

import os
from typing import TYPE_CHECKING, Any

from rooflens.errors import SyntaxFault, nearest
from rooflens.frontends.load import check_module, needs_torch
from rooflens.frontends.request import Loaded, Request
from rooflens.pipeline.settings import Settings

if TYPE_CHECKING:
    from rooflens.benches.inductor import Compiled

COMPILERS = ("inductor",)
_FIXED = {"mode": "inference", "layout": "nchw", "autocast": False}


def load_compiled(model: Any, inputs: Any, settings: Settings, against: str) -> "tuple[Loaded, Compiled]":
    """Inference in fp32, as the compiler is asked on this CPU."""
    check_compiler(against)
    _check_settings(settings, against)
    if isinstance(model, str | os.PathLike):
        check_module(os.fsdecode(model), f"--against {against} needs")
    else:
        needs_torch()
    from rooflens.benches.inductor import compile_with_inductor
    from rooflens.frontends.pytorch.load import Found, given_inputs, module_of

    request = Request(batch=settings.batch, input=settings.input, inputs=inputs)
    if isinstance(model, str | os.PathLike):
        found = module_of(os.fsdecode(model).strip(), request)
    else:
        found = Found(name=type(model).__name__, module=model, inputs=given_inputs(inputs, request))
    compiled = compile_with_inductor(found.module, *found.inputs, found.name)
    shapes = [compiled.graph.tensors[i].shape for i in compiled.graph.inputs]
    batch = shapes[0][0] if shapes and shapes[0] else None
    return Loaded(graph=compiled.graph, dtype="fp32", batch=batch), compiled


def check_compiler(name: str) -> None:
    if name not in COMPILERS:
        raise SyntaxFault(f"--against {name}: use one of {' '.join(COMPILERS)}.{nearest(name, COMPILERS)}")


def _check_settings(settings: Settings, against: str) -> None:
    for name, wanted in _FIXED.items():
        if getattr(settings, name) != wanted:
            raise SyntaxFault(f"--against {against} compares inference in fp32, nchw: leave --{name} out")
    if settings.dtype not in (None, "fp32"):
        raise SyntaxFault(f"--against {against} compares inference in fp32: leave --dtype {settings.dtype} out")
