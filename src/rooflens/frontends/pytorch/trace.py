"""A module and its inputs in, a verified Graph out. No weights are kept and no memory is taken: parameters and inputs
become meta tensors for the time of the recording, and the user's module is left as it was found."""

import random
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as nn_module
from torch.nn.parameter import is_lazy

from rooflens.errors import ModelError, RooflensError, ShapeError
from rooflens.frontends.optimizer import record_step
from rooflens.frontends.pytorch.recorder import Recorder
from rooflens.frontends.pytorch.tracker import DTYPES
from rooflens.frontends.pytorch.trees import like, tensors_in
from rooflens.frontends.pytorch.whole import fused_multi_head, plain_checkpoints, whole_calls
from rooflens.graph.records import FLOATS, Graph

_SHAPE_WORDS = re.compile(r"shape|size|dim|channel|match|expected input|mat1", re.I)


def trace_module(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    name: str,
    source: str,
    dtype: torch.dtype | None = None,
    training: bool = False,
    optimizer: str = "none",
    autocast: torch.dtype | None = None,
    channels_last: bool = False,
) -> Graph:
    """`dtype` None keeps the module's own types."""
    layout = torch.channels_last if channels_last else None
    made = Recorder({m: path for path, m in module.named_modules()}, autocast)
    with _on_meta(module, dtype, layout), _switched(module, training), _seeded(), closing(made) as recorder:
        _register_state(recorder, module)
        args, kwargs = _inputs(recorder, args, kwargs, dtype, layout)
        outputs = _forward(recorder, module, args, kwargs, training)
        if training:
            gradients = _backward(recorder, module, outputs)
            record_step(recorder.builder, optimizer, gradients)
        return _build(recorder, name, source, training, outputs)


def _build(recorder: Recorder, name: str, source: str, training: bool, outputs: list[torch.Tensor]) -> Graph:
    builder, tracker = recorder.builder, recorder.tracker
    assumptions = list(recorder.assumptions)
    if training:
        assumptions.append("backward starts from one given gradient per output; the loss itself is not counted")
    return builder.build(
        name,
        source,
        inputs=tuple(t.id for t in builder.tensors if t.role == "input" and t.base == t.id),
        outputs=tuple(dict.fromkeys(tracker.id_of(t) for t in outputs)),
        assumptions=tuple(assumptions),
    )


@contextmanager
def _on_meta(module: nn.Module, dtype: torch.dtype | None, layout: Any) -> Iterator[None]:
    """Every parameter and buffer a meta stand-in, tied ones tied; put back on the way out."""
    made: dict[int, Any] = {}
    undo: list[tuple[dict[str, Any], str, Any]] = []
    for m in module.modules():
        for table in (m._parameters, m._buffers):
            for key, t in table.items():
                if t is None:
                    continue
                if id(t) not in made:
                    made[id(t)] = _stand_in(t, dtype, layout)
                if made[id(t)] is not t:
                    undo.append((table, key, t))
                    table[key] = made[id(t)]
    try:
        yield
    finally:
        for table, key, t in undo:
            table[key] = t


def _stand_in(t: Any, dtype: torch.dtype | None, layout: Any) -> Any:
    wanted = dtype if dtype is not None and t.is_floating_point() else t.dtype
    reshaped = layout is not None and t.dim() == 4
    if t.is_meta and t.dtype == wanted and not reshaped:
        return t
    if is_lazy(t):
        raise ModelError("the model has lazy parameters without a shape: run it once, or build it with its sizes")
    if reshaped:
        made = torch.empty(t.shape, dtype=wanted, device="meta", memory_format=layout)
    else:
        made = torch.empty_strided(t.shape, t.stride(), dtype=wanted, device="meta")
    return nn.Parameter(made, requires_grad=t.requires_grad) if isinstance(t, nn.Parameter) else made


@contextmanager
def _switched(module: nn.Module, training: bool) -> Iterator[None]:
    before = [(m, m.training) for m in module.modules()]
    for m, _ in before:
        m.training = training
    try:
        yield
    finally:
        for m, mode in before:
            m.training = mode


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


def _register_state(recorder: Recorder, module: nn.Module) -> None:
    for name, p in module.named_parameters():
        recorder.tracker.register(p, "param", name=name, trainable=p.requires_grad)
    for name, b in module.named_buffers():
        recorder.tracker.register(b, "buffer", name=name)


