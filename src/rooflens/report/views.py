"""The ways to look at an analysis document: layer by layer (`analyze`), before and after fusion (`fuse`), and what was
measured (`measure`)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rooflens.report import rows
from rooflens.report.blocks import Block
from rooflens.report.sections.fusion_side import model_by_model
from rooflens.report.sections.side import side_by_side
from rooflens.report.sections.table import blocks_of, fusion_blocks_of, measured_blocks_of
from rooflens.resultfile import MEASUREMENT_SCHEMA

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Blocks of one document, Blocks that stand before several, and CSV rows; `key` tells rows of several apart."""

    blocks: Callable[[Document], tuple[Block, ...]]
    together: Callable[[list[Document]], tuple[Block, ...]]
    header: tuple[str, ...]
    rows: Callable[[Document], list[tuple[Any, ...]]]
    key_header: tuple[str, ...]
    key: Callable[[Document], tuple[Any, ...]]


VIEWS = {
    "analyze": View(
        blocks=blocks_of, together=side_by_side, header=rows.HEADER, rows=rows.rows_of, key_header=("chip",),
        key=lambda d: (d["settings"]["on"],),
    ),
    "fuse": View(
        blocks=fusion_blocks_of, together=model_by_model, header=rows.GROUP_HEADER, rows=rows.group_rows_of,
        key_header=("model", "chip"), key=lambda d: (d["model"]["name"], d["settings"]["on"]),
    ),
    "measure": View(
        blocks=measured_blocks_of, together=side_by_side, header=rows.MEASURED_HEADER, rows=rows.measured_rows_of,
        key_header=("chip",), key=lambda d: (d["settings"]["on"],),
    ),
}  # fmt: skip


def view_of(document: Document, asked: str = "analyze") -> str:
    """What was measured is shown as that, whoever draws it."""
    return "measure" if document["schema"] == MEASUREMENT_SCHEMA else asked
