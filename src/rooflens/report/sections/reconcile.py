"""Reconciliations in, their document (`rooflens.reconcile/1`), CSV rows and Blocks out."""

from typing import Any

from rooflens.compare.reconcile import Reconciliation
from rooflens.costs.sheet import FLOP_CONVENTION, CostSheet
from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.version import __version__

SCHEMA = "rooflens.reconcile/1"
_GAPS_SHOWN = 5


def reconcile_document(sheet: CostSheet, found: tuple[Reconciliation, ...]) -> dict[str, Any]:
    rows = sheet.rows
    return {
        "schema": SCHEMA,
        "rooflens_version": __version__,
        "model": {"name": sheet.graph.name, "source": sheet.graph.source},
        "convention": {"flop": FLOP_CONVENTION},
        "ours": {
            "macs": sum(r.macs for r in rows),
            "alu": sum(r.alu for r in rows),
            "special": sum(r.special for r in rows),
            "flops": sum(r.flops for r in rows),
        },
        "peers": [_peer(r) for r in found],
    }


def _peer(r: Reconciliation) -> dict[str, Any]:
    return {
        "name": r.peer,
        "version": r.version or None,
        "device": r.device or None,
        "flop_per_mac": r.flop_per_mac,
        "total": r.theirs,
        "difference": None if r.theirs is None else r.theirs - r.ours,
        "steps": [{"rule": s.rule, "ops": s.ops, "amount": s.amount} for s in r.steps],
        "unexplained": r.remainder,
        "unexplained_modules": [{"module": g.module, "total": g.theirs, "expected": g.expected} for g in r.gaps],
        "problem": r.problem or None,
    }


def reconcile_rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per line of each peer's sum, so that a column adds up."""
    rows = []
    for peer in document["peers"]:
        if peer["problem"]:
            rows.append(_row(peer, "problem", peer["problem"], None, None))
            continue
        rows.append(_row(peer, "ours", "rooflens", None, document["ours"]["flops"]))
        rows += [_row(peer, "rule", s["rule"], s["ops"], s["amount"]) for s in peer["steps"]]
        rows.append(_row(peer, "unexplained", "unexplained", None, peer["unexplained"]))
        rows.append(_row(peer, "theirs", peer["name"], None, peer["total"]))
    return rows


def _row(peer: dict[str, Any], line: str, rule: str, ops: int | None, amount: int | None) -> dict[str, Any]:
    return {"peer": peer["name"], "version": peer["version"], "line": line, "rule": rule, "ops": ops, "amount": amount}


def reconcile_blocks(document: dict[str, Any]) -> tuple[Block, ...]:
    ours, convention = document["ours"], document["convention"]["flop"]
    head = (
        Heading(text=f"{document['model']['name']}: our count beside others"),
        Paragraph(
            text=f"rooflens counts {ours['flops']:,} FLOP ({convention}), from {ours['macs']:,} multiply-adds (MAC)."
        ),
        _summary(document),
    )
    return (*head, *(block for peer in document["peers"] for block in _sum(peer, ours["flops"])))


def _summary(document: dict[str, Any]) -> Table:
    columns = (
        Column(name="counter"), Column(name="version"), Column(name="FLOP per MAC", numeric=True),
        Column(name="total", numeric=True), Column(name="unexplained", numeric=True),
    )  # fmt: skip
    rows = tuple(
        (p["name"], p["version"] or "–", str(p["flop_per_mac"]), _number(p["total"]), _number(p["unexplained"]))
        for p in document["peers"]
    )
    return Table(columns=columns, rows=rows)


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _sum(peer: dict[str, Any], ours: int) -> tuple[Block, ...]:
    title = Heading(text=f"From ours to {peer['name']}'s")
    if peer["problem"]:
        return title, Paragraph(text=f"{peer['name']}: {peer['problem']}", tone="warning")
    columns = (Column(name="rule"), Column(name="ops", numeric=True), Column(name="amount", numeric=True))
    rows = (
        ("rooflens", "", f"{ours:,}"),
        *((s["rule"], f"{s['ops']:,}", f"{s['amount']:+,}") for s in peer["steps"]),
        ("unexplained", "", f"{peer['unexplained']:,}"),
        (peer["name"], "", f"{peer['total']:,}"),
    )
    return title, Table(columns=columns, rows=rows), *_where(peer)


def _where(peer: dict[str, Any]) -> tuple[Block, ...]:
    """The modules that a remainder comes from, also where they cancel out."""
    gaps = peer["unexplained_modules"]
    if not gaps:
        return ()
    columns = (
        Column(name="module with an unexplained difference"), Column(name="by its rules", numeric=True),
        Column(name="it says", numeric=True),
    )  # fmt: skip
    shown, elided = gaps[:_GAPS_SHOWN], max(0, len(gaps) - _GAPS_SHOWN)
    rows = tuple((g["module"] or "(the model itself)", f"{g['expected']:,}", f"{g['total']:,}") for g in shown)
    return (Table(columns=columns, rows=rows, elided=elided, hint="see them with --format json"),)
