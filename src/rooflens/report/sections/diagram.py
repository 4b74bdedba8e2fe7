"""An analysis document in, its Diagram out: a node a unit, an edge what passes through memory between two, with why.

A run of units that comes several times in a row, by pattern and shapes, is drawn once with how often it comes.
"""

from typing import Any, NamedTuple

from rooflens.report.blocks import Cluster, Connection, Diagram, Node
from rooflens.report.rows import shapes
from rooflens.report.sections.ranking import Row, members_of, short
from rooflens.units import show

NODES_SHOWN = 150  # what a viewer still lays out, and a reader still follows
TIES_SHOWN = 300  # Mermaid draws nothing from 500 on
LONGEST_RUN = 200


class Run(NamedTuple):
    """Units from `start` on, `period` at a time, `times` over; `period` 1 and `times` 1 is a unit by itself."""

    start: int
    period: int
    times: int


class Spot(NamedTuple):
    """Where a unit is drawn: its node, its run, and in which repetition of the run it runs."""

    node: int
    run: int
    repetition: int


def diagram_of(document: dict[str, Any]) -> Diagram:
    ops = {op["id"]: op for op in document["ops"]}
    units = [(group, members) for group in document["groups"] if (members := members_of(group, ops))]
    runs = runs_of([_signature(group, members) for group, members in units])
    shown, left = _first(runs, NODES_SHOWN)
    spots = _spots(shown)
    ties = _ties(document, units, spots)
    dearest = sorted(ties, key=lambda tie: -ties[tie].bytes)[:TIES_SHOWN]
    return Diagram(
        title=_title(document),
        nodes=tuple(_node(i, *units[i]) for run in shown for i in range(run.start, run.start + run.period)),
        connections=tuple(_connection(tie, ties[tie]) for tie in sorted(dearest)),
        clusters=tuple(_cluster(run, units) for run in shown if run.times > 1),
        notes=(*_left_out(left, "units"), *_left_out(len(ties) - len(dearest), "edges, the cheapest,")),
    )


def _left_out(count: int, what: str) -> tuple[str, ...]:
    return (f"{count} {what} are left out",) if count else ()


def _title(document: dict[str, Any]) -> str:
    f, hardware = document["fusion"], document["hardware"]
    on = f" on {hardware['name']}" if hardware else ""
    return f"{document['model']['name']}{on}, fusion {f['level']}: {f['after']['kernels']} kernels, {_bytes(f['after']['bytes'])}"


def _bytes(count: int) -> str:
    return show(count, "B", 3)


# repetitions


def _signature(group: Row, members: list[Row]) -> tuple[str, ...]:
    """What makes two units look the same: the kinds of their ops, and the shapes of what they read and write."""
    return tuple(f"{op['kind']} {shapes(op['inputs'])} {shapes(op['outputs'])}" for op in members)


def runs_of(signatures: list[tuple[str, ...]]) -> tuple[Run, ...]:
    """From left to right, at each place the repetition that saves most nodes."""
    names: dict[tuple[str, ...], int] = {}
    text = [names.setdefault(s, len(names)) for s in signatures]
    found, place = [], 0
    while place < len(text):
        run = _longest(text, place)
        found.append(run)
        place += run.period * run.times
    return tuple(found)


def _longest(text: list[int], start: int) -> Run:
    runs = (Run(start, p, _times(text, start, p)) for p in _periods(text, start))
    return max(runs, key=lambda r: (r.period * (r.times - 1), -r.period), default=Run(start, 1, 1))


def _periods(text: list[int], start: int) -> list[int]:
    """Distances at which the first unit of a run comes again."""
    reach = min(LONGEST_RUN, (len(text) - start) // 2)
    return [1, *(p for p in range(2, reach + 1) if text[start + p] == text[start])]


def _times(text: list[int], start: int, period: int) -> int:
    first, times = text[start : start + period], 1
    while text[start + times * period : start + (times + 1) * period] == first:
        times += 1
    return times


def _first(runs: tuple[Run, ...], room: int) -> tuple[list[Run], int]:
    """As many runs as there is room for, and how many units the others have."""
    shown: list[Run] = []
    for place, run in enumerate(runs):
        room -= run.period
        if room < 0 and shown:
            return shown, sum(r.period * r.times for r in runs[place:])
        shown.append(run)
    return shown, 0


def _spots(runs: list[Run]) -> dict[int, Spot]:
    """By place of the unit."""
    return {
        run.start + repetition * run.period + i: Spot(run.start + i, number, repetition)
        for number, run in enumerate(runs)
        for repetition in range(run.times)
        for i in range(run.period)
    }


def _cluster(run: Run, units: list[tuple[Row, list[Row]]]) -> Cluster:
    """Named by the first unit of its first and of its last repetition."""
    last = units[run.start + (run.times - 1) * run.period][0]["id"]
    return Cluster(
        text=f"{run.times} x, from {units[run.start][0]['id']} to {last}",
        nodes=tuple(range(run.start, run.start + run.period)),
    )


# nodes and what passes between them


def _node(place: int, group: Row, members: list[Row]) -> Node:
    pattern = members[0]["kind"] if len(members) == 1 else short(group["pattern"])
    intensity = group["intensity_flop_per_byte"]
    facts = _bytes(group["bytes"]) + ("" if intensity is None else f", {intensity:.3g} FLOP/B")
    return Node(id=place, lines=(group["id"], pattern, facts), bound=group["bound"] or "unknown")


class _Tie(NamedTuple):
    before: int
    after: int
    back: bool


class _Load(NamedTuple):
    bytes: int
    reasons: tuple[str, ...]


def _ties(document: dict[str, Any], units: list[tuple[Row, list[Row]]], spots: dict[int, Spot]) -> dict[_Tie, _Load]:
    """Cut edges between the drawn units. Of a run that repeats, those of its first repetition stand for all."""
    unit_of = {op: place for place, (group, _) in enumerate(units) for op in group["ops"]}
    found: dict[_Tie, _Load] = {}
    for edge in document["fusion"]["edges"]:
        if edge["decision"] == "cut":
            tie = _tie(spots.get(unit_of[edge["from"]]), spots.get(unit_of[edge["to"]]))
            if tie is not None:
                found[tie] = _with(found.get(tie, _Load(0, ())), edge)
    return found


def _with(load: _Load, edge: dict[str, Any]) -> _Load:
    reasons = dict.fromkeys((*load.reasons, edge["reason"] or ""))
    return _Load(load.bytes + edge["bytes"], tuple(r for r in reasons if r))


def _tie(a: Spot | None, b: Spot | None) -> _Tie | None:
    """None where it is not drawn: left out, or a later repetition of what is drawn already."""
    if a is None or b is None:
        return None
    if a.run != b.run:
        return _Tie(a.node, b.node, False)
    if a.repetition:
        return None
    return _Tie(a.node, b.node, a.repetition != b.repetition)


def _connection(tie: _Tie, load: _Load) -> Connection:
    text = ", ".join([_bytes(load.bytes), *load.reasons])
    return Connection(before=tie.before, after=tie.after, text=text, back=tie.back)
