"""CostSheet in, Partition out: which ops run as one unit. At level `none` each op, views included, is its own group."""

from dataclasses import dataclass

from rooflens.costs.sheet import CostSheet
from rooflens.errors import NotInThisVersion

LEVELS = ("none", "chain", "residual", "tile")


@dataclass(frozen=True, slots=True)
class Group:
    """Places of the member ops in the graph, in the order they run."""

    ops: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    sheet: CostSheet
    level: str
    groups: tuple[Group, ...]


def partition(sheet: CostSheet, level: str) -> Partition:
    if level != "none":
        raise NotInThisVersion(f"--fusion {level} is not in this version: use --fusion none")
    return Partition(sheet=sheet, level=level, groups=tuple(Group((i,)) for i in range(len(sheet.rows))))
