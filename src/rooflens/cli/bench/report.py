"""`rooflens bench report`: before, after, current and previous, from the store."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rooflens.cli import options as o
from rooflens.cli.bench.options import Html, Store, Suite, pages
from rooflens.errors import MismatchError, SyntaxFault

if TYPE_CHECKING:
    from rooflens.report.bench_report import Held, Part
    from rooflens.store.store import Store as Opened

EXAMPLES = """Examples:

rooflens bench report

rooflens bench report --before v1 --after v2 --format md -o BENCHMARKS.md --html benchmarks.html

rooflens bench report --pr -o comment.md
"""


def report(
    before: Annotated[
        str | None, typer.Option(metavar="NAME", help="[default: the baseline 'before', where there is one]")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="NAME", help="[default: the baseline 'after', where there is one]")
    ] = None,
    current: Annotated[str, typer.Option(metavar="RUN", help="latest, latest~N, an id, or a baseline.")] = "latest",
    previous: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="[default: the run before the current one: same suite, tool, machine]"),
    ] = None,
    allow_mismatch: Annotated[
        bool,
        typer.Option("--allow-mismatch", help="Show runs of other machines or versions beside each other, labelled."),
    ] = False,
    suite: Suite = None,
    store: Store = None,
    format: o.Format = "table",
    output: o.Output = None,
    html: Html = None,
    pr: Annotated[
        bool, typer.Option("--pr", help="As a comment for a pull request: what changed, the rest folded.")
    ] = False,
) -> int:
    """Before and after, current and previous: what is faster, what is slower, and what cannot be told."""
    from rooflens.report.bench_report import report_document
    from rooflens.report.sections.bench_report import report_blocks, report_rows
    from rooflens.store.place import store_to_read
    from rooflens.store.store import open_store

    o.check_format(format)
    if pr and format not in ("table", "md"):
        raise SyntaxFault(f"--pr --format {format}: a comment is Markdown: leave one of the two out")
    with open_store(store_to_read(store), write=False) as opened:
        parts = _parts(opened, {"before": before, "after": after}, current, previous, suite)
    document = report_document(_suite(parts), parts, _held(parts, allow_mismatch=allow_mismatch))
    blocks = report_blocks(document)
    page = pages(html, blocks, f"{document['suite']}: benchmark report")
    if pr:
        o.emit(_comment(document), output, page)
    else:
        o.emit_as(format, document, blocks, report_rows(document), output, page)
    return 0


def _parts(
    opened: "Opened", named: dict[str, str | None], current: str, previous: str | None, suite: str | None
) -> "tuple[Part, ...]":
    from rooflens.report.bench_report import CURRENT, PREVIOUS, Part

    run = opened.find(current, suite)
    known = {b.name: b for b in opened.baselines()}
    sides = []
    for role, name in named.items():
        found = known.get(role)
        if name is None and (found is None or found.suite != run.suite):
            why = f"no run of suite {run.suite} is named '{role}': 'rooflens bench baseline set {role} RUN' names one"
            sides.append(Part(role=role, name=role, why_not=why))
        else:
            sides.append(Part(role=role, name=name or role, run=opened.find(name or role, run.suite)))
    newest = Part(role=CURRENT, name="" if current == "latest" else current, run=run)
    if previous is not None:
        return (*sides, newest, Part(role=PREVIOUS, name=previous, run=opened.find(previous, run.suite)))
    id, why = _before(opened, run.id, run.suite)
    return (*sides, newest, Part(role=PREVIOUS, name="", run=opened.run(id) if id else None, why_not=why))


def _before(opened: "Opened", id: str, suite: str) -> tuple[str, str]:
    """The newest run that is older and of the same suite, tool and machine; or why there is none."""
    runs = opened.summaries(suite)
    place = next(i for i, s in enumerate(runs) if s.id == id)
    current = runs[place]
    older = (s.id for s in runs[place + 1 :] if (s.tool, s.fingerprint) == (current.tool, current.fingerprint))
    return next(older, ""), "there is no earlier run of this suite on this machine"


def _suite(parts: "tuple[Part, ...]") -> str:
    return next(p.run.suite for p in parts if p.role == "current" and p.run)


def _held(parts: "tuple[Part, ...]", *, allow_mismatch: bool) -> "tuple[Held, ...]":
    """Runs that must not be held against each other are shown all the same, with the reason and without a verdict."""
    from rooflens.compare.verdicts import compared
    from rooflens.report.bench_report import Held, pairs_of

    held = []
    for base, new in pairs_of(parts):
        try:
            found = compared(base.run, new.run, allow_mismatch=allow_mismatch) if base.run and new.run else None
            held.append(Held(base=base.role, new=new.role, found=found))
        except MismatchError as error:
            held.append(Held(base=base.role, new=new.role, why_not=str(error)))
    return tuple(held)


def _comment(document: dict[str, Any]) -> str:
    from rooflens.report.render.comment import render
    from rooflens.report.sections.bench_comment import comment

    return render(*comment(document))
