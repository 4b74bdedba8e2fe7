"""Models that differentiate in their own forward pass: forces, equations, penalties. The products are those of
the real run."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from recording import Calls, cost_of, meta, on_meta, ops, traced  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

MODES = pytest.mark.parametrize("training", [False, True])


def _forces(m: Any, x: Any) -> Any:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        energy = m.net(x).sum()
        (slope,) = torch.autograd.grad(energy, x, create_graph=True)
    return energy, -slope


def _equation(m: Any, x: Any) -> Any:
    u = m.net(x.requires_grad_())
    (first,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    return second + u


def _penalty(m: Any, x: Any) -> Any:
    """The user's input asks for its gradient."""
    out = m.net(x)
    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return out.sum() + (slope.norm(dim=-1) - 1).square().mean()


def _stepwise(m: Any, x: Any) -> Any:
    x = x.detach().requires_grad_()
    m.net(x).square().sum().backward()
    return m.net(x - x.grad)


FORWARDS = {"forces": _forces, "equation": _equation, "penalty": _penalty, "backward in forward": _stepwise}


def _net(forward: Callable[..., Any]) -> Any:
    return Calls(forward, net=nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 3)))


class _Products(TorchDispatchMode):
    """Of matrices, in the real run of the real module."""

    macs = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            left, right = args[-2:]
            self.macs += left.shape[0] * left.shape[1] * right.shape[1]
        return func(*args, **(kwargs or {}))


def _counted(module: Any, x: Any, training: bool) -> int:
    with _Products() as products:
        outs = module(x)
        if training:
            outs = outs if isinstance(outs, tuple) else (outs,)
            torch.autograd.grad([o.sum() for o in outs], list(module.parameters()), allow_unused=True)
    return products.macs


@MODES
@pytest.mark.parametrize("case", sorted(FORWARDS))
def test_the_products_of_a_model_that_differentiates_are_those_that_torch_runs(case: str, training: bool) -> None:
    given = torch.zeros(5, 3, requires_grad=True)
    graph = traced(_net(FORWARDS[case]), given, training=training)
    macs = sum(cost_of(graph, op).macs for op in graph.ops)
    assert macs == _counted(_net(FORWARDS[case]), torch.rand(5, 3, requires_grad=True), training)
    assert any("differentiates in its own forward pass" in text for text in graph.assumptions)
    assert {op.module for op in graph.ops if op.kind == "addmm"} == {"net.0", "net.2", "net.4"}


@MODES
def test_attention_may_be_differentiated_twice(training: bool) -> None:
    """No fused kernel can: it is taken apart, as it is in torch."""

    def energy(m: Any, x: Any) -> Any:
        return scaled_dot_product_attention(*m.qkv(x).chunk(3, -1)) * 2

    def forward(m: Any, x: Any) -> Any:
        x = x.requires_grad_()
        return torch.autograd.grad(energy(m, x).sum(), x, create_graph=True)[0]

    net = on_meta(lambda: Calls(forward, qkv=nn.Linear(8, 24)))
    graph = traced(net, meta(2, 5, 8), training=training, autocast=torch.bfloat16)
    assert ops(graph, "softmax") and not ops(graph, "attention")
    assert {graph.tensors[op.outputs[0]].dtype for op in ops(graph, "addmm")} == {"bf16"}


def test_a_model_that_does_not_differentiate_keeps_its_calls_whole() -> None:
    net = on_meta(lambda: Calls(lambda m, x: m.layer(x).detach().requires_grad_(), layer=nn.Linear(4, 4)))
    assert [op.kind for op in traced(net, meta(2, 4)).ops] == ["linear"]


def test_the_gradients_that_a_forward_pass_leaves_on_its_parameters_do_not_stay() -> None:
    net = on_meta(lambda: _net(_stepwise))
    traced(net, meta(5, 3))
    assert all(p.grad is None for p in net.parameters())
