"""A profile document in, its table out: what each class of ops reaches of its roofs."""

from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.units import show


def profile_blocks(d: dict[str, Any]) -> tuple[Block, ...]:
    columns = (
        Column(name="class of ops"), Column(name="type"), Column(name="layout"), Column(name="overhead", numeric=True),
        Column(name="of peak", numeric=True), Column(name="of bandwidth", numeric=True), Column(name="low", numeric=True),
        Column(name="high", numeric=True), Column(name="points", numeric=True),
    )  # fmt: skip
    cells = tuple(
        (
            r["op_class"], r["dtype"], r["layout"], show(r["overhead_s"], "s", 3), _share(r["work_share"]),
            _share(r["bytes_share"]),
            f"{r['low']:.2f}x", f"{r['high']:.2f}x", str(r["points"]),
        )
        for r in d["reaches"]
    )  # fmt: skip
    versions = ", ".join(f"{k} {v}" for k, v in d["versions"].items())
    notes = (Paragraph(text=f"Note: {d['note']}."),) if d["note"] else ()
    return (
        *notes,
        Heading(text=f"What classes of ops reach of the roofs of {d['chip']}"),
        Table(columns=columns, rows=cells),
        Paragraph(
            text=f"Measured {d['date']} on {d['device']}; {versions}. A kernel takes its overhead and the longer of its work at "
            "that share of the peak and its bytes at that share of the bandwidth; eight of ten of those measured took between "
            "the low and the high multiple of that."
        ),
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
