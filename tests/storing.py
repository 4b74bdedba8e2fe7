"""Runs to store, and the processes that the tests of the store start: `python storing.py write|read ...`."""

import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rooflens.benches.bench_run import BenchMachine, Benchmark, BenchRow, BenchRun, ProcessTimes, Revision
from rooflens.benches.sampling import Samples
from rooflens.store.store import open_store

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MACHINE = BenchMachine(fingerprint="f1", name="a machine", device="cpu", device_name="a CPU", threads=2)


def a_run(seed: int, minute: int | None = None, suite: str = "default", samples: int = 5) -> BenchRun:
    """Another one for every seed; `samples` decides how large it is."""
    numbers = random.Random(seed)
    rows = tuple(
        BenchRow(benchmark=Benchmark(name=name, pass_="forward", source="1x2 | relu", code_hash="c"), processes=times)
        for name in ("conv", "pool")
        for times in [tuple(_process(numbers, place, samples) for place in range(2))]
    )
    return BenchRun(
        date=(START + timedelta(minutes=seed if minute is None else minute)).isoformat(timespec="seconds"),
        suite=suite,
        tool="rooflens",
        machine=MACHINE,
        versions=(("python", "3.11"),),
        rows=rows,
        revision=Revision(commit=f"{seed:040x}", dirty=bool(seed % 2)),
    )


def _process(numbers: random.Random, place: int, samples: int) -> ProcessTimes:
    return ProcessTimes(process=place, samples=Samples(times_s=tuple(numbers.random() for _ in range(samples))))


def write(path: str, first: str, count: str, samples: str) -> None:
    """One line for each run once it is acknowledged."""
    with open_store(path, write=True) as store:
        print("open", flush=True)
        for seed in range(int(first), int(first) + int(count)):
            print(store.add(a_run(seed, samples=int(samples))), flush=True)


def leave(path: str, first: str, count: str) -> None:
    """As a process that is killed leaves it: what was written stands in the log beside the file."""
    with open_store(path, write=True) as store:
        for seed in range(int(first), int(first) + int(count)):
            store.add(a_run(seed))
        os._exit(0)


def read(path: str, until: str) -> None:
    """Until so many runs are there: what was there once never goes, and the newest is always whole."""
    seen: set[str] = set()
    while len(seen) < int(until):
        if not Path(path).exists() or not Path(path).stat().st_size:
            continue
        with open_store(path, write=False) as store:
            found = store.summaries()
            now = {s.id for s in found}
            if found and store.run(found[0].id).id != found[0].id:
                sys.exit("the newest run is not the one that was asked for")
        if not seen <= now:
            sys.exit(f"{len(seen - now)} runs have gone")
        seen = now


if __name__ == "__main__":
    {"write": write, "leave": leave, "read": read}[sys.argv[1]](*sys.argv[2:])
