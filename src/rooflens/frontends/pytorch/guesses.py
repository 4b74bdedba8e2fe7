"""Shapes that depend on values, which a meta tensor does not have: the call in, its largest possible result out.

Masks are taken as full, values as all different and counts as one; the recorder lists each use as an assumption. A rule
returns None where the values are known after all, and torch's own kernel then answers.
"""

from collections.abc import Callable
from typing import Any

import torch

Rule = Callable[..., Any]
_INT = torch.int64
MASKS = (torch.bool, torch.uint8)


def _empty(shape: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def _nonzero(func: Any, x: torch.Tensor) -> torch.Tensor | None:
    return _empty((x.numel(), x.dim()), _INT) if x.is_meta else None


def _masked_select(func: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _empty((torch.broadcast_shapes(x.shape, mask.shape).numel(),), x.dtype)


def _unique(func: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...] | None:
    return (_empty((x.numel(),), x.dtype), _empty(x.shape, _INT), _empty((x.numel(),), _INT)) if x.is_meta else None


def _sorted_unique(func: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...] | None:
    return (_empty((x.numel(),), x.dtype), _empty(x.shape, _INT)) if x.is_meta else None


def _unique_dim(func: Any, x: torch.Tensor, dim: int, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...] | None:
    size = (x.shape[dim],)
    return (_empty(x.shape, x.dtype), _empty(size, _INT), _empty(size, _INT)) if x.is_meta else None


def _bincount(func: Any, x: torch.Tensor, weights: Any = None, minlength: int = 0) -> torch.Tensor | None:
    dtype = _INT if weights is None else weights.dtype
    return _empty((max(minlength, x.numel()),), dtype) if x.is_meta else None


def _repeat_interleave(
    func: Any, x: torch.Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> torch.Tensor | None:
    """Called with counts alone it makes the indices; with a tensor and counts it repeats the tensor's slices."""
    if repeats is None:
        return _empty((output_size or x.numel(),), _INT)
    if not isinstance(repeats, torch.Tensor) or not repeats.is_meta:
        return None
    shape = [x.numel()] if dim is None else list(x.shape)
    shape[dim or 0] = output_size or shape[dim or 0]
    return _empty(shape, x.dtype)


def _indexed(func: Any, x: torch.Tensor, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """A mask among the indices stands for the places where it holds."""
    if not any(i is not None and i.dtype in MASKS for i in indices):
        return None
    places: list[torch.Tensor | None] = []
    for i in indices:
        if i is None or i.dtype not in MASKS:
            places.append(i)
        else:
            places += [_empty((i.numel(),), _INT)] * i.dim()
    return func(x, places, *args, **kwargs)


def _stored(func: Any, x: torch.Tensor, indices: Any, values: torch.Tensor, *args: Any) -> Any:
    """In place, so that the result is what torch says; the assumption is what this is for."""
    masked = any(i is not None and i.dtype in MASKS for i in indices)
    return func(x, indices, values, *args) if masked and held(x, indices, values) is None else None


def held(x: torch.Tensor, indices: Any, values: torch.Tensor) -> int | None:
    """At how many places a mask among the indices holds, where the values' own shape tells: they have an axis for it,
    where the first index stands."""
    given = [place for place, i in enumerate(indices) if i is not None]
    indexed = sum(i.dim() if i is not None and i.dtype in MASKS else 1 for i in indices)
    rank = x.dim() - indexed + 1 + len(indices) - len(given)
    apart = given[-1] - given[0] >= len(given)  # torch then puts their axis first
    axis = values.dim() - rank + (0 if apart else given[0])
    return int(values.shape[axis]) if values.dim() == rank and values.shape[axis] != 1 else None


def _scattered(func: Any, x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return func(x, mask, source)  # type: ignore[no-any-return]


def _ctc_loss(
    func: Any, log_probs: torch.Tensor, targets: torch.Tensor, lengths: Any, *args: Any
) -> tuple[torch.Tensor, ...] | None:
    """The loss of each item, and the probability of each state at each step: every label and a blank around it."""
    if not isinstance(lengths, torch.Tensor):
        return None
    steps, items = log_probs.shape[:2]
    labels = targets.shape[1] if targets.dim() == 2 else -(-targets.numel() // max(1, items))
    return _empty((items,), log_probs.dtype), _empty((items, steps, 2 * labels + 1), log_probs.dtype)


def _packed(func: Any, x: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, ...] | None:
    """Known lengths give the true number of steps; the sizes stay on the CPU, where torch reads them."""
    batch, steps = x.shape[:2] if batch_first else (x.shape[1], x.shape[0])
    known = [steps] * batch if lengths.is_meta else lengths.tolist()
    sizes = [sum(n > step for n in known) for step in range(max(known, default=0))]
    return _empty((sum(known), *x.shape[2:]), x.dtype), torch.tensor(sizes, dtype=_INT)


def narrowed(func: Any, x: torch.Tensor, dim: int, start: Any, length: int) -> torch.Tensor | None:
    """Its start may be a tensor."""
    unknown = isinstance(start, torch.Tensor) and start.is_meta
    return torch.ops.aten.narrow.default(x, dim, 0, length) if unknown else None


# Packed sequences keep their sizes on the CPU, where torch reads them.
READS_VALUES = frozenset({"_pack_padded_sequence", "_pad_packed_sequence", "lstm", "gru", "rnn_tanh", "rnn_relu"})
DATA_DEPENDENT: dict[str, Rule] = {
    "nonzero": _nonzero,
    "masked_select": _masked_select,
    "_unique": _sorted_unique,
    "_unique2": _unique,
    "unique_consecutive": _unique,
    "unique_dim": _unique_dim,
    "bincount": _bincount,
    "repeat_interleave": _repeat_interleave,
    "index": _indexed,
    "_unsafe_index": _indexed,
    **dict.fromkeys(("index_put_", "_index_put_impl_"), _stored),
    "masked_scatter_": _scattered,
    "_ctc_loss": _ctc_loss,
    "_pack_padded_sequence": _packed,
    "narrow": narrowed,
}
# What is listed for the others: that they were taken to select every element.
ASSUMED = {"narrow": "the start of a slice was asked for and taken as 0"}
