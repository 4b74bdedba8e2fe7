"""The changes that `measure --try` makes, a row each: where they apply, how the model is then run, what they are for a
prediction, and what a user writes for them.

Adding one is a row of CHANGES.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rooflens.advise.whatif import BATCH_STEP
from rooflens.compare.standing import Row
from rooflens.hardware.records import Hardware
from rooflens.pipeline.settings import Settings

if TYPE_CHECKING:
    from rooflens.benches.device import Device
    from rooflens.benches.measure import Plan
    from rooflens.benches.measurement import WholeTime
    from rooflens.benches.padding import Padded
    from rooflens.benches.trial import Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What changes are held against: the model as it was measured, on what, and the settings that it was predicted with."""

    plan: "Plan"
    device: "Device"
    settings: Settings
    hardware: Hardware | None
    wholes: "tuple[WholeTime, ...]"
    rows: tuple[Row, ...]
    seconds: float
    threads: int

    @property
    def passes(self) -> tuple[str, ...]:
        return ("forward", "step") if self.plan.training else ("forward",)

    def given(self, does: str, where: str) -> str:
        """The line that does something to every input that is of a kind, as inputs are given to the model."""
        if self.plan.subject.kwargs:
            return f"inputs = {{name: t{does} if {where} else t for name, t in inputs.items()}}"
        if len(self.plan.subject.args) == 1:
            return f"inputs = inputs{does}"
        return f"inputs = tuple(t{does} if {where} else t for t in inputs)"

    @property
    def call(self) -> str:
        stars = "**" if self.plan.subject.kwargs else "" if len(self.plan.subject.args) == 1 else "*"
        return f"model({stars}inputs)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`refuses` says why it cannot be made here, `way` how the model is then run, `settings` what it is for a prediction,
    `lines` what a user writes for it. `blind`: where the settings make no difference to the prediction, it knows nothing
    of such a change."""

    name: str
    refuses: Callable[[Baseline], str]
    way: Callable[["Way"], "Way"]
    settings: dict[str, Any]
    lines: Callable[[Baseline], tuple[str, ...]]
    items: int = 1
    blind: bool = False


# where they apply


def _images(s: Baseline) -> str:
    if s.plan.channels_last:
        return "it runs so already (--layout channels-last)"
    tensors = (*s.plan.subject.inputs, *s.plan.subject.module.parameters())
    return "" if any(t.dim() == 4 for t in tensors) else "no input and no weight has the four sizes of images"


def _fp32(s: Baseline) -> str:
    if s.plan.autocast is not None or s.plan.dtype not in ("fp32", "tf32"):
        return f"it runs in {s.plan.autocast or s.plan.dtype}, not in fp32"
    return ""


def _bf16(s: Baseline) -> str:
    import torch

    if s.device.name == "cuda" and not torch.cuda.is_bf16_supported():
        return "this GPU has no bf16"
    return _fp32(s)


def _tf32(s: Baseline) -> str:
    import torch

    if s.device.name == "cpu":
        return "only NVIDIA GPUs have TF32"
    if torch.cuda.get_device_capability() < (8, 0):
        return "this GPU has no TF32: it came with Ampere"
    return "it runs so already (--dtype tf32)" if s.plan.dtype == "tf32" else _fp32(s)


def _eager(s: Baseline) -> str:
    return "it runs so already (--execution compiled)" if s.settings.execution == "compiled" else ""


def _gpu(s: Baseline) -> str:
    if s.device.name == "cpu":
        return "only NVIDIA GPUs have CUDA graphs"
    return "it runs so already (--execution graph)" if s.plan.captured else ""


def _batched(s: Baseline) -> str:
    first = next((t for t in s.plan.subject.inputs if t.dim()), None)
    return "no input has a first size to make larger" if first is None or not first.shape[0] else ""


# what a user writes


def _channels_last_lines(s: Baseline) -> tuple[str, ...]:
    images = [t.dim() == 4 for t in s.plan.subject.inputs]
    given = s.given(".to(memory_format=torch.channels_last)", "t.dim() == 4")
    return "model = model.to(memory_format=torch.channels_last)", *((given,) if any(images) else ())


def _bf16_lines(s: Baseline) -> tuple[str, ...]:
    floating = any(t.is_floating_point() for t in s.plan.subject.inputs)
    given = s.given(".to(torch.bfloat16)", "t.is_floating_point()")
    return "model = model.to(torch.bfloat16)", *((given,) if floating else ())


def _autocast_lines(s: Baseline) -> tuple[str, ...]:
    return f'with torch.autocast("{s.device.name}", dtype=torch.bfloat16):', f"    outputs = {s.call}"


def _tf32_lines(s: Baseline) -> tuple[str, ...]:
    return "torch.backends.cuda.matmul.allow_tf32 = True", "torch.backends.cudnn.allow_tf32 = True"


def _compile_lines(s: Baseline) -> tuple[str, ...]:
    return ("model = torch.compile(model)",)


def _graph_lines(s: Baseline) -> tuple[str, ...]:
    """A graph of a training step takes inputs by place."""
    if s.plan.training:
        one = len(s.plan.subject.args) == 1
        given = "tuple(inputs.values())" if s.plan.subject.kwargs else "(inputs,)" if one else "inputs"
        return (f"model = torch.cuda.make_graphed_callables(model, {given})",)
    return (
        "graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()",
        "with torch.inference_mode(), torch.cuda.stream(stream):",
        "    for _ in range(3):",
        f"        outputs = {s.call}",
        "    with torch.cuda.graph(graph, stream=stream):",
        f"        outputs = {s.call}",
        "graph.replay()  # reads what was copied into the inputs with .copy_(), writes outputs",
    )


def _batch_lines(s: Baseline) -> tuple[str, ...]:
    first = next(t for t in s.plan.subject.inputs if t.dim())
    size = BATCH_STEP * first.shape[0]
    return (f"loader = torch.utils.data.DataLoader(dataset, batch_size={size})  # instead of {first.shape[0]}",)


# the table


def _in_bf16(way: "Way") -> "Way":
    import torch

    return replace(way, dtype=torch.bfloat16)


def _in_autocast(way: "Way") -> "Way":
    import torch

    return replace(way, autocast=torch.bfloat16)


CHANGES: tuple[Change, ...] = (
    Change(
        name="channels-last", refuses=_images, way=lambda w: replace(w, channels_last=True), blind=True,
        settings={"layout": "channels-last"}, lines=_channels_last_lines,
    ),
    Change(name="bf16", refuses=_bf16, way=_in_bf16, settings={"dtype": "bf16"}, lines=_bf16_lines),
    Change(
        name="autocast bf16", refuses=_bf16, way=_in_autocast, settings={"dtype": "bf16", "autocast": True},
        lines=_autocast_lines,
    ),
    Change(
        name="TF32", refuses=_tf32, way=lambda w: replace(w, tf32=True), settings={"dtype": "tf32"}, lines=_tf32_lines
    ),
    Change(
        name="torch.compile", refuses=_eager, way=lambda w: replace(w, compiled=True), lines=_compile_lines,
        settings={"execution": "compiled", "fusion": "residual", "bn": "folded"},
    ),
    Change(
        name="larger batch", refuses=_batched, way=lambda w: replace(w, items=BATCH_STEP), settings={}, lines=_batch_lines,
        items=BATCH_STEP,
    ),
    Change(  # last: a graph that fails to capture leaves the dice of a GPU unusable
        name="CUDA graph", refuses=_gpu, way=lambda w: replace(w, captured=True), settings={"execution": "graph"},
        lines=_graph_lines,
    ),
)  # fmt: skip


# padding, which is of one layer


def pad_lines(s: Baseline, path: str, wide: "Padded", more: int) -> Iterator[str]:
    """`more`: how many other layers are padded in the same way."""
    import torch

    layer = s.plan.subject.module.get_submodule(path)
    if more:
        yield f"# and so for {more} more layer{'s' * (more != 1)} of this shape"
    if path and isinstance(layer, torch.nn.Linear):
        yield from _wider_module(
            path, wide, (f"torch.nn.Linear(old.in_features, {wide.wide}, bias=old.bias is not None)",)
        )
        yield f"# what reads it takes [..., :{wide.width}] of its {wide.wide} outputs: the rest are zero"
    elif path and isinstance(layer, torch.nn.Conv1d | torch.nn.Conv2d | torch.nn.Conv3d):
        made = (
            f"torch.nn.{type(layer).__name__}(",
            f"    old.in_channels, {wide.wide}, old.kernel_size, old.stride, old.padding, old.dilation,",
            "    bias=old.bias is not None, padding_mode=old.padding_mode,",
            ")",
        )
        yield from _wider_module(path, wide, made)
        yield f"# what reads it takes [:, :{wide.width}] of its {wide.wide} channels: the rest are zero"
    else:
        yield f"# in {path!r}, the weight (and the bias likewise), from {wide.width} to {wide.wide} rows"
        yield f"weight = torch.nn.functional.pad(weight, (0, 0) * (weight.dim() - 1) + (0, {wide.wide - wide.width}))"
        yield f"# and of the outputs the first {wide.width}"


def _wider_module(path: str, wide: "Padded", made: tuple[str, ...]) -> Iterator[str]:
    yield f"old = model.get_submodule({path!r})"
    yield f"new = {made[0]}"
    yield from made[1:]
    yield "new = new.to(old.weight)"
    yield "with torch.no_grad():"
    yield "    for mine, its in zip(new.parameters(), old.parameters()):"
    yield f"        mine.zero_()[:{wide.width}] = its"
    yield f"model.set_submodule({path!r}, new)"
