"""torchvision next to a CPU-only torch: its wheel is a CUDA build and dies on import for two missing op schemas."""

import importlib.util
from functools import cache
from typing import Any

import torch

_kept: list[Any] = []


@cache
def prepare_torchvision() -> None:
    """Define the schemas before the first import, only where the real ones cannot load."""
    if torch.version.cuda is not None or importlib.util.find_spec("torchvision") is None:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not torch._C._dispatch_has_kernel(f"torchvision::{name}"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)
