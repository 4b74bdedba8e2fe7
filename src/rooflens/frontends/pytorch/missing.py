"""Shapes of ops for which torch has no meta kernel: the call's meta tensors in, the output's meta tensor out.

Where torch gets one, the row here goes. A rule returns None for an overload that torch does answer.
"""

from collections.abc import Callable
from typing import Any

import torch

from rooflens.errors import ModelError


def _like_input(g: torch.Tensor, x: torch.Tensor, *args: Any) -> torch.Tensor:
    """A backward's gradient and the input that it makes one of."""
    return torch.empty_like(x)


def packed(name: str, module: str) -> ModelError:
    """An eager-quantised layer keeps its weights in an object that shows no tensors."""
    where = f"layer '{module}'" if module else "the model"
    return ModelError(
        f"{where} is quantised ({name}), and its packed weights have no shapes to read: analyse the float model with "
        "--dtype int8"
    )


MISSING: dict[str, Callable[..., Any]] = {
    "_ctc_loss_backward": _like_input,
    "fractional_max_pool3d_backward": _like_input,
    "multi_margin_loss_backward": _like_input,
}
