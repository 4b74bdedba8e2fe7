"""A comparison's document in, what is told of it out: first the sentence that matters, then the rows, the worst first."""

from collections.abc import Iterator
from typing import Any

from rooflens.report.blocks import Block, Heading, Paragraph, Table
from rooflens.report.ratios import change, count_change
from rooflens.report.sections.bench_cells import Row, amount, count, field, plural, table_of
from rooflens.report.sections.bench_run import moment, revision_text

Document = dict[str, Any]
NOT_COMPARABLE = "not comparable"
PERCENT = Paragraph(text="Percentages are of time: -8 % takes 8 % less of it. Times are as measured.")


def comparison_blocks(document: Document) -> tuple[Block, ...]:
    return (
        Heading(text=f"{document['new']['suite']}: {side_text(document['new'])} against {side_text(document['base'])}"),
        Paragraph(text=sentence(document)),
        *mismatched(document),
        verdict_table(document["rows"]),
        *counts_changed(document["rows"]),
        *unmatched(document),
        Paragraph(text=how(document)),
        PERCENT,
    )


def sentence(document: Document) -> str:
    """'2 slower, 1 faster, 9 same, 1 inconclusive of 13; all rows together moved by +31 %: …'."""
    counts, rows = document["counts"], len(document["rows"])
    found = ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "nothing to compare"
    moved = machine_moved(document["moved"])
    return f"{found}{f' of {rows}' if rows else ''}{f'; {moved}' if moved else ''}."


def machine_moved(moved: float | None) -> str:
    return "" if moved is None else f"all rows together moved by {change(moved)}: the machine, not the rows"


def mismatched(document: Document) -> Iterator[Block]:
    if document["mismatches"]:
        yield Paragraph(
            text=f"Compared although conditions differ: {'; '.join(document['mismatches'])}.", tone="warning"
        )


def verdict_table(rows: list[Row]) -> Table:
    return table_of(
        (
            field("benchmark", lambda r: str(r["key"]), whole=True),
            field("verdict", lambda r: str(r["verdict"])),
            field("time", _time_change),
            field("beside all rows", lambda r: _change(r, "beside_")),
            field("base", lambda r: _time(r, "base"), numeric=True),
            field("new", lambda r: _time(r, "new"), numeric=True),
            field("why", lambda r: str(r["why"])),
        ),
        rows,
    )


def _time_change(row: Row) -> str:
    return _change(row, "")


def _change(row: Row, which: str) -> str:
    ratio, low, high = (row[f"{which}{name}"] for name in ("ratio", "low", "high"))
    return "" if ratio is None else change(ratio, low, high)


def _time(row: Row, side: str) -> str:
    status = row[f"{side}_status"]
    return amount(row[f"{side}_time_s"], "s") if status == "ok" else str(status)


_COUNTED = (
    ("framework allocations", "framework_count", ""),
    ("framework bytes", "framework_bytes", "B"),
    ("Python blocks", "python_count", ""),
    ("Python bytes", "python_bytes", "B"),
    ("peak memory", "peak_bytes", "B"),
)


def counts_changed(rows: list[Row]) -> Iterator[Block]:
    """A line a count that changed: these are counted, not timed, so they need no interval."""
    changed = [
        {"key": r["key"], "what": what, "base": r[f"base_{name}"], "new": r[f"new_{name}"], "unit": unit}
        for r in rows
        if r["verdict"] != NOT_COMPARABLE
        for what, name, unit in _COUNTED
        if None not in (r[f"base_{name}"], r[f"new_{name}"]) and r[f"base_{name}"] != r[f"new_{name}"]
    ]
    if changed:
        yield Heading(text="Allocations and memory that changed")
        yield table_of(
            (
                field("benchmark", lambda r: str(r["key"]), whole=True),
                field("what", lambda r: str(r["what"])),
                field("base", lambda r: _quantity(r, "base"), numeric=True),
                field("new", lambda r: _quantity(r, "new"), numeric=True),
                field("change", lambda r: count_change(r["base"], r["new"]), numeric=True),
            ),
            changed,
        )


def _quantity(row: Row, side: str) -> str:
    return amount(row[side], "B") if row["unit"] else count(row[side])


def unmatched(document: Document) -> Iterator[Block]:
    """Rows without a counterpart are no regressions and no gains."""
    rows = [
        *({"what": "added", "key": key} for key in document["added"]),
        *({"what": "removed", "key": key} for key in document["removed"]),
        *({"what": "renamed", "key": f"{r['from']} → {r['to']}"} for r in document["renamed"]),
    ]
    if rows:
        yield Heading(text="Added, removed and renamed")
        yield table_of(
            (field("benchmark", lambda r: str(r["key"]), whole=True), field("what", lambda r: str(r["what"]))), rows
        )


_METHODS = {
    "interleaved": "interleaved: processes of both in turns, ratios of those side by side",
    "normalised": "normalised: ratios are of times over what the reference workload took beside them",
    "as measured": "as measured: what else the machine did is in the ratios",
}


def how(document: Document) -> str:
    """What was compared, how, and how sure its verdicts are."""
    base, new = document["base"], document["new"]
    return (
        f"Compared: base {_run_text(base)}, new {_run_text(new)}; {_METHODS[document['method']]}; {_sure(document)}; "
        f"a change matters from {_thresholds(document['rows'])}."
    )


def _sure(document: Document) -> str:
    rows = document["rows"]
    if all(row["low"] is None for row in rows):
        return "no intervals, so no claims"
    each, together = document["confidence"], 1 - (1 - document["confidence"]) * len(rows)
    sure = f"{100 * each:.6g} %" + (f" ({100 * together:.6g} % for all rows together)" if len(rows) > 1 else "")
    return f"intervals of the ratio of times over processes hold with {sure}"


def _thresholds(rows: list[Row]) -> str:
    found = sorted({r["threshold"] for r in rows})
    return " or ".join(f"{100 * t:.6g} %" for t in found) or "none"


def _run_text(side: dict[str, Any]) -> str:
    return f"{side_text(side)} of {moment(side['date'])} ({plural(side['process_count'], 'process')})"


def side_text(side: dict[str, Any]) -> str:
    revision = revision_text(side["revision"])
    return f"run {side['id']}" + (f" at {revision}" if revision else "")


def comparison_rows(document: Document) -> list[Row]:
    """A row a benchmark, for CSV, those without a counterpart too."""
    named = dict.fromkeys(document["rows"][0]) if document["rows"] else {"key": None, "verdict": None}
    lone = [*(("added", key) for key in document["added"]), *(("removed", key) for key in document["removed"])]
    ids = {"base_run": document["base"]["id"], "new_run": document["new"]["id"]}
    return [ids | row for row in (*document["rows"], *(named | {"key": key, "verdict": what} for what, key in lone))]
