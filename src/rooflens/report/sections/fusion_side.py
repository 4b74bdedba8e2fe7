"""Several analysis documents in, one table of what fusion did to each out: models, chips, or both."""

from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Table
from rooflens.report.sections.tables import percent
from rooflens.units import show


def model_by_model(documents: list[dict[str, Any]]) -> tuple[Block, ...]:
    """In the order they were asked for. Chips take the place of the units, which differ from kernels by views alone."""
    chips = any(d["hardware"] for d in documents)
    columns = (
        Column(name="model"), Column(name="chip") if chips else Column(name="units", numeric=True),
        Column(name="kernels", numeric=True), Column(name="bytes", numeric=True), Column(name="fewer", numeric=True),
        Column(name="ops per unit", numeric=True), *((Column(name="speed-up", numeric=True),) if chips else ()),
    )  # fmt: skip
    levels = ", ".join(dict.fromkeys(d["fusion"]["level"] for d in documents))
    return Heading(text=f"Before → after, fusion {levels}"), Table(
        columns=columns, rows=tuple(_row(d, chips) for d in documents)
    )


def _row(document: dict[str, Any], chips: bool) -> tuple[str, ...]:
    f = document["fusion"]
    before, after, mean = f["before"], f["after"], f["ops_per_unit"]["mean"]
    fewer = 1 - after["bytes"] / before["bytes"] if before["bytes"] else None
    return (
        document["model"]["name"],
        document["settings"]["on"] if chips else f"{before['units']:,} → {after['units']:,}",
        f"{before['kernels']:,} → {after['kernels']:,}",
        f"{show(before['bytes'], 'B', 3)} → {show(after['bytes'], 'B', 3)}", percent(fewer),
        "–" if mean is None else f"{mean:.1f}",
        *(("–" if f["speedup"] is None else f"{f['speedup']:.2f}x",) if chips else ()),
    )  # fmt: skip
