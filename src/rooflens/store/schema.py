"""How a store is laid out, as numbered steps: a file of any earlier number becomes one of today's by those it lacks.

A step that is out is never edited: add another. Steps are plain SQL, so that any SQLite can tell what a store looks like.
"""

import sqlite3
from dataclasses import dataclass

APPLICATION_ID = int.from_bytes(b"rflb")  # in the header of every store: what tells it from another program's database


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    what: str
    statements: tuple[str, ...]


# `number` is the order of insertion, `at_us` the date in microseconds since 1970, `document` the whole run with its raw
# samples as gzipped JSON, which carries a checksum of its own. All else is a copy for lists. The index holds every column
# of such a list: a list is read without touching a document, and SQLite's check holds the one copy against the other.
_RUNS = """
CREATE TABLE runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  at_us INTEGER NOT NULL,
  date TEXT NOT NULL,
  suite TEXT NOT NULL,
  tool TEXT NOT NULL,
  row_count INTEGER NOT NULL,
  process_count INTEGER NOT NULL,
  commit_id TEXT,
  dirty INTEGER,
  machine TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  note TEXT,
  document BLOB NOT NULL
)"""
_LISTS = """
CREATE INDEX runs_listed ON runs (
  at_us, number, id, date, suite, tool, row_count, process_count, commit_id, dirty, machine, fingerprint, note
)"""
_BASELINES = """
CREATE TABLE baselines (
  name TEXT NOT NULL UNIQUE,
  run TEXT NOT NULL REFERENCES runs (id)
)"""

MIGRATIONS = (
    Migration(number=1, what="runs", statements=(_RUNS, _LISTS)),
    Migration(number=2, what="baselines", statements=(_BASELINES,)),
)
SCHEMA = MIGRATIONS[-1].number


def number_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_blank(connection: sqlite3.Connection) -> bool:
    """Nobody's database yet: a file of no bytes, or one whose making was cut short."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return not tables and not _application(connection) and not number_of(connection)


def is_store(connection: sqlite3.Connection) -> bool:
    return _application(connection) == APPLICATION_ID and number_of(connection) > 0


def migrate(connection: sqlite3.Connection) -> None:
    """Inside the transaction of whoever calls: all steps or none."""
    for step in MIGRATIONS[number_of(connection) :]:
        for statement in step.statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _application(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])
