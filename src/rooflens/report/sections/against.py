"""An analysis document in, what a compiler does with the same graph beside it out: only where one was asked."""

from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.units import show

UNITS_SHOWN = 20
PAIRS_SHOWN = 20
_MORE = "see them with --format json"


def agreement(document: dict[str, Any]) -> tuple[Block, ...]:
    a = document["fusion"]["against"]
    if a is None:
        return ()
    share = "" if a["share"] is None else f" ({a['share']:.1%})"
    text = (
        f"{a['compiler']} and fusion {document['fusion']['level']} agree on {a['agreed']} of {a['edges']} edges{share}. "
        f"What we fuse and it does not leaves {show(a['left_bytes'], 'B')} in memory."
    )
    if not a["differences"]:
        return Heading(text=f"Beside {a['compiler']}"), Paragraph(text=text)
    columns = (
        Column(name="difference"), Column(name="edges", numeric=True), Column(name="left in memory", numeric=True),
        Column(name="why"),
    )  # fmt: skip
    rows = tuple((d["name"], str(d["edges"]), show(d["left_bytes"], "B"), d["why"]) for d in a["differences"])
    return Heading(text=f"Beside {a['compiler']}"), Paragraph(text=text), Table(columns=columns, rows=rows)


def side_by_side(document: dict[str, Any]) -> tuple[Block, ...]:
    """Our units in the order they run, and the kernels that compute their ops."""
    a = document["fusion"]["against"]
    if a is None:
        return ()
    kernels: dict[str, list[int]] = {}
    for number, kernel in enumerate(a["kernels"], 1):
        for op in kernel["ops"]:
            kernels.setdefault(op, []).append(number)
    named = [f"{n} {k['name']}" for n, k in enumerate(a["kernels"], 1)]
    views = {op["id"] for op in document["ops"] if op["view"]}
    units = [g for g in document["groups"] if not views.issuperset(g["ops"])]
    rows = tuple(_unit(g, kernels, named) for g in units[:UNITS_SHOWN])
    columns = Column(name="our unit"), Column(name="ops"), Column(name="their kernels")
    table = Table(columns=columns, rows=rows, elided=max(0, len(units) - UNITS_SHOWN), hint=_MORE)
    return Heading(text="Unit by unit, in the order they run"), table


def _unit(group: dict[str, Any], kernels: dict[str, list[int]], named: list[str]) -> tuple[str, str, str]:
    theirs = sorted({n for op in group["ops"] for n in kernels.get(op, ())})
    return group["id"], group["pattern"], "; ".join(named[n - 1] for n in theirs) or "none: nothing to compute"


def differences(document: dict[str, Any]) -> tuple[Block, ...]:
    a = document["fusion"]["against"]
    pairs = [p for p in a["pairs"] if p["difference"] is not None] if a else []
    if not pairs:
        return ()
    pairs.sort(key=lambda p: (-p["bytes"], p["from"], p["to"]))
    columns = (
        Column(name="from"), Column(name="to"), Column(name="bytes", numeric=True), Column(name="we"),
        Column(name="they"), Column(name="difference"),
    )  # fmt: skip
    rows = tuple(
        (p["from"], p["to"], show(p["bytes"], "B", 3), _did(p["ours"]), _did(p["theirs"]), p["difference"])
        for p in pairs[:PAIRS_SHOWN]
    )
    table = Table(columns=columns, rows=rows, elided=max(0, len(pairs) - PAIRS_SHOWN), hint=_MORE)
    return Heading(text="Edges on which we differ, dearest first"), table


def _did(decision: str) -> str:
    return {"fused": "fuse", "cut": "cut"}[decision]
