"""`rooflens bench compare`: a verdict a row on two runs, or on two revisions that are measured in turns."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rooflens.cli import options as o
from rooflens.cli import streams
from rooflens.cli.bench.options import Html, Store, Suite, pages
from rooflens.cli.bench.run import Device, On, Only, Processes, Time, asked_suite, options_of
from rooflens.errors import PartialResult, SyntaxFault

if TYPE_CHECKING:
    from rooflens.benches.bench_run import BenchRun
    from rooflens.compare.verdicts import Comparison

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[BASE [NEW]]",
        help="Runs: a baseline, latest, previous, latest~N, an id, or a saved run.json. [default: previous latest]. With "
        "--checkout what to measure, as in 'bench run'.",
        show_default=False,
    ),
]
Checkout = Annotated[
    tuple[str, str] | None,
    typer.Option("--checkout", metavar="A B", help="Measure two git revisions of the project in this folder in turns."),
]
Threshold = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="How much of a change matters, such as 5%. [default: what each benchmark says]"),
]
Allow = Annotated[
    bool, typer.Option("--allow-mismatch", help="Show runs of different machines or versions beside each other.")
]
Gate = Annotated[
    bool, typer.Option("--gate", help="For CI: status 3 also where a row is inconclusive or not comparable.")
]
EXAMPLES = """Examples:

rooflens bench compare

rooflens bench compare before

rooflens bench compare before latest --threshold 3% --format md

rooflens bench compare --checkout main HEAD

rooflens bench compare --checkout v1.0 HEAD layers.py:block --time 3s --gate
"""


def compare(
    names: Names = None, checkout: Checkout = None, threshold: Threshold = None, allow_mismatch: Allow = False,
    gate: Gate = False, time: Time = None, processes: Processes = None, device: Device = None, on: On = None,
    only: Only = None, suite: Suite = None, store: Store = None, format: o.Format = "table", output: o.Output = None,
    html: Html = None,
) -> int:  # fmt: skip
    """Faster, slower, same, inconclusive or not comparable, row by row.

    A verdict needs five processes of either side; its 99 % interval, corrected for the number of rows, has to lie beyond
    the threshold. Status 1 where a row is slower.
    """
    o.check_format(format)
    from rooflens.compare.verdicts import compared

    limit = _threshold(threshold)
    given = tuple(names or ())
    if checkout is None:
        _only_with_checkout(time=time, processes=processes, device=device, on=on, only=only)
        base, new = _kept(given, suite, store)
    else:
        base, new = _in_turns(given, checkout, time, processes, device, on, only, store)
    found = compared(base, new, threshold=limit, allow_mismatch=allow_mismatch)
    _show(found, format, output, html)
    return _status(found, gate)


def _threshold(text: str | None) -> float | None:
    from rooflens.units import parse_as

    if text is None:
        return None
    found = parse_as(text, "number")
    if not 0 < found < 10:
        raise SyntaxFault(f"--threshold {text}: must be a share above 0, such as 5%")
    return found


def _only_with_checkout(**given: object) -> None:
    name = next((name for name, value in given.items() if value is not None and value != []), None)
    if name is not None:
        raise SyntaxFault(
            f"--{name}: runs that are kept already are not measured again: leave it out, or add --checkout A B"
        )


def _kept(names: tuple[str, ...], suite: str | None, store: str | None) -> "tuple[BenchRun, BenchRun]":
    if len(names) > 2:
        raise SyntaxFault(
            f"{len(names)} runs are named: name a base and a new one, or --checkout A B before what to measure"
        )
    base, new = (*names, *("previous", "latest")[len(names) :])
    if len(names) == 2 and all(map(_is_file, names)):
        return _read(base), _read(new)
    from rooflens.store.place import store_to_read
    from rooflens.store.store import open_store

    with open_store(store_to_read(store), write=False) as opened:
        after = _read(new) if _is_file(new) else opened.find(new, suite)
        of = suite or (after.suite if not names else None)
        return _read(base) if _is_file(base) else opened.find(base, of), after


def _is_file(name: str) -> bool:
    return name.lower().endswith(".json")


def _read(path: str) -> "BenchRun":
    from rooflens.report.saved import read_run

    return read_run(path)


def _in_turns(
    what: tuple[str, ...], checkout: tuple[str, str], time: str | None, processes: int | None, device: str | None,
    on: str | None, only: list[str] | None, store: str | None,
) -> "tuple[BenchRun, BenchRun]":  # fmt: skip
    from rooflens.benches.revision import commit_of
    from rooflens.benching import bench_runs
    from rooflens.cli.bench.run import status_of
    from rooflens.store.place import store_to_write
    from rooflens.store.store import open_store

    for name in checkout:
        commit_of(Path(), name)
    path = store_to_write(store)
    with open_store(path, write=True):
        pass  # a store that cannot be written to is told before anything is measured
    options = options_of(device, on)
    with streams.bar() as progress:
        base, new = bench_runs(
            lambda folder: asked_suite(what, folder, time, processes, only), Path(), checkout, options, progress
        )
    with open_store(path, write=True) as opened:
        ids = [opened.add(run) for run in (base, new)]
    streams.say(f"rooflens: kept as runs {' and '.join(ids)} in {path}")
    if base.stopped_by:
        raise typer.Exit(status_of(base))
    return base, new


def _show(found: "Comparison", format: str, output: str | None, html: str | None) -> None:
    from rooflens.report.bench import comparison_document
    from rooflens.report.sections.bench_comparison import comparison_blocks, comparison_rows

    document = comparison_document(found)
    blocks = comparison_blocks(document)
    o.emit_as(format, document, blocks, comparison_rows(document), output, pages(html, blocks, "benchmarks compared"))


def _status(found: "Comparison", gate: bool) -> int:
    """1 where a row is slower; with a gate 3 where one could not be told."""
    from rooflens.compare.verdicts import FASTER, SAME, SLOWER

    if found.count(SLOWER):
        return 1
    told = found.count(SAME) + found.count(FASTER) + len(found.added)
    whole = len(found.new.rows) == told and not found.removed and not found.renamed
    if gate and not whole:
        streams.say("rooflens: gate: no row is slower, and not every row could be told: see the table")
        return PartialResult.status
    return 0
