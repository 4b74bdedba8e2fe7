"""MODEL text, a path or a module, and settings in; Loaded out: what every verb on a model begins with."""

import os
from typing import Any

from rooflens.collector import collector_paused
from rooflens.errors import ModelError
from rooflens.frontends.load import load_model, load_with_inputs
from rooflens.frontends.request import Loaded, Request
from rooflens.pipeline.settings import Settings


def request_of(settings: Settings, inputs: Any = None) -> Request:
    """What a frontend needs to know of the settings."""
    return Request(
        batch=settings.batch,
        input=settings.input,
        dtype=settings.dtype,
        training=settings.training,
        optimizer=settings.step,
        channels_last=settings.layout == "channels-last",
        autocast=settings.autocast,
        dim=settings.dim,
        given=settings.given,
        inputs=inputs,
    )


def load(model: Any, inputs: Any, settings: Settings) -> Loaded:
    request = request_of(settings)
    with collector_paused():
        if not isinstance(model, str | os.PathLike):
            return _load_object(model, inputs, request)
        text = os.fsdecode(model)
        return load_model(text, request) if inputs is None else load_with_inputs(text, inputs, request)


def _load_object(model: Any, inputs: Any, request: Request) -> Loaded:
    name = checked_module(model)
    from rooflens.frontends.pytorch.load import load_given

    return load_given(model, inputs, request, name=name, source=f"python:{name}")


def checked_module(model: Any) -> str:
    """The name of what should be a torch module."""
    name = model.__name__ if isinstance(model, type) else type(model).__name__
    if isinstance(model, type) and hasattr(model, "named_parameters"):
        raise ModelError(f"{name} is a class, not a module: make one first, such as {name}(…)")
    if not callable(model) or not hasattr(model, "named_parameters"):
        raise ModelError(f"a model of type {name}: give MODEL text, a path, or a torch module")
    return str(name)
