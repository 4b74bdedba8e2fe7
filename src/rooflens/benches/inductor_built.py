"""A module with real values in, what Inductor generates for it out: something to run, the kernels that compute each of our
ops, and the name of each in the order they are called, as torch's profiler tells it.

The generated code is what a user gets but for two things: each kernel tells its name, and on a CPU each loop nest is a
function of its own. The C++ writer would put neighbours into one, whose time nobody could tell apart.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from rooflens.benches.inductor import Compiled, answer_of, compiled_of, no_single_graph, schedule_of, settled
from rooflens.benches.inductor_kernels import Lowered
from rooflens.benches.inductor_record import recorded
from rooflens.benches.subject import Subject
from rooflens.errors import InputError

_LIBRARY = {"extern_kernels": "aten"}  # what Inductor calls them by, and what the profiler does
_GENERATED = "torch._inductor.runtime.compile_tasks."
_NETWORKS = 64  # so many networks of one class may be compiled in one process


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call in the generated code, and the numbers of the kernels that it runs, as in `Compiled`: more than one where
    the writer put them into one function."""

    name: str
    kernels: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    compiled: Compiled
    calls: tuple[Called, ...]
    compile_s: float


class _Written:
    """What was overheard while code was written: names and the buffers that each call writes."""

    def __init__(self) -> None:
        self.schedules: list[Lowered] = []
        self.calls: list[tuple[str, frozenset[str]]] = []

    def calls_of(self, lowered: Lowered) -> tuple[Called, ...]:
        wrote = {b: s.kernel for s in lowered.stores for b in s.writes}
        numbers = [frozenset(wrote[b] for b in written if b in wrote) for _, written in self.calls]
        return tuple(
            Called(name=name, kernels=frozenset(n for n in own if n is not None))
            for (name, _), own in zip(self.calls, numbers, strict=True)
        )


def check_compiler(device: str) -> None:
    """Asked before anything is measured."""
    if device == "cuda":
        from torch.utils._triton import has_triton

        if not has_triton():
            raise InputError(
                "--execution compiled: Inductor needs a working Triton for this GPU, and there is none: "
                "pip install triton, or use --execution eager"
            )
        return
    try:
        from torch._inductor.cpp_builder import get_cpp_compiler

        get_cpp_compiler()
    except Exception as error:
        raise InputError(
            "--execution compiled: Inductor needs a C++ compiler, and there is none: install g++ or name one in CXX, "
            "or use --execution eager"
        ) from error


