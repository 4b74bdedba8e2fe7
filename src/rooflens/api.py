"""The Python functions: a model, a chip and options in, an Analysis out. The command line calls the same ones."""

from typing import Any

from rooflens.analysis import Analysis
from rooflens.collector import collector_paused
from rooflens.errors import SyntaxFault
from rooflens.frontends.load import load_model
from rooflens.frontends.request import Loaded, Request
from rooflens.hardware.load import load_chip, split_chips
from rooflens.hardware.records import Hardware
from rooflens.pipeline.run import predict
from rooflens.pipeline.settings import Settings, make_settings


def analyze(model: Any, inputs: Any = None, *, on: str | Hardware | None = None, **options: Any) -> Analysis:
    """Every layer's place on the roofline of one chip.

    `model` is MODEL text (`"resnet18"`, layer text, a file) or a torch module; `inputs` a tensor, a tuple or a dict for
    a module. `options` are the command line's flags with underscores: `batch=8, dtype="bf16", mode="training"`.
    """
    settings = make_settings(**options)
    hardware = _one_chip(on) if isinstance(on, str) else on
    loaded = load(model, inputs, settings)
    return _analysis(loaded, hardware, on if isinstance(on, str) or on is None else on.id, settings)


def _one_chip(on: str) -> Hardware:
    chips = split_chips(on)
    if len(chips) > 1:
        raise SyntaxFault(f"on='{on}' names {len(chips)} chips: call analyze once for each")
    return load_chip(chips[0])


def analyze_one(model: str, on: str | None, settings: Settings) -> Analysis:
    return _analysis(load(model, None, settings), load_chip(on) if on else None, on, settings)


def analyze_many(model: Any, chips: tuple[str, ...], settings: Settings) -> tuple[Analysis, ...]:
    """The same model on several chips: traced once."""
    hardware = [load_chip(c) for c in chips]
    loaded = load(model, None, settings)
    return tuple(_analysis(loaded, h, c, settings) for h, c in zip(hardware, chips, strict=True))


def _analysis(loaded: Loaded, hardware: Hardware | None, on: str | None, settings: Settings) -> Analysis:
    prediction = predict(loaded.graph, hardware, settings, loaded.dtype)
    return Analysis(prediction=prediction, on=on, batch=loaded.batch)


def load(model: Any, inputs: Any, settings: Settings) -> Loaded:
    request = Request(
        batch=settings.batch,
        input=settings.input,
        dtype=settings.dtype,
        training=settings.training,
        optimizer=settings.step,
        channels_last=settings.layout == "channels-last",
        autocast=settings.autocast,
        dim=settings.dim,
    )
    with collector_paused():
        return load_model(model, request) if isinstance(model, str) else _load_object(model, inputs, request)


def _load_object(model: Any, inputs: Any, request: Request) -> Loaded:
    from rooflens.frontends.pytorch.load import given_inputs, load_module

    name = type(model).__name__
    return load_module(model, given_inputs(inputs, request), request, name=name, source=f"python:{name}")
