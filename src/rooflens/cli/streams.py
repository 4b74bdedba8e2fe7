"""Where results and notes leave: standard output holds results and nothing else, whatever the code of a model prints."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rooflens.errors import FileError

_apart: list[TextIO] = []  # the real standard output, once it is kept for results alone


def mend() -> None:
    """A closed stream would give its number to the next file that is opened. Writing to a closed standard output still
    fails; notes for a closed standard error are lost."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))


def keep_for_results() -> None:
    """Before code of the user runs: from here on `print`, child processes and C code write to standard error."""
    if _apart:
        return
    sys.stdout.flush()
    _apart.append(os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors))
    os.dup2(2, 1)
    sys.stdout = sys.stderr


def results() -> TextIO:
    return _apart[0] if _apart else sys.stdout


def write(text: str) -> None:
    """In whatever encoding the stream has. A reader that has seen enough (`| head`) is no fault."""
    stream = results()
    try:
        stream.write(_encodable(text, stream))
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as error:
        silence(stream)
        raise unwritable(error) from None


def unwritable(error: OSError) -> FileError:
    return FileError(f"standard output: cannot be written: {error.strerror}: send it elsewhere with -o")


def say(line: str) -> None:
    """One line on standard error, or nowhere."""
    try:
        sys.stderr.write(_encodable(line, sys.stderr) + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


@contextmanager
def bar() -> Iterator[Callable[[str, int, int], None]]:
    """How far long work is, with the time left; to a person, and not into a pipe."""
    if not sys.stderr.isatty():
        yield lambda what, done, of: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as shown:

        def told(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = shown.add_task(what, total=of)
            shown.update(tasks[what], completed=done)

        yield told


def _encodable(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def silence(stream: TextIO) -> None:
    """What is left in its buffer goes nowhere, or the interpreter would fail again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def width(stream: TextIO) -> int:
    """COLUMNS, else the terminal's; 80 where neither is known (a pseudo-terminal may say 0)."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80
