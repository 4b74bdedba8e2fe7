"""Rows to measure in, one process that measures them in turns with others out: what its parent holds of it.

A worker says that it is ready for a row, waits, and goes on when it is told to, so that of two workers one runs at a time.
One that dies takes the row with it that it was at; another one goes on behind it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rooflens.benches.bench_run import FAILED, Benchmark, BenchRow
from rooflens.benches.bench_stored import restored_row
from rooflens.benches.suite import Case

Row = tuple[Case, str]  # a case and one of its passes
Rows = tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What every process of a run is told. `seconds` are a row's in one process, taken in so many `turns`; `on` names the
    chip whose roof is asked; `imports` is where modules of the user's own are found first."""

    folder: Path
    device: str
    seconds: float
    turns: int
    on: str | None
    imports: tuple[Path, ...] = ()


def key_of(row: Row) -> str:
    return f"{row[0].name}/{row[1]}"


class Worker:
    """`waits` is the row that it is ready for, None once it has none left. `facts`: the machine, as it has told it."""

    def __init__(self, order: Order, rows: Rows, process: int) -> None:
        self.order, self.left, self.process = order, rows, process
        self.waits: str | None = None
        self.facts: dict[str, Any] = {}
        self._child = self._started() if rows else None

    def go(self) -> Iterator[BenchRow]:
        """Lets it take its turn, and gives the rows that it finishes until it waits for the next one."""
        if self.waits is not None:
            self._send("go\n")
        self.waits = None
        while self._child is not None and self.waits is None:
            line = self._line()
            yield from self._behind_the_dead() if line is None else self._read(json.loads(line))

    def close(self) -> None:
        """At once: what it was doing is not waited for."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with suppress(BrokenPipeError):  # of what was left to be sent to it
                if pipe is not None:
                    pipe.close()

    def _read(self, told: dict[str, Any]) -> Iterator[BenchRow]:
        if "ready" in told:
            self.waits = told["ready"]
        elif "row" in told:
            self.left = self.left[1:]
            yield restored_row(told["row"])
            if not self.left:
                self.close()
        else:
            self.facts = told

    def _behind_the_dead(self) -> Iterator[BenchRow]:
        child, (at, *rest) = self._child, self.left
        status = child.wait() if child is not None else 0
        self.close()
        self.left = tuple(rest)
        yield _lost(at, status)
        self._child = self._started() if self.left else None

    def _line(self) -> str | None:
        return (self._child.stdout.readline() or None) if self._child is not None and self._child.stdout else None

    def _send(self, text: str) -> None:
        with suppress(BrokenPipeError):  # it has died: the next line that is read says so
            if self._child is not None and self._child.stdin is not None:
                self._child.stdin.write(text)
                self._child.stdin.flush()

    def _started(self) -> "subprocess.Popen[str]":
        """In a session of its own: Ctrl-C reaches the parent alone, which ends it."""
        paths = [*map(str, self.order.imports), os.environ.get("PYTHONPATH", "")]
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "rooflens.bench_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=self.order.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            start_new_session=True,
        )
        self._child = child
        self._send(json.dumps(self._job()) + "\n")
        return child

    def _job(self) -> dict[str, Any]:
        """The first process of a run also counts what a row does."""
        return {
            "cases": [(asdict(case), pass_) for case, pass_ in self.left],
            "folder": str(self.order.folder),
            "device": self.order.device,
            "seconds": self.order.seconds,
            "turns": self.order.turns,
            "process": self.process,
            "counting": self.process == 0,
            "on": self.order.on,
        }


def _lost(row: Row, status: int) -> BenchRow:
    case, pass_ = row
    ended = f"signal {-status}" if status < 0 else f"status {status}"
    return BenchRow(
        benchmark=Benchmark(name=case.name, pass_=pass_, source=case.source, threshold=case.threshold),
        status=FAILED,
        reason=f"the process that measured it ended early: {ended}",
    )
