"""A torch module and its inputs in, our Graph and the Inductor kernels that compute each of its ops out: what a real
compiler fuses, to hold our own fusion against.

Inductor runs up to its final schedule, frozen as for inference on this CPU. Nothing is generated from it and nothing
runs. A kernel is a node of that schedule: what Inductor decided to fuse. Its C++ writer still leaves some nests as loops
one after the other, and puts neighbouring kernels into one function. No cache is read or written, so that another run
says nothing about this one.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import fx, nn

from rooflens.benches.inductor_kernels import Lowered, Store, Value
from rooflens.benches.inductor_ops import kernels_of_ops
from rooflens.benches.inductor_record import Recorded, recorded
from rooflens.benches.subject import Subject
from rooflens.errors import ModelError, RooflensError, one_line
from rooflens.graph.records import Graph

_SHAPES = frozenset(
    {
        "alias", "as_strided", "detach", "diagonal", "expand", "getitem", "permute", "reshape", "select", "slice", "split",
        "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
    }
)  # fmt: skip
_LOOPS = "loops"
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """`kernels`: per op of the graph, the numbers of the kernels that compute it. Empty for views, and for what the
    compiler folded away or does not need. `names`: what each kernel is."""

    compiler: str
    graph: Graph
    kernels: tuple[frozenset[int], ...]
    names: tuple[str, ...]


class _Scheduled(Exception):
    """Raised where Inductor would go on to write C++."""


def compile_with_inductor(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Compiled:
    """A copy is compiled, on the CPU and in evaluation mode; parameters on the meta device get values for it."""
    subject = _with_values(Subject(module=module, args=args, kwargs=kwargs))
    found: list[Compiled | Exception] = []

    def backend(gm: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        try:
            found.append(compiled_of(recorded(gm, subject.module, name), _lowered(gm, inputs)))
        except Exception as error:
            found.append(error)
        raise _Scheduled

    with settled(), torch.no_grad():
        compiled = torch.compile(subject.module, backend=backend, fullgraph=True, dynamic=False)
        try:
            compiled(*subject.args, **subject.kwargs)
        except Exception as error:
            if not found:
                raise no_single_graph(error) from error
    return answer_of(found)


def answer_of(found: list[Answer | Exception]) -> Answer:
    """What the backend was called for, or why there is none."""
    if not found:
        raise ModelError(
            "torch.compile is switched off, or finds nothing to compile in the model: there are no kernels"
        )
    answer = found[0]
    if isinstance(answer, RooflensError):
        raise answer
    if isinstance(answer, Exception):
        raise _refused("Inductor does not take the model", answer) from answer
    return answer


def no_single_graph(error: Exception) -> ModelError:
    return _refused("torch.compile makes no single graph of the model", error)


def _refused(what: str, error: Exception) -> ModelError:
    said = str(error).rpartition("Output:\n")[2]  # of a C++ compiler, after a long command
    text = one_line(f"{type(error).__name__}: {said}", 400)
    return ModelError(f"{what}, so there are no kernels: {text}")


def compiled_of(record: Recorded, lowered: Lowered) -> Compiled:
    kernels = kernels_of_ops(record, lowered)
    names = tuple(_with_ops(name, k, record.graph, kernels) for k, name in enumerate(lowered.names))
    return Compiled(compiler=compiler_name(), graph=record.graph, kernels=kernels, names=names)


def compiler_name() -> str:
    return f"Inductor {torch.__version__}"


def _with_ops(name: str, kernel: int, graph: Graph, kernels: tuple[frozenset[int], ...]) -> str:
    """Loops have no name of their own. Those of no op give the inputs of a call the layout that it asks for."""
    if name != _LOOPS:
        return name
    kinds = dict.fromkeys(op.kind for op, own in zip(graph.ops, kernels, strict=True) if kernel in own)
    return f"{_LOOPS}: {', '.join(kinds)}" if kinds else "layout copy"


def _with_values(subject: Subject) -> Subject:
    """Equal constants would become one buffer, and draw together the loops that read it: no two get equal values."""
    real = subject.on("cpu")
    draw_apart(real.module, subject.module)
    return real


def draw_apart(real: nn.Module, given: nn.Module) -> None:
    """Values for what was on the meta device: small weights, vectors that are positive, as a variance is."""
    before = {**dict(given.named_parameters()), **dict(given.named_buffers())}
    dice: dict[torch.device, torch.Generator] = {}
    with torch.no_grad():
        for key, t in (*real.named_parameters(), *real.named_buffers()):
            if before[key].is_meta and t.is_floating_point():
                low, high = (0.5, 1.5) if t.dim() < 2 else (-0.05, 0.05)
                own = dice.setdefault(t.device, torch.Generator(t.device).manual_seed(0))
                t.uniform_(low, high, generator=own)


@contextmanager
def settled(*, frozen: bool = True) -> Iterator[None]:
    """Torch's settings, and its warnings aside, for the time of one compilation. `frozen`: weights are constants, into
    which a batchnorm is folded."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        import torch._dynamo.config as dynamo
        import torch._functorch.config as functorch
        import torch._inductor.config as inductor

        stack.enter_context(dynamo.patch(automatic_dynamic_local_pgo=False))
        stack.enter_context(functorch.patch(enable_autograd_cache=False))
        stack.enter_context(inductor.patch(freezing=frozen, fx_graph_cache=False, fx_graph_remote_cache=False))
        yield


