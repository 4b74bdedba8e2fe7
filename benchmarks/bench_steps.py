"""How often the step detection of `rooflens bench history` is wrong, on series that are made up from a seed: false steps in
noise, outliers and wander, real ones missed or misplaced, drift taken for a step. The table of docs/bench-history.md."""

import math
import random
import time
from collections.abc import Callable, Iterator

from rooflens.compare.steps import levels_of

SERIES = 1000
Draw = Callable[[random.Random], Iterator[float]]  # logarithms


def noise(count: int, share: float, *, outliers: float = 0.0, memory: float = 0.0) -> Draw:
    """`outliers`: so many runs take 10 to 80 % longer. `memory`: how much of a run's deviation the next one keeps."""

    def draw(r: random.Random) -> Iterator[float]:
        kept = 0.0
        for _ in range(count):
            kept = memory * kept + math.sqrt(1 - memory**2) * r.gauss(0, share)
            yield kept + (math.log(r.uniform(1.1, 1.8)) if r.random() < outliers else 0)

    return draw


def step(count: int, at: int, share: float, ratio: float = 1.1) -> Draw:
    return lambda r: (y + (math.log(ratio) if k >= at else 0) for k, y in enumerate(noise(count, share)(r)))


def drift(count: int, share: float, each: float) -> Draw:
    return lambda r: (y + math.log1p(each) * k for k, y in enumerate(noise(count, share)(r)))


CASES: tuple[tuple[str, Draw, int | None], ...] = (
    *((f"{n} runs, noise {100 * s:g} %", noise(n, s), None) for n in (6, 10, 30, 100) for s in (0.02, 0.05, 0.1)),
    ("30 runs, noise 2 %, 5 % of them outliers", noise(30, 0.02, outliers=0.05), None),
    ("30 runs, noise 2 %, 10 % of them outliers", noise(30, 0.02, outliers=0.1), None),
    ("30 runs, noise 3 % that wanders (0.5)", noise(30, 0.03, memory=0.5), None),
    ("30 runs, noise 3 % that wanders (0.8)", noise(30, 0.03, memory=0.8), None),
    ("30 runs, +1 % a run, noise 1 %", drift(30, 0.01, 0.01), None),
    ("+10 % after 15 of 30 runs, noise 2 %", step(30, 15, 0.02), 15),
    ("+10 % after 27 of 30 runs, noise 2 %", step(30, 27, 0.02), 27),
    ("+10 % after 5 of 10 runs, noise 1 %", step(10, 5, 0.01), 5),
    ("+10 % after 5 of 10 runs, noise 2 %", step(10, 5, 0.02), 5),
    ("+7 % after 15 of 30 runs, noise 2 %", step(30, 15, 0.02, 1.07), 15),
)


def judged(draw: Draw, at: int | None) -> list[str]:
    r = random.Random(20260101)
    found = [levels_of([math.exp(y) for y in draw(r)]) for _ in range(SERIES)]
    right = sum(len(f.steps) == 1 and abs(f.steps[0].after - at) <= 1 for f in found) if at is not None else None
    counts = (
        sum(bool(f.steps) for f in found),
        sum(any(s.sure for s in f.steps) for f in found),
        right,
        sum(any(level.drifts for level in f.levels) for f in found),
    )
    return ["" if c is None else f"{c / SERIES:.1%}" for c in counts]


def main() -> None:
    print(
        "| series | with a step | with a sure one | one step, within a run of its place | drift |\n|---|---:|---:|---:|---:|"
    )
    for name, draw, at in CASES:
        print(f"| {name} | {' | '.join(judged(draw, at))} |", flush=True)
    for count in (100, 1000):
        times, start = [math.exp(y) for y in noise(count, 0.02)(random.Random(1))], time.perf_counter()
        levels_of(times)
        print(f"one series of {count} runs: {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