def _inputs(
    recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype | None, layout: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def change(value: Any, name: str) -> Any:
        if isinstance(value, torch.Tensor):
            made = _stand_in(value.detach(), dtype, layout)
            made = (
                made
                if made is not value
                else torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            )
            recorder.tracker.register(made, "input", name=name)
            return made
        if isinstance(value, list | tuple):
            return like(value, [change(v, f"{name}.{i}") for i, v in enumerate(value)])
        if isinstance(value, dict):
            return {k: change(v, str(k)) for k, v in value.items()}
        return value

    many = len(args) > 1
    return (
        tuple(change(a, f"input{i}" if many else "input") for i, a in enumerate(args)),
        {k: change(v, k) for k, v in kwargs.items()},
    )


def _forward(
    recorder: Recorder, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool
) -> list[torch.Tensor]:
    with ExitStack() as stack:
        pre = nn_module.register_module_forward_pre_hook(recorder.enter)
        stack.callback(pre.remove)
        stack.callback(nn_module.register_module_forward_hook(recorder.leave).remove)
        stack.enter_context(fused_multi_head(recorder))
        if recorder.autocast is not None:  # for models that ask; meta tensors are cast by the recorder
            stack.enter_context(torch.autocast("cpu", recorder.autocast, cache_enabled=False))
        if training:
            stack.enter_context(plain_checkpoints())
            stack.enter_context(torch.enable_grad())
            stack.enter_context(whole_calls(recorder))
        else:
            stack.enter_context(torch.inference_mode())
        stack.enter_context(recorder)
        try:
            return list(_outputs(module(*args, **kwargs)))
        except RooflensError:
            raise
        except (Exception, SystemExit) as error:
            raise _rejected(recorder, error) from error


def _rejected(recorder: Recorder, error: BaseException) -> RooflensError:
    where = f"layer '{recorder.module}'" if recorder.module else "the model"
    text = f"{type(error).__name__}: {str(error) or 'no message'}"
    if "more than 1 value per channel" in text:
        return ShapeError(f"{where} cannot train on one value per channel: use --batch 2 or more ({text})")
    if isinstance(error, RuntimeError | ValueError | IndexError | AssertionError) and _SHAPE_WORDS.search(text):
        return ShapeError(f"{where} rejects its input: {text}: check its sizes, or give another shape with --input")
    return ModelError(f"{where} raised {text}: run the model by itself with these inputs first")


def _outputs(value: Any) -> Iterator[torch.Tensor]:
    """Tensors of whatever a model returns: nested containers, and output objects with fields."""
    if isinstance(value, torch.Tensor | list | tuple | dict):
        loss = value.get("loss") if isinstance(value, dict) else None
        yield from tensors_in(
            loss if isinstance(loss, torch.Tensor) else dict(value) if isinstance(value, dict) else value
        )
    elif hasattr(value, "__dict__"):
        for item in vars(value).values():
            yield from _outputs(item) if not isinstance(item, nn.Module) else ()


def _backward(recorder: Recorder, module: nn.Module, outputs: list[torch.Tensor]) -> list[tuple[int, int]]:
    """Parameters with their gradients, as graph tensors; parameters that the loss does not reach are left out."""
    starts = [o for o in outputs if o.requires_grad]
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not starts or not parameters:
        raise ModelError("--mode training needs a model with trainable parameters and a floating output")
    seeds = []
    for i, out in enumerate(starts):
        seed = torch.empty_like(out)
        recorder.tracker.register(seed, "gradient", name=f"grad_output{i}")
        seeds.append(seed)
    recorder.pass_ = "backward"
    with whole_calls(recorder), recorder:
        try:
            found = torch.autograd.grad(starts, parameters, seeds, allow_unused=True)
        except RooflensError:
            raise
        except (Exception, SystemExit) as error:
            raise ModelError(f"backward raised {type(error).__name__}: {error}") from error
    track = recorder.tracker
    return [(track.id_of(p), track.id_of(g)) for p, g in zip(parameters, found, strict=True) if g is not None]


def own_dtype(module: nn.Module) -> str:
    """The type that most of the module's floating parameters have."""
    counts: dict[str, int] = {}
    for p in module.parameters():
        name = DTYPES.get(p.dtype, "fp32")
        if name in FLOATS:
            counts[name] = counts.get(name, 0) + p.numel()
    return max(counts, key=lambda k: counts[k]) if counts else "fp32"
