"""How often verdicts are wrong: A/A comparisons of real processes under several rules, and changes that were put in.

Measures the default suite in at least 40 processes, one after the other (`--processes`, `--time` of a row in each process),
or reads a run that was saved before (`--saved run.json`, as `rooflens bench run --format json` prints it). Then, of these
processes and nothing else:

- A/A: two runs of five consecutive processes each, which do not overlap, drawn at random 200 times; rows that the machine
  disturbed go on with the processes that follow, up to fifteen, as `bench run` does. Nothing differs between both but the
  time of day, so that every `faster` or `slower` is a false alarm.
- Rules to hold it against, on the same draws: a threshold of 5 % on the medians of one process of either side; Mann-Whitney
  at 1 % on the samples of one process of either side.
- Interleaved: five pairs of neighbouring processes, drawn at random, and likewise up to fifteen where the machine was
  disturbed; the times of one side of each (which one alternates, A B B A) are multiplied by 1.06 or 1.10. What is not found
  is missed; what is called `same` is wrong.

`--load` keeps other processes busy at random meanwhile, as on a machine that others use too.

    python benchmarks/bench_verdicts.py                  # about eight minutes
    python benchmarks/bench_verdicts.py --load
"""

import argparse
import json
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rooflens.benches.bench_run import BenchRow, BenchRun, ProcessTimes
from rooflens.benches.bench_stored import restored, stored
from rooflens.benches.suite import suite_of
from rooflens.benching import Options, bench_run
from rooflens.compare.states import undisturbed, usual_state
from rooflens.compare.verdicts import FASTER, SAME, SLOWER, compared

SIDE = 5
MOST = 15  # of processes, where the machine is disturbed
DRAWS = 200
THRESHOLD = 0.05


