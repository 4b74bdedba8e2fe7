"""A saved bench document in, its Blocks and its CSV rows out, whatever kind it is of: a row of the table a kind."""

from collections.abc import Callable
from typing import Any

from rooflens.errors import ConfigError
from rooflens.report.blocks import Block
from rooflens.report.sections.bench_comparison import comparison_blocks, comparison_rows
from rooflens.report.sections.bench_report import report_blocks, report_rows
from rooflens.report.sections.bench_run import run_blocks, run_rows

Document = dict[str, Any]
Rows = list[dict[str, Any]]
KINDS: dict[str, tuple[Callable[[Document], tuple[Block, ...]], Callable[[Document], Rows]]] = {
    "run": (run_blocks, run_rows),
    "comparison": (comparison_blocks, comparison_rows),
    "report": (report_blocks, report_rows),
}


def bench_views(document: Document) -> tuple[tuple[Block, ...], Rows]:
    kind = document["kind"]
    if kind not in KINDS:
        raise ConfigError(
            f"a saved bench document of kind '{kind}' is not drawn again: give what 'bench run', 'compare' or 'report' printed"
        )
    blocks, rows = KINDS[kind]
    return blocks(document), rows(document)
