"""Recorded calls in, the time of each by itself on a real device out: real shapes, warm, again and again.

Calls that do the same work are run once and share their samples. One that fails, or needs more memory than there is,
says so, and the rest goes on.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from rooflens.benches.device import Device
from rooflens.benches.replay import differentiated, forward_of, needed_bytes
from rooflens.benches.sampling import Budget, Samples
from rooflens.errors import one_line
from rooflens.frontends.pytorch.calls import Step

NO_GRADIENT = "n/a (no gradient)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """`status`: ok | failed | oom | n/a (no gradient) | not run. `first` is the place of the equal call that was run."""

    status: str
    reason: str = ""
    samples: Samples | None = None
    first: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a call is run under: on what, how long, and in whose context (autocast)."""

    device: Device
    budget: Budget
    around: Callable[[], AbstractContextManager[Any]]


def forward_times(steps: tuple[Step, ...], training: bool, conditions: Conditions) -> Iterator[Timed]:
    make = _trained if training else _plain
    return _each(steps, conditions, partial(make, conditions=conditions))


def backward_times(steps: tuple[Step, ...], conditions: Conditions) -> Iterator[Timed]:
    return _each(steps, conditions, partial(_backward, conditions=conditions))


def _plain(step: Step, conditions: Conditions) -> Callable[[], Any]:
    return forward_of(step.call, conditions.device.name, conditions.around)


def _trained(step: Step, conditions: Conditions) -> Callable[[], Any]:
    return differentiated(step.call, conditions.device.name, conditions.around).forward


def _backward(step: Step, conditions: Conditions) -> Callable[[], Any] | None:
    return differentiated(step.call, conditions.device.name, conditions.around).backward


def _each(
    steps: tuple[Step, ...], conditions: Conditions, make: Callable[[Step], Callable[[], Any] | None]
) -> Iterator[Timed]:
    known: dict[str, int] = {}
    taken: list[Timed] = []
    for place, step in enumerate(steps):
        first = known.setdefault(step.call.key, place)
        found = _once(step, conditions, make) if first == place else _again(taken[first], first)
        taken.append(found)
        yield found


def _again(found: Timed, first: int) -> Timed:
    return Timed(status=found.status, reason=found.reason, samples=found.samples, first=first)


def _once(step: Step, conditions: Conditions, make: Callable[[Step], Callable[[], Any] | None]) -> Timed:
    lacking = conditions.device.lacks(needed_bytes(step.call))
    if lacking:
        return Timed(status="oom", reason=lacking)
    try:
        with conditions.device.working():
            run = make(step)
            if run is None:
                return Timed(status=NO_GRADIENT, reason="nothing that this call was given or returns has a gradient")
            samples = conditions.device.sampled(run, conditions.budget)
    except Exception as error:  # whatever user code and kernels may raise is this call's alone
        return Timed(status="oom" if is_out_of_memory(error) else "failed", reason=described(error))
    finally:
        conditions.device.release()
    return Timed(status="ok", samples=samples)


def is_out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in text


def described(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}", 300)
