"""`rooflens.bench`: a suite in, what was measured of it here out, with what it can be asked and compared with."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooflens.api import seconds_of
from rooflens.benches.bench_run import BenchRow, BenchRun
from rooflens.benches.suite import suite_of
from rooflens.benching import Options, bench_run
from rooflens.compare.verdicts import Comparison, compared
from rooflens.errors import ModelError
from rooflens.frontends.load import needs_torch
from rooflens.jsonfile import json_text
from rooflens.measuring import device_name, this_machine
from rooflens.report.bench import comparison_document, run_document
from rooflens.report.render import html, markdown, terminal
from rooflens.report.sections.bench_comparison import comparison_blocks
from rooflens.report.sections.bench_run import run_blocks, run_rows
from rooflens.store.place import store_to_write
from rooflens.store.store import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A verdict a row; prints itself as `rooflens bench compare` does."""

    found: Comparison

    def to_dict(self) -> dict[str, Any]:
        return comparison_document(self.found)

    def to_markdown(self) -> str:
        return markdown.render(comparison_blocks(self.to_dict()))

    def __str__(self) -> str:
        return terminal.render(comparison_blocks(self.to_dict()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A run; prints itself as `rooflens bench run` does. `run` is the record with its raw samples."""

    run: BenchRun

    @property
    def rows(self) -> tuple[BenchRow, ...]:
        return self.run.rows

    def compare(
        self, base: "Bench | BenchRun", *, threshold: float | None = None, allow_mismatch: bool = False
    ) -> Compared:
        """What became of each row since the base."""
        before = base.run if isinstance(base, Bench) else base
        return Compared(found=compared(before, self.run, threshold=threshold, allow_mismatch=allow_mismatch))

    def to_dict(self) -> dict[str, Any]:
        return run_document(self.run)

    def to_json(self) -> str:
        return json_text(self.to_dict(), end="\n")

    def to_pandas(self) -> Any:
        import pandas as pd

        return pd.DataFrame(run_rows(self.to_dict()))

    def to_markdown(self) -> str:
        return markdown.render(run_blocks(self.to_dict()))

    def to_html(self) -> str:
        return html.render(run_blocks(self.to_dict()), f"{self.run.suite}: benchmarks")

    def __str__(self) -> str:
        return terminal.render(run_blocks(self.to_dict()))


def bench(
    what: str | os.PathLike[str] | Iterable[str] | None = None,
    *,
    time: float | str | None = None,
    processes: int | None = None,
    device: str | None = None,
    on: str | None = None,
    only: str | Iterable[str] = (),
    note: str | None = None,
    store: str | os.PathLike[str] | bool = False,
) -> Bench:
    """A suite measured here: its name, a `bench.toml`, layer text, `file.py:function`, or several of them. `note` is text to
    keep with the run, `store` the file to keep it in (True: the project's own), `on` the chip whose roof it is held against
    (what `rooflens machine` found here, unless told otherwise)."""
    needs_torch()
    suite = suite_of(_texts(what), Path()).only(_texts(only))
    suite = suite.asked(None if time is None else seconds_of(time), processes)
    name = device_name(device)
    roof = on or (f"this-{name}" if this_machine(device) else None)
    found = Bench(run=bench_run(suite, Options(device=name, on=roof, note=note), lambda what, done, of: None))
    if store is not False:
        with open_store(store_to_write(None if store is True else os.fspath(store)), write=True) as opened:
            opened.add(found.run)
    return found


def _texts(given: str | os.PathLike[str] | Iterable[str] | None) -> tuple[str, ...]:
    """Processes of their own measure it: an object of this one cannot be handed to them."""
    if given is None:
        return ()
    texts = [given] if isinstance(given, str | os.PathLike) else list(given) if isinstance(given, Iterable) else [given]
    wrong = next((t for t in texts if not isinstance(t, str | os.PathLike)), None)
    if wrong is not None:
        raise ModelError(
            f"a benchmark of type {type(wrong).__name__}: each process builds its own: give a suite, layer text or "
            "file.py:function"
        )
    return tuple(os.fspath(t) for t in texts)
