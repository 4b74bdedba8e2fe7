"""Which layers are run to find out what classes of ops reach on a device: layer text, and what it cannot say as modules.

Sizes from those that only wait for their launch to those that fill the machine; what would take longer than it may here
is left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rooflens.frontends.pytorch.calls import Recording, record_calls
from rooflens.frontends.pytorch.text_net import text_net
from rooflens.frontends.pytorch.tracker import TORCH_DTYPES

_IMAGES = ("1x32x28x28", "8x64x56x56", "32x128x28x28", "32x256x56x56")
_TOKENS = ("1x128x512", "8x512x1024", "16x1024x4096")
TEXTS = (
    # products: few rows, odd widths, square ones
    *(f"{m}x{k} | linear {n}" for m, k, n in (
        (1, 1024, 1024), (1, 4096, 4096), (1, 4096, 16384), (16, 4096, 4096), (16, 4096, 11008), (128, 1024, 1024),
        (128, 4096, 4096), (512, 768, 3072), (1024, 1024, 1001), (1024, 4095, 4097), (2048, 2048, 2048),
        (4096, 1024, 4096), (4096, 4096, 4096), (8192, 4096, 14336), (8192, 8192, 8192),
    )),
    # convolutions
    *(f"{b}x{c}x{s}x{s} | conv2d {o} {more}" for b, c, s, o, more in (
        (1, 64, 56, 64, "k3 p1"), (8, 64, 56, 64, "k3 p1"), (32, 64, 56, 64, "k3 p1"), (32, 128, 28, 128, "k3 p1"),
        (32, 256, 14, 256, "k3 p1"), (1, 512, 7, 512, "k3 p1"), (32, 512, 7, 512, "k3 p1"), (8, 128, 28, 256, "k3 s2 p1"),
        (32, 64, 28, 64, "k5 p2"), (32, 64, 28, 64, "k7 p3"), (64, 256, 28, 256, "k3 p1"),
        (1, 64, 56, 256, "k1"), (8, 256, 56, 64, "k1"), (32, 256, 56, 64, "k1"), (32, 1024, 14, 256, "k1"),
        (32, 512, 28, 1024, "k1 s2"), (64, 512, 28, 512, "k1"),
        (1, 3, 224, 64, "k7 s2 p3"), (8, 3, 224, 64, "k7 s2 p3"), (32, 3, 224, 32, "k3 s2 p1"), (64, 3, 224, 768, "k16 s16"),
        (1, 96, 112, 96, "k3 p1 g96"), (8, 144, 56, 144, "k3 p1 g144"), (32, 192, 28, 192, "k3 p1 g192"),
        (32, 384, 14, 384, "k5 p2 g384"), (32, 96, 56, 96, "k7 p3 g96"),
        (8, 128, 56, 128, "k3 p1 g32"), (32, 256, 28, 256, "k3 p1 g32"), (32, 512, 14, 512, "k3 p1 g8"),
    )),
    *(f"{b}x{c}x{s}x{s} | convtranspose2d {o} k2 s2" for b, c, s, o in ((8, 256, 28, 128), (32, 128, 56, 64), (8, 64, 112, 64))),
    # norms, softmax, element by element
    *(f"{x} | {layer}" for x in _IMAGES for layer in ("batchnorm", "groupnorm g32", "relu", "silu", "add input",
      "concat input", "maxpool2d k3 s2 p1", "avgpool2d k2", "avgpool 1", "avgpool 1 as a | mul input")),
    *(f"{x} | {layer}" for x in _TOKENS for layer in ("layernorm", "rmsnorm", "softmax", "gelu", "mul input")),
    "8x64x8x8 | batchnorm | relu | add input", "64x16x512x512 | softmax",
    # attention: prefill and decode
    *(f"{x} | attention causal" for x in ("1x12x197x64", "8x12x512x64", "1x32x2048x128", "4x32x4096x128")),
    *(f"{b}x32x1x128 | attention context={n} kvheads=8" for b, n in ((1, 1024), (8, 2048), (32, 4096))),
    # tables, sequences
    *(f"{s} | embedding {v} {d}" for s, v, d in (("1x128", 30000, 768), ("8x512", 50000, 1024), ("32x2048", 128000, 4096))),
    *(f"{s} | {kind} 512" for s in ("1x16x256", "32x64x512") for kind in ("lstm", "gru")),
)  # fmt: skip
# What even a small CPU does in a moment, so that no class that networks spend their time in is ever left out.
SMALL = (
    "64x256 | linear 256", "256x512 | linear 512", "1x16x28x28 | conv2d 16 k3 p1", "1x32x28x28 | conv2d 64 k1",
    "1x4x128x64 | attention causal", "1x4x1x64 | attention context=256", "1x4x128x128 | softmax", "1x64x768 | layernorm",
    "1x32x28x28 | batchnorm", "1x32x28x28 | relu", "1x3x64x64 | conv2d 16 k3 s2 p1", "1x32x28x28 | conv2d 32 k3 p1 g32",
)  # fmt: skip
EVERY = 3  # with --quick each third of them
LONGEST_S = {"cpu": 0.004, "cuda": 0.05}  # no point may take longer than this at the roof


class _Does(nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


_SHAPES = ((8, 64, 56, 56), (32, 256, 56, 56), (64, 512, 56, 56))
FUNCTIONS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("layout", lambda x: x.permute(0, 2, 3, 1).contiguous()),
    ("transpose", lambda x: x.transpose(2, 3).contiguous()),
    ("cast", lambda x: x.to(torch.float32 if x.dtype != torch.float32 else torch.bfloat16)),
    ("sum", lambda x: x.sum(-1)),
    ("mean", lambda x: x.mean((2, 3))),
    ("running sum", lambda x: x.cumsum(-1)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A layer to run; `training`: its forward pass as in training, and its backward."""

    name: str
    dtype: str
    layout: str
    build: Callable[[], tuple[nn.Module, tuple[Any, ...], dict[str, Any]]]

    def recorded(self, training: bool) -> Recording:
        module, args, kwargs = self.build()
        kind = TORCH_DTYPES[self.dtype]
        return record_calls(
            module, args, kwargs, name=self.name, source=self.name, dtype=kind, training=training,
            channels_last=self.layout == "channels-last",
        )  # fmt: skip


