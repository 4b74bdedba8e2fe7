"""The document of a checked report in, its Blocks and rows out: what is wrong, line by line, and how much could be checked."""

from collections.abc import Iterator
from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table

Document = dict[str, Any]
_COLUMNS = (
    Column(name="line", numeric=True), Column(name="kind"), Column(name="claim"), Column(name="should be", numeric=True),
    Column(name="from"),
)  # fmt: skip


def check_blocks(document: Document) -> tuple[Block, ...]:
    notes = [f for f in document["findings"] if f["kind"] == "note"]
    faults = [f for f in document["findings"] if f["kind"] != "note"]
    return (
        Heading(text=f"{document['file']}: {_verdict(document, faults)}"),
        Paragraph(text=_counted(document)),
        *_table(faults),
        *(Paragraph(text=f"Note, line {_lines(f)}: {f['claim']}: {f['why']}.") for f in notes),
        *_left_out(document),
    )


def check_rows(document: Document) -> list[dict[str, Any]]:
    """A row a finding, for CSV; a header alone where there is none."""
    fields = ("line", "kind", "claim", "should_be", "why")
    found = [{name: f[name] for name in fields} for f in document["findings"]]
    return [{**f, "lines": " ".join(map(str, d["lines"]))} for f, d in zip(found, document["findings"], strict=True)]


def _verdict(document: Document, faults: list[dict[str, Any]]) -> str:
    if faults:
        return f"{len(faults)} to mend"
    claims = document["claims"]
    if not claims["right"]:
        return "nothing could be checked" if claims["not_checkable"] else "it claims nothing"
    return "nothing is wrong"


def _counted(document: Document) -> str:
    c = document["claims"]
    tables, number = document["tables"], sum(c.values())
    return (
        f"{number} claim{'s' * (number != 1)} beside {tables} table{'s' * (tables != 1)} of measurements: {c['right']} "
        f"follow from the report's own numbers, {c['wrong']} do not, {c['not_checkable']} cannot be checked with them."
    )


def _table(faults: list[dict[str, Any]]) -> Iterator[Block]:
    rows = tuple((str(f["line"]), f["kind"], f["claim"], f["should_be"] or "–", f["why"]) for f in faults)
    if rows:
        yield Table(columns=_COLUMNS, rows=rows)


def _lines(finding: dict[str, Any]) -> str:
    return ", ".join(map(str, (finding["line"], *finding["lines"])))


def _left_out(document: Document) -> Iterator[Block]:
    if document["left_out"]:
        yield Paragraph(text=f"Not read: {'; '.join(document['left_out'])}.", tone="warning")
