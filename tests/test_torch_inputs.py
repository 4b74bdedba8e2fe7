"""What a user may give and what a model may return: mappings, output objects, generators, and what is refused."""

import warnings
from collections import UserDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from recording import Calls, meta, on_meta, traced  # noqa: E402
from torch import nn  # noqa: E402

import rooflens  # noqa: E402
from rooflens.errors import ModelError  # noqa: E402


def test_a_lazy_layer_is_refused_in_one_line() -> None:
    with pytest.raises(ModelError, match="lazy parameters without a shape: run it once"):
        rooflens.analyze(nn.Sequential(nn.LazyLinear(4)), torch.zeros(2, 3))


def test_inputs_in_a_mapping_go_in_by_their_names() -> None:
    """As tokenizers return them: a UserDict, which is no dict."""
    net = Calls(lambda m, left, right: left + right)
    given = UserDict(left=torch.zeros(2, 4), right=torch.zeros(2, 4))
    graph = rooflens.analyze(net, given).prediction.graph
    assert [graph.tensors[i].name for i in graph.inputs] == ["left", "right"]
    nested = traced(Calls(lambda m, pair: pair["left"] + pair["right"]), given)
    assert [nested.tensors[i].name for i in nested.inputs] == ["left", "right"]


@dataclass(slots=True)
class Slotted:
    first: Any
    rest: list[Any]


@dataclass
class Plain:
    first: Any
    rest: list[Any]


def _one_by_one(m: Any, x: Any) -> Iterator[Any]:
    yield m.a(x)
    yield m.b(x)


RETURNS = {
    "slots": lambda m, x: Slotted(m.a(x), [m.b(x)]),
    "fields": lambda m, x: Plain(m.a(x), [m.b(x)]),
    "a mapping": lambda m, x: UserDict(a=m.a(x), b=m.b(x)),
    "in a tuple": lambda m, x: (Slotted(m.a(x), []), {"b": Plain(m.b(x), [])}),
    "a generator": _one_by_one,
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("how", sorted(RETURNS))
def test_every_tensor_that_a_model_returns_is_an_output(how: str, training: bool) -> None:
    net = on_meta(lambda: Calls(RETURNS[how], a=nn.Linear(4, 5), b=nn.Linear(4, 6)))
    graph = traced(net, meta(2, 4), training=training)
    assert [graph.tensors[i].shape for i in graph.outputs] == [(2, 5), (2, 6)]
    if training:  # the gradients of both weights and both biases
        assert len([op for op in graph.ops if op.pass_ == "backward"]) == 4


def test_a_cache_beside_the_outputs_is_none_of_them() -> None:
    class Cache:
        def __init__(self, keys: Any) -> None:
            self.keys = keys

    net = on_meta(
        lambda: Calls(lambda m, x: {"out": m.a(x), "cache": Cache(m.b(x))}, a=nn.Linear(4, 5), b=nn.Linear(4, 6))
    )
    graph = traced(net, meta(2, 4))
    assert [graph.tensors[i].shape for i in graph.outputs] == [(2, 5)]


def test_a_model_that_returns_its_loss_trains_on_it_alone() -> None:
    net = on_meta(lambda: Calls(lambda m, x: UserDict(logits=(y := m.a(x)), loss=y.sum()), a=nn.Linear(4, 5)))
    graph = traced(net, meta(2, 4), training=True)
    assert [graph.tensors[i].shape for i in graph.outputs] == [()]


def test_a_compiled_module_is_the_module() -> None:
    """The same layers under the same names, and no warning of hooks that are ours (warnings are errors here)."""
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    x = torch.zeros(2, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of its own parts
        quick = torch.compile(module)
    plain, compiled = (rooflens.analyze(m, x).to_dict() for m in (module, quick))
    assert [op["id"] for op in compiled["ops"]] == ["0", "1"]
    assert (compiled["ops"], compiled["totals"]) == (plain["ops"], plain["totals"])
    inner = rooflens.analyze(nn.Sequential(quick), x).to_dict()
    assert inner["totals"] == plain["totals"]
