"""What the tests of the torch frontend share: small modules in, recorded graphs out, and questions about them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from rooflens.costs.sheet import cost_sheet
from rooflens.frontends.pytorch.trace import trace_module
from rooflens.graph.records import Graph, Op, edges


def meta(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.empty(shape, dtype=dtype, device="meta")


def traced(module: Any, *args: Any, **options: Any) -> Graph:
    kwargs = options.pop("kwargs", {})
    return trace_module(module, args, kwargs, name="m", source="test", **options)


def on_meta(build: Callable[[], Any]) -> Any:
    with torch.device("meta"):
        return build()


class Calls(nn.Module):
    """A module whose forward pass is a function of itself and its inputs."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self, *args, **kwargs)


def ops(graph: Graph, kind: str, pass_: str = "forward") -> list[Op]:
    return [op for op in graph.ops if op.kind == kind and op.pass_ == pass_]


def kernels(graph: Graph, pass_: str = "forward") -> list[str]:
    return [op.kind for op in graph.ops if op.pass_ == pass_ and not op.view]


def cost_of(graph: Graph, op: Op) -> Any:
    return cost_sheet(graph).rows[graph.ops.index(op)]


def feeds(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.ops[a].id, graph.ops[b].id) for a, b, _ in edges(graph)}


def reaches(graph: Graph, start: str, end: str) -> bool:
    """Whether `end` depends on `start`, over however many ops."""
    pairs, seen, todo = feeds(graph), set(), [start]
    while todo:
        at = todo.pop()
        seen.add(at)
        todo += [b for a, b in pairs if a == at and b not in seen]
    return end in seen
