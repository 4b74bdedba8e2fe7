"""Partition in, Edges out: every meeting of a reader with what a kernel wrote, its decision, and its bytes.

A fused edge has the bytes that it saves: what the reader no longer reads, and on the first of them the write that falls
away. A cut edge has what it costs: its read, and the write where nobody else needs it. Members that read the same memory
from outside are edges of their own, `shared read`, so that the bytes of all fused edges are exactly what fusing saves.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rooflens.costs.sheet import CostSheet
from rooflens.costs.traffic import Access
from rooflens.fusion.account import Readers, once, outside_reads, stays
from rooflens.fusion.flow import NOBODY, Flow, flow_of
from rooflens.fusion.partition import Partition
from rooflens.fusion.rules import NOT_ASKED, SHARED


class Edge(NamedTuple):
    """Places of two ops. `rule` where they are fused, `reason` where they are cut; the other is None."""

    before: int
    after: int
    rule: str | None
    reason: str | None
    bytes: int


def edges_of(partition: Partition) -> tuple[Edge, ...]:
    sheet = partition.sheet
    flow = flow_of(sheet.graph)
    of = groups_of(partition)
    return (*_links(partition, flow, of), *_shared(partition, flow, of))


def groups_of(partition: Partition) -> list[int]:
    """Number of the group by place of the op."""
    of = [NOBODY] * len(partition.sheet.graph.ops)
    for number, group in enumerate(partition.groups):
        for place in group.ops:
            of[place] = number
    return of


def _links(partition: Partition, flow: Flow, of: list[int]) -> Iterator[Edge]:
    sheet, gone = partition.sheet, set[int]()  # whose write is on an edge already
    for before, after, owner, rule, reason in partition.links or _untaken(flow):
        moved = _read(sheet, after, owner)
        if rule is not None:
            if owner not in gone and not stays(flow, owner, of):
                gone.add(owner)
                moved += _written(sheet, before, owner)
        elif len(flow.readers[owner]) == 1 and owner not in flow.kept:
            moved += _written(sheet, before, owner)
        yield Edge(before, after, rule, reason, moved)


def _untaken(flow: Flow) -> Iterator[tuple[int, int, int, None, str]]:
    """Level `none` takes no decisions: all of its edges are cut."""
    for place, owners in enumerate(flow.reads):
        for owner in owners:
            writer = flow.writers[owner]
            if writer not in (NOBODY, place):
                yield writer, place, owner, None, NOT_ASKED


def _read(sheet: CostSheet, place: int, owner: int) -> int:
    return sum(a.bytes for a in sheet.traffic(place)[0] if a.region[0] == owner)


def _written(sheet: CostSheet, place: int, owner: int) -> int:
    return sum(a.bytes for a in sheet.traffic(place)[1] if a.region[0] == owner)


def _shared(partition: Partition, flow: Flow, of: list[int]) -> Iterator[Edge]:
    sheet = partition.sheet
    for number, group in enumerate(partition.groups):
        if len(group.ops) > 1:
            for owner, readers in outside_reads(sheet, flow, group.ops, of, number).items():
                yield from _again(readers, sheet.graph.tensors[owner].bytes)


def _again(readers: Readers, whole: int) -> Iterator[Edge]:
    """What each further reader finds on chip already: what the group reads grows by less than its own bytes."""
    known: list[list[Access]] = []
    read, first = 0, next(iter(readers))
    for place, accesses in readers.items():
        own = sum(a.bytes for a in accesses)
        known.append(accesses)
        now = once(known, whole)
        if own > now - read:
            yield Edge(first, place, SHARED, None, own - (now - read))
        read = now