def main() -> None:
    args = _arguments()
    run = _saved(args.saved) if args.saved else _taken(args)
    if args.keep:
        Path(args.keep).write_text(json.dumps(stored(run)), "utf-8")
    run = replace(run, rows=tuple(r for r in run.rows if len(r.processes) == run.processes))
    told = f"{run.processes} processes of {len(run.rows)} rows, {run.machine.name}, {run.machine.threads} threads"
    print(f"{told}, {', '.join(f'{n} {v}' for n, v in run.versions)}{', loaded' if args.load else ''}")
    print(f"spread of processes (quartiles, median row): {statistics.median(map(_spread, run.rows)):.2%}")
    print()
    print(f"{'A/A, ' + str(DRAWS) + ' comparisons':<58} {'rows wrong':>10} {'runs wrong':>10}")
    for name, wrong in _false_alarms(run):
        rows = [w for draw in wrong for w in draw]
        print(f"{name:<58} {statistics.mean(rows):>10.2%} {statistics.mean(map(any, wrong)):>10.2%}")
    print()
    print(f"{'interleaved, ' + str(DRAWS) + ' comparisons':<58} {'found':>10} {'called same':>11}")
    for factor in (1.0, 1.06, 1.10):
        found, same = _interleaved(run, factor)
        print(f"{f'{factor - 1:+.0%} put in':<58} {found:>10.2%} {same:>11.2%}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=44)
    parser.add_argument("--time", type=float, default=0.08, help="seconds of a row in each process")
    parser.add_argument("--suite", default="default")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--saved", help="a run that was saved before, instead of a new one")
    parser.add_argument("--keep", help="where to save the run")
    parser.add_argument("--load", action="store_true", help="others keep the machine busy meanwhile")
    return parser.parse_args()


def _saved(path: str) -> BenchRun:
    return restored(json.loads(Path(path).read_text("utf-8")))


def _taken(args: argparse.Namespace) -> BenchRun:
    suite = suite_of((args.suite,), Path())
    suite = replace(suite, processes=args.processes, time_s=args.time * args.processes)
    with _others() if args.load else _nobody():
        return bench_run(suite, Options(device=args.device), lambda what, done, of: None)


@contextmanager
def _nobody() -> Iterator[None]:
    yield


@contextmanager
def _others() -> Iterator[None]:
    """Two processes that work and sleep for random times of up to three seconds."""
    busy = [multiprocessing.Process(target=_work_and_sleep, args=(seed,), daemon=True) for seed in range(2)]
    for process in busy:
        process.start()
    try:
        yield
    finally:
        for process in busy:
            process.terminate()
            process.join()


def _work_and_sleep(seed: int) -> None:
    draw = random.Random(seed)
    while True:
        end = time.perf_counter() + draw.uniform(0, 3)
        while time.perf_counter() < end:
            sum(range(10_000))
        time.sleep(draw.uniform(0, 3))


def _false_alarms(run: BenchRun) -> Iterator[tuple[str, list[list[bool]]]]:
    rules: list[tuple[str, Callable[[BenchRun, BenchRun], list[bool]]]] = [
        ("threshold of 5 % on one process of either side", _one_process),
        ("Mann-Whitney at 1 % on samples of one process each", _mann_whitney),
        ("five against five processes, whatever the machine did", lambda a, b: _ours(_blind(a), _blind(b))),
        ("five against five undisturbed processes (rooflens)", _ours),
    ]
    for name, rule in rules:
        draw = random.Random(1)
        yield name, [rule(*_two_windows(run, draw)) for _ in range(DRAWS)]


def _two_windows(run: BenchRun, draw: random.Random) -> tuple[BenchRun, BenchRun]:
    """Far enough apart that neither reaches into the other."""
    first = draw.randint(0, run.processes - 2 * MOST)
    second = draw.randint(first + MOST, run.processes - MOST)
    a, b = (range(n, n + MOST) for n in draw.sample((first, second), 2))
    return _part(run, a, (a,)), _part(run, b, (b,))


def _part(
    run: BenchRun,
    numbers: Sequence[int],
    until: tuple[Sequence[int], ...],
    factor: float = 1.0,
    session: str | None = None,
) -> BenchRun:
    """The first five of those processes, and as many more of a row as it takes until five are calm, in all of `until` at once."""
    usual = usual_state(p for row in run.rows for of in until for n in of[:SIDE] for p in (row.processes[n],))
    rows = tuple(_of_row(row, numbers, _length(row, until, usual), factor) for row in run.rows)
    return replace(run, rows=rows, session=session)


def _length(row: BenchRow, until: tuple[Sequence[int], ...], usual: tuple[float, ...]) -> int:
    """How many processes of the row are taken: of pairs both sides must be calm."""
    calm = {p.process for p in undisturbed(row.processes, usual)}
    for length in range(SIDE, MOST):
        if sum(all(of[i] in calm for of in until) for i in range(length)) >= SIDE:
            return length
    return MOST


def _of_row(row: BenchRow, numbers: Sequence[int], length: int, factor: float) -> BenchRow:
    return replace(row, processes=tuple(_scaled(row, n, place, factor) for place, n in enumerate(numbers[:length])))


def _scaled(row: BenchRow, number: int, place: int, factor: float) -> ProcessTimes:
    found = row.processes[number]
    times = tuple(t * factor for t in found.samples.times_s)
    return replace(found, process=place, samples=replace(found.samples, times_s=times))


def _blind(run: BenchRun) -> BenchRun:
    """The first five processes, without what is known of the machine."""
    bare = (
        replace(
            r, processes=tuple(replace(p, references_s=(), drift=None, others_share=None) for p in r.processes[:SIDE])
        )
        for r in run.rows
    )
    return replace(run, rows=tuple(bare))


def _ours(a: BenchRun, b: BenchRun) -> list[bool]:
    return [v.verdict in (FASTER, SLOWER) for v in compared(a, b).verdicts]


def _one_process(a: BenchRun, b: BenchRun) -> list[bool]:
    pairs = ((x.processes[0].time_s, y.processes[0].time_s) for x, y in zip(a.rows, b.rows, strict=True))
    return [bool(x and y) and not 1 / (1 + THRESHOLD) <= y / x <= 1 + THRESHOLD for x, y in pairs]


def _mann_whitney(a: BenchRun, b: BenchRun) -> list[bool]:
    return [
        _differs(x.processes[0].samples.times_s, y.processes[0].samples.times_s)
        for x, y in zip(a.rows, b.rows, strict=True)
    ]


def _differs(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """The normal approximation of the U test, two-sided at 1 %."""
    ordered = sorted((*((t, 0) for t in a), *((t, 1) for t in b)))
    ranks = sum(place for place, (_, side) in enumerate(ordered, 1) if side == 0)
    u = ranks - len(a) * (len(a) + 1) / 2
    sigma = (len(a) * len(b) * (len(a) + len(b) + 1) / 12) ** 0.5
    return bool(sigma) and abs(u - len(a) * len(b) / 2) / sigma > 2.576


def _interleaved(run: BenchRun, factor: float) -> tuple[float, float]:
    draw, found, same = random.Random(2), [], []
    for _ in range(DRAWS):
        starts = draw.sample(range(0, run.processes - 1, 2), MOST)
        first = [n + i % 2 for i, n in enumerate(starts)]
        second = [n + 1 - i % 2 for i, n in enumerate(starts)]
        a = _part(run, first, (first, second), session="s")
        verdicts = compared(a, _part(run, second, (first, second), factor, "s")).verdicts
        found += [v.verdict == SLOWER for v in verdicts]
        same += [v.verdict == SAME for v in verdicts]
    return statistics.mean(found), statistics.mean(same)


def _spread(row: BenchRow) -> float:
    low, _, high = statistics.quantiles(row.times_s, n=4)
    return (high - low) / 2 / statistics.median(row.times_s)


if __name__ == "__main__":
    main()
