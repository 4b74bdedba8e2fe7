"""`rooflens bench run`: a suite measured here, process by process, and kept."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rooflens.cli import options as o
from rooflens.cli import streams
from rooflens.cli.bench.options import Html, Store
from rooflens.errors import FileError, InputError, PartialResult

if TYPE_CHECKING:
    from rooflens.benches.bench_run import BenchRun
    from rooflens.benches.suite import Suite
    from rooflens.benching import Options

NOTE_BYTES = 1_000_000
What = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WHAT…",
        help="A suite (default, seed), a bench.toml, layer text, file.py:function, or a zoo name. [default: bench.toml "
        "here, else the suite 'default']",
        show_default=False,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Of each benchmark, over all processes. [default: the suite's, else 1s]"),
]
Processes = Annotated[
    int | None, typer.Option(help="How many; a verdict needs 5. [default: the suite's, else 5]", show_default=False)
]
Device = Annotated[
    str | None, typer.Option(metavar="cpu|cuda", help="Where to run. [default: cuda where there is one]")
]
On = Annotated[
    str | None,
    typer.Option(metavar="CHIP", help="Whose roof it is held against. [default: this machine's]", show_default=False),
]
Only = Annotated[
    list[str] | None, typer.Option(metavar="PATTERN", help="Only such benchmarks: 'conv*', '*/backward'; repeatable.")
]
Note = Annotated[
    str | None,
    typer.Option("--note", metavar="FILE", help="A text that is kept with the run, such as what was changed."),
]
Baseline = Annotated[str | None, typer.Option(metavar="NAME", help="Give the run this name at once.")]
EXAMPLES = """Examples:

rooflens bench run

rooflens bench run seed --time 3s --baseline before

rooflens bench run '8x64x32x32 | conv2d 128 k3 p1 bias' --processes 7

rooflens bench run bench.toml --only 'conv*' --note optimizations.md

rooflens bench run layers.py:block --device cuda --format json -o run.json
"""


def run(
    what: What = None, time: Time = None, processes: Processes = None, device: Device = None, on: On = None,
    only: Only = None, note: Note = None, baseline: Baseline = None, store: Store = None, format: o.Format = "table",
    output: o.Output = None, html: Html = None,
) -> int:  # fmt: skip
    """Measure a suite, forward and backward, in several processes, and keep the run.

    Each process measures every benchmark once; verdicts of 'bench compare' rest on processes, not on samples. What was
    finished when the run is interrupted is kept.
    """
    o.check_format(format)
    from rooflens.benching import bench_run, check_files
    from rooflens.store.place import store_to_write
    from rooflens.store.store import checked_name, open_store

    if baseline is not None:
        checked_name(baseline)
    suite = asked_suite(tuple(what or ()), Path(), time, processes, only)
    check_files(suite)
    written = None if note is None else read_note(note)
    path = store_to_write(store)
    with open_store(path, write=True):
        pass  # a store that cannot be written to is told before anything is measured
    options = replace(options_of(device, on), note=written)
    with streams.bar() as progress:
        found = bench_run(suite, options, progress)
    try:
        if any(row.processes for row in found.rows):
            _keep(found, path, baseline)
        else:
            streams.say("rooflens: nothing was measured, so nothing was kept")
    finally:  # a disk that is full by now must not lose what was measured
        show(found, format, output, html)
    return status_of(found)


def _keep(found: "BenchRun", path: Path, baseline: str | None) -> None:
    """An interrupted run is no baseline."""
    from rooflens.store.store import open_store

    named = baseline is not None and not found.stopped_by
    with open_store(path, write=True) as opened:
        id = opened.add(found)
        if baseline is not None and named:
            opened.set_baseline(baseline, id)
    streams.say(f"rooflens: kept as run {id} in {path}" + (f", named {baseline}" if named else ""))


def asked_suite(
    what: tuple[str, ...], folder: Path, time: str | None, processes: int | None, only: list[str] | None
) -> "Suite":
    """The suite, with what the command line says of it."""
    from rooflens.api import seconds_of
    from rooflens.benches.suite import suite_of

    suite = suite_of(what, folder).only(tuple(p for text in only or () for p in text.split(",")))
    return suite.asked(None if time is None else seconds_of(time), processes)


def options_of(device: str | None, on: str | None) -> "Options":
    """Roofs of this machine are looked for where no chip is named, as `measure` does."""
    from rooflens.benching import Options
    from rooflens.cli.measuring import roofs_of
    from rooflens.frontends.load import needs_torch
    from rooflens.measuring import device_name

    needs_torch()
    streams.keep_for_results()
    name = device_name(device)
    _, named = roofs_of([on] if on else None, name)
    return Options(device=name, on=_absolute(named), tell=lambda sentence: streams.say(f"rooflens: {sentence}"))


def _absolute(chip: str) -> str:
    """A file of a chip is named from here, and the processes may run elsewhere."""
    file, word, changes = chip.partition(" with ")
    return f"{Path(file).absolute() if Path(file).is_file() else file}{word}{changes}"


def read_note(path: str) -> str:
    file = Path(path)
    try:
        if file.is_file() and file.stat().st_size > NOTE_BYTES:
            raise InputError(f"--note {path}: larger than {NOTE_BYTES} bytes: is it the right file?")
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"--note {path}: not UTF-8 text: save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"--note {path}: cannot be read: {reason}: check the path") from None


def show(found: "BenchRun", format: str, output: str | None, html: str | None) -> None:
    from rooflens.cli.bench.options import pages
    from rooflens.report.bench import run_document
    from rooflens.report.sections.bench_run import run_blocks, run_rows

    document = run_document(found)
    blocks = run_blocks(document)
    o.emit_as(format, document, blocks, run_rows(document), output, pages(html, blocks, f"{found.suite}: benchmarks"))


def status_of(found: "BenchRun") -> int:
    from rooflens.benches.bench_run import FAILED, NO_MEMORY
    from rooflens.cli.measuring import STOPPED

    if found.stopped_by:
        return STOPPED.get(found.stopped_by, PartialResult.status)
    return PartialResult.status if any(r.status in (FAILED, NO_MEMORY) for r in found.rows) else 0
