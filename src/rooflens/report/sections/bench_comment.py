"""A report's or a comparison's document in, what a pull-request comment shows and what it folds away out."""

from typing import Any

from rooflens.report.blocks import Block, Heading, Paragraph
from rooflens.report.sections.bench_comparison import (
    PERCENT,
    counts_changed,
    how,
    mismatched,
    sentence,
    unmatched,
    verdict_table,
)
from rooflens.report.sections.bench_report import not_compared, pair_title

Document = dict[str, Any]
_CHANGED = ("slower", "faster")
_NOTHING = "No row is slower or faster with any certainty."


def comment(document: Document) -> tuple[tuple[Block, ...], tuple[tuple[str, tuple[Block, ...]], ...]]:
    """The newest run's verdicts are shown; those between older ones were there before this change, and are folded."""
    pairs = _pairs(document)
    newest = tuple(p for p in pairs if p["new"] in ("new", "current")) or pairs
    shown = tuple(block for pair in newest for block in _shown(pair))
    older = tuple((f"{_title(pair)}: all rows", _whole(pair)) for pair in pairs if pair not in newest)
    rest = tuple((f"{_title(pair)}: the other rows, and what was compared", _rest(pair)) for pair in newest)
    suite = document.get("suite") or document["new"]["suite"]
    empty = () if pairs else (Paragraph(text="Nothing is compared."),)
    return (Heading(text=f"Benchmarks: {suite}"), *shown, *empty, *not_compared(document)), (*rest, *older)


def _pairs(document: Document) -> tuple[Document, ...]:
    if document["kind"] == "comparison":
        return ({"base": "base", "new": "new", "comparison": document},)
    return tuple(pair for pair in document["comparisons"] if pair["comparison"])


def _title(pair: Document) -> str:
    return "New against base" if pair["new"] == "new" else pair_title(pair)


def _shown(pair: Document) -> tuple[Block, ...]:
    found = pair["comparison"]
    changed = [row for row in found["rows"] if row["verdict"] in _CHANGED]
    return (
        Paragraph(text=f"{_title(pair)}: {sentence(found)}"),
        *mismatched(found),
        verdict_table(changed) if changed else Paragraph(text=_NOTHING),
    )


def _rest(pair: Document) -> tuple[Block, ...]:
    found = pair["comparison"]
    others = [row for row in found["rows"] if row["verdict"] not in _CHANGED]
    return (
        *((verdict_table(others),) if others else ()),
        *counts_changed(found["rows"]),
        *unmatched(found),
        Paragraph(text=how(found)),
        PERCENT,
    )


def _whole(pair: Document) -> tuple[Block, ...]:
    found = pair["comparison"]
    return (
        Paragraph(text=sentence(found)),
        verdict_table(found["rows"]),
        *unmatched(found),
        Paragraph(text=how(found)),
    )
