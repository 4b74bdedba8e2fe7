"""A report's document in, its Blocks out: configurations, each named run with what changed, and what can be said of it."""

from collections.abc import Callable, Iterator
from typing import Any

from rooflens.report.blocks import Block, Heading, Paragraph, Table
from rooflens.report.ratios import change, reduction_text, speedup
from rooflens.report.sections.bench_cells import Field, Row, amount, count, field, table_of
from rooflens.report.sections.bench_comparison import (
    NOT_COMPARABLE,
    how,
    machine_moved,
    mismatched,
    sentence,
    unmatched,
)
from rooflens.report.sections.bench_run import conditions, stopped, time_cell, words

Document = dict[str, Any]
_TITLES = {"before": "BEFORE", "after": "AFTER", "current": "CURRENT", "previous": "PREVIOUS"}


def report_blocks(document: Document) -> tuple[Block, ...]:
    return (
        Heading(text=f"Benchmark report: {document['suite']}"),
        Paragraph(text=verdict(document)),
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


def verdict(document: Document) -> str:
    """One sentence for each pair of runs; the machine's own movement once for each."""
    told = [
        f"{pair_title(pair)}: {sentence(pair['comparison'])}" for pair in document["comparisons"] if pair["comparison"]
    ]
    return " ".join(told) or "Nothing to compare yet: there is one run."


def pair_title(pair: Row) -> str:
    return f"{_TITLES[pair['new']]} against {_TITLES[pair['base']]}"


def _runs(document: Document) -> Iterator[Block]:
    for part in document["runs"]:
        title = _title(part)
        if part["run"] is None:
            yield Paragraph(text=f"{title}: {part['why_not']}.")
        else:
            yield Paragraph(text=f"{title}: {conditions(part['run'])}")
            yield from stopped(part["run"])
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
    roles = [part["role"] for part in document["runs"] if part["run"]]
    alike = all(row["runs"] == roles for row in rows)
    return table_of(
        (
            field("benchmark", lambda r: str(r["name"])),
            field("passes", lambda r: ", ".join(r["passes"])),
            field("layer", lambda r: "" if r["source"] == r["name"] else str(r["source"])),
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
    fields = (*_MEASURED, *(field for pair in pairs for field in _against(pair, several=len(pairs) > 1)))
    return (
        Heading(text=_title(part)),
        *(Paragraph(text=f"{pair_title(pair)}, {moved}.") for pair in pairs for moved in _moves(pair)),
        table_of(fields, part["run"]["rows"]),
        *(block for pair in pairs for block in unmatched(pair["comparison"])),
    )


def _moves(pair: Row) -> list[str]:
    moved = machine_moved(pair["comparison"]["moved"])
    return [moved] if moved else []


_MEASURED: tuple[Field, ...] = (
    field("benchmark", lambda r: str(r["key"])),
    field("time", time_cell, numeric=True),
    field("framework allocations", lambda r: count(r["framework_count"]), numeric=True),
    field("framework bytes", lambda r: amount(r["framework_bytes"], "B"), numeric=True),
    field("Python blocks", lambda r: count(r["python_count"]), numeric=True),
    field("Python bytes", lambda r: amount(r["python_bytes"], "B"), numeric=True),
)


def _against(pair: Row, *, several: bool) -> Iterator[Field]:
    """A speed-up tells of work that was done between two runs; a change, of what became of it."""
    rows = {row["key"]: row for row in pair["comparison"]["rows"]}
    told, named = (_speedup, "speed-up") if pair["new"] == "after" else (_change, f"vs {pair['base']}")
    yield field(named, _looked_up(rows, told))
    if pair["base"] != "previous" or not several:
        yield field("fewer allocations", _looked_up(rows, _fewer("framework_count")), numeric=True)
        yield field("fewer Python blocks", _looked_up(rows, _fewer("python_count")), numeric=True)


def _looked_up(rows: dict[str, Row], told: Callable[[Row], str]) -> Callable[[Row], str]:
    return lambda row: told(rows[row["key"]]) if row["key"] in rows else ""


def _fewer(name: str) -> Callable[[Row], str]:
    return lambda r: "" if r["verdict"] == NOT_COMPARABLE else reduction_text(r[f"base_{name}"], r[f"new_{name}"])


def _speedup(row: Row) -> str:
    return _judged(row, speedup)


def _change(row: Row) -> str:
    return _judged(row, change)


def _judged(row: Row, told: Callable[[float, float | None, float | None], str]) -> str:
    """The verdict stands before the number, so that nobody reads the number alone."""
    if row["ratio"] is None or row["verdict"] == NOT_COMPARABLE:
        return str(row["verdict"])
    return f"{row['verdict']}: {told(row['ratio'], row['low'], row['high'])}"


def claims(document: Document, title: str, name: str, none: str) -> Iterator[Block]:
    if not any(pair["comparison"] for pair in document["comparisons"]):
        return
    yield Heading(text=title)
    if not document[name]:
        yield Paragraph(text=none)
        return
    yield table_of(
        (
            field("benchmark", lambda r: str(r["key"])),
            field("compared", pair_title),
            field("what the interval allows to say", lambda r: str(r["claim"])),
        ),
        document[name],
    )


def undecided(document: Document) -> Iterator[Block]:
    """Rows of which nothing is said, and why: no gain, no loss, and no equality either."""
    if document["undecided"]:
        yield Heading(text="Nothing is said of")
        yield table_of(
            (
                field("benchmark", lambda r: str(r["key"])),
                field("compared", pair_title),
                field("verdict", lambda r: str(r["verdict"])),
                field("why", lambda r: str(r["why"])),
            ),
            document["undecided"],
        )


def _small_print(document: Document) -> Iterator[Block]:
    for pair in document["comparisons"]:
        if pair["comparison"]:
            yield Paragraph(text=f"{pair_title(pair)}. {how(pair['comparison'])}")


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
