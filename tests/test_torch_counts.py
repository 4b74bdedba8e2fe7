"""What single torch calls cost: which of their tensors they read, how much of them, what they write. Every expected
number is worked out here from the sizes, 4 bytes a float and 8 an index."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from rooflens.costs.sheet import OpCost, cost_sheet  # noqa: E402
from rooflens.frontends.pytorch.trace import trace_module  # noqa: E402
from rooflens.graph.records import Graph  # noqa: E402

FLOAT, INDEX = 4, 8


class Call(nn.Module):
    """A function of a module with one trainable number, `module.one`, and of its inputs."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function, self.one = function, nn.Parameter(torch.ones(()))
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args)


def meta(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.empty(shape, dtype=dtype, device="meta")


def index(*shape: int) -> Any:
    return meta(*shape, dtype=torch.int64)


def traced(function: Callable[..., Any], *args: Any, training: bool = False, **parts: Any) -> Graph:
    with torch.device("meta"):
        module = Call(function, **{name: build() for name, build in parts.items()})
    return trace_module(module, args, {}, name="call", source="test", training=training)


def cost(graph: Graph, kind: str, pass_: str = "forward") -> OpCost:
    """Of the one op of this kind."""
    (row,) = [
        row
        for op, row in zip(graph.ops, cost_sheet(graph).rows, strict=True)
        if (op.kind, op.pass_) == (kind, pass_) and not op.view
    ]
    return row


def moved(row: OpCost) -> tuple[int, int]:
    return row.input_bytes + row.param_bytes, row.output_bytes


# tensors that only lend their shape

LIKE: dict[str, Callable[[Any], Any]] = {
    "zeros_like": torch.zeros_like, "ones_like": torch.ones_like, "full_like": lambda x: torch.full_like(x, 2.0),
    "new_zeros": lambda x: x.new_zeros(x.shape), "new_ones": lambda x: x.new_ones(x.shape),
    "new_full": lambda x: x.new_full(x.shape, 2.0), "rand_like": torch.rand_like, "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 9),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(LIKE))
def test_what_is_made_in_the_shape_of_a_tensor_does_not_read_it(name: str) -> None:
    graph = traced(lambda m, x: LIKE[name](x), meta(10, 8))
    assert moved(cost(graph, "random" if "rand" in name else "fill")) == (0, 80 * FLOAT)


@pytest.mark.parametrize("draw", [torch.bernoulli, torch.poisson, torch.normal])
def test_what_is_drawn_from_probabilities_reads_them(draw: Callable[..., Any]) -> None:
    graph = traced(lambda m, x: draw(x), meta(10, 8))
    assert moved(cost(graph, "random")) == (80 * FLOAT, 80 * FLOAT)


# losses


@pytest.mark.parametrize("weighted", [False, True])
def test_a_loss_that_picks_one_class_a_row_reads_one_element_a_row(weighted: bool) -> None:
    """32 rows of 1000 classes: log-probabilities picked, targets, class weights; out come the loss and total weight."""

    def loss(m: Any, x: Any, target: Any, *weight: Any) -> Any:
        return F.nll_loss(x * m.one, target, *weight)

    weights = (meta(1000),) if weighted else ()
    graph = traced(loss, meta(32, 1000), index(32), *weights, training=True)
    row = cost(graph, "nll_loss")
    assert moved(row) == (32 * FLOAT + 32 * INDEX + 1000 * FLOAT * weighted, 2 * FLOAT)
    assert row.flops == 32
    back = cost(graph, "nll_loss_backward", "backward")
    assert moved(back) == (FLOAT + 32 * INDEX + 1000 * FLOAT * weighted + FLOAT, 32_000 * FLOAT)
    assert back.flops == 32


def test_a_loss_per_pixel_picks_one_element_a_pixel() -> None:
    """2 images of 5 classes on 3x4 pixels: 24 picks."""
    graph = traced(lambda m, x, target: F.nll_loss(x, target), meta(2, 5, 3, 4), index(2, 3, 4))
    assert moved(cost(graph, "nll_loss"))[0] == 24 * (FLOAT + INDEX)


# tables

_TABLE, _PICKED = 1000 * 16, 4 * 5 * 16  # rows of 16; 4 bags of 5


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("training", [False, True])
def test_a_bag_reads_the_rows_that_it_joins(mode: str, training: bool) -> None:
    graph = traced(
        lambda m, x: m.bag(x), index(4, 5), training=training, bag=lambda: nn.EmbeddingBag(1000, 16, mode=mode)
    )
    row = cost(graph, "embedding_bag")
    assert moved(row) == (_PICKED * FLOAT + 20 * INDEX + 4 * INDEX, 4 * 16 * FLOAT)  # and where each bag starts
    assert row.flops == _PICKED


def test_the_gradient_of_a_bag_adds_to_the_rows_that_it_joined() -> None:
    graph = traced(lambda m, x: m.bag(x), index(4, 5), training=True, bag=lambda: nn.EmbeddingBag(1000, 16))
    back = cost(graph, "embedding_backward", "backward")
    assert moved(back) == (4 * 16 * FLOAT + 20 * INDEX, _TABLE * FLOAT)
    assert back.flops == _PICKED
    assert not cost_sheet(graph).coverage.opaque
