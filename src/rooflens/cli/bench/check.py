"""`rooflens bench check`: the percentages and speed-ups of a written report, derived again."""

from typing import Annotated

import typer

from rooflens.cli import options as o
from rooflens.errors import FormatError, PartialResult

EXAMPLES = """Examples:

rooflens bench check REPORT.md

rooflens bench check docs/benchmarks.md --format json -o findings.json
"""
_LARGEST = 5_000_000


def check(
    report: Annotated[str, typer.Argument(metavar="REPORT.md", help="Markdown with tables of measurements.")],
    format: o.Format = "table",
    output: o.Output = None,
) -> int:
    """Derive the percentages and speed-ups of a written report again; status 1 where one is wrong."""
    o.check_format(format)
    from rooflens.compare.checked import checked
    from rooflens.compare.written import written
    from rooflens.report.bench_check import check_document
    from rooflens.report.sections.bench_check import check_blocks, check_rows
    from rooflens.textfile import read_text

    found = checked(written(read_text(report, "a benchmark report in Markdown", _LARGEST)))
    if not found.tables:
        raise FormatError(
            f"{report}: no table of measurements: give one with a column such as 'Duration (ns/op)', 'Time (ms)', "
            "'Allocations' or 'Memory (B/op)'"
        )
    document = check_document(report, found)
    o.emit_as(format, document, check_blocks(document), check_rows(document), output)
    if found.faults:
        return 1
    return PartialResult.status if found.not_checkable and not found.right else 0
