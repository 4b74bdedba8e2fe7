"""Several analysis documents in, one table out: the same model on several chips."""

from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Table
from rooflens.report.sections.ranking import units_of
from rooflens.units import show


def side_by_side(documents: list[dict[str, Any]]) -> tuple[Block, ...]:
    """Quickest first; a chip whose time is unknown comes last."""
    columns = (
        Column(name="chip"), Column(name="device time", numeric=True), Column(name="latency", numeric=True),
        Column(name="bound"), Column(name="memory-bound", numeric=True), Column(name="against the fastest", numeric=True),
    )  # fmt: skip
    ordered = sorted(
        documents, key=lambda d: (d["totals"]["device_time_s"] is None, d["totals"]["device_time_s"] or 0.0)
    )
    best = ordered[0]["totals"]["device_time_s"]
    return Heading(text=f"{documents[0]['model']['name']}, chip by chip"), Table(
        columns=columns, rows=tuple(_row(d, best) for d in ordered)
    )


def _row(document: dict[str, Any], best: float | None) -> tuple[str, ...]:
    t = document["totals"]
    units = units_of(document)
    shares = [row["share"] for row in units if row["zone"] == "memory-bound" and row["share"] is not None]
    known = t["device_time_s"] is not None
    return (
        document["settings"]["on"], show(t["device_time_s"], "s"), show(t["latency_s"], "s"), t["bound"] or "–",
        f"{sum(shares):.0%} of time" if known else "–", _against(t["device_time_s"], best),
    )  # fmt: skip


def _against(time_s: float | None, best: float | None) -> str:
    if time_s is None or not best:
        return "–"
    times = time_s / best
    return "fastest" if time_s == best else f"{times:.3g}x as long" if times < 1000 else f"{times:,.0f}x as long"
