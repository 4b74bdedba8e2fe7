"""Layer text in, a torch module that does what it says and its inputs out: to run what the text frontend only counts.

Adding a layer is one row of MAKERS. A layer's module has the label that the text frontend gives its op.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from rooflens.frontends.pytorch.scan import selective_scan
from rooflens.frontends.text import labelled, parse_layers
from rooflens.frontends.text_grammar import INPUT, ParsedLayer

Inputs = dict[str, torch.Tensor]


class _Layer(nn.Module):
    """A function of what arrives and of tensors that stand elsewhere; its op bears the module's own path."""

    names_its_op = True

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Any) -> Any:
        return self.function(*tensors)


class _Scan(nn.Module):
    names_its_op = True

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        self.A = nn.Parameter(-torch.ones(width, states))

    def forward(self, x: Any, delta: Any, b: Any, c: Any) -> Any:
        return selective_scan(x, delta, self.A, b, c)


class TextNet(nn.Module):
    """`wiring`: per layer its label, and the names of the tensors that it reads beside what arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.wiring: list[tuple[str, tuple[str, ...], str]] = []

    def add(self, label: str, layer: nn.Module, reads: tuple[str, ...], id_: str) -> None:
        owner: nn.Module = self
        *path, name = label.split(".")
        for part in path:
            owner = owner._modules.get(part) or _added(owner, part)
        owner.add_module(name, layer)
        self.wiring.append((label, reads, id_))

    def forward(self, **inputs: Any) -> Any:
        known = dict(inputs)
        x = known[INPUT]
        for label, reads, id_ in self.wiring:
            found = self.get_submodule(label)(x, *(known[r] for r in reads))
            x = found[0] if isinstance(found, tuple) else found
            if id_:
                known[id_] = x
        return x


def _added(owner: nn.Module, name: str) -> nn.Module:
    owner.add_module(name, nn.Module())
    return owner.get_submodule(name)


def text_net(text: str, dtype: torch.dtype) -> tuple[TextNet, Inputs]:
    """On meta; shapes are found by running each layer there."""
    net = parse_layers(text)
    module, inputs = TextNet(), {}
    indices = bool(net.layers) and net.layers[0].name == "embedding"
    with torch.device("meta"), torch.no_grad():
        x = inputs[INPUT] = torch.empty(net.shape, dtype=torch.int64 if indices else dtype)
        known = {INPUT: x}
        for layer, label in labelled(net.layers):
            given = {f"{label}.{k}".replace(".", "_"): t for k, t in _given(layer, x).items()}
            made = MAKERS[layer.name](layer, x).to(dtype)
            module.add(label, made, (*layer.references, *given), layer.id)
            found = made(x, *(known[r] for r in layer.references), *given.values())
            x = found[0] if isinstance(found, tuple) else found
            inputs |= given
            if layer.id:
                known[layer.id] = x
    return module, inputs


def _given(layer: ParsedLayer, x: Any) -> Inputs:
    """Tensors that a layer takes from outside, beside what arrives."""
    if layer.name == "attention":
        batch, heads, steps, size = x.shape
        keys = (batch, layer.number("kvheads", heads), layer.number("context", steps), size)
        return {name: torch.empty(keys, dtype=x.dtype) for name in "kv"}
    if layer.name == "scan":
        rows = (*x.shape[:2], layer.number("STATE"))
        shapes = {"delta": tuple(x.shape), "B": rows, "C": rows}
        return {name: torch.empty(shape, dtype=x.dtype) for name, shape in shapes.items()}
    return {}


def _window(layer: ParsedLayer, axes: int, stride: tuple[int, ...]) -> dict[str, Any]:
    kernel = layer.size("k", axes, (1,) * axes)
    return {
        "kernel_size": kernel,
        "stride": layer.size("s", axes, stride or kernel),
        "padding": layer.size("p", axes, (0,) * axes),
    }


def _conv(axes: int, transposed: bool) -> Callable[[ParsedLayer, Any], nn.Module]:
    kind = getattr(nn, f"Conv{'Transpose' if transposed else ''}{axes}d")

    def make(layer: ParsedLayer, x: Any) -> nn.Module:
        ones = (1,) * axes
        more = {"dilation": layer.size("d", axes, ones), "groups": layer.number("g", 1)}
        bias = layer.arg("bias") is not None
        made: nn.Module = kind(x.shape[1], layer.number("OUT"), **_window(layer, axes, ones), **more, bias=bias)
        return made

    return make


def _pool(kind: str, axes: int) -> Callable[[ParsedLayer, Any], nn.Module]:
    pool = getattr(nn, f"{kind}Pool{axes}d")
    return lambda layer, x: pool(**_window(layer, axes, ()))


def _attention(layer: ParsedLayer, x: Any) -> nn.Module:
    causal = layer.arg("causal") is not None
    grouped = layer.number("kvheads", x.shape[1]) != x.shape[1]
    return _Layer(
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)
    )


def _recurrent(kind: type[nn.Module]) -> Callable[[ParsedLayer, Any], nn.Module]:
    return lambda layer, x: kind(x.shape[2], layer.number("HIDDEN"), batch_first=True)


def _adaptive(layer: ParsedLayer, x: Any) -> nn.Module:
    made: nn.Module = getattr(nn, f"AdaptiveAvgPool{x.dim() - 2}d")(layer.number("OUT"))
    return made


def _batchnorm(layer: ParsedLayer, x: Any) -> nn.Module:
    made: nn.Module = getattr(nn, f"BatchNorm{max(1, x.dim() - 2)}d")(x.shape[1])
    return made


MAKERS: dict[str, Callable[[ParsedLayer, Any], nn.Module]] = {
    **{f"conv{n}d": _conv(n, False) for n in (1, 2, 3)},
    **{f"convtranspose{n}d": _conv(n, True) for n in (1, 2, 3)},
    **{f"{name}{n}d": _pool(kind, n) for name, kind in (("maxpool", "Max"), ("avgpool", "Avg")) for n in (1, 2)},
    "linear": lambda layer, x: nn.Linear(x.shape[-1], layer.number("OUT"), bias=layer.arg("bias") is not None),
    "relu": lambda layer, x: nn.ReLU(),
    "relu6": lambda layer, x: nn.ReLU6(),
    "gelu": lambda layer, x: nn.GELU(),
    "silu": lambda layer, x: nn.SiLU(),
    "sigmoid": lambda layer, x: nn.Sigmoid(),
    "tanh": lambda layer, x: nn.Tanh(),
    "hardswish": lambda layer, x: nn.Hardswish(),
    "batchnorm": _batchnorm,
    "layernorm": lambda layer, x: nn.LayerNorm(x.shape[-1]),
    "rmsnorm": lambda layer, x: nn.RMSNorm(x.shape[-1]),
    "groupnorm": lambda layer, x: nn.GroupNorm(layer.number("g"), x.shape[1]),
    "avgpool": _adaptive,
    "softmax": lambda layer, x: nn.Softmax(-1),
    "attention": _attention,
    "embedding": lambda layer, x: nn.Embedding(layer.number("VOCAB"), layer.number("DIM")),
    "lstm": _recurrent(nn.LSTM),
    "gru": _recurrent(nn.GRU),
    "scan": lambda layer, x: _Scan(x.shape[2], layer.number("STATE")),
    "flatten": lambda layer, x: nn.Flatten(),
    "dropout": lambda layer, x: nn.Dropout(),
    "add": lambda layer, x: _Layer(torch.add),
    "mul": lambda layer, x: _Layer(torch.mul),
    "concat": lambda layer, x: _Layer(lambda *parts: torch.cat(parts, 1)),
}