def points(dtypes: tuple[str, ...], quick: bool) -> Iterator[Point]:
    """Every third of all classes first, then the others: a slow device that runs out of time has seen some of each."""
    for part in range(1 if quick else EVERY):
        for dtype in dtypes:
            for text in (*(SMALL if part == 0 else ()), *TEXTS[part::EVERY]):
                for layout in ("nchw", "channels-last") if _has_layouts(text) else ("nchw",):
                    yield Point(name=text, dtype=dtype, layout=layout, build=_textual(text, dtype))
            for name, function in FUNCTIONS:
                shape = _SHAPES[part]
                yield Point(
                    name=f"{name} of {shape}", dtype=dtype, layout="nchw", build=_functional(function, shape, dtype)
                )


def _has_layouts(text: str) -> bool:
    """Images, in the layers that care how they lie."""
    return text.partition("|")[0].count("x") == 3 and any(word in text for word in ("conv", "norm", "pool"))


def _textual(text: str, dtype: str) -> Callable[[], tuple[nn.Module, tuple[Any, ...], dict[str, Any]]]:
    def build() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
        module, inputs = text_net(text, TORCH_DTYPES[dtype])
        return module, (), dict(inputs)

    return build


def _functional(
    function: Callable[[Any], Any], shape: tuple[int, ...], dtype: str
) -> Callable[[], tuple[nn.Module, tuple[Any, ...], dict[str, Any]]]:
    return lambda: (_Does(function), (torch.empty(shape, dtype=TORCH_DTYPES[dtype], device="meta"),), {})
