"""A suite in, the BenchRun of it out: one process after the other, each measures every row once; two revisions in turns.

What was finished is kept, whatever ends the run: a process that dies takes the row with it that it was at, and the next one
goes on behind it.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rooflens.bench_worker import Order, Rows, Worker, key_of
from rooflens.benches.bench_run import NOT_RUN, OK, BenchMachine, Benchmark, BenchRow, BenchRun, Revision
from rooflens.benches.revision import checked_out, revision_of
from rooflens.benches.sampling import now
from rooflens.benches.suite import Case, Suite
from rooflens.compare.states import undisturbed, usual_state
from rooflens.compare.verdicts import LEAST_PROCESSES
from rooflens.errors import FileError, InputError
from rooflens.hardware.identity import fingerprint, identity
from rooflens.version import __version__

Progress = Callable[[str, int, int], None]
MOST_TIMES = 3  # as many processes as were asked for
HOPELESS = 0.2  # of the first processes undisturbed, or fewer: more of them would meet the same machine
TURNS, OF_TWO = 3, 6  # of a row in each process; where two versions take turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`on` names the chip whose roof is asked, None for none. `tell`: where a sentence for the user goes."""

    device: str
    on: str | None = None
    note: str | None = None
    tell: Callable[[str], None] = lambda sentence: None


@dataclass(slots=True, kw_only=True)
class _Side:
    """One version of what is measured; its rows grow while processes end."""

    suite: Suite
    revision: Revision | None
    imports: tuple[Path, ...] = ()  # where modules of its own are found first
    rows: dict[str, BenchRow] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def todo(self) -> Rows:
        return tuple((t, p) for t in self.suite.cases for p in t.passes)


def bench_run(suite: Suite, options: Options, progress: Progress) -> BenchRun:
    check_files(suite)
    side = _Side(suite=suite, revision=revision_of(suite.folder))
    stopped_by = _in_turns([side], options, progress)
    return _run_of(side, options, None, stopped_by)


def bench_runs(
    suite_at: Callable[[Path], Suite], folder: Path, names: tuple[str, str], options: Options, progress: Progress
) -> tuple[BenchRun, BenchRun]:
    """Two revisions of what is in the folder, in turns: A B B A and so on, so that whatever the machine does meanwhile it
    does to both."""
    with ExitStack() as stack:
        places = [stack.enter_context(checked_out(folder, name)) for name in names]
        return _both(
            [_side_at(suite_at, place, name) for place, name in zip(places, names, strict=True)], options, progress
        )


def bench_pair(
    base: Suite, new: Suite, options: Options, progress: Progress, *, again: bool = True
) -> tuple[BenchRun, BenchRun]:
    """Two suites in turns; rows of one name are each other's counterpart. `again`: rows that the machine disturbed."""
    sides = [_Side(suite=suite, revision=revision_of(suite.folder)) for suite in (base, new)]
    return _both(sides, options, progress, again)


def _both(sides: list[_Side], options: Options, progress: Progress, again: bool = True) -> tuple[BenchRun, BenchRun]:
    session = secrets.token_hex(6)
    stopped_by = _in_turns(sides, options, progress, again)
    base, new = (_run_of(side, options, session, stopped_by) for side in sides)
    return base, new


def _side_at(suite_at: Callable[[Path], Suite], place: Path, name: str) -> _Side:
    if not place.is_dir():
        raise InputError(f"--checkout {name}: this folder is not there in that revision: run it in a folder that is")
    suite = suite_at(place)
    return _Side(suite=suite, revision=revision_of(place, name), imports=(place, place / "src"))


def check_files(suite: Suite) -> None:
    """Before any process is started: a file that is not there is not there for any of them."""
    for case in suite.cases:
        file, colon, _ = (case.model or "").rpartition(":")
        if colon and file.endswith(".py") and not (suite.folder / file).is_file():
            raise FileError(
                f"{file}: cannot be read: no such file in {suite.folder.absolute()}: check the path of '{case.name}'"
            )


def _in_turns(sides: list[_Side], options: Options, progress: Progress, again: bool = True) -> str:
    """Why it ended early; empty where it did not. Rows that the machine disturbed are measured again in further processes."""
    processes = sides[0].suite.processes
    wanted, done = min(processes, LEAST_PROCESSES), 0
    total = processes * sum(len(side.todo) for side in sides)
    try:
        for number in range((MOST_TIMES if again else 1) * processes):
            left = None if number < processes else _again(sides, number, wanted, options)
            if left is not None and not left:
                break
            todo = [_turned(side.todo, number, left) for side in sides]
            total += sum(map(len, todo)) if left is not None else 0
            for _ in _side_by_side(sides, todo, number, options):
                done += 1
                progress("benchmarks", done, total)
    except KeyboardInterrupt as error:
        return type(error).__name__
    return ""


