"""A module that runs and the calls that were recorded of it in; what each of them took inside the whole run out.

A recorded call is found again by the module that it stood in, its name and its turn there; what autograd runs for it, by
autograd's own number. What is not found (a model may choose another way on another device) stays unknown.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.autograd.profiler import record_function
from torch.nn.modules import module as nn_module

from rooflens.benches.profiled import Call, Profiled, Spent, backward_nodes, profiled
from rooflens.frontends.pytorch.calls import Step

_LABEL = "rooflens module "
_RUN = "rooflens run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Per recorded call, what one run spent on it; None where it was not seen."""

    forward: tuple[Spent | None, ...]
    backward: tuple[Spent | None, ...]
    peak_bytes: int


def in_situ(
    run: Callable[[], object], module: nn.Module, steps: tuple[Step, ...], device: str, times: int
) -> tuple[Found, ...]:
    """`run` calls the module once, and may go on backward from there."""

    def all_runs() -> None:
        for _ in range(times):
            with record_function(_RUN):
                run()

    with _labelled(module):
        seen = profiled(all_runs, device)
    runs = (root for root in seen.roots if root.name == _RUN)
    return tuple(_found(root, seen, backward_nodes(seen.roots, root), steps) for root in runs)


@contextmanager
def _labelled(module: nn.Module) -> Iterator[None]:
    """Each module's calls under its path."""
    paths = {m: path for path, m in module.named_modules()}
    open_labels: list[tuple[nn.Module, Any]] = []

    def enter(m: nn.Module, args: Any) -> None:
        if m in paths:
            label = record_function(_LABEL + paths[m])
            label.__enter__()
            open_labels.append((m, label))

    def leave(m: nn.Module, args: Any, output: Any) -> None:
        while open_labels and m in paths:
            owner, label = open_labels.pop()
            label.__exit__(None, None, None)
            if owner is m:
                return

    with ExitStack() as stack:
        stack.callback(nn_module.register_module_forward_pre_hook(enter).remove)
        stack.callback(nn_module.register_module_forward_hook(leave, always_call=True).remove)
        yield


def _found(root: Call, seen: Profiled, nodes: dict[int, list[Call]], steps: tuple[Step, ...]) -> Found:
    places: dict[int, Call] = {}
    for path, wanted in _by_module(steps).items():
        calls = [c for label in _labels(root, path) for c in label.inside]
        places.update(_matched(calls, wanted, steps))
    after = _next_numbers(root)
    forward = tuple(seen.spent([places[i]]) if i in places else None for i in range(len(steps)))
    backward = tuple(_of_nodes(seen, nodes, after, places.get(i)) for i in range(len(steps)))
    return Found(forward=forward, backward=backward, peak_bytes=seen.spent([root]).peak_bytes)


def _by_module(steps: tuple[Step, ...]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, step in enumerate(steps):
        found.setdefault(step.module, []).append(place)
    return found


def _labels(root: Call, path: str) -> list[Call]:
    return [c for c in root.walk() if c.name == _LABEL + path]


def _matched(calls: list[Call], wanted: list[int], steps: tuple[Step, ...]) -> dict[int, Call]:
    """In turn: a call of that name, or one of that name inside a call that has another."""
    found: dict[int, Call] = {}
    todo = list(wanted)

    def look(inside: list[Call]) -> None:
        for call in inside:
            if not todo or call.name.startswith(_LABEL):
                continue
            if call.name == steps[todo[0]].call.name:
                found[todo.pop(0)] = call
            else:
                look(call.inside)

    look(calls)
    return found


def _next_numbers(root: Call) -> dict[int, int]:
    """Of each call of the forward pass, autograd's number at the first call after it."""
    calls = sorted((c for c in root.walk() if c.sequence >= 0 and c.thread == root.thread), key=lambda c: c.start_ns)
    calls = [c for c in calls if not c.name.startswith("autograd::") and "Backward" not in c.name]
    found: dict[int, int] = {}
    for place, call in enumerate(calls):
        later = (c.sequence for c in calls[place + 1 :] if c.start_ns >= call.end_ns)
        found[id(call)] = next(later, calls[-1].sequence + 64)
    return found


def _of_nodes(seen: Profiled, nodes: dict[int, list[Call]], after: dict[int, int], call: Call | None) -> Spent | None:
    if call is None or call.sequence < 0 or id(call) not in after:
        return None
    ran = [n for number in range(call.sequence, after[id(call)]) for n in nodes.get(number, ())]
    return seen.spent(ran) if ran else None
