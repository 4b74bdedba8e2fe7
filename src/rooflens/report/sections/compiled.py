"""A measurement document of a compiled model in, Blocks out: each unit with the kernels that compute it, and what matches on
one side only: kernels of no unit, units of no kernel."""

from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.report.sections.measured import of_roof
from rooflens.units import show

SHOWN = 30
_HINT = "see them with --format json"
Document = dict[str, Any]
Row = dict[str, Any]


def units(d: Document) -> tuple[Block, ...]:
    """Slowest first."""
    if d["measured"]["compiled"] is None:
        return ()
    rows = sorted((g for g in d["measured"]["groups"] if g["time_s"] is not None), key=lambda g: -g["time_s"])
    columns = (
        Column(name="unit"), Column(name="kernel"), Column(name="time", numeric=True), Column(name="±", numeric=True),
        Column(name="as layers", numeric=True), Column(name="of roof", numeric=True), Column(name="limit"),
        Column(name="predicted", numeric=True),
    )  # fmt: skip
    cells = tuple(
        (
            _unit(g), _kernel(g), show(g["time_s"], "s", 3), "–" if g["spread"] is None else f"{g['spread']:.0%}",
            show(g["members_s"], "s", 3), of_roof(g), g["limited_by"] or "–", show(g["predicted_s"], "s", 3),
        )
        for g in rows[:SHOWN]
    )  # fmt: skip
    table = Table(columns=columns, rows=cells, elided=max(0, len(rows) - SHOWN), hint=_HINT)
    return Heading(text=f"Fused units as {d['measured']['compiled']['compiler']} compiles them, slowest first"), table


def _unit(g: Row) -> str:
    more = len(g["ops"]) - 1
    return f"{g['id']} +{more}" if more else str(g["id"])


def _kernel(g: Row) -> str:
    mark = "~" if g["how"].startswith("share") else ""
    return mark + ", ".join(short(name) for name in g["kernel"].split(", "))


def short(name: str) -> str:
    """As much as tells kernels apart: cpp_fused__native_batch_norm_legit_no_training_relu_2 is cpp_fused…relu_2."""
    pieces = name.split("_")
    return name if len(name) <= 24 or "::" in name else f"{'_'.join(pieces[:2])}…{'_'.join(pieces[-2:])}"


def unmatched(d: Document) -> tuple[Block, ...]:
    """Named on both sides, and what a share means."""
    compiled = d["measured"]["compiled"]
    if compiled is None:
        return ()
    groups = d["measured"]["groups"]
    alone = [k for k in compiled["kernels"] if not k["groups"]]
    lost = [g for g in groups if g["time_s"] is None]
    lines = [
        *([_alone(alone)] if alone else []),
        *(
            f"{how}: {_some([g['id'] for g in lost if g['how'] == how])}."
            for how in dict.fromkeys(g["how"] for g in lost)
        ),
        *(
            ["~: the kernel computes other units too; its time is shared by the bytes of their ops."]
            if any(g["how"].startswith("share") for g in groups)
            else []
        ),
    ]
    return tuple(Paragraph(text=line) for line in lines)


def _alone(kernels: list[Row]) -> str:
    """Layout copies and the like, each with what it is."""
    told = [f"{short(k['name'])} ({k['what']}) {show(k['time_s'], 's', 3)}" for k in kernels]
    return f"Kernels of no unit: {_some(told)}."


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