def _again(sides: list[_Side], number: int, wanted: int, options: Options) -> frozenset[str]:
    """Rows for one more process. Fewer than a verdict needs were not meant for one, and a machine that was hardly ever
    undisturbed will not be now."""
    if sides[0].suite.processes < LEAST_PROCESSES:
        return frozenset()
    met = [p for side in sides for row in side.rows.values() for p in row.processes]
    calm = len(undisturbed(met, usual_state(met)))
    left = _disturbed(sides, wanted)
    if left and calm <= HOPELESS * len(met):
        options.tell(
            f"the machine was disturbed: {calm} of {len(met)} measurements count: try again when nothing else runs"
        )
        return frozenset()
    if left:
        options.tell(f"the machine was disturbed: measuring {len(left)} rows again, in process {number + 1}")
    return left


def _turned(todo: Rows, number: int, only: frozenset[str] | None) -> Rows:
    """Each process begins at another row, so that none is always the first."""
    place = number * max(1, len(todo) // 3) % len(todo)
    return tuple(row for row in todo[place:] + todo[:place] if only is None or key_of(row) in only)


def _side_by_side(sides: list[_Side], todo: list[Rows], number: int, options: Options) -> Iterator[BenchRow]:
    """One process of each side, both alive, one at work: A B B A within every row, and B first in every other pair."""
    order = list(dict.fromkeys(key_of(row) for rows in todo for row in rows))
    with ExitStack() as stack:
        workers = [
            Worker(_order(side, options, len(sides)), rows, number) for side, rows in zip(sides, todo, strict=True)
        ]
        for worker in workers:
            stack.callback(worker.close)
        both = list(zip(sides, workers, strict=True))
        first = number % 2
        for side, worker in both:
            yield from _kept(side, worker)
        while any(worker.waits for worker in workers):
            at = min((w.waits for w in workers if w.waits), key=order.index)
            for side, worker in (both, both[::-1])[first % 2]:
                if worker.waits == at:
                    yield from _kept(side, worker)
            first += 1


def _kept(side: _Side, worker: Worker) -> Iterator[BenchRow]:
    for row in worker.go():
        found = _weighed(row, side.suite)
        side.rows[row.benchmark.key] = _joined(side.rows.get(row.benchmark.key), found)
        yield found
    side.facts = worker.facts or side.facts


def _order(side: _Side, options: Options, sides: int) -> Order:
    suite = side.suite
    return Order(
        folder=suite.folder,
        device=options.device,
        seconds=suite.time_s / suite.processes,
        turns=OF_TWO if sides > 1 else TURNS,
        on=options.on,
        imports=side.imports,
    )


def _disturbed(sides: list[_Side], wanted: int) -> frozenset[str]:
    """Rows that fewer processes than are wanted met in the machine's usual state; of two sides, fewer pairs of them."""
    usual = usual_state(p for side in sides for row in side.rows.values() for p in row.processes)
    found: dict[str, set[int]] = {}
    for side in sides:
        for key, row in side.rows.items():
            calm = {p.process for p in undisturbed(row.processes, usual)}
            found[key] = found[key] & calm if key in found else calm
    failed = {key for side in sides for key, row in side.rows.items() if row.status != OK}
    return frozenset(key for key, calm in found.items() if len(calm) < wanted and key not in failed)


def _weighed(row: BenchRow, suite: Suite) -> BenchRow:
    """A threshold that a row does not set is the suite's."""
    threshold = row.benchmark.threshold or suite.threshold
    return replace(row, benchmark=replace(row.benchmark, threshold=threshold))


def _joined(before: BenchRow | None, row: BenchRow) -> BenchRow:
    """The first process has counted; what failed once has failed."""
    if before is None:
        return row
    if before.status == OK and row.status != OK:
        return replace(before, status=row.status, reason=row.reason)
    return replace(before, processes=(*before.processes, *row.processes))


def _run_of(side: _Side, options: Options, session: str | None, stopped_by: str) -> BenchRun:
    suite, machine = side.suite, side.facts.get("machine", {})
    name = identity().cpu_model or "unknown"
    device_name = str(machine.get("device_name", name))
    return BenchRun(
        date=now(),
        suite=suite.name,
        tool="rooflens",
        machine=BenchMachine(
            fingerprint=fingerprint(identity(), (device_name,) if options.device == "cuda" else ()),
            name=name,
            device=options.device,
            device_name=device_name,
            threads=machine.get("threads"),
            system=" ".join(os.uname()[i] for i in (0, 2, 4)),
        ),
        versions=(("rooflens", __version__), *side.facts.get("versions", {}).items()),
        rows=tuple(side.rows.get(key_of((t, p))) or _not_run(t, p) for t, p in side.todo),
        revision=side.revision,
        settings=(("time_s", suite.time_s), ("processes", suite.processes), ("on", options.on)),
        session=session,
        note=options.note,
        stopped_by=stopped_by,
    )


def _not_run(case: Case, pass_: str) -> BenchRow:
    benchmark = Benchmark(name=case.name, pass_=pass_, source=case.source, threshold=case.threshold)
    return BenchRow(benchmark=benchmark, status=NOT_RUN, reason="the run ended before it")
