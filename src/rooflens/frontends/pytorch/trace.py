"""A module and its inputs in, a verified Graph out. No weights are kept and no memory is taken: parameters and inputs
become meta tensors for the time of the recording, and the user's module is left as it was found."""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as nn_module

from rooflens.errors import ModelError, RooflensError, ShapeError
from rooflens.frontends.optimizer import record_step
from rooflens.frontends.pytorch.autocast import regions
from rooflens.frontends.pytorch.lent import check_shape, lent, stand_in
from rooflens.frontends.pytorch.recorder import GradientInForward, Recorder
from rooflens.frontends.pytorch.tracker import DTYPES
from rooflens.frontends.pytorch.trees import like
from rooflens.frontends.pytorch.whole import fused_multi_head, plain_checkpoints, whole_calls
from rooflens.graph.records import FLOATS, Graph

_SHAPE_WORDS = re.compile(r"shape|size|dim|channel|height|width|match|expected input|mat1", re.I)

# What torch says to a model that differentiates where it is told not to, or an input that the user would differentiate
_GRADIENT_WORDS = re.compile(r"requires?[ _]grad|grad_fn|inference (tensor|mode)", re.I)


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
    """`dtype` None keeps the module's own types. What torch.compile made of a module has that module's layers."""
    module = getattr(module, "_orig_mod", module)
    layout = torch.channels_last if channels_last else None
    paths = {m: path for path, m in module.named_modules()}

    def recorded(made: Recorder) -> Graph:
        place = lent(module, training=training, dtype=dtype, layout=layout)
        with place, regions(made.casts), closing(made) as recorder:
            register_state(recorder, module)
            outputs = forward(recorder, module, *inputs_of(recorder, args, kwargs, dtype, layout), training)
            if training:
                gradients = _backward(recorder, module, outputs)
                record_step(recorder.builder, optimizer, gradients)
            return build_graph(recorder, name, source, training, outputs)

    try:
        return recorded(Recorder(paths, autocast))
    except GradientInForward:
        return recorded(Recorder(paths, autocast, apart=True))


def build_graph(recorder: Recorder, name: str, source: str, training: bool, outputs: list[torch.Tensor]) -> Graph:
    builder, tracker = recorder.builder, recorder.tracker
    assumptions = list(recorder.assumptions)
    if recorder.apart:
        assumptions.append("the model differentiates in its own forward pass: every call is what autograd made of it")
    if training:
        assumptions.append("backward starts from one given gradient per output; the loss itself is not counted")
    return builder.build(
        name,
        source,
        inputs=tuple(t.id for t in builder.tensors if t.role == "input" and t.base == t.id),
        outputs=tuple(dict.fromkeys(tracker.id_of(t) for t in outputs)),
        assumptions=tuple(assumptions),
    )


def register_state(recorder: Recorder, module: nn.Module) -> None:
    for name, p in module.named_parameters():
        recorder.tracker.register(p, "param", name=name, trainable=p.requires_grad)
    for name, b in module.named_buffers():
        recorder.tracker.register(b, "buffer", name=name)


def inputs_of(
    recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype | None, layout: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    given: dict[int, torch.Tensor] = {}  # one tensor given twice, as query and key, is one input

    def change(value: Any, name: str) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in given:
                made = stand_in(value.detach(), dtype, layout)
                given[id(value)] = made.requires_grad_(recorder.apart and value.requires_grad)
                recorder.tracker.register(given[id(value)], "input", name=name)
            return given[id(value)]
        if isinstance(value, list | tuple):
            return like(value, [change(v, f"{name}.{i}") for i, v in enumerate(value)])
        if isinstance(value, Mapping):
            return {k: change(v, str(k)) for k, v in value.items()}
        return value

    many = len(args) > 1
    return (
        tuple(change(a, f"input{i}" if many else "input") for i, a in enumerate(args)),
        {k: change(v, k) for k, v in kwargs.items()},
    )


@contextmanager
def _modules_met(recorder: Recorder, *, always_left: bool) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())  # torch warns of our hooks where a submodule was compiled
        warnings.filterwarnings("ignore", message="Using `torch.compile")
        stack.callback(nn_module.register_module_forward_pre_hook(recorder.enter).remove)
        left = nn_module.register_module_forward_hook(recorder.leave, always_call=always_left)
        stack.callback(left.remove)
        stack.enter_context(fused_multi_head(recorder))
        yield


