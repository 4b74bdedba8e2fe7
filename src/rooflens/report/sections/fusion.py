"""An analysis document in, the account of its fusion out: before and after, by pattern and size, unit by unit, and what
stays unfused with its price."""

from collections import Counter
from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.report.sections.chart import OFFCHIP
from rooflens.report.sections.head import totals
from rooflens.report.sections.ranking import is_fused, ranked, short
from rooflens.report.sections.tables import number, percent
from rooflens.units import show

UNITS_SHOWN = 10
PATTERNS_SHOWN = 12
EDGES_SHOWN = 15
_CSV = "see them with --format json"


def before_and_after(document: dict[str, Any]) -> tuple[Block, ...]:
    f = document["fusion"]
    if not is_fused(document):
        return totals(document)
    counts = (_counted("units", f, "units"), _counted("kernels", f, "kernels"), _ops_per_unit(f))
    work = (_work(f), *_extra(f))
    moved = tuple(_moved(name, f, key) for name, key in _BYTES)
    tensors = tuple(_counted(name, f, key) for name, key in _TENSORS)
    columns = (
        Column(name=""), Column(name="before", numeric=True), Column(name="after", numeric=True),
        Column(name="change", numeric=True),
    )  # fmt: skip
    rows = (*counts, *work, *moved, *tensors, *(_times(f) if document["hardware"] else ()))
    return Heading(text=f"Before and after (fusion {f['level']})"), Table(columns=columns, rows=rows)


_BYTES = (
    ("bytes moved", "bytes"), ("  in", "input_bytes"), ("  out", "output_bytes"), ("  parameters", "param_bytes"),
)  # fmt: skip
_TENSORS = (("tensors read", "reads"), ("tensors written", "writes"))
Row = tuple[str, ...]


def _counted(name: str, f: dict[str, Any], key: str) -> Row:
    before, after = f["before"][key], f["after"][key]
    return name, f"{before:,}", f"{after:,}", _times_fewer(before, after)


def _times_fewer(before: int, after: int) -> str:
    return "same" if before == after else f"{before / after:.2f}x fewer" if after else "none left"


def _ops_per_unit(f: dict[str, Any]) -> Row:
    mean, most = f["ops_per_unit"]["mean"], f["ops_per_unit"]["max"]
    return "ops per unit", "1", "–" if mean is None else f"{mean:.2f}", f"at most {most}" if most else "–"


def _work(f: dict[str, Any]) -> Row:
    before, after = f["before"]["flops"], f["after"]["flops"]
    return "work", show(before, "FLOP"), show(after, "FLOP"), "same" if before == after else _by(before, after)


def _extra(f: dict[str, Any]) -> tuple[Row, ...]:
    """Only where tiles compute their borders twice."""
    return (("computed again", "–", show(f["extra_macs"], "MAC"), ""),) if f["extra_macs"] else ()


def _moved(name: str, f: dict[str, Any], key: str) -> Row:
    before, after = f["before"][key], f["after"][key]
    return name, show(before, "B"), show(after, "B"), _by(before, after)


def _by(before: float, after: float) -> str:
    return "same" if before == after else f"{after / before - 1:+.1%}" if before else "–"


def _times(f: dict[str, Any]) -> tuple[Row, ...]:
    """Floors: what the bytes and the launches alone take, then both with the work."""
    saved, before, after = f["saved_bandwidth_s"], f["before"], f["after"]
    rows = [("time of bytes", "", "", "–" if saved is None else f"{show(saved, 's')} less")]
    for name, key in (("launches", "launch_s"), ("device time", "device_time_s"), ("latency", "latency_s")):
        rows.append((name, show(before[key], "s"), show(after[key], "s"), _less(before[key], after[key])))
    rows.append(("speed-up", "", "", "–" if f["speedup"] is None else f"{f['speedup']:.2f}x"))
    return tuple(rows)


