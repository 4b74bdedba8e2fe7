"""A module with real values and a device in, what each kernel that Inductor made for it takes out, run by run.

A kernel is found in torch's profile by its name and its turn: the generated code calls them in a known order. What the
profiler shows beside them (a copy that nobody scheduled) has a row of its own.
"""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from torch.autograd.profiler import record_function

from rooflens.benches.device import Device
from rooflens.benches.inductor_built import Built, build, forgotten
from rooflens.benches.isolated import described, is_out_of_memory
from rooflens.benches.measurement import CompiledRun, Kernel, KernelTimes, WholeTime
from rooflens.benches.profiled import NO_KERNEL, Call, Profiled, profiled
from rooflens.benches.sampling import Budget, Raw, collector_off, timed, verdicts
from rooflens.benches.subject import Subject
from rooflens.errors import RooflensError

RUN = "rooflens compiled run"
_GRAPH = re.compile(r"^graph_\d+_")
WARMUPS, LEAST, MOST = 2, 5, 50
_UNSCHEDULED = "scheduled nowhere"

Seen = tuple[Call, ...]  # of one run, what may be a kernel, in the order it began


@forgotten()
def compiled_run(
    subject: Subject,
    name: str,
    around: Callable[[], AbstractContextManager[Any]],
    device: Device,
    budget: Budget,
    *,
    frozen: bool,
) -> CompiledRun:
    """A model that no compiler takes raises; one that fails where it runs has that as its status."""
    built, run = build(subject, name, around, device=device.name, frozen=frozen)
    found = CompiledRun(
        compiler=built.compiled.compiler, frozen=frozen, compile_s=built.compile_s, graph=built.compiled.graph,
        made_of=built.compiled.kernels, whole=WholeTime(pass_="forward", status="failed"),
    )  # fmt: skip
    try:
        with device.working():
            samples = device.sampled(run, budget, captured=False)
            spent = _profiled_runs(run, device, _times(samples.median_s, budget))
    except RooflensError:
        raise
    except Exception as error:  # whatever generated code and libraries may raise
        status = "oom" if is_out_of_memory(error) else "failed"
        return replace(found, whole=WholeTime(pass_="forward", status=status, reason=described(error)))
    whole = WholeTime(pass_="forward", status="ok", samples=samples)
    return replace(read_runs(found, built, *spent), whole=whole)


def _times(once_s: float | None, budget: Budget) -> int:
    return min(max(int(budget.total_s / max(once_s or budget.total_s, 1e-6)), LEAST), MOST)


def _profiled_runs(run: Callable[[], object], device: Device, times: int) -> tuple[Profiled, tuple[Raw, ...]]:
    """With what else happened on the host during each; a GPU's time is not the host's."""
    raw: list[Raw] = []

    def all_runs() -> None:
        for _ in range(WARMUPS + times):
            with record_function(RUN):
                raw.append(timed(run, 1))

    with collector_off():
        seen = profiled(all_runs, device.name, memory=False)
    hosted = device.name == "cpu"
    return seen, tuple(r if hosted else Raw(time_s=r.time_s) for r in raw)


def read_runs(found: CompiledRun, built: Built, seen: Profiled, raw: tuple[Raw, ...]) -> CompiledRun:
    """`raw`: of each run in `seen`, warm-ups first, what else happened on the host."""
    kernels = [Kernel(name=c.name, numbers=c.kernels, what=_what(built, c.kernels)) for c in built.calls]
    roots = [root for root in seen.roots if root.name == RUN]
    shown = [tuple(_shown(root, {c.name for c in built.calls})) for root in roots]
    places = [matched([c.name for c in built.calls], [plain(c.name) for c in calls]) for calls in shown]
    others = _others(shown, places, seen)
    kernels += [Kernel(name=name, numbers=frozenset(), what=_UNSCHEDULED) for name, _ in others]
    times = [_row(calls, place, others, seen, len(built.calls)) for calls, place in zip(shown, places, strict=True)]
    rejected = verdicts(tuple(replace(r, time_s=_sum(row)) for r, row in zip(raw, times, strict=True))[WARMUPS:])
    return replace(
        found,
        kernels=tuple(kernels),
        warmups=tuple(KernelTimes(times_s=row) for row in times[:WARMUPS]),
        runs=tuple(
            KernelTimes(times_s=row, rejected=why, switches=r.switches)
            for row, why, r in zip(times[WARMUPS:], rejected, raw[WARMUPS:], strict=True)
        ),
    )


def _what(built: Built, numbers: frozenset[int]) -> str:
    return "; ".join(built.compiled.names[n] for n in sorted(numbers)) or _UNSCHEDULED


def plain(name: str) -> str:
    """Kernels written in C++ say before their name which graph they are of."""
    return _GRAPH.sub("", name)


def _shown(root: Call, names: set[str]) -> Iterator[Call]:
    """Innermost around what runs: a call that is known, or any of torch's operators."""
    for call in root.inside:
        if plain(call.name) in names or "::" in call.name:
            if call.name not in NO_KERNEL:
                yield call
        else:
            yield from _shown(call, names)


def matched(names: Sequence[str], seen: Sequence[str]) -> dict[int, int]:
    """Places of names to places of what was seen: equal ones in turn. As many others between the same neighbours are each
    other: a library's call may show under another name than it was asked for by."""
    found: dict[int, int] = {}
    parts = difflib.SequenceMatcher(None, names, seen, autojunk=False).get_opcodes()
    for kind, start, end, first, last in parts:
        if kind == "equal" or (kind == "replace" and end - start == last - first):
            pairs = zip(range(start, end), range(first, last), strict=True)
            found.update((a, b) for a, b in pairs if kind == "equal" or "::" in names[a])
    return found


Other = tuple[str, int]  # what nobody scheduled: its name, and its turn among equal ones


def _others(shown: list[Seen], places: list[dict[int, int]], seen: Profiled) -> list[Other]:
    found: dict[Other, None] = {}
    for calls, place in zip(shown, places, strict=True):
        found.update(dict.fromkeys(other for other, call in _left(calls, place) if seen.time_s(call) > 0))
    return list(found)


def _left(calls: Seen, place: dict[int, int]) -> Iterator[tuple[Other, Call]]:
    turns: Counter[str] = Counter()
    taken = set(place.values())
    for at, call in enumerate(calls):
        if at not in taken:
            yield (call.name, turns[call.name]), call
            turns[call.name] += 1


def _row(
    calls: Seen, place: dict[int, int], others: list[Other], seen: Profiled, count: int
) -> tuple[float | None, ...]:
    """One run. What nobody scheduled took no time where it did not run."""
    left = dict(_left(calls, place))
    mine = [seen.time_s(calls[place[k]]) if k in place else None for k in range(count)]
    return (*mine, *(seen.time_s(left[o]) if o in left else 0.0 for o in others))


def _sum(times: tuple[float | None, ...]) -> float:
    return sum(t for t in times if t is not None)
