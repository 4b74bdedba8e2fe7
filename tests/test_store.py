"""The store of benchmark runs: nothing acknowledged is lost, nothing half-written is kept, nothing damaged is believed."""

import gzip
import json
import math
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storing import MACHINE, a_run

from rooflens.benches.bench_run import (
    Allocated,
    BenchMachine,
    Benchmark,
    BenchRow,
    BenchRun,
    ProcessTimes,
    Revision,
)
from rooflens.benches.bench_stored import stored
from rooflens.benches.sampling import Samples
from rooflens.errors import FileError, InputError, SchemaError, StoreError
from rooflens.store import schema
from rooflens.store.place import store_to_read, store_to_write
from rooflens.store.records import Taken
from rooflens.store.store import open_store
from rooflens.version import __version__

SOAK = int(os.environ.get("ROOFLENS_SOAK", "10"))  # how often a writer is killed; a tenth of what each of many writes
STORING = str(Path(__file__).parent / "storing.py")
SUITE = "default"


@pytest.fixture(autouse=True)
def no_store_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROOFLENS_STORE", raising=False)


def filled(path: Path, seeds: range = range(3), samples: int = 5) -> tuple[BenchRun, ...]:
    runs = tuple(a_run(seed, samples=samples) for seed in seeds)
    with open_store(path, write=True) as store:
        for run in runs:
            store.add(run)
    return runs


def held(path: Path) -> tuple[BenchRun, ...]:
    with open_store(path, write=False) as store:
        return tuple(store.runs())


def sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def altered(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    try:
        with connection:
            for statement in statements:
                connection.execute(statement)
    finally:
        connection.close()


def refused(done: "subprocess.CompletedProcess[str]", code: str, *words: str) -> None:
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert f"{code}: " in lines[0], lines[0]
    assert all(word in lines[0] for word in words), lines[0]
    assert done.stdout == ""


# what goes in comes out

words = st.text(max_size=12)
counts = st.none() | st.integers(0, 2**70)
seconds = st.floats(0, 1e9, allow_nan=False)
samples = st.builds(
    Samples,
    times_s=st.lists(seconds, max_size=3).map(tuple),
    warmups_s=st.lists(seconds, max_size=2).map(tuple),
    rejected=st.lists(st.tuples(words, seconds | st.just(math.nan)), max_size=2).map(tuple),
    switches=st.integers(0, 9),
)
references = st.lists(seconds, max_size=3).map(tuple)
processes = st.builds(ProcessTimes, process=st.integers(0, 9), samples=samples, references_s=references)
benchmarks = st.builds(
    Benchmark, name=words, pass_=words, source=words, shape=st.none() | words, code_hash=st.none() | words,
    threshold=st.none() | seconds,
)  # fmt: skip
rows = st.builds(
    BenchRow,
    benchmark=benchmarks,
    status=st.sampled_from(["ok", "n/a", "failed", "oom", "not run"]),
    reason=words,
    processes=st.lists(processes, max_size=3).map(tuple),
    allocated=st.builds(
        Allocated, framework_count=counts, framework_bytes=counts, python_count=counts, python_bytes=counts
    ),
    peak_bytes=counts, kernels=counts, flops=counts, bytes=counts, roof_s=st.none() | seconds,
)  # fmt: skip
plain = st.none() | st.booleans() | st.integers() | seconds | words
runs = st.builds(
    BenchRun,
    date=st.datetimes().map(lambda d: f"{d.isoformat()}+00:00"),
    suite=words,
    tool=words,
    machine=st.builds(
        BenchMachine, fingerprint=words, name=words, device=words, device_name=words, threads=counts, system=words
    ),
    versions=st.dictionaries(words, words, max_size=3).map(lambda d: tuple(d.items())),
    rows=st.lists(rows, max_size=3).map(tuple),
    revision=st.none() | st.builds(Revision, commit=words, dirty=st.booleans(), label=words),
    settings=st.dictionaries(words, plain, max_size=3).map(lambda d: tuple(d.items())),
    session=st.none() | words,
    note=st.none() | words,
    stopped_by=words,
)  # fmt: skip


def test_any_run_comes_back_as_it_was(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.db", write=True) as store:

        @given(runs)
        @settings(max_examples=60, deadline=None)
        def comes_back(run: BenchRun) -> None:
            id = store.add(run)
            back = store.run(id)
            assert back.id == id == run.id
            assert stored(back) == stored(run)  # which has no NaN, that differs from itself
            unclean = any(p.samples.rejected for row in run.rows for p in row.processes)
            assert unclean or back == run

        comes_back()


def test_text_that_no_encoding_knows(tmp_path: Path) -> None:
    run = replace(a_run(1), note="half a pair \ud800, a \0 and a \x1b[0m", suite="\udcff")
    with open_store(tmp_path / "a.db", write=True) as store:
        id = store.add(run)
        assert store.run(id) == run
        assert store.id_of("latest", "\udcff") == id
        assert [s.id for s in store.summaries("\udcff")] == [id]


def test_a_run_is_kept_once(tmp_path: Path) -> None:
    run = a_run(1)
    with open_store(tmp_path / "a.db", write=True) as store:
        assert store.add(run) == store.add(run) == run.id
        assert [s.id for s in store.summaries()] == [run.id]


def test_other_tools_can_read_a_run(tmp_path: Path) -> None:
    (run,) = filled(tmp_path / "a.db", range(1))
    connection = sqlite3.connect(tmp_path / "a.db")
    try:
        ((document,),) = connection.execute("SELECT document FROM runs WHERE id = ?", (run.id,)).fetchall()
    finally:
        connection.close()
    assert json.loads(gzip.decompress(document)) == stored(run)


def test_summaries_say_what_the_run_says(tmp_path: Path) -> None:
    first, second = a_run(1), replace(a_run(2, suite="other"), revision=None, note="fused")
    with open_store(tmp_path / "a.db", write=True) as store:
        store.add(first)
        store.add(second)
        store.set_baseline("before", first.id)
        store.set_baseline("after.1", first.id)
        newest, oldest = store.summaries()
        assert store.summaries("other") == store.summaries(limit=1) == (newest,)
    assert (newest.id, newest.suite, newest.note, newest.commit, newest.dirty) == (
        second.id, "other", "fused", None, None,
    )  # fmt: skip
    assert oldest.baselines == ("after.1", "before")
    assert (oldest.commit, oldest.dirty) == (f"{1:040x}", True)
    assert (oldest.rows, oldest.processes, oldest.tool) == (2, 2, "rooflens")
    assert (oldest.machine, oldest.fingerprint, oldest.date) == (MACHINE.name, MACHINE.fingerprint, first.date)


@pytest.mark.parametrize("date", ["yesterday", "", "2026-13-01"])
def test_a_run_without_a_date_is_refused(tmp_path: Path, date: str) -> None:
    with open_store(tmp_path / "a.db", write=True) as store:
        with pytest.raises(StoreError, match="ISO 8601"):
            store.add(replace(a_run(1), date=date))
        assert store.summaries() == ()


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_a_number_that_is_none_is_refused(tmp_path: Path, number: float) -> None:
    with open_store(tmp_path / "a.db", write=True) as store:
        with pytest.raises(StoreError, match="not finite"):
            store.add(replace(a_run(1), settings=(("time_s", number),)))
        assert store.summaries() == ()


# which run is meant


def test_a_store_without_a_run_says_how_to_add_one(cli, tmp_path: Path) -> None:
    filled(tmp_path / "a.db", range(0))
    refused(cli("bench", "baseline", "set", "x", "--store", "a.db"), "E_INPUT", "no run 'latest'", "rooflens bench run")


def test_latest_goes_by_the_date_and_then_by_insertion(tmp_path: Path) -> None:
    dates = [
        "2026-01-02T12:00:00+00:00", "2026-01-02T12:00:00Z", "2026-01-02T12:30:00+02:00", "2026-01-02T12:00:00.5",
        "2025-12-31T23:59:59-11:00",
    ]  # fmt: skip
    ids = []
    with open_store(tmp_path / "a.db", write=True) as store:
        for seed, date in enumerate(dates):
            ids.append(store.add(replace(a_run(seed), date=date)))
        # 10:30 UTC is before noon; 2025-12-31 at 23:59:59 is 10:59:59 UTC of the next day, a day before the others
        newest_first = [ids[3], ids[1], ids[0], ids[2], ids[4]]
        assert [store.id_of(f"latest~{n}") for n in range(5)] == newest_first
        assert [s.id for s in store.summaries()] == newest_first
        assert [r.id for r in store.runs()] == newest_first[::-1]
        assert (store.id_of("latest"), store.id_of("previous")) == (ids[3], ids[1])


def test_references_within_a_suite(tmp_path: Path) -> None:
    ours = [a_run(seed, suite="ours") for seed in (1, 3)]
    theirs = [a_run(seed, suite="theirs") for seed in (2, 4)]
    with open_store(tmp_path / "a.db", write=True) as store:
        for run in (*ours, *theirs):
            store.add(run)
        assert store.find("latest", "ours") == ours[1]
        assert store.find("previous", "ours") == ours[0]
        assert store.find("latest") == theirs[1]
        assert list(store.runs("ours")) == ours
        assert store.find(theirs[0].id, "ours") == theirs[0]  # an id says which run, whatever its suite
        with pytest.raises(InputError, match=r"no run 'latest~2' of suite 'ours'.*" + ours[1].id):
            store.find("latest~2", "ours")
        with pytest.raises(InputError, match="of suite 'nobody'"):
            store.find("latest", "nobody")


def test_ids_and_their_beginnings(tmp_path: Path) -> None:
    """Two ids that begin alike are made by trying: of 2,000 runs with four hex digits some do."""
    seen: dict[str, BenchRun] = {}
    one = a_run(0)
    for number in range(2000):
        run = replace(one, note=str(number))
        other = seen.setdefault(run.id[:4], run)
        if other is not run:
            break
    with open_store(tmp_path / "a.db", write=True) as store:
        store.add(other)
        store.add(run)
        assert store.find(run.id) == run
        apart = next(n for n, (a, b) in enumerate(zip(run.id, other.id, strict=True)) if a != b)
        assert store.find(run.id[: apart + 1]) == run
        with pytest.raises(InputError, match=f"2 runs begin with '{run.id[:4]}'.*{run.id}.*give more"):
            store.find(run.id[:4])
        for unknown in (run.id[:3], "0" * 12, "nonsense", "", "latest~", "latest~-1", "previous~1", "%", "*" * 4):
            with pytest.raises(InputError, match=f"runs: .*{run.id}"):
                store.find(unknown)


@pytest.mark.parametrize(
    "name",
    ["latest", "previous", "latest~2", "cafe", "0123456789ab", "2024", "", "a b", "a/b", "-x", "é", "a\n", "x" * 101],
)
def test_names_that_no_baseline_may_have(tmp_path: Path, name: str) -> None:
    (run,) = filled(tmp_path / "a.db", range(1))
    with open_store(tmp_path / "a.db", write=True) as store:
        with pytest.raises(InputError, match="baseline"):
            store.set_baseline(name, run.id)
        assert store.baselines() == ()


def test_baselines_are_set_moved_and_removed(tmp_path: Path) -> None:
    first, second, _ = filled(tmp_path / "a.db")
    with open_store(tmp_path / "a.db", write=True) as store:
        assert store.set_baseline("before", first.id) is None
        assert store.set_baseline("v1.0_a-b", first.id) is None
        assert store.set_baseline("before", second.id) == first.id
        assert [(b.name, b.run, b.date, b.suite) for b in store.baselines()] == [
            ("before", second.id, second.date, SUITE), ("v1.0_a-b", first.id, first.date, SUITE),
        ]  # fmt: skip
        assert store.find("before") == second
        with pytest.raises(InputError, match=r"no run 'ffffffffffff'.*before"):
            store.set_baseline("x", "ffffffffffff")
        with pytest.raises(InputError, match=r"no baseline 'befor'.*before, v1.0_a-b"):
            store.remove_baseline("befor")
        assert store.remove_baseline("before") == second.id
        assert [b.name for b in store.baselines()] == ["v1.0_a-b"]
        assert store.run(second.id) == second


# merging


def test_merge_adds_what_is_not_there(tmp_path: Path) -> None:
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    ours, theirs = filled(here, range(4)), filled(there, range(2, 7))
    with open_store(here, write=True) as a, open_store(there, write=True) as b:
        a.set_baseline("same", ours[2].id)
        b.set_baseline("same", ours[2].id)
        a.set_baseline("taken", ours[0].id)
        b.set_baseline("taken", theirs[4].id)
        b.set_baseline("free", theirs[3].id)
    before = there.read_bytes()
    with open_store(here, write=True) as store:
        merged = store.merge(there)
        assert (merged.added, merged.already, merged.baselines) == (3, 2, ("free",))
        assert merged.taken == (Taken(name="taken", here=ours[0].id, there=theirs[4].id),)
        assert store.find("taken") == ours[0]
        assert store.find("free") == theirs[3]
        assert set(store.runs()) == {*ours, *theirs}
        again = store.merge(there)
        assert (again.added, again.already, again.baselines) == (0, 5, ())
        itself = store.merge(here)
        assert (itself.added, itself.already) == (0, 7)
    assert there.read_bytes() == before


def test_merge_takes_all_of_a_store_or_nothing(tmp_path: Path) -> None:
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    ours, theirs = filled(here, range(1)), filled(there, range(1, 4))
    altered(there, f"UPDATE runs SET document = x'00' WHERE id = '{theirs[2].id}'")
    with open_store(here, write=True) as store:
        with pytest.raises(StoreError, match=rf"there\.db.*{theirs[2].id}.*there\.db\.corrupt-1"):
            store.merge(there)
        assert tuple(store.runs()) == ours


def test_verbs_of_baselines_and_merge(cli, tmp_path: Path) -> None:
    first, second = filled(tmp_path / "a.db", range(2))
    store = ("--store", "a.db", "--format", "json")
    assert cli("bench", "baseline", "set", "before", "previous", *store).returncode == 0
    done = cli("bench", "baseline", "set", "after", *store)
    assert json.loads(done.stdout) == {
        "schema": "rooflens.bench/1",
        "kind": "baselines",
        "rooflens_version": __version__,
        "store": "a.db",
        "baselines": [
            {"name": "after", "run": second.id, "date": second.date, "suite": SUITE},
            {"name": "before", "run": first.id, "date": first.date, "suite": SUITE},
        ],
    }
    filled(tmp_path / "b.db", range(1, 4))
    with open_store(tmp_path / "b.db", write=True) as other:
        other.set_baseline("after", other.id_of("latest"))
    merged = cli("bench", "merge", "b.db", "--format", "json")  # into a store that is made for it
    (row,) = json.loads(merged.stdout)["stores"]
    assert row == {"store": "b.db", "added": 3, "already": 0, "baselines": ["after"], "taken": []}
    assert len(held(tmp_path / ".rooflens" / "bench.db")) == 3
    merged = cli("bench", "merge", "b.db", *store)
    (row,) = json.loads(merged.stdout)["stores"]
    third = a_run(3)
    assert (row["added"], row["already"], row["baselines"]) == (2, 1, [])
    assert row["taken"] == [{"name": "after", "here": second.id, "there": third.id}]
    assert len(merged.stderr.splitlines()) == 1
    assert all(word in merged.stderr for word in ("after", second.id, third.id))
    removed = cli("bench", "baseline", "remove", "after", *store)
    assert [b["name"] for b in json.loads(removed.stdout)["baselines"]] == ["before"]
    shown = cli("bench", "baseline", "list", "--store", "a.db")
    assert first.id in shown.stdout
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80
    lines = cli("bench", "baseline", "list", "--store", "a.db", "--format", "csv").stdout.splitlines()
    assert lines == ["name,run,date,suite", f"before,{first.id},{first.date},{SUITE}"]
    lines = cli("bench", "merge", "b.db", "--store", "a.db", "--format", "csv").stdout.splitlines()
    assert lines == ["store,added,already,baselines,taken", "b.db,0,3,after,"]  # the name is free again


# where it is


def test_place_is_the_option_the_variable_the_nearest_or_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    inner = project / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    with pytest.raises(StoreError, match="rooflens bench run"):
        store_to_read(None)
    assert store_to_write(None) == Path(".rooflens/bench.db")
    assert (inner / ".rooflens").is_dir()
    (project / ".rooflens").mkdir()
    filled(project / ".rooflens" / "bench.db", range(1))
    assert store_to_read(None) == store_to_write(None) == project / ".rooflens" / "bench.db"
    filled(inner / ".rooflens" / "bench.db", range(1))
    assert store_to_read(None) == store_to_write(None) == Path(".rooflens/bench.db")
    monkeypatch.setenv("ROOFLENS_STORE", "of-the-variable.db")
    assert store_to_read(None) == store_to_write(None) == Path("of-the-variable.db")
    assert store_to_read("x.db") == store_to_write("x.db") == Path("x.db")


@pytest.mark.parametrize("name", ["with space.db", "what?.db", "50%.db", "a#b.db", "naïve-π.db"])
def test_any_file_name_will_do(cli, tmp_path: Path, name: str) -> None:
    (run,) = filled(tmp_path / name, range(1))
    assert held(tmp_path / name) == (run,)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_link_to_a_store(tmp_path: Path) -> None:
    """What a killed writer leaves stands beside the file that the link names."""
    folder = tmp_path / "far"
    folder.mkdir()
    runs, link = filled(folder / "a.db"), tmp_path / "link.db"
    link.symlink_to(folder / "a.db")
    subprocess.run([sys.executable, STORING, "leave", str(link), "3", "1"], check=True, timeout=60)
    assert (folder / "a.db-wal").stat().st_size
    assert held(link) == (*runs, a_run(3))
    assert link.is_symlink()
    loop = tmp_path / "loop.db"
    loop.symlink_to(loop)
    for write in (False, True):
        with pytest.raises(FileError), open_store(loop, write=write):
            pass


@pytest.mark.parametrize("name", ["a\0b.db", "x" * 300])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    for write in (False, True):
        with pytest.raises(FileError), open_store(tmp_path / name, write=write):
            pass


def test_reading_where_nothing_is(cli, tmp_path: Path) -> None:
    refused(cli("bench", "baseline", "list"), "E_STORE", "rooflens bench run")
    refused(cli("bench", "baseline", "list", "--store", "no.db"), "E_STORE", "no.db", "rooflens bench run")
    refused(cli("bench", "baseline", "list", env={"ROOFLENS_STORE": "of.db"}), "E_STORE", "of.db")
    refused(cli("bench", "merge", "no.db"), "E_STORE", "no.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_where_a_store_should_be_and_none_where_its_folder_should_be(cli, tmp_path: Path) -> None:
    filled(tmp_path / "a.db", range(1))
    refused(cli("bench", "baseline", "list", "--store", "."), "E_FILE", "folder")
    refused(cli("bench", "merge", "a.db", "--store", "."), "E_FILE", "folder")
    refused(cli("bench", "merge", "a.db", "--store", "nowhere/b.db"), "E_FILE", "nowhere", "make it first")
    refused(cli("bench", "merge", "a.db", "--store", "a.db/b.db"), "E_FILE", "a.db")
    refused(cli("bench", "baseline", "list", "--store", ""), "E_FILE", "--store")
    (tmp_path / ".rooflens").write_text("no folder")
    refused(cli("bench", "merge", "a.db"), "E_FILE", ".rooflens")
    os.mkfifo(tmp_path / "pipe")
    refused(cli("bench", "baseline", "list", "--store", "pipe"), "E_FILE", "pipe")


# older and newer

VERSION_1 = (
    "CREATE TABLE runs (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at_us INTEGER NOT NULL, "
    "date TEXT NOT NULL, suite TEXT NOT NULL, tool TEXT NOT NULL, row_count INTEGER NOT NULL, "
    "process_count INTEGER NOT NULL, commit_id TEXT, dirty INTEGER, machine TEXT NOT NULL, fingerprint TEXT NOT NULL, "
    "note TEXT, document BLOB NOT NULL)",
    "CREATE INDEX runs_listed ON runs (at_us, number, id, date, suite, tool, row_count, process_count, commit_id, dirty, "
    "machine, fingerprint, note)",
    f"PRAGMA application_id = {0x72666C62}",
    "PRAGMA user_version = 1",
)


def version_1(path: Path, run: BenchRun) -> None:
    altered(path, *VERSION_1)
    connection = sqlite3.connect(path)
    values = (
        run.id, 0, run.date, run.suite, run.tool, 2, 2, None, None, run.machine.name, run.machine.fingerprint, None,
        gzip.compress(json.dumps(stored(run)).encode()),
    )  # fmt: skip
    try:
        with connection:
            connection.execute(f"INSERT INTO runs VALUES (1, {', '.join('?' * len(values))})", values)
    finally:
        connection.close()


def number_in(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[60:64])  # where the file format has user_version


def test_an_older_store_is_read_as_it_is_and_migrated_when_written(tmp_path: Path) -> None:
    path, run, new = tmp_path / "old.db", a_run(1), a_run(2)
    version_1(path, run)
    before = path.read_bytes()
    with open_store(path, write=False) as store:
        assert store.find("latest") == run
        assert store.baselines() == ()
    assert path.read_bytes() == before
    with open_store(path, write=True) as store:
        store.add(new)
        store.set_baseline("before", run.id)
    assert number_in(path) == schema.SCHEMA
    assert held(path) == (run, new)
    with open_store(path, write=False) as store:
        assert store.find("before") == run


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, run = tmp_path / "old.db", a_run(1)
    version_1(path, run)
    broken = schema.Migration(number=3, what="broken", statements=("CREATE TABLE x (y)", "CREATE TABLE runs (y)"))
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
        patched.setattr(schema, "SCHEMA", 3)
        with pytest.raises(StoreError), open_store(path, write=True):
            pass
    assert number_in(path) == 1
    assert held(path) == (run,)


def test_every_migration_has_the_next_number_and_is_documented() -> None:
    assert [m.number for m in schema.MIGRATIONS] == list(range(1, schema.SCHEMA + 1))
    text = " ".join((Path(__file__).parent.parent / "docs" / "bench-store.md").read_text().split())
    steps = "; ".join(f"{m.number}: {m.what}" for m in schema.MIGRATIONS)
    assert f"has a number, {schema.SCHEMA} in this version ({steps})" in text


def test_a_newer_store_is_refused_and_left_alone(cli, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    filled(path)
    altered(path, f"PRAGMA user_version = {schema.SCHEMA + 1}")
    before = path.read_bytes()
    words = ("new.db", f"schema {schema.SCHEMA + 1}", f"knows {schema.SCHEMA}", "update rooflens")
    refused(cli("bench", "baseline", "list", "--store", "new.db"), "E_SCHEMA", *words)
    refused(cli("bench", "merge", "new.db"), "E_SCHEMA", *words)
    for write in (False, True):
        with pytest.raises(SchemaError), open_store(path, write=write):
            pass
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["new.db"]


# damage


def everything(path: Path) -> tuple[object, ...]:
    with open_store(path, write=False) as store:
        return store.summaries(), tuple(store.runs()), store.baselines()


def test_flipped_bytes_are_found_or_harmless(tmp_path: Path) -> None:
    """Anywhere in the file: whoever reads gets what was written or an error, and the damaged file stays as it is."""
    whole = tmp_path / "whole.db"
    runs = filled(whole, range(6), samples=300)  # large enough that documents fill pages of their own
    with open_store(whole, write=True) as store:
        store.set_baseline("before", runs[1].id)
    expected, data = everything(whole), whole.read_bytes()
    numbers, found = random.Random(1), 0
    for place in range(80):
        path = tmp_path / f"{place}.db"
        at = numbers.randrange(len(data) - 8)
        damaged = data[:at] + bytes(b ^ numbers.randrange(1, 256) for b in data[at : at + 8]) + data[at + 8 :]
        path.write_bytes(damaged)
        try:
            assert everything(path) == expected, at
        except (StoreError, SchemaError):
            found += 1
        assert path.read_bytes() == damaged
    assert found > 40  # much of the file is documents, and each of these has a checksum


def test_a_damaged_store_is_refused_and_a_copy_kept(cli, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    filled(path, range(6), samples=300)
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 2 + 64] = b"\xff" * 64
    path.write_bytes(data)
    (tmp_path / "a.db.corrupt-1").write_text("from another day")
    refused(cli("bench", "baseline", "list", "--store", "a.db"), "E_STORE", "a.db", "a.db.corrupt-2", "move it away")
    assert (tmp_path / "a.db.corrupt-1").read_text() == "from another day"
    assert (tmp_path / "a.db.corrupt-2").read_bytes() == path.read_bytes() == data
    refused(cli("bench", "baseline", "set", "x", "--store", "a.db"), "E_STORE", "a.db.corrupt-2")
    with pytest.raises(StoreError, match="corrupt-2"), open_store(path, write=True):
        pass
    assert path.read_bytes() == data
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.db", "a.db.corrupt-1", "a.db.corrupt-2"]


def test_what_was_not_yet_moved_into_a_damaged_file_is_copied_too(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    filled(path, range(6), samples=300)
    subprocess.run([sys.executable, STORING, "leave", str(path), "10", "3"], check=True, timeout=60)
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):  # some of them the log has anew
        data[4096 * page : 4096 * page + 64] = b"\xff" * 64
    path.write_bytes(data)
    log = Path(f"{path}-wal").read_bytes()
    assert log
    with pytest.raises(StoreError, match="corrupt-1"):
        everything(path)
    assert Path(f"{path}.corrupt-1").read_bytes() == data
    assert Path(f"{path}.corrupt-1-wal").read_bytes() == Path(f"{path}-wal").read_bytes() == log


@pytest.mark.parametrize("keep", [1, 50, 99, 100, 511, 512, 1000, 4095, 4096, 8192, 0.5, -1])
def test_a_store_cut_short(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "a.db"
    filled(path, range(6), samples=300)
    data = path.read_bytes()
    cut = data[: int(len(data) * keep) if isinstance(keep, float) else keep]
    path.write_bytes(cut)
    for write in (False, True):
        with pytest.raises(StoreError, match="corrupt-1"), open_store(path, write=write):
            pass
    assert path.read_bytes() == (tmp_path / "a.db.corrupt-1").read_bytes() == cut


@pytest.mark.parametrize(
    "data", [b"x", b"# Results\n\n| layer | time |\n" * 99, b"{}", bytes(8192), b"SQLite format 3\0"]
)
def test_a_file_that_is_no_store(cli, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "notes.md").write_bytes(data)
    refused(cli("bench", "baseline", "list", "--store", "notes.md"), "E_STORE", "notes.md.corrupt-1")
    with pytest.raises(StoreError, match="corrupt-1"), open_store(tmp_path / "notes.md", write=True):
        pass
    assert (tmp_path / "notes.md").read_bytes() == data


def test_the_database_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "browser.db"
    altered(path, "CREATE TABLE history (url TEXT)", "PRAGMA user_version = 2")
    before = path.read_bytes()
    for write in (False, True):
        with pytest.raises(StoreError, match="corrupt-1"), open_store(path, write=write):
            pass
    assert path.read_bytes() == before


def test_an_empty_file_is_a_store_yet_to_be_filled(cli, tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    refused(cli("bench", "baseline", "list", "--store", "a.db"), "E_STORE", "no run yet")
    assert (tmp_path / "a.db").stat().st_size == 0
    runs = filled(tmp_path / "a.db")
    assert held(tmp_path / "a.db") == runs


@pytest.mark.parametrize(
    "change",
    ["document = x'1f8b'", "document = 'text'", "document = substr(document, 1, length(document) - 9)", "document = 5"],
)
def test_a_malformed_document(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.db"
    first, second = filled(path, range(2))
    altered(path, f"UPDATE runs SET {change} WHERE id = '{second.id}'")
    with open_store(path, write=False) as store:
        assert store.run(first.id) == first
        with pytest.raises(StoreError, match=f"{second.id}.*corrupt-1"):
            store.find("latest")


@pytest.mark.parametrize("document", [b"[]", b"{}", b"null", b'{"rows": 5}', b"not JSON", b"[" * 100_000])
def test_a_document_of_something_else(tmp_path: Path, document: bytes) -> None:
    path = tmp_path / "a.db"
    (run,) = filled(path, range(1))
    altered(path, f"UPDATE runs SET document = x'{gzip.compress(document).hex()}'")
    with open_store(path, write=False) as store, pytest.raises(StoreError, match=f"{run.id}.*corrupt-1"):
        store.run(run.id)


@pytest.mark.parametrize("change", ["DROP TABLE baselines", "DROP INDEX runs_listed; DROP TABLE runs"])
def test_a_store_without_its_tables(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.db"
    filled(path)
    altered(path, *change.split("; "))
    with pytest.raises(StoreError, match="corrupt-1"):
        everything(path)


def test_a_baseline_of_no_run(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    filled(path)
    altered(path, "INSERT INTO baselines VALUES ('lost', 'ffffffffffff')")
    with pytest.raises(StoreError, match=r"lost.*corrupt-1"):
        everything(path)


# folders that cannot be written to, and full disks


@pytest.fixture
def unprivileged() -> tuple[str, ...]:
    """What to put before a command so that permissions hold for it; root may write anywhere."""
    if os.geteuid():
        return ()
    drop = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    if shutil.which("setpriv") is None or subprocess.run([*drop, "true"], capture_output=True, check=False).returncode:
        pytest.skip("run as root without a way to give that up: permission cannot be refused")
    return drop


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "locked"
    folder.mkdir()
    yield folder
    folder.chmod(0o755)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def asked(before: tuple[str, ...], *args: str) -> "subprocess.CompletedProcess[str]":
    code = "from rooflens.cli import main; main()"
    command = [*before, sys.executable, "-c", code, "bench", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("left", ["nothing", "the log", "the log and its index"])
def test_a_store_in_a_read_only_folder(unprivileged, locked: Path, tmp_path: Path, left: str) -> None:
    path = locked / "a.db"
    runs = filled(path)
    if left != "nothing":
        subprocess.run([sys.executable, STORING, "leave", str(path), "3", "2"], check=True, timeout=60)
        runs = (*runs, a_run(3), a_run(4))
        assert Path(f"{path}-wal").stat().st_size
        if left == "the log":
            Path(f"{path}-shm").unlink()
    before = contents(locked)
    locked.chmod(0o555)
    for file in locked.iterdir():
        file.chmod(0o444)
    store = ("--store", str(path))
    assert asked(unprivileged, "baseline", "list", *store).returncode == 0
    refused(asked(unprivileged, "baseline", "set", "x", *store), "E_STORE", "a.db", "cannot be opened or written")
    merged = asked(unprivileged, "merge", str(path), "--store", str(tmp_path / "copy.db"))
    assert merged.returncode == 0, merged.stderr
    assert contents(locked) == before
    assert held(tmp_path / "copy.db") == runs  # what the log held too


def test_a_store_in_a_read_only_folder_while_somebody_writes(unprivileged, locked: Path, tmp_path: Path) -> None:
    """A folder shared by others: they write, this user only reads."""
    path = locked / "a.db"
    runs = filled(path)
    with open_store(path, write=True) as store:
        store.add(a_run(7))
        locked.chmod(0o555)
        for file in locked.iterdir():
            file.chmod(0o444)
        merged = asked(unprivileged, "merge", str(path), "--store", str(tmp_path / "copy.db"))
        assert merged.returncode == 0, merged.stderr
        locked.chmod(0o755)
    assert held(tmp_path / "copy.db") == (*runs, a_run(7))


def test_no_store_can_be_made_in_a_read_only_folder(unprivileged, locked: Path, tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    locked.chmod(0o555)
    done = asked(unprivileged, "merge", str(tmp_path / "a.db"), "--store", str(locked / "b.db"))
    refused(done, "E_STORE", "b.db")
    (locked / "c.db").touch()
    (locked / "c.db").write_text("no store")
    refused(
        asked(unprivileged, "baseline", "list", "--store", str(locked / "c.db")), "E_STORE", "no copy could be kept"
    )


def test_a_full_disk_leaves_the_old_runs(tmp_path: Path) -> None:
    """Files may not grow past a size: what the system then answers is what it answers on a full disk, but for the reason."""
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    old = filled(here)
    filled(there, range(10, 12), samples=20_000)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    command = [sys.executable, "-c", "from rooflens.cli import main; main()", "bench", "merge", str(there)]
    for store in (here, tmp_path / "new.db"):
        done = subprocess.run(
            [*command, "--store", str(store)],
            preexec_fn=limited, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        refused(done, "E_STORE", str(store), "nothing was changed", "disk has room")
    assert held(here) == old
    assert sound(here)
    with open_store(here, write=True) as opened:
        assert opened.merge(there).added == 2


def test_a_full_disk_in_the_middle_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    old = filled(path)
    with open_store(path, write=True) as store:
        store._connection.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreError, match="full"):
            store.add(a_run(9, samples=20_000))
    assert held(path) == old
    assert sound(path)


def test_a_store_that_somebody_else_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    filled(path)
    monkeypatch.setattr("rooflens.store.opening.PATIENCE_S", 0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process"), open_store(path, write=True):
            pass
        assert len(held(path)) == 3  # readers do not wait
    finally:
        holder.close()


# killed writers, many writers


@pytest.mark.soak
def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """kill -9 at random moments, of the making of the store too; each time another writer goes on with the same file."""
    path, numbers, acknowledged = tmp_path / "a.db", random.Random(9), {}
    for turn in range(SOAK):
        first = turn * 100_000
        for place, id in enumerate(
            killed_writer(path, first, after_the_first=bool(turn % 2), delay_s=numbers.random() / 3)
        ):
            acknowledged[id] = first + place
        if acknowledged:
            with open_store(path, write=False) as store:
                assert {s.id for s in store.summaries()} >= acknowledged.keys()
    found = {run.id: run for run in held(path)}  # every one of them whole, or it could not be read
    assert found.keys() >= acknowledged.keys()
    assert all(found[id] == a_run(seed, samples=400) for id, seed in acknowledged.items())
    assert len(found) - len(acknowledged) <= SOAK  # written, and the writer killed before it could say so
    assert len(acknowledged) >= SOAK // 2
    assert sound(path)


def killed_writer(path: Path, first: int, after_the_first: bool, delay_s: float) -> list[str]:
    """The ids that it acknowledged. It is killed so long after its start, or after the first of them."""
    command = [sys.executable, STORING, "write", str(path), str(first), "100000", "400"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        said = [writer.stdout.readline() for _ in range(2)] if after_the_first else []
        timer = threading.Timer(delay_s, writer.kill)
        timer.start()
        said += writer.stdout.readlines()
        timer.join()
    assert writer.returncode == -signal.SIGKILL
    return [line.strip() for line in said[1:] if line.endswith("\n")]


@pytest.mark.soak
def test_many_writers_and_readers_lose_nothing(tmp_path: Path) -> None:
    path, each = tmp_path / "a.db", 10 * SOAK
    readers = [subprocess.Popen([sys.executable, STORING, "read", str(path), str(8 * each)]) for _ in range(2)]
    writers = [
        subprocess.Popen(
            [sys.executable, STORING, "write", str(path), str(place * each), str(each), "2"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for place in range(8)
    ]
    said = [w.communicate(timeout=600)[0].split()[1:] for w in writers]
    assert [w.returncode for w in writers] == [0] * 8
    assert [r.wait(timeout=600) for r in readers] == [0, 0]
    expected = {a_run(seed, samples=2).id for seed in range(8 * each)}
    assert {id for ids in said for id in ids} == expected
    assert {run.id for run in held(path)} == expected
    assert sound(path)
