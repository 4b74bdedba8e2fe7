"""CostSheet in, Partition out: which ops run as one unit. At level `none` each op, views included, is its own group.

Each level merges groups of the one before, so that its bytes are never more. Every edge keeps its decision: the rule
that joins the two, or the reason that keeps them apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rooflens.costs.sheet import CostSheet, OpCost
from rooflens.fusion import rules as r
from rooflens.fusion.account import Work, group_cost, work_of
from rooflens.fusion.chain import Chains, Cluster, Link
from rooflens.fusion.flow import NOBODY, Flow, flow_of
from rooflens.fusion.merge import merge_activations, merge_residuals
from rooflens.hardware.records import Hardware

LEVELS = r.LEVELS


@dataclass(frozen=True, slots=True)
class Group:
    """Places of the member ops in the graph, in the order they run, and what they cost together. `extra_macs` are those
    of the cost that are computed again."""

    ops: tuple[int, ...]
    cost: OpCost
    work: Work
    extra_macs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """`groups` stand in an order in which they may run. `links` are the decisions, one a reader and tensor; at level
    `none` there are none to take."""

    sheet: CostSheet
    level: str
    groups: tuple[Group, ...]
    links: tuple[Link, ...] = ()
    notes: tuple[str, ...] = ()


def partition(sheet: CostSheet, level: str, hardware: Hardware | None = None) -> Partition:
    """`hardware` says how much fits on chip, which only level `tile` asks."""
    if level == "none":
        groups = tuple(Group((i,), row, work_of((row,))) for i, row in enumerate(sheet.rows))
        return Partition(sheet=sheet, level=level, groups=groups)
    if level == "tile":
        return replace(partition(sheet, "residual"), notes=("tile: not yet",))
    flow = flow_of(sheet.graph)
    chains = Chains(sheet, flow)
    merge_activations(chains)
    if level != "chain":
        merge_residuals(chains)
    of: list[Cluster | int | None] = list(chains.of)
    _place_views(chains, of)
    return Partition(
        sheet=sheet, level=level, groups=_groups(sheet, flow, chains, of), links=tuple(_decided(chains)),
    )  # fmt: skip


def _place_views(chains: Chains, of: list[Cluster | int | None]) -> None:
    """A view between members of one group belongs to it; any other stands for itself."""
    graph, seen_by = chains.graph, dict.fromkeys(chains.graph.outputs, -1)  # tensor to the one group that reads it
    for place in range(len(graph.ops) - 1, -1, -1):
        op, mine = graph.ops[place], of[place]
        if op.view:
            mine = of[place] = _around(chains, place, seen_by)
        mark = -2 - place if mine is None else id(mine)
        for i in op.inputs:
            if seen_by.setdefault(i, mark) != mark:
                seen_by[i] = -1


def _around(chains: Chains, place: int, seen_by: dict[int, int]) -> Cluster | None:
    op = chains.graph.ops[place]
    writer = chains.flow.writers[chains.graph.tensors[op.outputs[0]].base]
    source = None if writer == NOBODY else chains.of[writer]
    return source if source is not None and all(seen_by.get(o) == id(source) for o in op.outputs) else None


def _groups(sheet: CostSheet, flow: Flow, chains: Chains, of: Sequence[Cluster | int | None]) -> tuple[Group, ...]:
    """In the order of last members. A view comes after the group that wrote what it shows."""
    members: dict[int, list[int]] = {}
    order: dict[int, tuple[int, int, int]] = {}
    for place, cluster in enumerate(of):
        if isinstance(cluster, Cluster):
            members.setdefault(id(cluster), []).append(place)
            order[id(cluster)] = (cluster.last, 0, place)
        else:
            members[-place - 1] = [place]
            order[-place - 1] = (_ready(chains, place), 1, place)
    return tuple(_group(sheet, flow, members[key], of) for key in sorted(members, key=lambda k: order[k]))


def _ready(chains: Chains, place: int) -> int:
    """When a view's tensor is there."""
    writer = chains.flow.writers[chains.graph.tensors[chains.graph.ops[place].outputs[0]].base]
    source = None if writer == NOBODY else chains.of[writer]
    return place if source is None else max(place, source.last)


def _group(sheet: CostSheet, flow: Flow, ops: list[int], of: Sequence[object]) -> Group:
    if len(ops) == 1:
        row = sheet.rows[ops[0]]
        return Group(tuple(ops), row, work_of((row,)))
    return Group(tuple(ops), *group_cost(sheet, flow, ops, of))


def _decided(chains: Chains) -> list[Link]:
    """Each link as it came out in the end: two ops may meet in one group by another way than their own."""
    found = []
    for link in chains.links:
        together = chains.of[link.before] is chains.of[link.after]
        if together and link.rule is None:
            link = link._replace(rule=_way(chains, link), reason=None)
        elif not together and link.rule is not None:
            link = link._replace(rule=None, reason=r.JOIN_ORDER)
        found.append(link)
    return found


def _way(chains: Chains, link: Link) -> str | None:
    """The rule by which the reader's loop joined the writer's product, or else by which the reader joined its group."""
    merged = chains.merged_by[link.after]
    return merged if merged and merged != chains.merged_by[link.before] else chains.rule_of[link.after]