def _less(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return "–"
    if before == after:
        return "same"
    return f"{show(abs(before - after), 's')} {'less' if before > after else 'more'}"


def patterns(document: dict[str, Any]) -> tuple[Block, ...]:
    if not is_fused(document):
        return ()
    rows = [
        (short(name), f"{p['count']:,}", percent(p["share"]), _span(p["reduction_min"], p["reduction_max"]))
        for name, p in document["fusion"]["patterns"].items()
    ]
    columns = (
        Column(name="pattern"), Column(name="units", numeric=True), Column(name="share", numeric=True),
        Column(name="fewer bytes", numeric=True),
    )  # fmt: skip
    elided = max(0, len(rows) - PATTERNS_SHOWN)
    table = Table(columns=columns, rows=tuple(rows[:PATTERNS_SHOWN]), elided=elided, hint=_CSV)
    return Heading(text="Patterns, most frequent first"), table


def _span(low: float, high: float) -> str:
    first, last = percent(low), percent(high)
    return first if first == last else f"{first} to {last}"


def sizes(document: dict[str, Any]) -> tuple[Block, ...]:
    """What was gained by how many kernels went into one unit."""
    if not is_fused(document):
        return ()
    columns = (
        Column(name="kernels in a unit"), Column(name="units", numeric=True), Column(name="bytes alone", numeric=True),
        Column(name="bytes fused", numeric=True), Column(name="change", numeric=True),
    )  # fmt: skip
    rows = tuple(
        (
            str(s["kernels"]) if s["kernels"] else "0 (views)", f"{s['units']:,}", show(s["unfused_bytes"], "B"),
            show(s["bytes"], "B"), _by(s["unfused_bytes"], s["bytes"]),
        )
        for s in document["fusion"]["sizes"]
    )  # fmt: skip
    return Heading(text="By size"), Table(columns=columns, rows=rows)


def heaviest_units(document: dict[str, Any]) -> tuple[Block, ...]:
    """`kept` bytes are those that stay on the chip; intensity as its ops had it one by one, and now."""
    if not is_fused(document):
        return ()
    rows = ranked(document)
    columns = (
        Column(name="#", numeric=True), Column(name="unit"), Column(name="FLOP", numeric=True),
        Column(name="moved", numeric=True), Column(name="kept", numeric=True), Column(name="FLOP/B before", numeric=True),
        Column(name="FLOP/B after", numeric=True), Column(name="bound"),
    )  # fmt: skip
    cells = tuple(_unit(n, row) for n, row in rows[:UNITS_SHOWN])
    table = Table(
        columns=columns, rows=cells, elided=max(0, len(rows) - UNITS_SHOWN), hint="see them with --format csv or json"
    )
    return Heading(text="Units, heaviest first (kept: bytes that stay on the chip)"), table


def _unit(n: int, row: dict[str, Any]) -> Row:
    return (
        str(n), row["label"], show(row["flops"], "", 3), show(row["bytes"], "B", 3), show(row["internal_bytes"], "B", 3),
        number(row["unfused_intensity_flop_per_byte"]), number(row["intensity_flop_per_byte"]), row["bound"] or "–",
    )  # fmt: skip


def blocks(document: dict[str, Any]) -> tuple[Block, ...]:
    """How many units are scheduled for a residual block, by how many it would take one by one."""
    found = document["fusion"]["blocks"]
    if not found or not is_fused(document):
        return ()
    counts = Counter((b["ops"], b["units"]) for b in found)
    first = {(b["ops"], b["units"]): b["module"] for b in reversed(found)}
    columns = (
        Column(name="blocks", numeric=True), Column(name="kernels", numeric=True), Column(name="units", numeric=True),
        Column(name="change", numeric=True), Column(name="such as"),
    )  # fmt: skip
    rows = tuple(
        (f"{counts[key]:,}", str(key[0]), str(key[1]), _times_fewer(*key), first[key])
        for key in sorted(counts, key=lambda k: (-counts[k], k))
    )
    return Heading(text="Scheduled for each residual block"), Table(columns=columns, rows=rows)


def cut_edges(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Most expensive first, and in the order they run where they cost the same."""
    return sorted((e for e in document["fusion"]["edges"] if e["decision"] == "cut"), key=lambda e: -e["bytes"])


def costs(document: dict[str, Any]) -> tuple[Block, ...]:
    edges, rate = cut_edges(document), _bandwidth(document)
    if not edges:
        return ()
    whole = sum(e["bytes"] for e in edges)
    columns = (
        Column(name="from"), Column(name="to"), Column(name="bytes", numeric=True),
        *((Column(name="time", numeric=True),) if rate else ()), Column(name="why"),
    )  # fmt: skip
    rows = tuple(
        (e["from"], e["to"], show(e["bytes"], "B", 3), *((show(e["bytes"] / rate, "s", 3),) if rate else ()), _why(e))
        for e in edges[:EDGES_SHOWN]
    )
    text = f"{len(edges):,} edges are cut: {show(whole, 'B')} pass through memory for it, dearest first."
    table = Table(columns=columns, rows=rows, elided=max(0, len(edges) - EDGES_SHOWN), hint=_CSV)
    return Heading(text="What not fusing costs"), Paragraph(text=text), table


def _why(edge: dict[str, Any]) -> str:
    return edge["reason"] or "–"


def _bandwidth(document: dict[str, Any]) -> float | None:
    memory = document["hardware"]["memory"] if document["hardware"] else ()
    return next((m["bandwidth_bytes_per_s"] for m in memory if m["level"] in OFFCHIP), None)
