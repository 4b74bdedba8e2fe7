"""Text or bytes and paths in, whole files out or none: written beside, synced, then moved into place."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rooflens.errors import FileError, SyntaxFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file to be: its path as the user gave it, and all of its content."""

    path: str
    data: bytes


def text_file(path: str, text: str) -> Written:
    return Written(path=path, data=text.encode("utf-8", "backslashreplace"))


def write_text(path: str, text: str) -> None:
    write_all((text_file(path, text),))


def write_bytes(path: str, data: bytes) -> None:
    write_all((Written(path=path, data=data),))


def write_all(files: tuple[Written, ...]) -> None:
    """All of them or none: every target is checked, every file staged beside its target, and only then moved."""
    targets = [_target(f.path) for f in files]
    for place, target in enumerate(targets):
        if target in targets[:place] and (target.is_file() or not target.exists()):
            raise FileError(f"{files[place].path}: two outputs would be written there: give each a file of its own")
    with contextlib.ExitStack() as staged:
        moves = [_staged(staged, f, t) for f, t in zip(files, targets, strict=True)]
        for file, move in zip(files, moves, strict=True):
            with _reported(file.path):
                move()


def _target(path: str) -> Path:
    """A link stays a link: what it points to is what is replaced."""
    with _reported(path):
        target = Path(path).resolve()
        if target.is_dir():
            raise FileError(f"{path}: is a folder: name a file in it")
        if not target.parent.is_dir():
            raise FileError(f"{path}: folder {target.parent} does not exist: make it first")
        return target


@contextlib.contextmanager
def _reported(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path}: cannot be written: {reason}: nothing was changed") from None


def _staged(staged: contextlib.ExitStack, file: Written, target: Path) -> Callable[[], object]:
    """What is left to do; a pipe or a device is written to, never replaced."""
    with _reported(file.path):
        if target.exists() and not target.is_file():
            return lambda: target.write_bytes(file.data)
        beside = _beside(staged, file.data, target)
        return lambda: beside.replace(target)


def _beside(staged: contextlib.ExitStack, data: bytes, target: Path) -> Path:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
    staged.callback(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    Path(name).chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask())
    return Path(name)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def picture_format(path: str) -> Literal["svg", "png"]:
    ending = Path(path).suffix.lower()
    if ending == ".svg":
        return "svg"
    if ending == ".png":
        return "png"
    raise SyntaxFault(f"--plot {path}: pictures are .svg or .png: change the ending")
