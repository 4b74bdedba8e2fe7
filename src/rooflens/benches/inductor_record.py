"""The FX graph that is about to be compiled in, our own Graph out, with the ops that each of its nodes made: so that what
a compiler says about a node can be said about ops.

A node that makes several ops which move data (torch's own multi-head attention is one function) is first taken apart,
in the very graph that is compiled: a compiler's account of it as one node would not tell its ops from each other.
"""

import operator
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from rooflens.frontends.pytorch.lent import stand_in
from rooflens.frontends.pytorch.recorder import Recorder
from rooflens.frontends.pytorch.trees import mapped, tensors_in
from rooflens.graph.records import Graph

_ROOT = re.compile(r"^L\['\w+'\]\.?")
_DEPTH = 3  # a function of composite functions


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """`made`: name of an FX node, and the places of its ops."""

    graph: Graph
    made: tuple[tuple[str, tuple[int, ...]], ...]


def recorded(gm: fx.GraphModule, module: nn.Module, name: str) -> Recorded:
    """Takes nodes of `gm` apart where that is needed."""
    record = _recorded(gm, module, name)
    for _ in range(_DEPTH):
        many = {node for node, places in record.made if _moving(record.graph, places) > 1}
        apart = [_take_apart(gm, node) for node in list(gm.graph.nodes) if node.name in many]
        if not any(apart):
            break
        gm.graph.lint()
        gm.recompile()
        record = _recorded(gm, module, name)
    return record


def _moving(graph: Graph, places: tuple[int, ...]) -> int:
    return sum(not graph.ops[p].view for p in places)


def _recorded(gm: fx.GraphModule, module: nn.Module, name: str) -> Recorded:
    with closing(Recorder({})) as recorder:
        run = _Run(gm, recorder, module)
        given = tuple(run.given())
        with torch.inference_mode(), recorder:
            out = run.run(*given, enable_io_processing=False)
        builder, tracker = recorder.builder, recorder.tracker
        graph = builder.build(
            name,
            "inductor",
            inputs=tuple(t.id for t in builder.tensors if t.role == "input" and t.base == t.id),
            outputs=tuple(dict.fromkeys(tracker.id_of(t) for t in tensors_in(out))),
            assumptions=tuple(recorder.assumptions),
        )
        return Recorded(graph=graph, made=tuple(run.made.items()))


class _Run(fx.Interpreter):
    """fx's own, on meta tensors; each node runs where its module stood."""

    def __init__(self, gm: fx.GraphModule, recorder: Recorder, module: nn.Module) -> None:
        super().__init__(gm)
        self.recorder, self.user = recorder, module
        self.paths = {str(id(m)): path for path, m in module.named_modules()}
        self.made: dict[str, tuple[int, ...]] = {}
        self.stored: dict[int, torch.Tensor] = {}
        for name, p in module.named_parameters():
            recorder.tracker.register(self._stand_in(p), "param", name=name, trainable=p.requires_grad)
        for name, b in module.named_buffers():
            recorder.tracker.register(self._stand_in(b), "buffer", name=name)

    def _stand_in(self, t: torch.Tensor) -> torch.Tensor:
        if id(t) not in self.stored:
            self.stored[id(t)] = stand_in(t, None, None)
        return self.stored[id(t)]

    def given(self) -> Iterator[Any]:
        """Inputs like those that the graph was captured with."""
        for node in self.module.graph.nodes:  # type: ignore[union-attr]
            if node.op == "placeholder":
                value = node.meta.get("example_value")
                made = stand_in(value, None, None) if isinstance(value, torch.Tensor) else value
                if made is not value:
                    self.recorder.tracker.register(made, "input", name=node.name)
                yield made

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        found = super().get_attr(target, args, kwargs)
        return self._stand_in(found) if isinstance(found, torch.Tensor) else found

    def run_node(self, n: fx.Node) -> Any:
        path = _module_of(n, self.paths)
        first = len(self.recorder.builder.ops)
        with self.recorder.at(path, plain=_is_plain(self.user, path)):
            out = super().run_node(n)
        self.made[n.name] = tuple(range(first, len(self.recorder.builder.ops)))
        return out


def _module_of(node: fx.Node, paths: dict[str, str]) -> str:
    """Path of the innermost module that the node stood in, as `named_modules` has it. Dynamo names modules by their id,
    and where it calls one again, by that and a count."""
    stack = node.meta.get("nn_module_stack") or {}
    if not stack:
        return ""
    key = list(stack)[-1]
    return paths.get(key.partition("@")[0], _ROOT.sub("", str(stack[key][0])))


def _is_plain(module: nn.Module, path: str) -> bool:
    """What `Recorder.enter` asks of a module that it meets: its ops bear its path alone."""
    try:
        found = module.get_submodule(path)
    except AttributeError:
        return False
    return type(found).__module__.startswith("torch.nn.") and not found._modules


def _take_apart(gm: fx.GraphModule, node: fx.Node) -> bool:
    """The node's calls in its place, each as torch's dispatcher meets it; False where there is nothing inside."""
    target = _called(node)
    if target is None:
        return False
    sources = node.all_input_nodes
    places = {s: place for place, s in enumerate(sources)}

    def call(*values: Any) -> Any:
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: values[places[n]])
        return target(*args, **kwargs)

    body = make_fx(call, pre_dispatch=True)(*_like(gm, sources)).graph
    if body.find_nodes(op="get_attr"):  # constants of its own
        return False
    inside: dict[fx.Node, Any] = dict(zip(body.find_nodes(op="placeholder"), sources, strict=True))
    with gm.graph.inserting_before(node):
        out = gm.graph.graph_copy(body, inside)
    for made in (inside[n] for n in body.nodes if n.op == "call_function"):
        made.meta = {**node.meta, "example_value": made.meta["val"]}
    _hand_over(gm, node, out)
    return True


def _called(node: fx.Node) -> Callable[..., Any] | None:
    """What to look into: a function or method as it is, of torch's own composite functions the body."""
    target: Any = node.target
    if node.op == "call_method":
        return lambda t, *args, **kwargs: getattr(t, target)(*args, **kwargs)
    if node.op != "call_function":
        return None
    if not isinstance(target, torch._ops.OpOverload):
        return target  # type: ignore[no-any-return]
    inside = torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), "CompositeImplicitAutograd")
    return target.decompose if inside else None


def _like(gm: fx.GraphModule, sources: list[fx.Node]) -> list[Any]:
    """Tensors without values, like those that flow into the node: of one mode, which the captured ones need not be."""
    values = [
        operator.attrgetter(str(s.target))(gm) if s.op == "get_attr" else s.meta["example_value"] for s in sources
    ]
    with FakeTensorMode():
        return mapped(_empty, values)  # type: ignore[no-any-return]


def _empty(t: torch.Tensor | FakeTensor) -> torch.Tensor:
    return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)


def _hand_over(gm: fx.GraphModule, node: fx.Node, out: Any) -> None:
    """Readers of the node read what came in its place; of several results each reader takes its own."""
    if isinstance(out, fx.Node):
        node.replace_all_uses_with(out)
    else:
        for reader in list(node.users):
            if reader.users:  # a result that nobody asked for is None
                reader.replace_all_uses_with(out[reader.args[1]])
            gm.graph.erase_node(reader)
    gm.graph.erase_node(node)
