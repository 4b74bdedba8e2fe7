"""An analysis document in, its Roofline block out. Dots are numbered as the layer table numbers its rows."""

from dataclasses import replace
from math import ceil, floor, log10
from typing import Any

from rooflens.report.blocks import Arrow, Dot, Roof, Roofline, Slope
from rooflens.report.sections.ranking import Row, is_fused, members_of, ranked, units_of

OFFCHIP = ("dram", "hbm", "gddr", "lpddr")
MEASURED = " measured"
MEASURED_NOTE = "Double lines: roofs that were measured on the machine itself, not read in a datasheet"
LOWEST_INTENSITY_DECADE = -2
ARROWS_FOR = 60  # units whose members are shown: a CNN has all of its arrows, thousands would hide the dots
SHORTEST_S = 1e-30  # no machine works so quickly, and a rate over less is more than a float holds


def chart_of(document: dict[str, Any], *, members: bool = True) -> Roofline | None:
    """None without a chip, or where the chip publishes nothing to draw. `members`: with the ops that units were made of."""
    hardware = document["hardware"]
    if hardware is None:
        return None
    title = f"{document['model']['name']} on {hardware['name']}"
    chart = roofline_of(hardware, title, _dots(document), _under(document))
    return _with_arrows(chart, document) if chart and members and is_fused(document) else chart


def roofline_of(
    hardware: dict[str, Any], title: str, dots: tuple[Dot, ...] = (), under: frozenset[tuple[str, str]] = frozenset()
) -> Roofline | None:
    """`under` names the (dtype, unit) roofs that dots stand under; without dots every roof is a main one."""
    measured = bool(hardware.get("measured"))  # results saved before there was such a word were of datasheets
    roofs = tuple(
        Roof(
            label=f"{dtype} {unit}{MEASURED if measured else ''}",
            flop_per_s=rate,
            measured=measured,
            main=not under or (dtype, unit) in under,
        )
        for dtype, units in hardware["peak_flop_per_s"].items()
        for unit, rate in units.items()
        if rate is not None
    )
    slopes = tuple(
        Slope(
            label=_level_label(m, measured),
            bytes_per_s=m["bandwidth_bytes_per_s"],
            measured=measured,
            main=m["level"] in OFFCHIP,
        )
        for m in hardware["memory"]
        if m["bandwidth_bytes_per_s"]
    )
    if not roofs or not slopes:
        return None
    x, y = decades(roofs, slopes)
    notes = (MEASURED_NOTE,) if measured else ()
    return Roofline(title=title, roofs=roofs, slopes=slopes, dots=dots, x_decades=x, y_decades=y, footnotes=notes)


def _level_label(level: dict[str, Any], measured: bool) -> str:
    bound = " at least" if level.get("lower_bound") else ""
    return f"{level['level']}{MEASURED if measured else ''}{bound}"


def decades(roofs: tuple[Roof, ...], slopes: tuple[Slope, ...]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Whole decades from the chip alone: a decade past its last ridge, down to where its slowest memory starts."""
    slowest = min(s.bytes_per_s for s in slopes)
    highest = max(r.flop_per_s for r in roofs)
    x = (LOWEST_INTENSITY_DECADE, ceil(log10(highest / slowest)) + 1)
    return x, (floor(log10(slowest)) + LOWEST_INTENSITY_DECADE + 1, ceil(log10(highest * 1.01)))


def _under(document: dict[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((row["ceiling_dtype"], row["unit"]) for row in units_of(document) if row["flops"])


def _dots(document: dict[str, Any]) -> tuple[Dot, ...]:
    return tuple(
        Dot(
            number=number,
            label=row["label"],
            intensity=row["intensity_flop_per_byte"],
            flop_per_s=row["flops"] / row["device_time_s"],
            share=row["share"],
            bound=row["bound"] or "unknown",
        )
        for number, row in ranked(document)
        if _drawable(row)
    )


def _drawable(row: Row) -> bool:
    return bool(row["flops"] and (row["device_time_s"] or 0.0) > SHORTEST_S and row["intensity_flop_per_byte"])


def _with_arrows(chart: Roofline, document: dict[str, Any]) -> Roofline:
    """From each member of the heaviest units that were fused to its unit."""
    ops = {op["id"]: op for op in document["ops"]}
    fused = [(n, row) for n, row in ranked(document) if _drawable(row) and len(members_of(row, ops)) > 1]
    if not fused:
        return chart
    arrows = tuple(
        Arrow(
            number=number,
            label=op["id"],
            intensity=op["intensity_flop_per_byte"],
            flop_per_s=op["flops"] / op["device_time_s"],
        )
        for number, row in fused[:ARROWS_FOR]
        for op in members_of(row, ops)
        if _drawable(op)
    )
    few = "the fused unit" if len(fused) == 1 else f"all {len(fused)} fused units"
    whose = f"the {ARROWS_FOR} heaviest of {len(fused)} fused units" if len(fused) > ARROWS_FOR else few
    note = f"Hollow: where members of {whose} would stand alone; arrows lead to the unit"
    return replace(chart, arrows=arrows, footnotes=(*chart.footnotes, note))
