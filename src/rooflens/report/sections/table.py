"""The sections of an analysis report and of a fusion report, in order: adding one is one function and one row here."""

from collections.abc import Callable
from typing import Any

from rooflens.report.blocks import Block
from rooflens.report.sections import against, compiled, fusion, fusion_verdict, head, measured, tables, tried
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
FUSION_SECTIONS: tuple[Section, ...] = (
    head.title,
    head.opaque,
    fusion_verdict.verdict,
    fusion.before_and_after,
    fusion.patterns,
    fusion.sizes,
    fusion.heaviest_units,
    _chart,
    fusion.blocks,
    fusion.costs,
    against.agreement,
    against.side_by_side,
    against.differences,
    tables.reuse,
    tables.small_print,
)


MEASURED_SECTIONS: tuple[Section, ...] = (
    measured.title,
    measured.problems,
    head.opaque,
    measured.verdict,
    measured.whole,
    measured.chart,
    compiled.units,
    compiled.unmatched,
    measured.layers,
    measured.inside,
    measured.above,
    tried.changes,
    tried.lines,
    measured.memory,
    measured.conditions,
)


def measured_blocks_of(document: dict[str, Any]) -> tuple[Block, ...]:
    return tuple(block for section in MEASURED_SECTIONS for block in section(document))


def blocks_of(document: dict[str, Any]) -> tuple[Block, ...]:
    return tuple(block for section in SECTIONS for block in section(document))


def fusion_blocks_of(document: dict[str, Any]) -> tuple[Block, ...]:
    return tuple(block for section in FUSION_SECTIONS for block in section(document))
