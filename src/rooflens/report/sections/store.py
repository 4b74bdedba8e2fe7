"""What a store of runs says of itself in: its baselines, what a merge brought. Documents and Blocks out."""

from typing import Any

from rooflens.report.bench import bench_document
from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.store.records import Baseline, Merged


def baselines_document(store: str, baselines: tuple[Baseline, ...]) -> dict[str, Any]:
    rows = [{"name": b.name, "run": b.run, "date": b.date, "suite": b.suite} for b in baselines]
    return {**bench_document("baselines"), "store": store, "baselines": rows}


def baselines_blocks(document: dict[str, Any]) -> tuple[Block, ...]:
    rows, heading = document["baselines"], Heading(text=f"Baselines of {document['store']}")
    if not rows:
        return heading, Paragraph(text="None yet: 'rooflens bench baseline set NAME' names the latest run.")
    columns = Column(name="name", whole=True), Column(name="run", whole=True), Column(name="date"), Column(name="suite")
    return heading, Table(columns=columns, rows=tuple(tuple(r.values()) for r in rows))


def merge_document(store: str, found: list[tuple[str, Merged]]) -> dict[str, Any]:
    return {**bench_document("merge"), "store": store, "stores": [_merged(*f) for f in found]}


def _merged(other: str, merged: Merged) -> dict[str, Any]:
    return {
        "store": other,
        "added": merged.added,
        "already": merged.already,
        "baselines": list(merged.baselines),
        "taken": [{"name": t.name, "here": t.here, "there": t.there} for t in merged.taken],
    }


def merge_rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Names as text: a cell holds no list."""
    stores = document["stores"]
    return [
        {**s, "baselines": " ".join(s["baselines"]), "taken": " ".join(t["name"] for t in s["taken"])} for s in stores
    ]


def merge_blocks(document: dict[str, Any]) -> tuple[Block, ...]:
    columns = (
        Column(name="from"), Column(name="runs added", numeric=True), Column(name="there already", numeric=True),
        Column(name="baselines added"), Column(name="names taken"),
    )  # fmt: skip
    rows = tuple(
        (r["store"], f"{r['added']:,}", f"{r['already']:,}", r["baselines"] or "–", r["taken"] or "–")
        for r in merge_rows(document)
    )
    return Heading(text=f"Merged into {document['store']}"), Table(columns=columns, rows=rows)
