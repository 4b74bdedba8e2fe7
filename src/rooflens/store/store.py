"""Runs in, runs out: a file of benchmark runs that only grows, and names for some of them.

Every change is one transaction, synced before it is acknowledged; readers never wait for a writer, nor a writer for them.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rooflens.benches.bench_run import BenchRun
from rooflens.errors import InputError, nearest
from rooflens.store import opening
from rooflens.store.damage import Damaged, told
from rooflens.store.records import LIGHT, Baseline, Merged, Summary, Taken, columns_of, encodable, summary_of, unpacked

LEAST_PREFIX = 4
LISTED = 5  # runs that an error names
_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]{0,99}")
_BACK = re.compile(r"latest~(\d{1,9})")
_IDENTIFIER = re.compile(r"[0-9a-f]{4,}")
_NEWEST = "ORDER BY at_us DESC, number DESC"
_OLDEST = "ORDER BY at_us, number"
_COLUMNS = (*LIGHT, "document")
_INSERT = (
    f"INSERT INTO runs ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{c}' for c in _COLUMNS)}) "
    "ON CONFLICT (id) DO NOTHING"
)


@contextmanager
def open_store(path: str | Path, *, write: bool) -> Iterator["Store"]:
    """`write` makes it where it is not there yet, and brings an older one up to date."""
    with ExitStack() as stack:
        file = opening.followed(Path(path))
        connection = opening.to_write(file, stack) if write else opening.to_read(file, stack)
        yield Store(file, connection)


class Store:
    """An open store; `open_store` makes one. After an error of its file it is closed."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    # runs

    def add(self, run: BenchRun) -> str:
        """The run's id, once it is safe on disk; a run that is there already stays as it is."""
        columns = columns_of(run)
        with self._changing():
            self._connection.execute(_INSERT, columns)
        return str(columns["id"])

    def run(self, id: str) -> BenchRun:
        found = self._rows("SELECT id, document FROM runs WHERE id = ?", id)
        if not found:
            raise self._unknown(id, None)
        return self._unpacked(found[0])

    def runs(self, suite: str | None = None) -> Iterator[BenchRun]:
        """Oldest first."""
        for row in self._rows(f"SELECT number FROM runs {_of(suite)} {_OLDEST}", *_given(suite)):
            (found,) = self._rows("SELECT id, document FROM runs WHERE number = ?", row["number"])
            yield self._unpacked(found)

    def summaries(self, suite: str | None = None, limit: int | None = None) -> tuple[Summary, ...]:
        """Newest first, without reading what was measured."""
        names: dict[str, list[str]] = {}
        for baseline in self.baselines():
            names.setdefault(baseline.run, []).append(baseline.name)
        sql = f"SELECT {', '.join(LIGHT)} FROM runs {_of(suite)} {_NEWEST} LIMIT ?"
        rows = self._rows(sql, *_given(suite), -1 if limit is None else limit)
        return tuple(summary_of(dict(r), tuple(names.get(r["id"], ()))) for r in rows)

    # references

    def find(self, reference: str, suite: str | None = None) -> BenchRun:
        return self.run(self.id_of(reference, suite))

    def id_of(self, reference: str, suite: str | None = None) -> str:
        """Of a baseline's name, `latest`, `previous`, `latest~N`, an id or the unique start of one. The suite is asked for
        where runs are counted from the latest; a name or an id says already which run is meant."""
        back = _back(reference)
        if back is not None:
            sql = f"SELECT id FROM runs {_of(suite)} {_NEWEST} LIMIT 1 OFFSET ?"
            found = self._rows(sql, *_given(suite), back)
        else:
            found = self._rows("SELECT run AS id FROM baselines WHERE name = ?", encodable(reference))
            found = found or self._begun(reference)
        if len(found) > 1:
            listed = ", ".join(f"{r['id']} ({r['date']})" for r in found[:LISTED])
            raise InputError(f"{self.path}: {len(found)} runs begin with '{reference}': {listed}: give more of the id")
        if not found:
            raise self._unknown(reference, suite)
        return str(found[0]["id"])

    def _begun(self, reference: str) -> list[sqlite3.Row]:
        if not _IDENTIFIER.fullmatch(reference):
            return []
        return self._rows(f"SELECT id, date FROM runs WHERE substr(id, 1, ?) = ? {_NEWEST}", len(reference), reference)

    def _unknown(self, reference: str, suite: str | None) -> InputError:
        names = [b.name for b in self.baselines()]
        of = "" if suite is None else f" of suite '{suite}'"
        runs = [f"{s.id} ({s.date})" for s in self.summaries(suite)]
        there = f"baselines: {', '.join(names) or 'none'}; runs{of}: {', '.join(runs[:LISTED]) or 'none'}"
        more = f" and {len(runs) - LISTED} more" if len(runs) > LISTED else ""
        if not runs:
            there += ": 'rooflens bench run' adds one"
        return InputError(f"{self.path}: no run '{reference}'{of}: {there}{more}.{nearest(reference, names)}")

    # baselines

    def baselines(self) -> tuple[Baseline, ...]:
        """By name."""
        sql = "SELECT name, run, date, suite FROM baselines LEFT JOIN runs ON id = run ORDER BY name"
        rows = self._rows(sql)
        lost = [r["name"] for r in rows if r["date"] is None]
        if lost:
            raise self._closed(Damaged(f"baseline '{lost[0]}' is of a run that is not there"))
        return tuple(Baseline(**dict(r)) for r in rows)

    def set_baseline(self, name: str, id: str) -> str | None:
        """The id that the name stood for until now."""
        checked_name(name)
        with self._changing():
            if not self._rows("SELECT 1 FROM runs WHERE id = ?", id):
                raise self._unknown(id, None)
            before = self._rows("SELECT run FROM baselines WHERE name = ?", name)
            sql = "INSERT INTO baselines (name, run) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET run = excluded.run"
            self._connection.execute(sql, (name, id))
        return str(before[0]["run"]) if before else None

    def remove_baseline(self, name: str) -> str:
        """The id that it stood for; the run stays."""
        with self._changing():
            found = self._rows("SELECT run FROM baselines WHERE name = ?", encodable(name))
            if not found:
                names = [b.name for b in self.baselines()]
                there = ", ".join(names) or "none"
                raise InputError(f"{self.path}: no baseline '{name}': there are: {there}.{nearest(name, names)}")
            self._connection.execute("DELETE FROM baselines WHERE name = ?", (name,))
        return str(found[0]["run"])

    # merging

    def merge(self, other: str | Path) -> Merged:
        """All of the other store or nothing of it; it is only read."""
        with open_store(other, write=False) as source, self._changing():
            before = self._count()
            rows = source._rows(f"SELECT number FROM runs {_OLDEST}")
            for row in rows:
                self._connection.execute(_INSERT, source._whole(row["number"]))
            added = self._count() - before
            here = {b.name: b.run for b in self.baselines()}
            theirs = source.baselines()
            free = [b for b in theirs if b.name not in here]
            for b in free:
                checked_name(b.name)
                self._connection.execute("INSERT INTO baselines (name, run) VALUES (?, ?)", (b.name, b.run))
            taken = (Taken(name=b.name, here=here.get(b.name, b.run), there=b.run) for b in theirs)
            return Merged(
                added=added,
                already=len(rows) - added,
                baselines=tuple(b.name for b in free),
                taken=tuple(t for t in taken if t.here != t.there),
            )

    def _count(self) -> int:
        return int(self._rows("SELECT count(*) AS n FROM runs")[0]["n"])

    def _whole(self, number: int) -> dict[str, Any]:
        """A row as it is, after its document was read once: what cannot be read is not passed on."""
        (row,) = self._rows(f"SELECT {', '.join(_COLUMNS)} FROM runs WHERE number = ?", number)
        self._unpacked(row)
        return dict(row)

    # the file

    def _rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._closed(error) from None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One transaction. It takes the write lock first: one that read before it wrote could have to start again."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._closed(error) from None
        finally:
            self._abandon()

    def _abandon(self) -> None:
        """What was not committed; where SQLite has done so by itself, or the store is closed, nothing."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._connection.close()  # which does the same

    def _unpacked(self, row: sqlite3.Row) -> BenchRun:
        try:
            return unpacked(row["document"])
        except ValueError as error:
            raise self._closed(Damaged(f"run {row['id']}: {error}")) from None

    def _closed(self, error: Exception) -> Exception:
        """The fault as a user reads it; before a copy is made of a file, our own connection to it is closed."""
        self._connection.close()
        return told(self.path, error)


def checked_name(name: str) -> str:
    """A baseline's name must not be another way of saying which run."""
    if not _NAME.fullmatch(name):
        raise InputError(f"baseline '{name}': a name is made of letters, digits, '.', '_' and '-': choose another")
    if _back(name) is not None or _IDENTIFIER.fullmatch(name):
        raise InputError(
            f"baseline '{name}': it could be taken for a run's own name: choose another, such as 'v-{name}'"
        )
    return name


def _back(reference: str) -> int | None:
    """How many runs before the latest."""
    if reference in ("latest", "previous"):
        return int(reference == "previous")
    found = _BACK.fullmatch(reference)
    return int(found.group(1)) if found else None


def _of(suite: str | None) -> str:
    return "" if suite is None else "WHERE suite = ?"


def _given(suite: str | None) -> tuple[str, ...]:
    return () if suite is None else (encodable(suite),)
