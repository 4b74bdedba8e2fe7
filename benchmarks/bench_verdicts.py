"""How often verdicts are wrong: comparisons of real processes that run the same, under several rules, and changes put in.

Measures the default suite against itself, in 30 pairs of processes that take turns, as `bench compare --checkout` does
(`--pairs`, `--time` of a row in each process), or reads what was measured before (`--saved`). Of these processes, and nothing
else:

- A/A: a run of five consecutive processes of one side, and one of the other side at another time, drawn at random 200 times;
  rows that the machine disturbed go on with the processes that follow, up to ten, as `bench run` does. Nothing differs between
  both but the time of day, so that every `faster` or `slower` is a false alarm.
- Rules to hold it against, on the same draws: a threshold of 5 % on the medians of one process of either side; Mann-Whitney
  at 1 % on the samples of one process of either side; our rule without what is known of the machine.
- Interleaved: five pairs, drawn at random 200 times, and likewise up to ten where the machine was disturbed; the times of one
  side are multiplied by 1.06 or 1.10. What is not found is missed; what is called `same` is wrong.

`--load` keeps other processes busy at random meanwhile, as on a machine that others use too.

    python benchmarks/bench_verdicts.py                  # about ten minutes
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
from rooflens.benching import Options, bench_pair
from rooflens.compare.states import processes_of, undisturbed, usual_state
from rooflens.compare.verdicts import FASTER, SAME, SLOWER, compared

SIDE = 5
MOST = 10  # of processes, where the machine is disturbed
DRAWS = 200
THRESHOLD = 0.05


def main() -> None:
    args = _arguments()
    base, new = _saved(args.saved) if args.saved else _taken(args)
    if args.keep:
        Path(args.keep).write_text(json.dumps([stored(base), stored(new)]), "utf-8")
    whole = {
        k for k in (r.benchmark.key for r in base.rows) if all(_processes(run, k) == args.pairs for run in (base, new))
    }
    base, new = (replace(run, rows=tuple(r for r in run.rows if r.benchmark.key in whole)) for run in (base, new))
    told = f"2 x {args.pairs} processes of {len(base.rows)} rows, {base.machine.name}, {base.machine.threads} threads"
    print(f"{told}, {', '.join(f'{n} {v}' for n, v in base.versions)}{', loaded' if args.load else ''}")
    print(f"spread of processes (quartiles, median row): {statistics.median(map(_spread, base.rows)):.2%}")
    usual = usual_state(processes_of(base, new))
    met = [p for run in (base, new) for row in run.rows for p in row.processes]
    print(f"processes that met the machine in its usual state: {len(undisturbed(met, usual)) / len(met):.0%}")
    print()
    print(f"{'A/A, ' + str(DRAWS) + ' comparisons':<58} {'rows wrong':>10} {'runs wrong':>10}")
    for name, wrong in _false_alarms(base, new):
        rows = [w for draw in wrong for w in draw]
        print(f"{name:<58} {statistics.mean(rows):>10.2%} {statistics.mean(map(any, wrong)):>10.2%}")
    print()
    print(f"{'interleaved, ' + str(DRAWS) + ' comparisons':<44} {'slower':>8} {'of calm':>8} {'faster':>8} {'same':>8}")
    for factor in (1.0, 1.06, 1.10):
        print(f"{f'{factor - 1:+.0%} put in':<44} " + " ".join(f"{s:>8.2%}" for s in _interleaved(base, new, factor)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--time", type=float, default=0.06, help="seconds of a row in each process")
    parser.add_argument("--suite", default="default")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--saved", help="what was kept before, instead of a new measurement")
    parser.add_argument("--keep", help="where to keep what was measured")
    parser.add_argument("--load", action="store_true", help="others keep the machine busy meanwhile")
    return parser.parse_args()


def _saved(path: str) -> tuple[BenchRun, BenchRun]:
    base, new = map(restored, json.loads(Path(path).read_text("utf-8")))
    return base, new


def _processes(run: BenchRun, key: str) -> int:
    row = run.row(key)
    return 0 if row is None else len(row.processes)


def _taken(args: argparse.Namespace) -> tuple[BenchRun, BenchRun]:
    """No row is measured again: what the machine disturbed is left in."""
    suite = suite_of((args.suite,), Path())
    suite = replace(suite, processes=args.pairs, time_s=args.time * args.pairs)
    with _others() if args.load else _nobody():
        return bench_pair(suite, suite, Options(device=args.device), lambda what, done, of: None, again=False)


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


def _false_alarms(base: BenchRun, new: BenchRun) -> Iterator[tuple[str, list[list[bool]]]]:
    rules: list[tuple[str, Callable[[BenchRun, BenchRun], list[bool]]]] = [
        ("threshold of 5 % on one process of either side", _one_process),
        ("Mann-Whitney at 1 % on samples of one process each", _mann_whitney),
        ("five against five processes, whatever the machine did", lambda a, b: _ours(_blind(a), _blind(b))),
        ("five against five undisturbed processes (rooflens)", _ours),
    ]
    for name, rule in rules:
        draw = random.Random(1)
        yield name, [rule(*_two_windows(base, new, draw)) for _ in range(DRAWS)]


def _two_windows(base: BenchRun, new: BenchRun, draw: random.Random) -> tuple[BenchRun, BenchRun]:
    """Far enough apart that neither reaches into the other."""
    first = draw.randint(0, base.processes - 2 * MOST)
    second = draw.randint(first + MOST, base.processes - MOST)
    a, b = (range(n, n + MOST) for n in draw.sample((first, second), 2))
    return _part(base, a, (base,)), _part(new, b, (new,))


def _part(
    run: BenchRun, numbers: Sequence[int], both: tuple[BenchRun, ...], factor: float = 1.0, session: str | None = None
) -> BenchRun:
    """The first five of those processes, and as many more of a row as it takes until five are calm, in both at once."""
    met = [r.processes[n] for of in both for r in of.rows for n in numbers[:SIDE]]
    usual = usual_state(met)
    rows = (_of_row(r, numbers, _length(r.benchmark.key, numbers, both, usual), factor) for r in run.rows)
    return replace(run, rows=tuple(rows), session=session)


def _length(key: str, numbers: Sequence[int], both: tuple[BenchRun, ...], usual: tuple[float, ...]) -> int:
    rows = [row for of in both if (row := of.row(key)) is not None]
    calm = [{p.process for p in undisturbed(row.processes, usual)} for row in rows]
    for length in range(SIDE, MOST):
        if sum(all(n in of for of in calm) for n in numbers[:length]) >= SIDE:
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


def _interleaved(base: BenchRun, new: BenchRun, factor: float) -> tuple[float, float, float, float]:
    """The shares of rows that are called slower, slower of those that enough calm pairs measured, faster, and same."""
    draw = random.Random(2)
    said: list[str] = []
    calm: list[bool] = []
    for _ in range(DRAWS):
        numbers = draw.sample(range(base.processes), MOST)
        a = _part(base, numbers, (base, new), session="s")
        verdicts = compared(a, _part(new, numbers, (base, new), factor, "s")).verdicts
        said += [v.verdict for v in verdicts]
        calm += [v.verdict == SLOWER for v in verdicts if v.low is not None]
    slower, faster, same = (statistics.mean(v == verdict for v in said) for verdict in (SLOWER, FASTER, SAME))
    return slower, statistics.mean(calm) if calm else 0.0, faster, same


def _spread(row: BenchRow) -> float:
    low, _, high = statistics.quantiles(row.times_s, n=4)
    return (high - low) / 2 / statistics.median(row.times_s)


if __name__ == "__main__":
    main()