def build(
    subject: Subject, name: str, around: Callable[[], AbstractContextManager[Any]], *, device: str, frozen: bool
) -> tuple[Built, Callable[[], object]]:
    """Compiled by a first run, and how to run it again. What that run raises once it is compiled is the caller's."""
    found: list[Built | Exception] = []
    start = time.perf_counter()

    def backend(gm: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        try:
            made, built = _generated(gm, inputs, subject, name, device == "cpu")
        except Exception as error:
            found.append(error)
            raise
        found.append(built)
        return made

    compiled: Any = torch.compile(subject.module, backend=backend, fullgraph=True, dynamic=False)

    def run() -> object:
        with torch.no_grad(), around():
            return compiled(*subject.args, **subject.kwargs)

    with settled(frozen=frozen), _room():
        try:
            run()
        except Exception as error:
            if not found:
                raise no_single_graph(error) from error
            if isinstance(found[0], Built):
                raise
    answer = answer_of(found)
    return Built(compiled=answer.compiled, calls=answer.calls, compile_s=time.perf_counter() - start), run


def _generated(
    gm: fx.GraphModule, inputs: list[Any], subject: Subject, name: str, on_host: bool
) -> tuple[Callable[..., Any], Built]:
    from torch._inductor.compile_fx import compile_fx

    record, written = recorded(gm, subject.module, name), _Written()
    with _overheard(written, on_host):
        made: Any = compile_fx(gm, inputs)  # its type also tells of what ahead-of-time compiling returns
    lowered = written.schedules[0] if written.schedules else Lowered(values=(), stores=(), names=())
    built = Built(compiled=compiled_of(record, lowered), calls=written.calls_of(lowered), compile_s=0.0)
    return made, built


@contextmanager
def forgotten() -> Iterator[None]:
    """What is generated meanwhile would stay in memory, with the weights that are constants in it, in the tables of torch and
    of Python. Dynamo forgets whatever it compiled: other compiled models of this process compile once more."""
    from torch._inductor.codecache import PyCodeCache

    before, count = dict(sys.modules), len(PyCodeCache.modules)
    try:
        yield
    finally:
        torch._dynamo.reset()
        del PyCodeCache.modules[count:]
        for name in [n for n, m in sys.modules.items() if n.startswith(_GENERATED) and before.get(n) is not m]:
            del sys.modules[name]


@contextmanager
def _room() -> Iterator[None]:
    """Dynamo gives up on a class of modules that it has met too often, whichever module it was."""
    import torch._dynamo.config as dynamo

    with dynamo.patch(recompile_limit=_NETWORKS):
        yield


@contextmanager
def _overheard(written: _Written, on_host: bool) -> Iterator[None]:
    """Where Inductor schedules a graph, names a kernel of its own, and calls one of a library. Kernels in Triton tell
    their names unasked, those in C++ do not."""
    import torch._inductor.config as inductor
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.codegen.triton import TritonScheduling
    from torch._inductor.scheduler import Scheduler
    from torch._inductor.virtualized import V

    def schedules(kept: Callable[..., Any]) -> Callable[..., Any]:
        def codegen(scheduler: Any) -> Any:
            written.schedules.append(schedule_of(V.graph))
            return kept(scheduler)

        return codegen

    def names(kept: Callable[..., Any]) -> Callable[..., Any]:
        def define_kernel(scheduling: Any, source: Any, nodes: Any, *rest: Any, **named: Any) -> Any:
            name = kept(scheduling, source, nodes, *rest, **named)
            written.calls.append((name, _written_by(nodes)))
            return name

        return define_kernel

    def calls(kept: Callable[..., Any]) -> Callable[..., Any]:
        def codegen_extern_call(scheduler: Any, node: Any) -> Any:
            if type(node.node).__name__ != "MultiOutput":  # only names one of several results
                written.calls.append((_library_name(node.node), _written_by([node])))
            return kept(scheduler, node)

        return codegen_extern_call

    with ExitStack() as stack:
        if on_host:
            stack.enter_context(inductor.patch({"cpp.enable_kernel_profile": True}))
        stack.enter_context(_replaced(CppScheduling, "MAX_FUSED_KERNEL_ARGS_NUM", lambda kept: -1))
        stack.enter_context(_replaced(Scheduler, "codegen", schedules))
        stack.enter_context(_replaced(Scheduler, "codegen_extern_call", calls))
        stack.enter_context(_replaced(CppScheduling, "define_kernel", names))
        stack.enter_context(_replaced(TritonScheduling, "define_kernel", names))
        yield


@contextmanager
def _replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    kept = getattr(owner, name)
    setattr(owner, name, make(kept))
    try:
        yield
    finally:
        setattr(owner, name, kept)


def _written_by(nodes: Any) -> frozenset[str]:
    """Between the nodes of a schedule stand marks that are none."""
    parts = [part for node in nodes if hasattr(node, "get_nodes") for part in node.get_nodes()]
    return frozenset(d.name for part in parts for d in part.read_writes.writes)


def _library_name(called: Any) -> str:
    """As torch's profiler has it: `extern_kernels.mm` is aten::mm, `torch.ops.mkl._mkl_linear.default` mkl::_mkl_linear."""
    schema = getattr(getattr(called, "op_overload", None), "_schema", None)
    if schema is not None:
        return str(schema.name)
    told = str(getattr(called, "python_kernel_name", None) or type(called).__name__)
    space, dot, rest = told.removeprefix("torch.ops.").partition(".")
    return f"{_LIBRARY.get(space, space)}::{rest.partition('.')[0]}" if dot else told
