"""A name in, a module on the meta device and the shape of its input out: torchvision's models and timm's, without
weights, memory or network."""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from rooflens.errors import ModelError, nearest, needs_extra
from rooflens.frontends.load import CATALOGUE_LATER
from rooflens.frontends.pytorch.compat import prepare_torchvision

TIMM = "timm:"
_IMAGE = (1, 3, 224, 224)
# By the start of the name, the longest one wins; what the published weights were trained at, if not 224 x 224.
_SHAPES: dict[str, tuple[int, ...]] = {
    "inception_v3": (1, 3, 299, 299),
    "quantized_inception_v3": (1, 3, 299, 299),
    **dict.fromkeys(("r3d_", "mc3_", "r2plus1d_"), (1, 3, 16, 112, 112)),
    **dict.fromkeys(("mvit_", "s3d", "swin3d_"), (1, 3, 16, 224, 224)),
    "raft_": (1, 3, 368, 496),
}
_DETECTION = ("rcnn", "retinanet", "fcos", "ssd")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """`copies`: how many inputs of that shape the forward pass takes (optical flow compares two images)."""

    module: nn.Module
    input_shape: tuple[int, ...]
    copies: int = 1
    notes: tuple[str, ...] = ()


def load_zoo(name: str) -> LoadedModel:
    """The model that `name` stands for: one of torchvision's, or `timm:NAME`."""
    if name.startswith(TIMM):
        return _load_timm(name.removeprefix(TIMM))
    return _load_torchvision(name)


def zoo_names() -> list[str]:
    """Every name that `load_zoo` knows, of the packages that are installed."""
    names = _torchvision_names() if find_spec("torchvision") else []
    return [*names, *(f"{TIMM}{n}" for n in _timm_names())] if find_spec("timm") else names


def _package(name: str) -> Any:
    if find_spec(name) is None:
        raise needs_extra(name, "zoo")
    prepare_torchvision()
    return import_module(name)


@cache
def _torchvision_names() -> list[str]:
    names: list[str] = _package("torchvision").models.list_models()
    return names


@cache
def _timm_names() -> list[str]:
    names: list[str] = _package("timm").list_models()
    return names


def _unknown(name: str) -> ModelError:
    plain = name.removeprefix(TIMM)
    known = {n.removeprefix(TIMM): n for n in reversed(zoo_names())}
    same = f" Did you mean {known[plain]}?" if plain in known and known[plain] != name else ""
    return ModelError(f"model '{name}' is not known.{same or nearest(name, (*zoo_names(), *CATALOGUE_LATER))}")


def _load_torchvision(name: str) -> LoadedModel:
    package = _package("torchvision")
    if name not in _torchvision_names():
        raise _unknown(name)
    if any(word in name for word in _DETECTION):
        raise ModelError(
            f"model '{name}' ends in a non-maximum suppression, whose work depends on the image: analyse its backbone, "
            "or its layers through file.py:function"
        )
    builder = package.models.get_model_builder(name)
    quantized = name.startswith("quantized_")
    return LoadedModel(
        module=built(lambda: builder(**_without_weights(builder, name))),
        input_shape=_shape_of(name),
        copies=2 if name.startswith("raft_") else 1,
        notes=(f"{name} is analysed before quantization: choose its type with --dtype",) if quantized else (),
    )


def _without_weights(builder: Callable[..., nn.Module], name: str) -> dict[str, Any]:
    """No download, and no slow or soon to be changed initialisation."""
    chosen: dict[str, Any] = {"weights": None}
    if "weights_backbone" in inspect.signature(builder).parameters:
        chosen["weights_backbone"] = None
    if "inception" in name or "googlenet" in name:
        chosen["init_weights"] = False
    return chosen


def _shape_of(name: str) -> tuple[int, ...]:
    fitting = [start for start in _SHAPES if name.startswith(start)]
    return _SHAPES[max(fitting, key=len)] if fitting else _IMAGE


def _load_timm(name: str) -> LoadedModel:
    """`NAME`, or `NAME.TAG` for the sizes and classes of certain published weights."""
    package = _package("timm")
    if not package.is_model(name):
        raise _unknown(f"{TIMM}{name}")
    plain, _, tag = name.partition(".")
    tags = [n.partition(".")[2] for n in package.list_pretrained(f"{plain}.*")] if tag else []
    if tag and tag not in tags:
        raise ModelError(f"model '{TIMM}{plain}' has no weights '{tag}'.{nearest(tag, tags)}")
    module = built(lambda: package.create_model(name, pretrained=False))
    size = (getattr(module, "pretrained_cfg", None) or {}).get("input_size") or _IMAGE[1:]
    return LoadedModel(module=module, input_shape=(1, *size))


def built(build: Callable[[], nn.Module]) -> nn.Module:
    """On the meta device; where a constructor reads values of small tables that it makes, those stay real till the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.device("meta"):
                module = build()
        except (NotImplementedError, RuntimeError):
            with _WeightsOnMeta():
                module = build()
        return module.to("meta")


class _WeightsOnMeta(TorchFunctionMode):
    """Weights start as `torch.empty`; tables of numbers (arange, linspace, tensor) do not."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.empty, torch.empty_strided):
            kwargs["device"] = "meta"
        return func(*args, **kwargs)
