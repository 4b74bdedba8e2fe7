"""A path in, a connection to a store of today's schema out; or the one line that says why there is none.

A store that is only read is never changed: not by recovery, not by migration, and not where its folder is read-only.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from rooflens.errors import FileError, SchemaError, StoreError
from rooflens.store import schema
from rooflens.store.damage import BESIDE, PATIENCE_S, Damaged, kind_of, told

_UNWRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_RETRY_S = 0.02
LEAST_BYTES = 512  # a page of SQLite's is never smaller


def followed(path: Path) -> Path:
    """What stands beside a store stands beside the file itself, not beside a link to it."""
    try:
        return path.resolve() if path.is_symlink() else path
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}: check the path"
        ) from None


def to_read(path: Path, stack: ExitStack) -> sqlite3.Connection:
    if not present(path):
        raise StoreError(
            f"{path}: no store of runs is there: 'rooflens bench run' makes one, or name another with --store"
        )
    with ExitStack() as opened:
        try:
            connection = _readable(path, opened)
            number = _checked(connection, path)
            if 0 < number < schema.SCHEMA:
                connection = _migrated_copy(connection, opened)
        except (sqlite3.Error, Damaged) as error:
            opened.close()
            raise told(path, error) from None
        if not number:
            raise StoreError(f"{path}: holds no run yet: 'rooflens bench run' adds one")
        stack.push(opened.pop_all())
        return connection


def to_write(path: Path, stack: ExitStack) -> sqlite3.Connection:
    """Made where it is not there yet, migrated where it is older."""
    if not present(path) and not path.parent.is_dir():
        raise FileError(f"{path}: folder {path.parent} does not exist: make it first")
    with ExitStack() as opened:
        try:
            _look_first(path)
            connection = opened.enter_context(closing(_connect(path, "mode=rwc")))
            _bring_up(connection, path)
            _set_up(connection)
        except (sqlite3.Error, Damaged) as error:
            opened.close()
            raise told(path, error) from None
        stack.push(opened.pop_all())
        return connection


def present(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise FileError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}: check the path"
        ) from None
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "no plain file"
        raise FileError(f"{path}: is {what}: name the file of a store, such as .rooflens/bench.db")
    if not os.access(path, os.R_OK):
        raise FileError(f"{path}: cannot be read: Permission denied: allow it, or name another file with --store")
    return True


def _look_first(path: Path) -> None:
    """A damaged store, or one of a newer schema, is found before anything could be written to it."""
    if present(path):
        with ExitStack() as opened:
            _checked(_readable(path, opened), path)


def _readable(path: Path, opened: ExitStack) -> sqlite3.Connection:
    """In a folder that cannot be written to SQLite lacks the place for its own index of what a writer left behind: what
    is left there is then read from a copy; and where nothing is left, it is told that nobody will write."""
    left = any(_size(Path(f"{path}{e}")) for e in BESIDE)
    try:
        return _first_read(path, "mode=ro" if left else "mode=rw", opened)
    except sqlite3.OperationalError as error:
        if kind_of(error) not in _UNWRITABLE:
            raise
    if not left:
        return _first_read(path, "mode=ro&immutable=1", opened)
    return _first_read(_copied(path, opened), "mode=rw", opened)


def _copied(path: Path, opened: ExitStack) -> Path:
    try:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="rooflens-")))
        for ending in ("", *BESIDE):
            if Path(f"{path}{ending}").is_file():
                shutil.copyfile(f"{path}{ending}", folder / f"{path.name}{ending}")
    except OSError as error:
        raise StoreError(
            f"{path}: lies in a read-only folder with changes beside it, and no copy to read could be made: "
            f"{error.strerror}: set TMPDIR to a folder with room"
        ) from None
    return folder / path.name


def _first_read(path: Path, how: str, opened: ExitStack) -> sqlite3.Connection:
    """SQLite opens a file when it is first read, and not before."""
    with ExitStack() as tried:
        connection = tried.enter_context(closing(_connect(path, how)))
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        opened.push(tried.pop_all())
        return connection


def _connect(path: Path, how: str) -> sqlite3.Connection:
    """A transaction begins where the code says so, and nowhere else."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}", uri=True, timeout=PATIENCE_S, isolation_level=None
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA trusted_schema = OFF")  # a store to merge may come from anybody
    return connection


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _checked(connection: sqlite3.Connection, path: Path) -> int:
    """The schema's number, 0 of a store yet to be made."""
    if schema.is_blank(connection):
        if 0 < _size(path) < LEAST_BYTES:  # of one byte SQLite says that it is none
            raise Damaged("it is no database")
        return 0
    if not schema.is_store(connection):
        raise Damaged("it does not say that it is one of rooflens")
    number = _not_newer(connection, path)
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise Damaged(str(found))
    return number


def _not_newer(connection: sqlite3.Connection, path: Path) -> int:
    number = schema.number_of(connection)
    if number > schema.SCHEMA:
        raise SchemaError(
            f"{path}: a store of schema {number}, and this rooflens knows {schema.SCHEMA}: update rooflens, or name another "
            "file with --store"
        )
    return number


def _migrated_copy(connection: sqlite3.Connection, opened: ExitStack) -> sqlite3.Connection:
    """In memory, so that an older store can be read where it may not be changed."""
    copy = opened.enter_context(closing(sqlite3.connect(":memory:", isolation_level=None)))
    connection.backup(copy)
    copy.row_factory = sqlite3.Row
    schema.migrate(copy)
    return copy


def _bring_up(connection: sqlite3.Connection, path: Path) -> None:
    """Also asks, before anything is measured for it, whether the store can be written at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _not_newer(connection, path) < schema.SCHEMA:
            schema.migrate(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _set_up(connection: sqlite3.Connection) -> None:
    """FULL: a run that was acknowledged outlives a loss of power too. A file system that cannot share memory between
    processes has no WAL; there SQLite stays with its journal, which is as safe. Where several processes make one store,
    SQLite does not wait by itself for its turn to set the WAL."""
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if kind_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(_RETRY_S)
