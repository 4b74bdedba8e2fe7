"""What torch's profiler saw in, a forest of calls out: how long each took, what it launched and what memory it asked for.

On a CPU a call's time is its own; on a GPU it is that of the kernels that were launched inside it, never the host's.
"""

import bisect
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

# Calls that only name, shape or reserve memory: what is left of a call's innermost ones are its kernels on a CPU.
NO_KERNEL = frozenset(
    f"aten::{name}"
    for name in (
        "empty", "empty_like", "empty_strided", "as_strided", "as_strided_", "view", "reshape", "t", "transpose",
        "permute", "expand", "expand_as", "select", "slice", "squeeze", "unsqueeze", "resize_", "set_", "detach",
        "detach_", "alias", "unbind", "split", "narrow", "chunk", "result_type", "resolve_conj", "resolve_neg",
        "_local_scalar_dense", "item", "is_nonzero", "lift_fresh", "contiguous", "to", "flatten", "unflatten",
        "view_as_real", "_reshape_alias", "_unsafe_view",
    )
)  # fmt: skip
_CUDA = re.compile(r"cu(da)?[A-Z]")
OURS = "rooflens "  # what every label of ours begins with
_BACKWARD = "autograd::engine::evaluate_function: "


@dataclass(slots=True)
class Call:
    """One event and what ran inside it. `device_s` is of its own launches, `launches` their number."""

    name: str
    thread: int
    start_ns: int
    end_ns: int
    sequence: int
    device_s: float = 0.0
    launches: int = 0
    inside: list["Call"] = field(default_factory=list)

    def walk(self) -> Iterator["Call"]:
        yield self
        for call in self.inside:
            yield from call.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """`peak_bytes` is the most that was held at once beyond what was held before."""

    time_s: float
    kernels: int
    allocations: int
    allocated_bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    roots: tuple[Call, ...]
    memory: tuple[tuple[int, int], ...]  # when, and how many bytes were asked for or (below 0) given back
    device: str

    def spent(self, calls: list[Call]) -> Spent:
        sizes = [n for call in calls for n in self._asked(call)]
        return Spent(
            time_s=sum(self.time_s(c) for c in calls),
            kernels=sum(self._kernels(c) for c in calls),
            allocations=sum(n > 0 for n in sizes),
            allocated_bytes=sum(n for n in sizes if n > 0),
            peak_bytes=max((_peak(self._asked(c)) for c in calls), default=0),
        )

    def time_s(self, call: Call) -> float:
        if self.device == "cuda":
            return sum(c.device_s for c in call.walk())
        return (call.end_ns - call.start_ns) * 1e-9

    def _kernels(self, call: Call) -> int:
        if self.device == "cuda":
            return sum(c.launches for c in call.walk())
        inside = sum(map(self._kernels, call.inside))
        return inside or int(call.name.startswith("aten::") and call.name not in NO_KERNEL)

    def _asked(self, call: Call) -> list[int]:
        first = bisect.bisect_left(self.memory, (call.start_ns, -(1 << 62)))
        last = bisect.bisect_right(self.memory, (call.end_ns, 1 << 62))
        return [n for _, n in self.memory[first:last]]


def _peak(sizes: list[int]) -> int:
    held = most = 0
    for n in sizes:
        held += n
        most = max(most, held)
    return most


def profiled(run: Callable[[], object], device: str, memory: bool = True) -> Profiled:
    cuda = [ProfilerActivity.CUDA] if device == "cuda" else []
    with _unheard(), profile(activities=[ProfilerActivity.CPU, *cuda], profile_memory=memory) as seen:
        run()
        if device == "cuda":
            torch.cuda.synchronize()
    return _read(list(seen.profiler.kineto_results.events()), device)


@contextmanager
def _unheard() -> Iterator[None]:
    """The profiler's C++ tells of every start and stop, past Python's streams."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _read(events: list[Any], device: str) -> Profiled:
    on_device = DeviceType.CUDA if device == "cuda" else DeviceType.CPU
    memory = [e for e in events if e.name() == "[memory]"]
    calls = [e for e in events if e.device_type() == DeviceType.CPU and e.name() != "[memory]"]
    launched: dict[int, list[Any]] = {}
    for e in events:
        if e.device_type() == DeviceType.CUDA and _is_kernel(e.name()) and e.linked_correlation_id() > 0:
            launched.setdefault(e.linked_correlation_id(), []).append(e)
    return Profiled(
        roots=tuple(forest(calls, launched)),
        memory=tuple(sorted((e.start_ns(), e.nbytes()) for e in memory if e.device_type() == on_device)),
        device=device,
    )


def _is_of_cuda(event: Any) -> bool:
    """A call of the driver or the runtime, such as cudaLaunchKernel."""
    return bool(event.linked_correlation_id()) or _CUDA.match(event.name()) is not None


def _is_kernel(name: str) -> bool:
    """Our own labels stand on a device too, over all kernels that they were open for, and are linked to any one of them."""
    return name != "[memory]" and not name.startswith(OURS)


def forest(events: list[Any], launched: dict[int, list[Any]]) -> list[Call]:
    """Calls nest by time, thread by thread."""
    roots: list[Call] = []
    open_calls: dict[int, list[Call]] = {}
    for e in sorted(events, key=lambda e: (e.start_thread_id(), e.start_ns(), -e.duration_ns())):
        # CUDA numbers its own calls by itself: one that has the number of an op has not launched that op's kernels.
        kernels = () if _is_of_cuda(e) else launched.get(e.correlation_id(), ())
        call = Call(
            e.name(), e.start_thread_id(), e.start_ns(), e.start_ns() + e.duration_ns(), e.sequence_nr(),
            sum(k.duration_ns() for k in kernels) * 1e-9, len(kernels),
        )  # fmt: skip
        stack = open_calls.setdefault(call.thread, [])
        while stack and stack[-1].end_ns < call.end_ns:
            stack.pop()
        (stack[-1].inside if stack else roots).append(call)
        stack.append(call)
    return sorted(roots, key=lambda c: c.start_ns)


def backward_nodes(roots: tuple[Call, ...], during: Call) -> dict[int, list[Call]]:
    """What autograd ran meanwhile, on whichever thread, by the number that it gave the call of the forward pass."""
    found: dict[int, list[Call]] = {}
    for root in roots:
        for call in root.walk() if root.start_ns < during.end_ns and root.end_ns > during.start_ns else ():
            mine = during.start_ns <= call.start_ns <= during.end_ns
            if mine and call.name.startswith(_BACKWARD) and call.sequence >= 0:
                found.setdefault(call.sequence, []).append(call)
    return found
