"""What a user said, or nothing, in; the file of the store out: `--store`, ROOFLENS_STORE, or the project's own folder."""

import os
from collections.abc import Mapping
from pathlib import Path

from rooflens.errors import FileError, StoreError

FOLDER, FILE = ".rooflens", "bench.db"
VARIABLE = "ROOFLENS_STORE"


def store_to_read(option: str | None) -> Path:
    named = _named(option)
    if named is not None:
        return named
    found = _nearest()
    if found is None:
        raise StoreError(
            f"no store of runs in this folder or above it ({FOLDER}/{FILE}): 'rooflens bench run' makes one, or name one "
            "with --store"
        )
    return found


def store_to_write(option: str | None) -> Path:
    """The folder of ours is made where there is none; one that the user names must be there."""
    named = _named(option) or _nearest()
    if named is not None:
        return named
    folder = Path(FOLDER)
    try:
        if not folder.is_dir():
            folder.mkdir()
            (folder / ".gitignore").write_text("*\n")  # runs are no part of the project, and do not make it dirty
    except OSError as error:
        raise FileError(
            f"{folder}: cannot be made: {error.strerror}: name a file elsewhere with --store or {VARIABLE}"
        ) from None
    return folder / FILE


def _named(option: str | None, environment: Mapping[str, str] = os.environ) -> Path | None:
    if option == "":
        raise FileError("--store: an empty name: name the file of a store, such as .rooflens/bench.db")
    text = option or environment.get(VARIABLE, "")
    return Path(text) if text else None


def _nearest() -> Path | None:
    """As short as the user would write it."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if os.path.lexists(folder / FOLDER / FILE):
            return Path(FOLDER, FILE) if folder == here else folder / FOLDER / FILE
    return None
