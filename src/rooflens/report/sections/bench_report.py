"""A report's document in, its Blocks out: configurations, each named run with what changed, and what can be said of it."""

from collections.abc import Callable, Iterator
from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.report.ratios import change, count_change, reduction_text, speedup
from rooflens.report.sections.bench_cells import Field, Row, field, table_of
from rooflens.report.sections.bench_comparison import (
    NOT_COMPARABLE,
    PERCENT,
    how,
    mismatched,
    sentence,
    unmatched,
)
from rooflens.report.sections.bench_run import (
    allocations,
    conditions,
    side_of,
    stopped,
    time_cell,
    without_time,
    words,
)

Document = dict[str, Any]
_NAMED = 8
_TITLES = {"before": "BEFORE", "after": "AFTER", "current": "CURRENT", "previous": "PREVIOUS"}


def report_blocks(document: Document) -> tuple[Block, ...]:
    return (
        Heading(text=f"Benchmark report: {document['suite']}"),
        *verdict(document),
        *_runs(document),
        Heading(text="Configurations"),
        _configurations(document),
        *(block for role in ("before", "after", "current") for block in _part(document, role)),
        *claims(document, "Performance highlights", "highlights", "No row is faster with any certainty."),
        *claims(document, "Areas of note", "areas_of_note", "No row is slower with any certainty."),
        *undecided(document),
        *(words(document["note"]) if document["note"] else ()),
        *_small_print(document),
    )


def verdict(document: Document) -> tuple[Block, ...]:
    """A sentence for each pair of runs, in which it is said once that the machine moved."""
    pairs = [pair for pair in document["comparisons"] if pair["comparison"]]
    told = tuple(Paragraph(text=f"{pair_title(pair)}: {sentence(pair['comparison'])}") for pair in pairs)
    return told or (Paragraph(text="Nothing is compared."),)


def pair_title(pair: Row) -> str:
    return f"{_TITLES[pair['new']]} against {_TITLES[pair['base']]}"


def _runs(document: Document) -> Iterator[Block]:
    known: dict[str, str] = {}
    for part in document["runs"]:
        run, title = part["run"], _title(part)
        if run is None:
            yield Paragraph(text=f"{title}: {part['why_not']}.")
        elif run["id"] in known:
            yield Paragraph(text=f"{title}: the same run as {known[run['id']]}.")
        else:
            yield Paragraph(text=f"{title}: {conditions(run)}")
            yield from stopped(run)
        known.setdefault(run["id"] if run else "", title)
    yield from not_compared(document)
    for pair in document["comparisons"]:
        if pair["comparison"]:
            yield from mismatched(pair["comparison"])


def not_compared(document: Document) -> Iterator[Block]:
    """Pairs that were refused, and the reason."""
    for pair in document.get("comparisons", ()):
        if pair["why_not"]:
            yield Paragraph(text=f"{pair_title(pair)}: not compared: {pair['why_not']}", tone="warning")


def _title(part: Row) -> str:
    title = _TITLES[part["role"]]
    return title if part["name"] in ("", part["role"]) else f"{title} ({part['name']})"


def _configurations(document: Document) -> Table:
    rows = document["configurations"]
    roles = {role for row in rows for role in row["runs"]}
    alike = all(set(row["runs"]) == roles for row in rows)
    return table_of(
        (
            field("benchmark", lambda r: str(r["name"])),
            field("passes", lambda r: ", ".join(r["passes"])),
            field("source", lambda r: "" if r["source"] == r["name"] else str(r["source"])),
            field("shape", lambda r: r["shape"] or ""),
            field("runs", lambda r: "" if alike else ", ".join(_TITLES[role] for role in r["runs"])),
        ),
        rows,
    )


def _part(document: Document, role: str) -> tuple[Block, ...]:
    """A named run: its rows, and beside each what it is against the run that it is held against."""
    part = next((p for p in document["runs"] if p["role"] == role), None)
    if part is None or part["run"] is None:
        return ()
    pairs = [pair for pair in document["comparisons"] if pair["new"] == role and pair["comparison"]]
    rows = part["run"]["rows"]
    return (
        Heading(text=_title(part)),
        *_tables(rows, pairs, part["run"]["tool"]),
        *without_time(rows, f"{_title(part)}, without a time"),
        *(block for pair in pairs for block in unmatched(pair["comparison"])),
    )


def _tables(rows: list[Row], pairs: list[Row], tool: str) -> tuple[Table, ...]:
    """Times and allocations in one table, as far as one side alone is counted; else in two, or no terminal would hold it."""
    key, time = field("benchmark", lambda r: str(r["key"]), whole=True), field("time", time_cell, numeric=True)
    judged = tuple(_judgement(pair) for pair in pairs)
    counted, fewer = allocations(tool), tuple(_counts(pair, tool) for pair in pairs[:1])
    if all(row["python_count"] is None for row in rows):
        return (table_of((key, time, *counted, *judged, *fewer), rows),)
    measured = [row for row in rows if row["status"] == "ok"]
    return table_of((key, time, *judged), rows), table_of((key, *counted, *fewer), measured)