# Inductor's own objects in, plain names out


def _lowered(gm: fx.GraphModule, inputs: list[Any]) -> Lowered:
    from torch._inductor.compile_fx import compile_fx

    found: list[Lowered] = []
    with _read_when_scheduled(found):
        try:
            compile_fx(gm, inputs)
        except Exception:
            if not found:
                raise
    return found[0] if found else Lowered(values=(), stores=(), names=())


@contextmanager
def _read_when_scheduled(found: list[Lowered]) -> Iterator[None]:
    from torch._inductor.graph import GraphLowering

    def schedule(lowering: Any) -> Any:
        lowering.init_wrapper_code()
        lowering._update_scheduler()
        found.append(schedule_of(lowering))
        raise _Scheduled

    place: Any = GraphLowering
    kept = place.compile_to_module
    place.compile_to_module = schedule
    try:
        yield
    finally:
        place.compile_to_module = kept


def schedule_of(lowering: Any) -> Lowered:
    """Of a graph that Inductor has lowered and scheduled."""
    nodes = list(lowering.graph.nodes)
    order = {n: place for place, n in enumerate(nodes)}
    stores: list[Store] = []
    names: list[str] = []
    kernel_of: dict[str, int | None] = {}
    for node in lowering.scheduler.nodes:
        kernel = _kernel_of(node, kernel_of, names)
        stores += [_store(part, kernel, order) for part in node.get_nodes()]
        kernel_of |= dict.fromkeys((d.name for d in node.read_writes.writes), kernel)
    return Lowered(values=tuple(map(_value, nodes)), stores=tuple(stores), names=tuple(names))


def _kernel_of(node: Any, kernel_of: dict[str, int | None], names: list[str]) -> int | None:
    """One more, unless the node only names one of several results, or only stands for parts that are in place."""
    kind = type(node).__name__
    if kind == "NopKernelSchedulerNode":
        return None
    if type(node.node).__name__ == "MultiOutput":
        return kernel_of[next(d.name for d in node.read_writes.reads)]
    names.append(_name(node.node) if node.is_extern() else _LOOPS)
    return len(names) - 1


def _name(called: Any) -> str:
    """What is called, and what else it does: convolution, then relu."""
    name = getattr(called, "python_kernel_name", None) or type(called).__name__
    after = [c for c in getattr(called, "constant_args", ()) if isinstance(c, str) and c not in ("", "none")]
    return "+".join([name.removeprefix("torch.ops."), *after])


def _store(part: Any, kernel: int | None, order: dict[fx.Node, int]) -> Store:
    origins = [o for o in part.node.origins if o in order]
    return Store(
        value=max(origins, key=order.__getitem__).name if origins else "",
        reads=frozenset(d.name for d in part.read_writes.reads),
        writes=frozenset(d.name for d in part.read_writes.writes),
        kernel=kernel,
        call=part.is_extern(),
    )


def _value(node: fx.Node) -> Value:
    origin = _origin(node)
    return Value(
        name=node.name,
        role=_role(node),
        inputs=tuple(n.name for n in node.all_input_nodes),
        source=origin[0].name if origin else "",
    )


def _origin(node: fx.Node) -> list[Any]:
    """Where it came from. A call that Inductor put in the place of several (an attention that was written out) has no
    origin; what picks its first result has that of the last one."""
    picks = (
        [n for n in node.users if getattr(n.target, "__name__", "") == "getitem"] if node.op == "call_function" else []
    )
    found: list[list[Any]] = [n.meta["from_node"] for n in (node, *picks) if n.meta.get("from_node")]
    return found[0] if found else []


def _role(node: fx.Node) -> str:
    if node.op != "call_function":
        return {"placeholder": "input", "get_attr": "constant"}.get(node.op, "result")
    packet = getattr(node.target, "overloadpacket", node.target)  # aten.add.Tensor is add
    return "shape" if getattr(packet, "__name__", "") in _SHAPES else "result"
