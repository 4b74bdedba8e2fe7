"""A run's document in, what is told of it out: where and under what it ran, times under the roof, memory, and what has no
time and why. A table a subject, so that each fits a terminal."""

from collections.abc import Iterator
from typing import Any

from rooflens.compare.verdicts import LEAST_PROCESSES
from rooflens.report.blocks import Block, Heading, Paragraph, Table, Words
from rooflens.report.ratios import plus_minus
from rooflens.report.sections.bench_cells import Field, Row, amount, count, field, plural, table_of

Document = dict[str, Any]


def run_blocks(document: Document) -> tuple[Block, ...]:
    rows = document["rows"]
    return (
        Heading(text=f"Benchmarks: {document['suite']}"),
        Paragraph(text=conditions(document)),
        *stopped(document),
        times(rows),
        *_small_print(document),
        *_disturbed(rows),
        *_above_roof(rows),
        *_memory(document),
        *without_time(rows),
        *(words(document["note"]) if document["note"] else ()),
    )


def conditions(document: Document) -> str:
    """Which run, where, of what and under what."""
    machine, settings = document["machine"], document["settings"]
    threads = "" if machine["threads"] is None else plural(machine["threads"], "thread")
    device = machine["device_name"] if machine["device_name"] != machine["name"] else ""
    versions = [f"{name} {version}" for name, version in document["versions"].items()]
    told = (
        f"Run {document['id']} of {moment(document['date'])}",
        _listed(machine["name"], device, threads, machine["system"]),
        _listed("" if document["tool"] == "rooflens" else document["tool"], *versions),
        revision_text(document["revision"]),
        _listed(*(_setting(name, value) for name, value in settings.items() if value is not None)),
    )
    return "; ".join(filter(None, told)) + "."


def moment(date: str) -> str:
    return date.replace("T", " ").replace("+00:00", " UTC").replace("Z", " UTC")


def revision_text(revision: dict[str, Any] | None) -> str:
    if revision is None:
        return ""
    label = f" ({revision['label']})" if revision["label"] else ""
    return f"commit {revision['commit'][:12]}{label}{' with changes not committed' if revision['dirty'] else ''}"


def _listed(*words: str) -> str:
    return ", ".join(filter(None, words))


def _setting(name: str, value: Any) -> str:
    told = ("off", "on")[value] if isinstance(value, bool) else str(value)
    named = name.removesuffix("_s")
    return f"{named.replace('_', ' ')} {told}{' s' if named != name else ''}"


def stopped(document: Document) -> Iterator[Block]:
    if document["stopped_by"]:
        by = {"KeyboardInterrupt": "Ctrl-C", "Terminated": "SIGTERM"}.get(
            document["stopped_by"], document["stopped_by"]
        )
        yield Paragraph(text=f"Stopped by {by}: what was measured until then.", tone="warning")


def words(note: str) -> tuple[Block, ...]:
    return Heading(text="Optimizations applied"), Words(text=note)


def times(rows: list[Row]) -> Table:
    return table_of(
        (
            field("benchmark", lambda r: str(r["key"]), whole=True),
            field("time", time_cell, numeric=True),
            field("FLOP/s", lambda r: amount(r["flop_per_s"], "FLOP/s"), numeric=True),
            field("bytes/s", lambda r: amount(r["bytes_per_s"], "B/s"), numeric=True),
            field("of roof", _roof_share, numeric=True),
        ),
        rows,
    )


def time_cell(row: Row) -> str:
    return plus_minus(row["time_s"], row["low_s"], row["high_s"]) if row["status"] == "ok" else str(row["status"])


def _roof_share(row: Row) -> str:
    share = row["roof_share"]
    return "" if share is None else f"{share:.1%}{'!' * (share > 1)}"


def _small_print(document: Document) -> Iterator[Block]:
    """What a time is of, and how sure."""
    measured = [r for r in document["rows"] if r["time_s"] is not None]
    most = max((len(r["processes"]) for r in measured), default=0)
    if most > 1:
        sure = (
            "; ± is the further end of its interval over processes"
            if any(r["low_s"] is not None for r in measured)
            else ""
        )
        yield Paragraph(text=f"A time is the median over {plural(most, 'process')} of the medians of each{sure}.")
    elif measured:
        yield Paragraph(
            text="One process measured them: that is no evidence of how the next one would be, so no interval."
        )


def _disturbed(rows: list[Row]) -> Iterator[Block]:
    few = sum(r["undisturbed_count"] < LEAST_PROCESSES <= len(r["processes"]) for r in rows)
    if few:
        yield Paragraph(
            text=f"The machine was disturbed (other work, or a pace that changed meanwhile): {few} of "
            f"{plural(len(rows), 'row')} {'has' if few == 1 else 'have'} fewer than {LEAST_PROCESSES} undisturbed processes, "
            "so that no verdict will rest on this run there. Run it again when nothing else runs.",
            tone="warning",
        )


def _above_roof(rows: list[Row]) -> Iterator[Block]:
    """Kept as measured: either the roof is too low, or less was done than is counted."""
    above = [r["key"] for r in rows if r["roof_share"] is not None and r["roof_share"] > 1]
    if above:
        yield Paragraph(
            text=f"Above their roof (!), and kept: {', '.join(above)}. A roof that was measured quickly or on a busy machine "
            "is too low, caches hold what is counted as traffic, and some algorithms do less work than is counted.",
            tone="warning",
        )


def side_of(tool: str) -> str:
    """Whose allocations: another tool's are simply what it counts."""
    return "framework " if tool == "rooflens" else ""


def allocations(tool: str) -> tuple[Field, ...]:
    side = side_of(tool)
    return (
        field(f"{side}allocations", lambda r: count(r["framework_count"]), numeric=True),
        field(f"{side}bytes", lambda r: amount(r["framework_bytes"], "B"), numeric=True),
        field("Python blocks", lambda r: count(r["python_count"]), numeric=True),
        field("Python bytes", lambda r: amount(r["python_bytes"], "B"), numeric=True),
    )


def _memory(document: Document) -> Iterator[Block]:
    found = table_of(
        (
            field("benchmark", lambda r: str(r["key"]), whole=True),
            *allocations(document["tool"]),
            field("peak memory", lambda r: amount(r["peak_bytes"], "B"), numeric=True),
            field("kernels", lambda r: count(r["kernels"]), numeric=True),
        ),
        [r for r in document["rows"] if r["status"] == "ok"],
    )
    if len(found.columns) > 1:
        yield Heading(text="Allocations, memory and kernels of one run of each")
        yield found


def without_time(rows: list[Row], title: str = "Without a time") -> Iterator[Block]:
    missing = [r for r in rows if r["status"] != "ok"]
    if missing:
        yield Heading(text=title)
        yield table_of(
            (
                field("benchmark", lambda r: str(r["key"]), whole=True),
                field("status", lambda r: str(r["status"])),
                field("reason", lambda r: str(r["reason"])),
            ),
            missing,
        )


def run_rows(document: Document) -> list[Row]:
    """A row a benchmark, for CSV; raw samples stay in JSON."""
    whole = ("id", "date", "suite", "tool")
    return [
        {**{name: document[name] for name in whole}, **{n: v for n, v in row.items() if n != "processes"}}
        | {"process_count": len(row["processes"])}
        for row in document["rows"]
    ]
