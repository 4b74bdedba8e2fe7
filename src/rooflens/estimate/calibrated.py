"""One group's work and bytes in seconds of its roofs, and what its class of ops reaches here, in; the time to expect out."""

from collections.abc import Callable
from typing import NamedTuple

from rooflens.costs.sheet import OpCost
from rooflens.fusion.partition import Group
from rooflens.graph.records import Graph
from rooflens.hardware.profile import Reach
from rooflens.ops.classes import class_of

Known = Callable[[str, str], Reach | None]  # of a class and a type
SURE, FAIR = 1.5, 3.0  # how far apart the low and the high time may be
SURE_POINTS = 4


class Expected(NamedTuple):
    """`confidence`: low where nothing was measured, and the time is a floor."""

    time_s: float
    low_s: float
    high_s: float | None
    confidence: str


def expected(floor_s: float, work_s: float, moved_s: float, reach: Reach | None) -> Expected:
    """Never below the floor, which holds whatever was measured."""
    if reach is None:
        return Expected(floor_s, floor_s, None, "low")
    time_s = max(floor_s, reach.time_s(work_s, moved_s))
    low, high = max(floor_s, time_s * min(reach.low, 1.0)), time_s * max(reach.high, 1.0)
    return Expected(time_s, low, high, _confidence(reach))


def _confidence(reach: Reach) -> str:
    apart = reach.high / reach.low
    if reach.points >= SURE_POINTS and apart <= SURE:
        return "high"
    return "medium" if apart <= FAIR else "low"


def reach_of(group: Group, graph: Graph, rows: tuple[OpCost, ...], known: Known, dtype: str) -> Reach | None:
    """That of its heaviest op: the kernel that the others were fused into."""
    main = max(group.ops, key=lambda i: (rows[i].flops, rows[i].bytes)) if len(group.ops) > 1 else group.ops[0]
    return known(class_of(graph.ops[main], graph.tensors), dtype)


def together(parts: list[tuple[float, str]]) -> str | None:
    """Of a sum: as sure as nine tenths of its time are."""
    total = sum(time_s for time_s, _ in parts)
    for name, least in (("high", ("high",)), ("medium", ("high", "medium"))):
        if total and sum(t for t, c in parts if c in least) >= 0.9 * total:
            return name
    return "low" if parts else None