def _judgement(pair: Row) -> Field:
    """A speed-up tells of work that was done between two runs; a change, of what became of it."""
    rows = {row["key"]: row for row in pair["comparison"]["rows"]}
    told, named = (_speedup, "speed-up") if pair["new"] == "after" else (_change, f"vs {_TITLES[pair['base']]}")
    return field(named, _looked_up(rows, told))


def _counts(pair: Row, tool: str) -> Field:
    rows, counted = {row["key"]: row for row in pair["comparison"]["rows"]}, f"{side_of(tool)}allocations"
    if pair["new"] == "after":
        return field(f"fewer {counted}", _looked_up(rows, _counted(reduction_text)), numeric=True)
    return field(f"{counted} vs {_TITLES[pair['base']]}", _looked_up(rows, _counted(count_change)), numeric=True)


def _looked_up(rows: dict[str, Row], told: Callable[[Row], str]) -> Callable[[Row], str]:
    return lambda row: told(rows[row["key"]]) if row["key"] in rows else ""


def _counted(told: Callable[[int | None, int | None], str]) -> Callable[[Row], str]:
    count = "framework_count"
    return lambda r: "" if r["verdict"] == NOT_COMPARABLE else told(r[f"base_{count}"], r[f"new_{count}"])


def _speedup(row: Row) -> str:
    return _judged(row, speedup)


def _change(row: Row) -> str:
    return _judged(row, change)


def _judged(row: Row, told: Callable[[float, float | None, float | None], str]) -> str:
    """The verdict stands before the number, so that nobody reads the number alone; where it was reached beside what all
    rows moved by, so is the number."""
    if row["ratio"] is None:
        return str(row["verdict"])
    beside = row["beside_ratio"] is not None and row["verdict"] in ("faster", "slower")
    ratio, low, high = (row[f"{'beside_' * beside}{name}"] for name in ("ratio", "low", "high"))
    return f"{row['verdict']}: {told(ratio, low, high)}{' beside the others' * beside}"


def claims(document: Document, title: str, name: str, none: str) -> Iterator[Block]:
    if not any(pair["comparison"] for pair in document["comparisons"]):
        return
    yield Heading(text=title)
    if not document[name]:
        yield Paragraph(text=none)
        return
    yield table_of(
        (
            field("benchmark", lambda r: str(r["key"]), whole=True),
            field("compared", pair_title),
            field("what the interval allows to say", lambda r: str(r["claim"])),
        ),
        document[name],
    )


def undecided(document: Document) -> Iterator[Block]:
    """What nothing is said of, and why: no gain, no loss, and no equality either. Rows without a time stand as that in the
    run."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in document["undecided"]:
        if row["new_status"] == "ok":
            found.setdefault((pair_title(row), row["verdict"], row["why"]), []).append(row["key"])
    if found:
        names = ("compared", "verdict", "why", "benchmarks")
        rows = tuple((*what, _some(keys)) for what, keys in found.items())
        yield Heading(text="Nothing is said of")
        yield Table(columns=tuple(Column(name=name) for name in names), rows=rows)


def _some(keys: list[str]) -> str:
    """As many as a cell has room for."""
    rest = len(keys) - _NAMED
    return ", ".join(keys[:_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


def _small_print(document: Document) -> Iterator[Block]:
    pairs = [pair for pair in document["comparisons"] if pair["comparison"]]
    yield from (Paragraph(text=f"{pair_title(pair)}. {how(pair['comparison'])}") for pair in pairs)
    yield from [PERCENT] if pairs else []


def report_rows(document: Document) -> list[Row]:
    """A row a run and benchmark, for CSV, with what it is against the runs that it is held against."""
    runs = [part for part in document["runs"] if part["run"]]
    return [_flat(document, part, row) for part in runs for row in part["run"]["rows"]]


_FLAT = (
    "key", "name", "pass", "status", "reason", "time_s", "low_s", "high_s", "process_count", "framework_count",
    "framework_bytes", "python_count", "python_bytes", "peak_bytes", "kernels", "flop_per_s", "bytes_per_s", "roof_share",
)  # fmt: skip
_HELD = (
    "verdict", "ratio", "low", "high", "why", "framework_count_reduction", "framework_bytes_reduction",
    "python_count_reduction", "python_bytes_reduction",
)  # fmt: skip


def _flat(document: Document, part: Row, row: Row) -> Row:
    flat = {"run": part["role"], "id": part["run"]["id"], **{name: row[name] for name in _FLAT}}
    for base in ("before", "after", "previous"):
        of = next((p for p in document["comparisons"] if (p["base"], p["new"]) == (base, part["role"])), None)
        rows = of["comparison"]["rows"] if of and of["comparison"] else []
        found = next((r for r in rows if r["key"] == row["key"]), dict.fromkeys(_HELD))
        flat |= {f"vs_{base}_{name}": found[name] for name in _HELD}
    return flat
