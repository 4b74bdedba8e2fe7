"""What went wrong with a store in, the one line that a user gets out. Of a damaged one a copy is kept first."""

import contextlib
import filecmp
import os
import shutil
import sqlite3
from pathlib import Path

from rooflens.errors import StoreError, one_line

BESIDE = ("-wal", "-journal")  # what SQLite has not yet moved into the file itself
PATIENCE_S = 60.0
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_SHUT = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_OURS = (sqlite3.ProgrammingError, sqlite3.InterfaceError)


class Damaged(Exception):
    """What is in the file is not what a store holds."""


def told(path: Path, error: Exception) -> Exception:
    """Of anything that no file can cause, the error as it is."""
    if isinstance(error, _OURS):
        return error
    code = kind_of(error)
    if code in _BUSY:
        return StoreError(
            f"{path}: another process has held it for {PATIENCE_S:.0f} s: try again when that one is done"
        )
    if code in _FULL:
        how = "written" if code == sqlite3.SQLITE_FULL else "read or written"
        return StoreError(
            f"{path}: cannot be {how}: {error}: nothing was changed: see that its disk has room and works"
        )
    if code in _SHUT:
        return StoreError(f"{path}: cannot be opened or written: {error}: allow it, or name another file with --store")
    return StoreError(
        f"{path}: is no store of runs, or a damaged one ({one_line(str(error), 200)}): {kept(path)}: put a good copy in "
        "its place, or move it away and 'rooflens bench run' starts a new one"
    )


def kind_of(error: Exception) -> int:
    """SQLite's own number of the error, without its details."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def kept(path: Path) -> str:
    """When our own connections to the file are closed: reading it aside of SQLite would take their locks away."""
    try:
        return f"a copy is kept as {_copied(path).name}"
    except OSError as error:
        return f"no copy could be kept ({error.strerror})"


def _copied(path: Path) -> Path:
    """Never over an earlier copy, and no second one of the same bytes."""
    number = 0
    while True:
        number += 1
        copy = path.with_name(f"{path.name}.corrupt-{number}")
        if _same(path, copy):
            return copy
        with contextlib.suppress(FileExistsError):
            return _copy(path, copy)


def _same(path: Path, copy: Path) -> bool:
    return all(_equal(Path(f"{path}{e}"), Path(f"{copy}{e}")) for e in ("", *BESIDE))


def _equal(one: Path, other: Path) -> bool:
    if not (one.is_file() and other.is_file()):
        return not (one.exists() or os.path.lexists(other))
    return filecmp.cmp(one, other, shallow=False)


def _copy(path: Path, copy: Path) -> Path:
    made: list[Path] = []
    try:
        for ending in ("", *BESIDE):
            source, target = Path(f"{path}{ending}"), Path(f"{copy}{ending}")
            if source.is_file():
                with source.open("rb") as read, target.open("xb") as write:
                    made.append(target)
                    shutil.copyfileobj(read, write)
    except OSError:
        for target in made:
            target.unlink(missing_ok=True)
        raise
    return copy
