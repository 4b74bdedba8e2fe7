"""Text or bytes and a path in, a whole file out or none: written beside, synced, then moved into place."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Literal

from rooflens.errors import FileError, SyntaxFault


def write_text(path: str, text: str) -> None:
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: str, data: bytes) -> None:
    target = Path(path).resolve()  # a link stays a link, and what it points to is replaced
    if target.is_dir():
        raise FileError(f"{path}: is a folder: name a file in it")
    if not target.parent.is_dir():
        raise FileError(f"{path}: folder {target.parent} does not exist: make it first")
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a pipe or a device is written to, never replaced
        else:
            _replace(target, data)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}: nothing was changed") from None


def _replace(target: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


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
