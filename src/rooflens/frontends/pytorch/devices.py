"""Where a tensor goes when a model names a device, or none: to meta, unless it may ask for the values."""

from math import prod
from typing import Any

import torch

READABLE = 65536  # elements of a meta tensor that may become real when a model asks for its values
_STEERING = 64  # elements of a tensor that a model makes, and whose values may steer it


def made_on_meta(args: Any, kwargs: Any) -> Any:
    """For torch.zeros and its kin: without a device it would be real memory, and could not be filled from meta."""
    size = next((a for a in args if isinstance(a, list | tuple)), ())
    if prod(size) <= _STEERING or any(isinstance(a, torch.Tensor) for a in args):
        return kwargs
    return {**kwargs, "device": torch.device("meta"), "pin_memory": None}


def device_of(args: Any, kwargs: Any) -> Any:
    """The device that `to` was given, in any of its forms."""
    other = args[1] if len(args) > 1 else None
    if isinstance(other, torch.Tensor):
        return other.device
    return kwargs.get("device") or next((a for a in args[1:] if isinstance(a, torch.device)), None)


def dtype_of(args: Any, kwargs: Any) -> Any:
    other = args[1] if len(args) > 1 else None
    if isinstance(other, torch.Tensor):
        return other.dtype
    return kwargs.get("dtype") or next((a for a in args[1:] if isinstance(a, torch.dtype)), None)
