"""The layer table, the advice list, what each kind of layer would gain alone, and the small print."""

from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.report.rows import shapes
from rooflens.report.sections.ranking import ranked
from rooflens.units import show

LAYERS_SHOWN = 20
ADVICE_SHOWN = 10
KINDS_SHOWN = 10
_MARK = {"memory-bound": "memory", "compute-bound": "compute", "ridge": "ridge", None: "–"}


def layers(document: dict[str, Any]) -> tuple[Block, ...]:
    rows = ranked(document)
    build = _timed if document["hardware"] else _counted
    columns, cells = build(rows[:LAYERS_SHOWN])
    table = Table(
        columns=columns, rows=cells, elided=max(0, len(rows) - LAYERS_SHOWN), hint="see them with --format csv or json"
    )
    return Heading(text="Layers, heaviest first"), table


def _timed(rows: list[tuple[int, dict[str, Any]]]) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
    columns = (
        Column(name="#", numeric=True), Column(name="layer"), Column(name="FLOP", numeric=True),
        Column(name="bytes", numeric=True), Column(name="FLOP/B", numeric=True), Column(name="zone"),
        Column(name="bound"), Column(name="time", numeric=True), Column(name="share", numeric=True),
    )  # fmt: skip
    return columns, tuple(
        (
            str(n), op["id"], show(op["flops"], "", 3), show(op["bytes"], "B", 3), number(op["intensity_flop_per_byte"]),
            _MARK[op["zone"]], op["bound"] or "–", show(op["device_time_s"], "s", 3), percent(op["share"]),
        )
        for n, op in rows
    )  # fmt: skip


def _counted(rows: list[tuple[int, dict[str, Any]]]) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
    columns = (
        Column(name="#", numeric=True), Column(name="layer"), Column(name="kind"), Column(name="output"),
        Column(name="MAC", numeric=True), Column(name="FLOP", numeric=True), Column(name="bytes", numeric=True),
        Column(name="FLOP/B", numeric=True),
    )  # fmt: skip
    return columns, tuple(
        (
            str(n), op["id"], op["kind"], shapes(op["outputs"][:1]), show(op["macs"], "", 3), show(op["flops"], "", 3),
            show(op["bytes"], "B", 3), number(op["intensity_flop_per_byte"]),
        )
        for n, op in rows
    )  # fmt: skip


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def reuse(document: dict[str, Any]) -> tuple[Block, ...]:
    """The textbook's view, only where it was asked for."""
    rows = [(n, op) for n, op in ranked(document) if op["reuse"]]
    if not rows:
        return ()
    mode = rows[0][1]["reuse"]["mode"]
    columns = (
        Column(name="#", numeric=True), Column(name="layer"), Column(name="ops/output", numeric=True),
        Column(name="bytes/output", numeric=True), Column(name="ops/byte", numeric=True),
    )  # fmt: skip
    cells = tuple(
        (
            str(n),
            op["id"],
            number(op["reuse"]["ops_per_output"]),
            number(op["reuse"]["bytes_per_output"]),
            number(op["reuse"]["intensity"]),
        )
        for n, op in rows[:LAYERS_SHOWN]
    )
    hint = "see them with --format csv or json"
    return Heading(text=f"Per output element, reuse {mode}"), Table(
        columns=columns, rows=cells, elided=max(0, len(rows) - LAYERS_SHOWN), hint=hint
    )


def advice(document: dict[str, Any]) -> tuple[Block, ...]:
    rows = [a for a in document["advice"] if not a["target"].startswith("kind ")]
    if not rows:
        return ()
    columns = (
        Column(name="move"), Column(name="change"), Column(name="gain", numeric=True),
        Column(name="share", numeric=True), Column(name="why"),
    )  # fmt: skip
    cells = tuple(
        (a["move"], a["action"], show(a["gain_s"], "s", 3), _share_of(a), a["why"]) for a in rows[:ADVICE_SHOWN]
    )
    table = Table(
        columns=columns, rows=cells, elided=max(0, len(rows) - ADVICE_SHOWN), hint="see them with --format json"
    )
    return Heading(text="What would move the dots, best first"), table


def _share_of(a: dict[str, Any]) -> str:
    return f"{percent(a['gain_share'])} of {'latency' if a['gain_of'] == 'latency_s' else 'work'}"


def alone(document: dict[str, Any]) -> tuple[Block, ...]:
    """The first seed's lesson: what is limited by memory gains nothing from faster arithmetic of its own."""
    rows = [a for a in document["advice"] if a["target"].startswith("kind ")]
    if not rows:
        return ()
    columns = (
        Column(name="kind"),
        Column(name="gain", numeric=True),
        Column(name="share", numeric=True),
        Column(name="why"),
    )
    cells = tuple(
        (a["target"].removeprefix("kind "), show(a["gain_s"], "s", 3), percent(a["gain_share"]), a["why"])
        for a in rows[:KINDS_SHOWN]
    )
    table = Table(
        columns=columns, rows=cells, elided=max(0, len(rows) - KINDS_SHOWN), hint="see them with --format json"
    )
    return Heading(text="If one kind of layer alone had free arithmetic"), table


def small_print(document: dict[str, Any]) -> tuple[Block, ...]:
    lines = [f"Counted as {document['convention']['flop']}; bytes: {document['convention']['bytes']}."]
    lines += [f"Note: {n}." for n in document["notes"]]
    lines += [f"Assumed: {a}." for a in document["assumptions"]]
    lines += [_gate_line(g) for g in document["gates"]]
    return tuple(Paragraph(text=line) for line in lines)


def _gate_line(gate: dict[str, Any]) -> str:
    words = {True: "passed", False: "FAILED", None: "unknown"}
    return f"Gate {gate['gate']}: {words[gate['passed']]} (value {gate['value']})."
