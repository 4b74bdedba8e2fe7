"""`rooflens bench import`: results of other tools into the store, for the same history and verdicts."""

from typing import Annotated

import typer

from rooflens.cli import options as o
from rooflens.cli import streams
from rooflens.cli.bench.options import Store
from rooflens.cli.bench.run import Baseline, Note, read_note
from rooflens.errors import PartialResult

EXAMPLES = """Examples:

rooflens bench import bench-1.txt bench-2.txt bench-3.txt bench-4.txt bench-5.txt

rooflens bench import results.json --as pytest-benchmark --suite parser --baseline before

rooflens bench import run.json --store all.db
"""


def import_(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="One run; each file is one process of it.")],
    as_: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="FORMAT", help="go, pytest-benchmark or google-benchmark. [default: told by the content]",
            show_default=False,
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option("--suite", metavar="NAME", help="What the run is a run of. [default: the package, project or program]",
                     show_default=False),
    ] = None,
    note: Note = None, baseline: Baseline = None, store: Store = None, format: o.Format = "table", output: o.Output = None,
) -> int:  # fmt: skip
    """Keep what go test -bench, pytest-benchmark, Google Benchmark or 'bench run --format json' wrote.

    Repetitions in one file are samples of one process; for verdicts give five files, each of a run of its own.
    """
    o.check_format(format)
    from rooflens.benches.bench_run import FAILED
    from rooflens.benches.imports.formats import imported
    from rooflens.cli.bench.run import show
    from rooflens.store.place import store_to_write
    from rooflens.store.store import checked_name, open_store

    if baseline is not None:
        checked_name(baseline)
    found = imported(files, as_, suite, None if note is None else read_note(note))
    path = store_to_write(store)
    with open_store(path, write=True) as opened:
        id = opened.add(found.run)
        if baseline is not None:
            opened.set_baseline(baseline, id)
    for line in found.notes:
        streams.say(f"rooflens: {line}")
    streams.say(f"rooflens: kept as run {id} in {path}" + (f", named {baseline}" if baseline else ""))
    show(found.run, format, output, None)
    return PartialResult.status if any(r.status == FAILED for r in found.run.rows) else 0
