"""The layer table, the advice list, what each kind of layer would gain alone, and the small print."""

from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.report.rows import shapes
from rooflens.report.sections.ranking import is_fused, ranked
from rooflens.units import show

LAYERS_SHOWN = 20
ADVICE_SHOWN = 10
KINDS_SHOWN = 10
_MARK = {"memory-bound": "memory", "compute-bound": "compute", "ridge": "ridge", None: "–"}


def layers(document: dict[str, Any]) -> tuple[Block, ...]:
    """At level `none` a row a layer; else a row a unit, which is named by its pattern and needs the room for it."""
    rows, fused = ranked(document), is_fused(document)
    build = _timed if document["hardware"] else _counted
    columns, cells = _without(*build(rows[:LAYERS_SHOWN]), _LEFT_OUT) if fused else build(rows[:LAYERS_SHOWN])
    hint = "see them with --format json, or fuse --format csv" if fused else "see them with --format csv or json"
    table = Table(columns=columns, rows=cells, elided=max(0, len(rows) - LAYERS_SHOWN), hint=hint)
    return Heading(text=f"{'Units' if fused else 'Layers'}, heaviest first"), table


_LEFT_OUT = ("kind", "FLOP")


def _without(
    columns: tuple[Column, ...], rows: tuple[tuple[str, ...], ...], names: tuple[str, ...]
) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
    kept = [place for place, column in enumerate(columns) if column.name not in names]
    return tuple(columns[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows)


def _timed(rows: list[tuple[int, dict[str, Any]]]) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
    columns = (
        Column(name="#", numeric=True), Column(name="layer"), Column(name="FLOP", numeric=True),
        Column(name="bytes", numeric=True), Column(name="FLOP/B", numeric=True), Column(name="zone"),
        Column(name="bound"), Column(name="time", numeric=True), Column(name="share", numeric=True),
    )  # fmt: skip
    return columns, tuple(
        (
            str(n), row["label"], show(row["flops"], "", 3), show(row["bytes"], "B", 3), number(row["intensity_flop_per_byte"]),
            _MARK[row["zone"]], row["bound"] or "–", show(row["device_time_s"], "s", 3), percent(row["share"]),
        )
        for n, row in rows
    )  # fmt: skip


def _counted(rows: list[tuple[int, dict[str, Any]]]) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
    columns = (
        Column(name="#", numeric=True), Column(name="layer"), Column(name="kind"), Column(name="output"),
        Column(name="MAC", numeric=True), Column(name="FLOP", numeric=True), Column(name="bytes", numeric=True),
        Column(name="FLOP/B", numeric=True),
    )  # fmt: skip
    return columns, tuple(
        (
            str(n), row["label"], row.get("kind", ""), shapes(row["outputs"][:1]), show(row["macs"], "", 3),
            show(row["flops"], "", 3), show(row["bytes"], "B", 3), number(row["intensity_flop_per_byte"]),
        )
        for n, row in rows
    )  # fmt: skip


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def reuse(document: dict[str, Any]) -> tuple[Block, ...]:
    """The textbook's view, only where it was asked for: of units where it is known of any, else op by op."""
    rows = [(n, row) for n, row in ranked(document) if row["reuse"]]
    if not rows:
        kernels = (op for op in document["ops"] if op["reuse"])
        rows = list(enumerate(({**op, "label": op["id"]} for op in kernels), 1))
    if not rows:
        return ()
    mode, apart = rows[0][1]["reuse"]["mode"], "unfused_intensity" in rows[0][1]["reuse"]
    columns = (
        Column(name="#", numeric=True), Column(name="layer"), Column(name="ops/output", numeric=True),
        Column(name="bytes/output", numeric=True), Column(name="ops/byte", numeric=True),
        *((Column(name="one by one", numeric=True),) if apart else ()),
    )  # fmt: skip
    cells = tuple(
        (
            str(n),
            row["label"],
            number(row["reuse"]["ops_per_output"]),
            number(row["reuse"]["bytes_per_output"]),
            number(row["reuse"]["intensity"]),
            *((number(row["reuse"]["unfused_intensity"]),) if apart else ()),
        )
        for n, row in rows[:LAYERS_SHOWN]
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
