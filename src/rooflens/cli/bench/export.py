"""`rooflens bench export`: a run of the store for other tools."""

from typing import TYPE_CHECKING, Annotated

import typer

from rooflens.cli import options as o
from rooflens.cli import streams
from rooflens.cli.bench.options import Store, Suite
from rooflens.errors import EmptyError, SyntaxFault

if TYPE_CHECKING:
    from rooflens.benches.bench_run import BenchRun

AS = ("json", "csv", "md", "pytest-benchmark")
EXAMPLES = """Examples:

rooflens bench export -o run.json

rooflens bench export before --as pytest-benchmark -o before.json

rooflens bench export latest --suite parser --as csv
"""


def export(
    run: Annotated[
        str,
        typer.Argument(metavar="[RUN]", help="A baseline, latest, previous, latest~N or an id.", show_default="latest"),
    ] = "latest",
    as_: Annotated[str, typer.Option("--as", metavar="FORMAT", help="json, csv, md or pytest-benchmark.")] = "json",
    suite: Suite = None, store: Store = None, output: o.Output = None,
) -> int:  # fmt: skip
    """Write a run as JSON (which 'bench import' reads), CSV, Markdown, or as pytest-benchmark saves it."""
    if as_ not in AS:
        raise SyntaxFault(f"--as {as_}: use one of {' '.join(AS)}")
    from rooflens.store.place import store_to_read
    from rooflens.store.store import open_store

    with open_store(store_to_read(store), write=False) as opened:
        found = opened.find(run, suite)
    if as_ == "pytest-benchmark":
        o.emit(_pytest_benchmark(found), output)
        return 0
    from rooflens.report.bench import run_document
    from rooflens.report.sections.bench_run import run_blocks, run_rows

    document = run_document(found)
    o.emit_as(as_, document, run_blocks(document), run_rows(document), output)
    return 0


def _pytest_benchmark(run: "BenchRun") -> str:
    from rooflens.report.bench_export import left_out, pytest_benchmark_document

    document = pytest_benchmark_document(run)
    missing = left_out(run)
    if not document["benchmarks"]:
        raise EmptyError(f"run {run.id}: no row of it has a time: there is nothing to export")
    if missing:
        streams.say(f"rooflens: without a time, and left out: {', '.join(missing)}")
    return o.as_json(document)
