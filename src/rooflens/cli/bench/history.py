"""`rooflens bench history`: the runs of a store, and each benchmark's times over them with its steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rooflens.cli import options as o
from rooflens.cli.bench.options import Html, Store, Suite, pages
from rooflens.errors import InputError, SyntaxFault, nearest

if TYPE_CHECKING:
    from rooflens.benches.bench_run import BenchRun

EXAMPLES = """Examples:

rooflens bench history

rooflens bench history conv2d linear/backward --limit 30

rooflens bench history --suite default --html history.html
"""
_LIMIT = 100


def history(
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BENCHMARK]…",
            help="Names, or names with a pass: conv2d, conv2d/backward. [default: all]",
            show_default=False,
        ),
    ] = None,
    suite: Suite = None,
    store: Store = None,
    limit: Annotated[int, typer.Option(metavar="N", help="The newest so many runs.")] = _LIMIT,
    format: o.Format = "table",
    output: o.Output = None,
    html: Html = None,
) -> int:
    """The runs of a store, newest first, and each benchmark's times over them: steps, when and by how much."""
    o.check_format(format)
    if limit < 1:
        raise SyntaxFault(f"--limit {limit}: how many runs to show: write 1 or more")
    from rooflens.report.sections.history import history_blocks, history_rows

    document = _document(benchmarks or [], suite, store, limit)
    blocks = history_blocks(document)
    o.emit_as(format, document, blocks, history_rows(document), output, pages(html, blocks, "benchmark history"))
    return 0


def _document(names: Sequence[str], suite: str | None, store: str | None, limit: int) -> dict[str, Any]:
    """One reading of the store: its runs and its baselines belong together."""
    from rooflens.compare.trails import trail_of
    from rooflens.report.history import history_document
    from rooflens.store.place import store_to_read
    from rooflens.store.store import open_store

    path = store_to_read(store)
    with open_store(path, write=False) as opened:
        summaries = opened.summaries()
        _known_suite(str(path), suite, {s.suite for s in summaries})
        wanted = [s for s in summaries if suite in (None, s.suite)][:limit]
        runs = [opened.run(s.id) for s in reversed(wanted)]
    keys = chosen(runs, names)
    trails = [trail_of(runs, key) for key in keys]
    return history_document(runs, trails, {s.id: s.baselines for s in wanted}, suite)


def _known_suite(path: str, suite: str | None, known: set[str]) -> None:
    if suite is not None and suite not in known:
        there = ", ".join(sorted(known)) or "none"
        raise InputError(f"{path}: no run of suite '{suite}': there are: {there}.{nearest(suite, sorted(known))}")


def chosen(runs: "Sequence[BenchRun]", names: Sequence[str]) -> list[str]:
    """The benchmarks that are meant: a name without a pass is all of its passes; no names, all benchmarks."""
    from rooflens.compare.trails import keys_of

    keys = keys_of(runs)
    if not names:
        return list(keys)
    named = {row.benchmark.key: row.benchmark.name for run in runs for row in run.rows}
    for name in names:
        if name not in named and name not in named.values():
            known = dict.fromkeys((*named.values(), *keys))
            raise InputError(
                f"'{name}': no benchmark of that name in {len(runs)} run{'s' * (len(runs) != 1)}.{nearest(name, known)} "
                "'rooflens bench history' without names lists all"
            )
    return [key for key in keys if key in names or named[key] in names]