def forward(
    recorder: Recorder, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool
) -> list[torch.Tensor]:
    with ExitStack() as stack:
        stack.enter_context(_modules_met(recorder, always_left=False))  # where it raises is where it stands
        if recorder.casts is not None:
            stack.enter_context(torch.autocast("cpu", recorder.casts.asked))
        if training or recorder.apart:
            stack.enter_context(plain_checkpoints())
            stack.enter_context(torch.enable_grad())
            stack.enter_context(whole_calls(recorder))
        else:
            stack.enter_context(torch.inference_mode())
        stack.enter_context(recorder)
        try:
            return list(outputs_in(module(*args, **kwargs)))
        except RooflensError:
            raise
        except (Exception, SystemExit) as error:
            if not recorder.apart and isinstance(error, RuntimeError) and _GRADIENT_WORDS.search(str(error)):
                raise GradientInForward("the model differentiates in its own forward pass") from error
            raise _rejected(recorder, error) from error


def _rejected(recorder: Recorder, error: BaseException) -> RooflensError:
    where = f"layer '{recorder.module}'" if recorder.module else "the model"
    text = f"{type(error).__name__}: {str(error) or 'no message'}"
    if "more than 1 value per channel" in text:
        return ShapeError(f"{where} cannot train on one value per channel: use --batch 2 or more ({text})")
    if isinstance(error, RuntimeError | ValueError | IndexError | AssertionError) and _SHAPE_WORDS.search(text):
        return ShapeError(f"{where} rejects its input: {text}: check its sizes, or give another shape with --input")
    guessed = "; ".join(list(recorder.assumptions)[-3:])  # a model may stumble over what was answered for a value
    told = f" (in this recording {guessed})" if guessed else ""
    return ModelError(f"{where} raised {text}: run the model by itself with these inputs first{told}")


def outputs_in(value: Any) -> Iterator[torch.Tensor]:
    """Tensors of whatever a model returns: nested containers, generators, and output objects with fields."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping) and isinstance(value.get("loss"), torch.Tensor):
        yield value["loss"]
    elif isinstance(value, list | tuple | Iterator | Mapping):
        for item in value.values() if isinstance(value, Mapping) else value:
            if not _for_the_next_call(item):
                yield from outputs_in(item)
    elif not isinstance(value, nn.Module | type):
        for item in _fields(value):
            yield from outputs_in(item)


def _for_the_next_call(item: Any) -> bool:
    """An object among several outputs, such as a cache, is no output of this one."""
    return (
        hasattr(item, "__dict__")
        and not isinstance(item, torch.Tensor | Mapping | list | tuple)
        and not is_dataclass(item)
    )


def _fields(value: Any) -> Iterable[Any]:
    if is_dataclass(value):
        return [getattr(value, f.name) for f in fields(value)]
    return getattr(value, "__dict__", {}).values()


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
    # a checkpoint calls its modules again, and stops by raising once it has all that it needs
    with _modules_met(recorder, always_left=True), whole_calls(recorder), recorder:
        try:
            found = torch.autograd.grad(starts, parameters, seeds, allow_unused=True)
        except RooflensError:
            raise
        except (Exception, SystemExit) as error:
            raise ModelError(
                f"backward raised {type(error).__name__}: {str(error) or 'no message'}: run the model's own backward first, "
                "or analyse it in inference"
            ) from error
    track = recorder.tracker
    return [(track.id_of(p), track.id_of(g)) for p, g in zip(parameters, found, strict=True) if g is not None]


def own_dtype(module: nn.Module) -> str:
    """The type that most of the module's floating parameters have."""
    counts: dict[str, int] = {}
    for p in module.parameters():
        check_shape(p)
        name = DTYPES.get(p.dtype, "fp32")
        if name in FLOATS:
            counts[name] = counts.get(name, 0) + p.numel()
    return max(counts, key=lambda k: counts[k]) if counts else "fp32"
