"""One process of a benchmark run: a job as a line of JSON on standard input, a line of JSON a row on standard output.

Before each stretch of measuring it says that it is ready, and waits for a line: others may be at work until then.

A process of its own, because that is what a verdict counts: memory lies elsewhere in each, and what differs between two of
them differs between any two runs. What the user's code prints goes to standard error.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TextIO

import torch

from rooflens.bench_counts import counted
from rooflens.benches.bench_run import FAILED, NO_ANSWER, NO_MEMORY, Benchmark, BenchRow, ProcessTimes
from rooflens.benches.bench_stored import stored_row
from rooflens.benches.bench_subject import NoGradient, Ready, code_hash, ready, shape_of, subject_of
from rooflens.benches.device import Device, device_of, switches
from rooflens.benches.host import host_facts, one_cpu_per_core
from rooflens.benches.isolated import described, is_out_of_memory
from rooflens.benches.measure import device_name, versions
from rooflens.benches.others import Watch
from rooflens.benches.pinning import pinned
from rooflens.benches.reference import Reference, Seconds, drift
from rooflens.benches.sampling import Budget, Raw, collector_off, judged, taken
from rooflens.benches.suite import Case
from rooflens.errors import RooflensError
from rooflens.frontends.pytorch.load import prints_aside

SHORTEST_S = 0.002
LEAST_SAMPLES = 6
_ODD = 1009 * 17  # numbers of a tensor that only takes room, so that what comes after it lies elsewhere
SETTLE_S = 0.005  # threads of whoever was at work before still spin for a while
MOST_SAMPLES = 200  # of longer runs each sample is longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`cases`, each with a pass, in the order they run, each in so many `turns`. `counting`: this process also says what a row
    allocates, launches and has to do; `on` names the chip whose roof is asked."""

    cases: tuple[tuple[Case, str], ...]
    folder: str
    device: str
    seconds: float
    turns: int
    process: int
    counting: bool
    on: str | None

    @staticmethod
    def of(text: str) -> "Job":
        found = json.loads(text)
        cases = tuple((Case(**{**t, "passes": tuple(t["passes"])}), p) for t, p in found.pop("cases"))
        return Job(cases=cases, **found)


def main() -> None:
    """A parent that has gone away ends it, with nobody to tell."""
    job = Job.of(sys.stdin.readline())
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.filterwarnings("ignore", module="torch")  # of captures that it gives up, and of what it has set up late
    with suppress(BrokenPipeError, KeyboardInterrupt), prints_aside():
        for line in told(job, lambda key: _turn(lines, key)):
            _say(lines, line)
    os._exit(0)  # what user code has started, such as threads that never end, is not waited for


def _say(lines: TextIO, line: dict[str, Any]) -> None:
    lines.write(json.dumps(line, allow_nan=False) + "\n")
    lines.flush()


def _turn(lines: TextIO, key: str) -> None:
    _say(lines, {"ready": key})
    if not sys.stdin.readline():
        raise BrokenPipeError
    time.sleep(SETTLE_S)


Turn = Callable[[str], None]  # waits until the row of that key is its own


def told(job: Job, turn: Turn) -> Iterator[dict[str, Any]]:
    device, facts = device_of(job.device), host_facts()
    cpus = one_cpu_per_core(facts)
    yield {
        "machine": {"device": device.name, "device_name": device_name(device), "threads": facts.threads},
        "versions": dict(versions()),
    }
    with pinned(cpus), switches("fp32", facts.threads):
        reference = Reference(device)
    for case, pass_ in job.cases:
        with pinned(cpus), switches(case.dtype or "fp32", facts.threads):
            yield {"row": stored_row(_row(job, case, pass_, device, reference, turn))}


def _row(job: Job, case: Case, pass_: str, device: Device, reference: Reference, turn: Turn) -> BenchRow:
    """What user code and kernels may raise is this row's alone."""
    row = BenchRow(benchmark=Benchmark(name=case.name, pass_=pass_, source=case.source, threshold=case.threshold))
    try:
        row = replace(row, benchmark=replace(row.benchmark, code_hash=code_hash(case, Path(job.folder))))
        return _measured(row, job, case, device, reference, turn)
    except NoGradient as error:
        return replace(row, status=NO_ANSWER, reason=f"no gradient: {error}")
    except (Exception, SystemExit) as error:
        reason = str(error) if isinstance(error, RooflensError) else described(error)
        return replace(row, status=NO_MEMORY if is_out_of_memory(error) else FAILED, reason=reason)
    finally:
        device.release()


def _measured(row: BenchRow, job: Job, case: Case, device: Device, reference: Reference, turn: Turn) -> BenchRow:
    pass_ = row.benchmark.pass_
    made, dtype = subject_of(case, Path(job.folder))
    lacking = device.lacks(made.bytes * (2 if pass_ == "forward" else 3))
    if lacking:
        return replace(row, status=NO_MEMORY, reason=lacking)
    with device.working():  # one stream for all of it: what autograd runs stays on the stream of its forward pass
        make = partial(ready, case, pass_, made, dtype, device.name)
        found = make()
        row = replace(row, benchmark=replace(row.benchmark, shape=shape_of(found.subject, found.outputs())))
        times = _timed(found, make, job, device, reference, partial(turn, row.benchmark.key))
        row = replace(row, processes=(times,))
        return counted(row, case, made, dtype, found, device, job.on) if job.counting else row


def _timed(
    found: Ready, make: Callable[[], Ready], job: Job, device: Device, reference: Reference, turn: Callable[[], None]
) -> ProcessTimes:
    """In turns, each between two looks at the machine, and each in other memory: where tensors lie makes some kernels
    quicker or slower by a tenth. On a GPU what other processes do on the CPU says little."""
    others = Watch(one_cpu_per_core(host_facts()) if device.name == "cpu" else ())
    raw: list[Raw] = []
    warmups: list[float] = []
    looks: list[Seconds] = []
    kept: list[object] = []
    for number in range(job.turns):
        turn()
        with collector_off(), others.watching():
            found = make() if number else found
            kept = [*kept[-1:], found, torch.empty((number + 1) * _ODD)]
            looks.append(reference.seconds())
            reading = device.reading(found.run, _budget(job, job.seconds))
            raw += taken(reading.sample, _budget(job, job.seconds / job.turns))
            looks.append(reference.seconds())
            warmups += reading.warmups_s
    return ProcessTimes(
        process=job.process,
        samples=judged(tuple(raw), tuple(warmups)),
        references_s=tuple(median(part) for part in zip(*looks, strict=True)),
        drift=drift(looks),
        others_share=others.share,
    )


def _budget(job: Job, seconds: float) -> Budget:
    """A sample is as long as the whole row's time asks for, however many turns it is taken in."""
    return Budget(
        total_s=seconds,
        least=max(2, LEAST_SAMPLES // job.turns),
        most=MOST_SAMPLES,
        sample_s=max(SHORTEST_S, job.seconds / MOST_SAMPLES),
    )


if __name__ == "__main__":
    main()
