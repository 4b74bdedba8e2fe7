"""A user's module, lent for one recording: on the meta device, in the asked mode, with dice of its own; and given back as
it was found."""

import random
import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from rooflens.errors import ModelError

_CONTAINERS = (dict, OrderedDict, list, set)


@contextmanager
def lent(module: nn.Module, *, training: bool, dtype: torch.dtype | None, layout: Any) -> Iterator[None]:
    with _as_found(module), _seeded():
        _to_meta(module, dtype, layout)
        _switch(module, training)
        yield


def _to_meta(module: nn.Module, dtype: torch.dtype | None, layout: Any) -> None:
    """Every parameter and buffer a meta stand-in, tied ones tied."""
    made: dict[int, Any] = {}
    for m in module.modules():
        for table in (m._parameters, m._buffers):
            for key, t in table.items():
                if t is None:
                    continue
                if id(t) not in made:
                    made[id(t)] = stand_in(t, dtype, layout)
                if made[id(t)] is not t:
                    table[key] = made[id(t)]


def _switch(module: nn.Module, training: bool) -> None:
    """By the module's own method: it may keep a frozen norm in evaluation."""
    try:
        module.train() if training else module.eval()
    except Exception as error:
        mode = "train" if training else "eval"
        raise ModelError(
            f"the model's {mode}() raised {type(error).__name__}: {error}: call it by itself first"
        ) from error


@contextmanager
def _as_found(module: nn.Module) -> Iterator[None]:
    """A forward pass may keep what it computes: as an attribute, a buffer, an item of a list. Nobody wants it on meta.
    The mode of each module is an attribute too."""
    before = [(vars(m), dict(vars(m)), _contents(m), _gradients(m)) for m in module.modules()]
    try:
        yield
    finally:
        for attributes, found, contents, gradients in before:
            attributes.clear()
            attributes.update(found)
            for container, items in contents:
                if container or items:  # most are empty before and after
                    _refill(container, items)
            for p, gradient in gradients:
                p.grad = gradient


def _contents(m: nn.Module) -> list[tuple[Any, Any]]:
    """The containers that it holds, torch's own tables of parameters, buffers and hooks among them, with their items."""
    return [(v, type(v)(v) if v else ()) for v in vars(m).values() if type(v) in _CONTAINERS]


def _refill(container: Any, items: Any) -> None:
    container.clear()
    if isinstance(container, list):
        container.extend(items)
    else:
        container.update(items)


def _gradients(m: nn.Module) -> list[tuple[Any, Any]]:
    return [(p, p.grad) for p in m._parameters.values() if p is not None]


def check_shape(t: Any) -> None:
    """Whoever counts parameters, or copies their geometry, needs them to have one."""
    if is_lazy(t):
        raise ModelError("the model has lazy parameters without a shape: run it once, or build it with its sizes")


def stand_in(t: Any, dtype: torch.dtype | None, layout: Any) -> Any:
    check_shape(t)
    wanted = dtype if dtype is not None and t.is_floating_point() else t.dtype
    reshaped = layout is not None and t.dim() == 4
    if t.is_meta and t.dtype == wanted and not reshaped:
        return t
    if reshaped:
        made = torch.empty(t.shape, dtype=wanted, device="meta", memory_format=layout)
    else:
        made = torch.empty_strided(t.shape, t.stride(), dtype=wanted, device="meta")
    return nn.Parameter(made, requires_grad=t.requires_grad) if isinstance(t, nn.Parameter) else made


@contextmanager
def _seeded() -> Iterator[None]:
    """Models that skip layers or mask steps by chance do so the same way every time; the user's dice stay where they
    were."""
    numpy = sys.modules.get("numpy")
    plain, array = random.getstate(), numpy.random.get_state() if numpy else None
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        random.seed(0)
        if numpy:
            numpy.random.seed(0)
        try:
            yield
        finally:
            random.setstate(plain)
            if numpy:
                numpy.random.set_state(array)
