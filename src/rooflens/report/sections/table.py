"""The sections of an analysis report, in order: adding one is one file and one row here."""

from collections.abc import Callable
from typing import Any

from rooflens.report.blocks import Block
from rooflens.report.sections import head, tables
from rooflens.report.sections.chart import chart_of

Section = Callable[[dict[str, Any]], tuple[Block, ...]]


def _chart(document: dict[str, Any]) -> tuple[Block, ...]:
    chart = chart_of(document)
    return (chart,) if chart is not None else ()


SECTIONS: tuple[Section, ...] = (
    head.title,
    head.opaque,
    head.verdict,
    head.totals,
    _chart,
    tables.layers,
    tables.reuse,
    tables.advice,
    tables.alone,
    tables.small_print,
)


def blocks_of(document: dict[str, Any]) -> tuple[Block, ...]:
    return tuple(block for section in SECTIONS for block in section(document))
