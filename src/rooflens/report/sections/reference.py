"""The tables that users look things up in: kinds of op, chips, findings. Records in, Blocks and documents out."""

from typing import Any

from rooflens.costs.sheet import FLOP_CONVENTION
from rooflens.hardware.lint import Finding
from rooflens.hardware.records import Hardware, dimension_of
from rooflens.ops.spec import OpSpec
from rooflens.ops.table import OPS
from rooflens.report.blocks import Block, Column, Heading, Paragraph, Roofline, Table
from rooflens.report.document import hardware_document
from rooflens.report.sections.chart import roofline_of
from rooflens.units import show, show_size


def op_document(row: OpSpec) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "family": row.family,
        "unit": row.unit,
        "role": row.role,
        "formula": row.formula,
        "backward": [g.kind for g in row.backward],
    }


def ops_document() -> list[dict[str, Any]]:
    return [op_document(row) for row in OPS.values()]


def ops_blocks() -> tuple[Block, ...]:
    columns = (Column(name="kind"), Column(name="family"), Column(name="unit"), Column(name="counted"))
    rows = tuple((r.kind, r.family, r.unit, r.formula) for r in OPS.values())
    return Heading(text=f"Kinds of op ({FLOP_CONVENTION})"), Table(columns=columns, rows=rows)


def op_blocks(row: OpSpec) -> tuple[Block, ...]:
    e = row.example
    facts = (
        ("family", row.family), ("unit", row.unit), ("fusion role", row.role), ("counted", row.formula),
        ("backward", ", ".join(g.kind for g in row.backward) or "none derived"),
        ("example inputs", _shapes(e.inputs)), ("example parameters", _shapes(e.params)),
        ("example outputs", _shapes(e.outputs)), ("macs", f"{e.macs:,}"), ("flops", f"{e.flops:,}"),
        ("bytes (fp32)", f"{e.bytes:,}"),
    )  # fmt: skip
    return Heading(text=row.kind), Table(columns=(Column(name=""), Column(name="")), rows=facts)


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> str:
    return ", ".join("x".join(map(str, s)) for s in shapes) or "–"


def chip_row(chip: Hardware) -> dict[str, Any]:
    best = _best(chip)
    return {
        "id": chip.id,
        "name": chip.name,
        "kind": chip.kind,
        "year": chip.year,
        "offchip_bandwidth_bytes_per_s": chip.offchip.bandwidth_bytes_per_s if chip.offchip else None,
        "best_dtype": best[0],
        "best_unit": best[1],
        "best_peak_flop_per_s": best[2],
        "hypothetical": chip.hypothetical,
    }


def _best(chip: Hardware) -> tuple[str | None, str | None, float | None]:
    """The 16-bit peak that most people ask for, else the highest there is."""
    known = [p for p in chip.peaks if p.flop_per_s is not None]
    wanted = [p for p in known if p.dtype in ("bf16", "fp16")] or known
    top = max(wanted, key=lambda p: p.flop_per_s or 0.0, default=None)
    return (top.dtype, top.unit, top.flop_per_s) if top else (None, None, None)


def chips_blocks(chips: tuple[Hardware, ...]) -> tuple[Block, ...]:
    columns = (
        Column(name="id", whole=True), Column(name="name"), Column(name="peak", numeric=True),
        Column(name="of", whole=True), Column(name="off-chip", numeric=True), Column(name="ridge", numeric=True),
    )  # fmt: skip
    return Heading(text="Chips"), Table(columns=columns, rows=tuple(_chip_cells(c) for c in chips))


def _chip_cells(chip: Hardware) -> tuple[str, ...]:
    dtype, unit, peak = _best(chip)
    bandwidth = chip.offchip.bandwidth_bytes_per_s if chip.offchip else None
    return (
        chip.id, _marked(chip), show(peak, "OP/s", 3), f"{dtype} {unit}" if dtype else "–",
        show(bandwidth, "B/s", 3), _ridge_text(peak, bandwidth),
    )  # fmt: skip


def _ridge_text(peak: float | None, bandwidth: float | None) -> str:
    """Three digits, and never as 8e+03."""
    ridge = peak / bandwidth if peak and bandwidth else None
    return "–" if ridge is None else f"{ridge:.3g}" if ridge < 1000 else f"{ridge:.0f}"


def _marked(chip: Hardware) -> str:
    """A chip that nobody sells says so, in its own name or behind it."""
    marked = not chip.hypothetical or "hypothetical" in chip.name.lower()
    return chip.name if marked else f"{chip.name} (hypothetical)"


def chip_blocks(chip: Hardware) -> tuple[Block, ...]:
    """Every value with its source, after the picture."""
    columns = (Column(name="key", whole=True), Column(name="value", numeric=True), Column(name="source"))
    rows = tuple((f.key, _fact_text(f.key, f.value, f.absent), f.source) for f in chip.facts)
    note = (Paragraph(text=chip.note, tone="warning" if chip.hypothetical else "plain"),) if chip.note else ()
    chart = roofline_of(hardware_document(chip), chip.name)
    head: tuple[Block, ...] = (Heading(text=f"{chip.name} ({chip.id}, {chip.kind})"), *note)
    return (*head, *((chart,) if chart else ()), *ridges_blocks(chip), Table(columns=columns, rows=rows))


