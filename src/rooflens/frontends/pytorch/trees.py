"""Arguments and results are trees of lists, tuples and dicts with tensors in them."""

from collections.abc import Iterator
from typing import Any

import torch


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def mapped(change: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return like(value, [mapped(change, v) for v in value])
    if isinstance(value, dict):
        return {k: mapped(change, v) for k, v in value.items()}
    return value


def like(value: Any, items: list[Any]) -> Any:
    """A list or tuple of the same type; a named tuple takes its items one by one."""
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
