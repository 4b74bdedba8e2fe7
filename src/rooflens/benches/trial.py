"""A module and two ways to run it in; the samples of both, taken in turns, and how far their outputs differ, out.

The unchanged run stands in every round beside the changed one, so that a machine that slows down or warms up meanwhile is
no gain of either.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from rooflens.benches.device import Device, capture
from rooflens.benches.isolated import described, is_out_of_memory
from rooflens.benches.rounds import Pace, Probe, in_rounds
from rooflens.benches.sampling import Budget, Samples
from rooflens.benches.subject import Subject
from rooflens.benches.whole import forward_run, step_run
from rooflens.frontends.pytorch.trace import outputs_in

ROUNDS = 5
SMALL_S = 0.05  # what takes longer goes through more than the caches hold, and finds them cold in any case

Run = Callable[[], Any]
Outputs = list[torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How the whole is run. `dtype` is that of module and inputs, `items` how many times the inputs that were given."""

    dtype: torch.dtype | None
    autocast: torch.dtype | None = None
    channels_last: bool = False
    tf32: bool = False
    compiled: bool = False
    captured: bool = False
    items: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """`output_difference`: the largest difference of an output, as a share of the largest value in it."""

    status: str  # ok | not here | failed
    reason: str = ""
    before: Samples | None = None
    after: Samples | None = None
    output_difference: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The unchanged run and the changed one, in this order. `first_s`: their very first runs, with what is done once only,
    such as compiling."""

    before: Run
    after: Run
    first_s: tuple[float, ...] = ()
    output_difference: float | None = None
    reason: str = ""


def whole_attempt(
    subject: Subject, before: Way, after: Way, *, training: bool, device: Device, seconds: float, needed_bytes: int
) -> Attempt:
    """The forward pass, or with `training` forward and backward."""

    def make() -> Pair:
        runs = [_runnable(subject, way, training, device) for way in (before, after)]
        given, first_s = zip(*(_first(run, device) for run in runs), strict=True)
        runs = [capture(r) if w.captured else r for r, w in zip(runs, (before, after), strict=True)]
        same = not training and after.items == before.items
        apart = output_difference(*given) if same else None
        broken = "an output of the changed run is no finite number" if same and not _finite(given) else ""
        return Pair(before=runs[0], after=runs[1], first_s=first_s, output_difference=apart, reason=broken)

    found = attempt(make, device, seconds, needed_bytes, captured=False)
    if after.compiled:
        torch._dynamo.reset()  # code that was compiled holds on to its weights
    return found


def attempt(make: Callable[[], Pair], device: Device, seconds: float, needed_bytes: int, *, captured: bool) -> Attempt:
    """Whatever a changed run may raise is said, and the next change is tried. `captured`: many runs in one CUDA graph, for
    what is too short to be started by a host."""
    lacking = device.lacks(needed_bytes)
    if lacking:
        return Attempt(status="failed", reason=f"out of memory: {lacking}")
    try:
        with device.working(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pair = make()
            before, after = _in_turns(pair, device, seconds, captured)
    except Exception as error:  # user code, kernels and compilers raise what they like
        return Attempt(status="not here" if _is_of_compiler(error) else "failed", reason=_why(error))
    finally:
        device.release()
    return Attempt(
        status="ok", reason=pair.reason, before=before, after=after, output_difference=pair.output_difference
    )


def _why(error: Exception) -> str:
    """What a compiler advises its own authors to do is left out."""
    told = described(error).partition(" Set TORCHDYNAMO_VERBOSE")[0]
    return f"out of memory: {told}" if is_out_of_memory(error) else told


def _is_of_compiler(error: Exception) -> bool:
    return any(type(e).__module__.startswith(("torch._dynamo", "torch._inductor")) for e in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _first(run: Run, device: Device) -> tuple[Outputs, float]:
    start = time.perf_counter()
    outputs = list(outputs_in(run()))
    device.wait()
    return outputs, time.perf_counter() - start


def _in_turns(pair: Pair, device: Device, seconds: float, captured: bool) -> tuple[Samples, Samples]:
    readings = [device.reading(run, Budget(warmups=1), captured) for run in (pair.before, pair.after)]
    probes = [
        Probe(name=name, sample=r.sample, warmups=int(r.warmups_s[-1] < SMALL_S), readings=1)
        for name, r in zip(("before", "after"), readings, strict=True)
    ]
    before, after = in_rounds(probes, Pace(seconds=seconds, least=ROUNDS))
    warm = [(*pair.first_s[place : place + 1], *r.warmups_s) for place, r in enumerate(readings)]
    return (
        replace(before, warmups_s=(*warm[0], *before.warmups_s)),
        replace(after, warmups_s=(*warm[1], *after.warmups_s)),
    )


def _runnable(subject: Subject, way: Way, training: bool, device: Device) -> Run:
    made = subject.larger(way.items).to_run(
        device.name, training=training, dtype=way.dtype, channels_last=way.channels_last
    )
    if way.compiled:
        compiled: Any = torch.compile(made.module, dynamic=False)  # a module again
        made = replace(made, module=compiled)

    @contextmanager
    def around() -> Iterator[None]:
        with ExitStack() as stack:
            if way.tf32:
                stack.enter_context(_tf32())
            if way.autocast is not None:
                stack.enter_context(torch.autocast(device.name, way.autocast))
            yield

    plain = not way.tf32 and way.autocast is None
    return (step_run if training else forward_run)(made, nullcontext if plain else around)


@contextmanager
def _tf32() -> Iterator[None]:
    backends = torch.backends
    kept = backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = True
    try:
        yield
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = kept


# outputs


def output_difference(before: Outputs, after: Outputs) -> float | None:
    """None where there is nothing to compare, or where a number is not finite."""
    pairs = list(zip(_floating(before), _floating(after), strict=False))
    found = [_apart(a, b) for a, b in pairs if a.shape == b.shape and a.numel()]
    known = [f for f in found if f is not None]
    return max(known) if known and len(known) == len(found) else None


def _apart(a: torch.Tensor, b: torch.Tensor) -> float | None:
    """In fp64, so that comparing adds nothing of its own."""
    wide, narrow = a.detach().double(), b.detach().double()
    if not (bool(wide.isfinite().all()) and bool(narrow.isfinite().all())):
        return None
    largest, apart = float(wide.abs().max()), float((wide - narrow).abs().max())
    if apart == 0:
        return 0.0
    return apart / largest if largest else None


def _finite(given: tuple[Outputs, ...]) -> bool:
    """Whether what was finite in the unchanged run still is."""
    before, after = (all(bool(t.isfinite().all()) for t in _floating(g)) for g in given)
    return after or not before


def _floating(outputs: Outputs) -> Outputs:
    return [t for t in outputs if t.is_floating_point()]
