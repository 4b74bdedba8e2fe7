"""Where backward kernels belong: the layer of the forward op that caused them."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from recording import Calls, meta, on_meta, ops, traced  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402


def _checkpointed(m: Any, x: Any) -> Any:
    return checkpoint(m.block, m.first(x), use_reentrant=False)


def test_what_a_checkpoint_computes_again_belongs_to_its_layers() -> None:
    """However it ends: it stops by raising inside a layer, and the next one starts outside of any."""
    block = lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))  # noqa: E731
    net = on_meta(lambda: nn.Sequential(*(Calls(_checkpointed, first=nn.Linear(4, 4), block=block()) for _ in "ab")))
    graph = traced(net, meta(2, 4), training=True)
    assert [op.module for op in ops(graph, "relu", "backward")] == ["1.block.1", "0.block.1"]
    again = [op.module for op in ops(graph, "linear", "backward")]
    assert [name for name in again if name.endswith("0")] == ["1.block.0", "0.block.0"]
    gradients = [op.module for op in ops(graph, "relu_backward", "backward")]
    assert gradients == ["1.block.1", "0.block.1"]
    assert all(op.module for op in graph.ops)


def test_a_checkpointed_attention_is_computed_again_as_one_op() -> None:
    def forward(m: Any, x: Any) -> Any:
        return checkpoint(lambda y: m.attention(y, y, y)[0], m.first(x), use_reentrant=False)

    net = on_meta(lambda: Calls(forward, first=nn.Linear(8, 8), attention=nn.MultiheadAttention(8, 2)))
    graph = traced(net, meta(5, 2, 8), training=True)
    (again,) = ops(graph, "attention", "backward")
    assert again.module == "attention"
    assert not ops(graph, "softmax", "backward")
