"""8 writers add 1,000 small runs each, one a transaction, while 2 readers read: at least 500 transactions a second, and none
lost. Beside it the same load into a plain SQLite table of (id, document) with the same pragmas, whose rows were made before:
what is between the two is what a run's JSON, checksum, id and index cost. Real processes; the disk is that of `--folder`."""

import argparse
import multiprocessing as mp
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

from timing import table

from rooflens.benches.bench_run import BenchMachine, Benchmark, BenchRow, BenchRun, ProcessTimes
from rooflens.benches.bench_stored import stored
from rooflens.benches.sampling import Samples
from rooflens.store.records import packed
from rooflens.store.store import open_store

WRITERS, READERS, EACH, ROUNDS = 8, 2, 1_000, 3
TARGET = 500.0
MACHINE = BenchMachine(fingerprint="f", name="a machine", device="cpu", device_name="a CPU", threads=2)


def small_run(writer: int, place: int) -> BenchRun:
    """One row, five processes of five samples."""
    times = tuple(1e-3 + writer * 1e-5 + place * 1e-8 + n * 1e-10 for n in range(25))
    processes = tuple(ProcessTimes(process=p, samples=Samples(times_s=times[5 * p : 5 * p + 5])) for p in range(5))
    row = BenchRow(benchmark=Benchmark(name="conv", pass_="forward", source="1x2 | relu"), processes=processes)
    date = f"2026-01-02T{place // 3600:02d}:{place // 60 % 60:02d}:{place % 60:02d}+00:00"
    return BenchRun(date=date, suite="s", tool="rooflens", machine=MACHINE, versions=(("python", "3"),), rows=(row,))


# ours


def write_store(path: str, writer: int, each: int, ready: Barrier) -> None:
    runs = [small_run(writer, place) for place in range(each)]
    with open_store(path, write=True) as store:
        ready.wait()
        for run in runs:
            store.add(run)
        ready.wait()


def read_store(path: str, stop: Event) -> None:
    while not stop.is_set():
        with open_store(path, write=False) as store:
            found = store.summaries(limit=20)
            if found:
                store.run(found[0].id)


def make_store(path: str) -> None:
    with open_store(path, write=True):
        pass


def count_store(path: str) -> int:
    with open_store(path, write=False) as store:
        return len({run.id for run in store.runs()})


# a plain table


def plain(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def write_plain(path: str, writer: int, each: int, ready: Barrier) -> None:
    rows = [(r.id, packed(stored(r))) for r in (small_run(writer, place) for place in range(each))]
    with closing(plain(path)) as connection:
        ready.wait()
        for row in rows:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO runs (id, document) VALUES (?, ?)", row)
            connection.execute("COMMIT")
        ready.wait()


def read_plain(path: str, stop: Event) -> None:
    while not stop.is_set():
        with closing(plain(path)) as connection:
            found = connection.execute("SELECT id FROM runs ORDER BY number DESC LIMIT 20").fetchall()
            if found:
                connection.execute("SELECT document FROM runs WHERE id = ?", found[0]).fetchone()


def make_plain(path: str) -> None:
    with closing(plain(path)) as connection:
        connection.execute(
            "CREATE TABLE runs (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, document BLOB NOT NULL)"
        )


def count_plain(path: str) -> int:
    with closing(plain(path)) as connection:
        return int(connection.execute("SELECT count(DISTINCT id) FROM runs").fetchone()[0])


CASES: dict[str, tuple[Callable[..., None], Callable[..., None], Callable[..., None], Callable[[str], int]]] = {
    "rooflens store": (make_store, write_store, read_store, count_store),
    "plain table": (make_plain, write_plain, read_plain, count_plain),
}


def measured(name: str, folder: str, each: int) -> tuple[float, int]:
    """Transactions per second, from when all writers stand ready to when the last has done, and how many were lost."""
    make, write, read, count = CASES[name]
    start = mp.get_context("spawn")
    ready, stop = start.Barrier(WRITERS + 1), start.Event()
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = str(Path(made) / "bench.db")
        make(path)
        readers = [start.Process(target=read, args=(path, stop)) for _ in range(READERS)]
        writers = [start.Process(target=write, args=(path, w, each, ready)) for w in range(WRITERS)]
        for process in (*readers, *writers):
            process.start()
        ready.wait()
        begun = time.perf_counter()
        ready.wait()
        elapsed = time.perf_counter() - begun
        stop.set()
        if any(list(ended((*readers, *writers)))):
            raise SystemExit(f"{name}: a process failed")
        return WRITERS * each / elapsed, WRITERS * each - count(path)


def ended(processes: tuple[mp.process.BaseProcess, ...]) -> Iterator[int | None]:
    for process in processes:
        process.join()
        yield process.exitcode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=".", help="whose disk to write to")
    parser.add_argument("--each", type=int, default=EACH, help="runs a writer adds")
    given = parser.parse_args()
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in CASES}
    for _ in range(ROUNDS):
        for name in CASES:
            found[name].append(measured(name, given.folder, given.each))
    rates = {name: statistics.median(rate for rate, _ in rounds) for name, rounds in found.items()}
    rows = [
        [
            name,
            f"{rates[name]:,.0f}",
            f"{min(r for r, _ in rounds):,.0f} to {max(r for r, _ in rounds):,.0f}",
            f"{sum(lost for _, lost in rounds)} of {ROUNDS * WRITERS * given.each:,}",
        ]
        for name, rounds in found.items()
    ]
    ours = rates["rooflens store"]
    title = f"{WRITERS} writers x {given.each:,} runs, {READERS} readers, synchronous = FULL, SQLite {sqlite3.sqlite_version}"
    table(title, ("", "transactions/s", "range", "lost"), rows)
    print(f"\nstore / plain table: {ours / rates['plain table']:.2f}")
    print(f"target {TARGET:.0f} transactions/s: {'ok' if ours >= TARGET else 'missed'}")


if __name__ == "__main__":
    main()
