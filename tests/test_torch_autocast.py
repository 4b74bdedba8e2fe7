"""Autocast where a model switches it itself, and the types that torch's own lists (ATen/autocast_mode.h) give each call."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from recording import Calls, meta, on_meta, ops, traced  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

BF16 = torch.bfloat16
MODES = pytest.mark.parametrize("training", [False, True])


def cast(module: Any, *args: Any, **options: Any) -> Any:
    return traced(module, *args, autocast=BF16, **options)


def types_of(graph: Any, kind: str) -> list[str]:
    return [graph.tensors[op.outputs[0]].dtype for op in ops(graph, kind)]


def _layers(forward: Callable[..., Any]) -> Any:
    return on_meta(lambda: Calls(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4), c=nn.Linear(4, 4)))


@MODES
@pytest.mark.parametrize("device", ["cpu", "cuda", "meta"])
def test_where_a_model_switches_autocast_off_its_types_are_its_own(device: str, training: bool) -> None:
    def forward(m: Any, x: Any) -> Any:
        y = m.a(x)
        with torch.autocast(device, enabled=False):
            y = m.b(y.float())
            with torch.autocast(device, torch.float16):
                y = m.c(y)
        return m.a(y)

    graph = cast(_layers(forward), meta(2, 4), training=training)
    assert types_of(graph, "linear") == ["bf16", "fp32", "fp16", "bf16"]
    assert not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")


@MODES
def test_a_product_between_activations_outside_of_autocast_stays_fp32_and_so_does_its_backward(training: bool) -> None:
    def forward(m: Any, x: Any) -> Any:
        y = m.a(x)
        with torch.autocast("cuda", enabled=False):
            return torch.bmm(y.float(), y.float().transpose(1, 2))

    graph = cast(_layers(forward), meta(2, 3, 4), training=training)
    products = [op for op in graph.ops if op.kind == "matmul" and graph.tensors[op.outputs[0]].shape[0] == 2]
    assert len(products) == (3 if training else 1)
    assert {graph.tensors[op.outputs[0]].dtype for op in products} == {"fp32"}


def test_without_autocast_a_region_of_the_model_changes_nothing_and_warns_of_nothing() -> None:
    def forward(m: Any, x: Any) -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            return m.a(x)

    before = torch.autocast.__enter__
    assert types_of(traced(_layers(forward), meta(2, 4)), "linear") == ["fp32"]
    assert torch.autocast.__enter__ is before


def test_a_checkpoint_computes_again_in_the_types_of_its_region() -> None:
    from torch.utils.checkpoint import checkpoint

    def inner(m: Any, x: Any) -> Any:
        y = m.a(x).relu()
        with torch.autocast("cpu", enabled=False):
            return m.b(y.float()).relu()

    net = _layers(lambda m, x: m.c(checkpoint(lambda y: inner(m, y), x, use_reentrant=False)))
    graph = cast(net, meta(2, 4, dtype=torch.float32), training=True)
    again = [op for op in graph.ops if op.kind == "linear" and op.pass_ == "backward"]
    assert {op.module: graph.tensors[op.outputs[0]].dtype for op in again} == {"a": "bf16", "b": "fp32"}


# x is fp32 and y is bf16, both of 3 x 3; each call mixes them
WIDEST: dict[str, Callable[..., Any]] = {
    "addcmul": lambda x, y, i: torch.addcmul(x, y, y),
    "addcdiv": lambda x, y, i: torch.addcdiv(x, y, y),
    "trig": lambda x, y, i: torch.atan2(x, y),
    "cross": lambda x, y, i: torch.cross(x, y, dim=-1),
    "matmul": lambda x, y, i: torch.dot(x[0], y[0]),
    "grid_sample": lambda x, y, i: F.grid_sample(x[None, None], y[None, :, :2][None], align_corners=False),
    "scatter_reduce": lambda x, y, i: torch.scatter_add(x, 0, i, y),
    "copy": lambda x, y, i: torch.index_put(x, (i[:, 0],), y),
}


@MODES
@pytest.mark.parametrize("kind", sorted(WIDEST))
def test_calls_that_mix_types_take_the_widest(kind: str, training: bool) -> None:
    def forward(m: Any, x: Any, i: Any) -> Any:
        return WIDEST[kind](x, m.layer(x), i)

    net = on_meta(lambda: Calls(forward, layer=nn.Linear(3, 3)))
    graph = cast(net, meta(3, 3), meta(3, 3, dtype=torch.int64), training=training)
    assert types_of(graph, kind)[-1] == "fp32"


@MODES
def test_a_bilinear_layer_is_fp32_as_its_weight(training: bool) -> None:
    net = on_meta(lambda: Calls(lambda m, x: m.both(m.layer(x), x), layer=nn.Linear(4, 4), both=nn.Bilinear(4, 4, 5)))
    graph = cast(net, meta(2, 4), training=training)
    assert types_of(graph, "linear") == ["bf16"]
    assert graph.tensors[graph.outputs[0]].dtype == "fp32"


@MODES
def test_a_tensordot_of_mixed_types_multiplies_in_fp32(training: bool) -> None:
    net = _layers(lambda m, x: torch.tensordot(x, m.a(x), ([1], [1])))
    graph = cast(net, meta(2, 4), training=training)
    assert types_of(graph, "matmul") == ["fp32"]


TYPED: dict[str, Callable[..., Any]] = {
    "softmax": lambda x, dtype: x.softmax(-1, dtype=dtype),
    "log_softmax": lambda x, dtype: x.log_softmax(-1, dtype=dtype),
    "sum": lambda x, dtype: x.sum(-1, dtype=dtype),
    "prod": lambda x, dtype: x.prod(-1, dtype=dtype),
    "cumulative": lambda x, dtype: x.cumsum(-1, dtype=dtype),
}


@MODES
@pytest.mark.parametrize("kind", sorted(TYPED))
def test_reductions_are_fp32_unless_the_call_names_a_type(kind: str, training: bool) -> None:
    for dtype, wanted in ((None, "fp32"), (BF16, "bf16")):
        graph = cast(_layers(lambda m, x, d=dtype: TYPED[kind](m.a(x), d)), meta(2, 4), training=training)
        assert types_of(graph, kind) == [wanted]
        weights = {i for op in graph.ops if op.kind == "linear" for i in op.inputs}
        other = [op for op in ops(graph, "cast") if op.outputs[0] not in weights]
        assert len(other) == (0 if dtype else 1)


@MODES
def test_a_loss_is_fp32(training: bool) -> None:
    net = _layers(lambda m, x, target: F.nll_loss(m.a(x), target))
    graph = cast(net, meta(2, 4), meta(2, dtype=torch.int64), training=training)
    assert types_of(graph, "nll_loss") == ["fp32"]