_UNITS = {
    "flop_per_s": "OP/s", "bytes_per_s": "B/s", "bytes": "B", "hz": "Hz", "w": "W", "s": "s", "j_per_byte": "J/B",
    "j_per_flop": "J/OP", "usd": "USD",
}  # fmt: skip


def _fact_text(key: str, value: float | None, absent: bool) -> str:
    if value is None:
        return "none" if absent else "unpublished"
    unit = _UNITS.get(dimension_of(key))
    if unit == "B":
        return show_size(value)
    return show(value, unit) if unit else f"{value:g}"


def ridges_blocks(chip: Hardware) -> tuple[Block, ...]:
    """How many operations a layer must do per byte, by dtype and unit."""
    columns = (
        Column(name="dtype"),
        Column(name="unit"),
        Column(name="peak", numeric=True),
        Column(name="ridge FLOP/byte", numeric=True),
    )
    rows = tuple(
        (p.dtype, p.unit, show(p.flop_per_s, "OP/s"), f"{ridge:.4g}" if (ridge := chip.ridge(p.dtype, p.unit)) else "–")
        for p in chip.peaks
        if chip.has(p.dtype, p.unit)
    )
    return (Table(columns=columns, rows=rows),)


def charts_of(chips: tuple[Hardware, ...]) -> tuple[Roofline, ...]:
    found = (roofline_of(hardware_document(c), c.name) for c in chips)
    return tuple(c for c in found if c is not None)


SIDE_BY_SIDE = 5  # columns of a terminal; from more chips on each is a row


def compare_blocks(chips: tuple[Hardware, ...]) -> tuple[Block, ...]:
    return _every_value(chips) if len(chips) <= SIDE_BY_SIDE else _a_row_each(chips)


def _a_row_each(chips: tuple[Hardware, ...]) -> tuple[Block, ...]:
    """What tells many chips apart: peaks by width of type, the memory, and the ridge between the two."""
    peaks = tuple(Column(name=name, numeric=True) for name in _WIDTHS)
    columns = (
        Column(name="id", whole=True), *peaks, Column(name="off-chip", numeric=True), Column(name="capacity", numeric=True),
        Column(name="ridge", numeric=True),
    )  # fmt: skip
    rows = tuple((name, *_row_cells(c)) for name, c in zip(_told_apart(chips), chips, strict=True))
    note = (
        f"Peaks are dense ones of the fastest unit that is published; the ridge is that of 16 bits, or of the best there "
        f"is. Every value of up to {SIDE_BY_SIDE} chips: rooflens hardware compare CHIP CHIP…"
    )
    invented = [c.id for c in chips if c.hypothetical]
    note += f". Hypothetical: {', '.join(invented)}" if invented else ""
    return Heading(text=f"{len(chips)} chips"), Table(columns=columns, rows=rows), Paragraph(text=note)


_WIDTHS = {"fp32": ("fp32",), "16 bits": ("bf16", "fp16"), "int8": ("int8",)}


def _row_cells(chip: Hardware) -> tuple[str, ...]:
    best = [max((p.flop_per_s or 0.0 for p in chip.peaks if p.dtype in of), default=0.0) for of in _WIDTHS.values()]
    level, top = chip.offchip, _best(chip)[2]
    bandwidth = level.bandwidth_bytes_per_s if level else None
    return (
        *(show(peak or None, "OP/s", 3) for peak in best), show(bandwidth, "B/s", 3),
        show_size(level.capacity_bytes) if level and level.capacity_bytes else "–", _ridge_text(top, bandwidth),
    )  # fmt: skip


def _every_value(chips: tuple[Hardware, ...]) -> tuple[Block, ...]:
    """Chips as columns, their values as rows: only what at least one of them publishes."""
    keys = dict.fromkeys(
        f.key for c in chips for f in c.facts if f.value is not None and not f.key.startswith("ops_per_clock")
    )
    columns = (Column(name="key"), *(Column(name=n, numeric=True) for n in _told_apart(chips)))
    rows = tuple((key, *(_cell(c, key) for c in chips)) for key in sorted(keys))
    return Heading(text="Side by side"), Table(columns=columns, rows=rows)


def _told_apart(chips: tuple[Hardware, ...]) -> tuple[str, ...]:
    """Ids; where two chips share one, as a chip and its variant do, names."""
    ids = [c.id for c in chips]
    return tuple(c.id if ids.count(c.id) == 1 else c.name for c in chips)


def _cell(chip: Hardware, key: str) -> str:
    fact = chip.fact(key)
    return _fact_text(key, fact.value, fact.absent) if fact else "–"


def lint_blocks(findings: tuple[Finding, ...], chips: int) -> tuple[Block, ...]:
    if not findings:
        return (Paragraph(text=f"{chips} chip{'s' * (chips != 1)} checked, nothing found."),)
    columns = (Column(name="chip"), Column(name="severity"), Column(name="key", whole=True), Column(name="finding"))
    return (Table(columns=columns, rows=tuple((f.chip, f.severity, f.key, f.message) for f in findings)),)
