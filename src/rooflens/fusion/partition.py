"""CostSheet in, Partition out: which ops run as one unit. At level `none` each op, views included, is its own group.

Each level merges groups of the one before, so that its bytes are never more. Every edge keeps its decision: the rule
that joins the two, or the reason that keeps them apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rooflens.costs.sheet import CostSheet, OpCost, flop
from rooflens.fusion import rules as r
from rooflens.fusion.account import Work, group_cost, work_of
from rooflens.fusion.attention import merge_attention
from rooflens.fusion.chain import Chains, Cluster, Link
from rooflens.fusion.flow import NOBODY, Flow, flow_of
from rooflens.fusion.merge import merge_activations, merge_residuals
from rooflens.fusion.pace import pace_of
from rooflens.fusion.tile import Tile, Tiled, merge_tiles, room_of
from rooflens.hardware.records import Hardware

LEVELS = r.LEVELS


@dataclass(frozen=True, slots=True)
class Group:
    """Places of the member ops in the graph, in the order they run, and what they cost together."""

    ops: tuple[int, ...]
    cost: OpCost
    work: Work
    tile: Tile | None = None

    @property
    def extra_macs(self) -> int:
        """Macs of its cost that are computed again, where tiles overlap."""
        return self.tile.extra_macs if self.tile else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """`groups` stand in an order in which they may run. `links` are the decisions, one a reader and tensor; at level
    `none` there are none to take."""

    sheet: CostSheet
    level: str
    groups: tuple[Group, ...]
    links: tuple[Link, ...] = ()
    notes: tuple[str, ...] = ()


def partition(sheet: CostSheet, level: str, hardware: Hardware | None = None, execution: str = "eager") -> Partition:
    """`hardware` says how much fits on chip, and with `execution` what a kernel costs, which only level `tile` asks."""
    if level == "none":
        groups = tuple(Group((i,), row, work_of(row)) for i, row in enumerate(sheet.rows))
        return Partition(sheet=sheet, level=level, groups=groups)
    flow = flow_of(sheet.graph)
    chains = Chains(sheet, flow)
    merge_attention(chains)
    merge_activations(chains)
    if level != "chain":
        merge_residuals(chains)
    whole, notes, tiled = list(chains.of), tuple[str, ...](), Tiled({}, {}, {})
    if level == "tile":
        room = room_of(hardware) if hardware else None
        if room is None or hardware is None:
            level, notes = "residual", (_no_room(hardware),)
        else:
            tiled = merge_tiles(sheet, chains, room, pace_of(hardware, execution))
    links = tuple([_decided(chains, link, whole, tiled) for link in chains.links])
    of: list[Cluster | None] = list(chains.of)
    _place_views(chains, of)
    groups = _groups(sheet, flow, chains, of, tiled.tiles)
    return Partition(sheet=sheet, level=level, groups=groups, links=links, notes=notes)


def _no_room(hardware: Hardware | None) -> str:
    where = f"{hardware.id} publishes no capacity of its on-chip memory" if hardware else "no chip is named"
    return f"level tile falls back to residual: {where}, so nobody can tell which tiles fit"


def _place_views(chains: Chains, of: list[Cluster | None]) -> None:
    """A view that a group sees its own tensor through belongs to it, whoever else looks; any other stands for itself."""
    graph, writers, inside = chains.graph, chains.flow.writers, set[int]()
    bases = [t.base for t in graph.tensors]
    for place in range(len(graph.ops) - 1, -1, -1):
        op = graph.ops[place]
        if not op.view:
            mine = of[place]
            for i in op.inputs:
                if bases[i] != i and (writer := writers[bases[i]]) >= 0 and chains.of[writer] is mine:
                    inside.add(i)
        elif any(o in inside for o in op.outputs):
            of[place] = _source(chains, op.outputs[0])
            inside.update(op.inputs)


def _source(chains: Chains, tensor: int) -> Cluster | None:
    """The group that wrote a tensor's memory."""
    writer = chains.flow.writers[chains.graph.tensors[tensor].base]
    return None if writer == NOBODY else chains.of[writer]


def _groups(
    sheet: CostSheet, flow: Flow, chains: Chains, of: Sequence[Cluster | None], tiles: dict[int, Tile]
) -> tuple[Group, ...]:
    """In the order of last members. A view comes after the group that wrote what it shows."""
    members: dict[int, list[int]] = {}
    order: list[tuple[int, int, int, int]] = []
    for place, cluster in enumerate(of):
        if cluster is None:
            members[-place - 1] = [place]
            order.append((_ready(chains, place), 1, place, -place - 1))
        elif id(cluster) in members:
            members[id(cluster)].append(place)
        else:
            members[id(cluster)] = [place]
            order.append((cluster.last, 0, place, id(cluster)))
    return tuple([_group(sheet, flow, members[key], of, tiles.get(key)) for _, _, _, key in sorted(order)])


def _ready(chains: Chains, place: int) -> int:
    """When a view's tensor is there."""
    source = _source(chains, chains.graph.ops[place].outputs[0])
    return place if source is None else max(place, source.last)


def _group(sheet: CostSheet, flow: Flow, ops: list[int], of: Sequence[object], tile: Tile | None) -> Group:
    if len(ops) == 1:
        row = sheet.rows[ops[0]]
        return Group(tuple(ops), row, work_of(row))
    cost, work = group_cost(sheet, flow, ops, of)
    if tile is not None:
        work = _with_macs(cost, work, tile.extra_macs)
        cost = cost._replace(macs=cost.macs + tile.extra_macs)
    return Group(tuple(ops), cost, work, tile)


def _with_macs(cost: OpCost, work: Work, extra: int) -> Work:
    """Macs belong to the group's main kind of work."""
    added = flop(extra, 0, 0)
    return tuple((u, d, n + added if (u, d) == (cost.unit, cost.dtype) else n) for u, d, n in work)


def _decided(chains: Chains, link: Link, whole: Sequence[Cluster | None], tiled: Tiled) -> Link:
    """A link as it came out in the end: two ops may meet in one group by another way than their own."""
    before, after = chains.of[link.before], chains.of[link.after]
    if before is after:
        if whole[link.before] is not whole[link.after]:
            return link._replace(rule=tiled.rules[id(before)], reason=None)
        return link if link.rule is not None else link._replace(rule=_way(chains, link), reason=None)
    too_large = tiled.apart.get((id(before), id(after)))
    if too_large:
        return link._replace(rule=None, reason=too_large)
    return link if link.rule is None else link._replace(rule=None, reason=r.JOIN_ORDER)


def _way(chains: Chains, link: Link) -> str | None:
    """The rule by which the reader's loop joined the writer's product, or else by which the reader joined its group."""
    merged = chains.merged_by[link.after]
    return merged[0] if merged and merged != chains.merged_by[link.before] else chains.rule_of[link.after]
