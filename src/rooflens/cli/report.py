"""`rooflens report`: a saved result drawn again."""

from typing import Annotated

import typer

from rooflens.cli import options as o
from rooflens.errors import NotInThisVersion, SyntaxFault

app = typer.Typer(rich_markup_mode=None, add_completion=False)
EPILOG = """Examples:

rooflens analyze resnet18 --on h100-sxm --format json -o resnet18.json

rooflens report resnet18.json --format md -o resnet18.md --plot resnet18.svg
"""


@app.command(epilog=EPILOG)
def report(
    result: Annotated[str, typer.Argument(metavar="RESULT.json", help="A result saved with --format json.")],
    format: o.Format = "table",
    output: o.Output = None,
    html: o.Html = None,
    plot: o.Plot = None,
) -> int:
    """Draw a saved result again; nothing is traced or measured anew."""
    if html is not None or result.lower().endswith((".html", ".htm")):
        raise NotInThisVersion(
            "HTML pages are not in this version: give a RESULT.json, and --plot FILE.svg or --format md"
        )
    from rooflens.cli.documents import plotted, rendered
    from rooflens.cli.machine import show
    from rooflens.report.saved import read_documents
    from rooflens.report.sections.bench import bench_views
    from rooflens.report.sections.profile import profile_blocks
    from rooflens.resultfile import BENCH_SCHEMA, MACHINE_SCHEMA, PROFILE_SCHEMA

    documents = read_documents(result)
    if documents[0]["schema"] == MACHINE_SCHEMA:
        return show(documents[0], o.check_format(format), output, plot)
    if documents[0]["schema"] == PROFILE_SCHEMA:
        profile = documents[0]
        o.emit_as(o.check_format(format), profile, profile_blocks(profile), profile["reaches"], output)
        return 0
    if documents[0]["schema"] == BENCH_SCHEMA:
        if plot is not None:
            raise SyntaxFault(f"--plot {plot}: benchmarks have no roofline to draw: leave it out")
        blocks, rows = bench_views(documents[0])
        o.emit_as(o.check_format(format), documents[0], blocks, rows, output)
        return 0
    o.emit(rendered(documents, o.check_format(format), output), output, plotted(documents, plot))
    return 0
