"""An analysis document in, what runs as one unit, numbered by weight, out: the one order that tables and chart share.

At level `none` every op is a unit of its own and is shown as itself; at any other a unit is a group, named by its first
op and its pattern.
"""

from typing import Any

Row = dict[str, Any]
PATTERN_SHOWN = 4


def ranked(document: dict[str, Any]) -> list[tuple[int, Row]]:
    """Heaviest first: by device time where a chip was named, else by bytes; views are left out."""
    kernels = units_of(document)
    kernels.sort(key=lambda row: (-(row["device_time_s"] or 0.0), -row["bytes"]))
    return list(enumerate(kernels, 1))


def units_of(document: dict[str, Any]) -> list[Row]:
    """In the order they run: ops or groups, each with the `label` that it is shown by."""
    if not is_fused(document):
        return [{**op, "label": op["id"]} for op in document["ops"] if not op["view"]]
    ops = {op["id"]: op for op in document["ops"]}
    units = ((group, members_of(group, ops)) for group in document["groups"])
    return [
        {**group, "label": label_of(group), "outputs": kernels[-1]["outputs"]} for group, kernels in units if kernels
    ]


def is_fused(document: dict[str, Any]) -> bool:
    return bool(document["fusion"]["level"] != "none")


def members_of(group: Row, ops: dict[str, Row]) -> list[Row]:
    """Its ops that are kernels."""
    return [op for op in (ops[name] for name in group["ops"]) if not op["view"]]


def label_of(group: Row) -> str:
    return group["id"] if group["pattern"] == "single" else f"{group['id']} {short(group['pattern'])}"


def short(pattern: str) -> str:
    """A long pattern by its ends: linear+add+…+mul (9)."""
    kinds = pattern.split("+")
    if len(kinds) <= PATTERN_SHOWN:
        return pattern
    return f"{'+'.join(kinds[:2])}+…+{kinds[-1]} ({len(kinds)})"
