"""Groups of level `residual` in, runs of them that go through tiles depth first out, where a chip's on-chip memory holds
a tile.

The groups stand in an order in which they may run, so any run of neighbours may become one group without a cycle. Of all
ways to cut the order into runs that fit, the one that moves fewest bytes is taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import NamedTuple

from rooflens.costs.sheet import CostSheet
from rooflens.fusion import rules as r
from rooflens.fusion.account import stays
from rooflens.fusion.chain import Chains, Cluster
from rooflens.fusion.merge import clusters_of
from rooflens.fusion.pace import Pace, load_of, together
from rooflens.fusion.stages import stage_of
from rooflens.fusion.tiles import Room, Stage, Tiling, TooLarge, again_macs, fit, too_large
from rooflens.hardware.records import OFFCHIP, Hardware, MemoryLevel
from rooflens.units import show

LONGEST_RUN = 10  # groups; a whole inverted residual is three, a bottleneck with its branch four


class Run(NamedTuple):
    """Neighbours by their numbers, and how they are tiled; one group alone is not."""

    start: int
    stop: int
    saved_bytes: int
    tiling: Tiling | None
    extra_macs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """How a group is cut: the tile of its last output, how many there are, what one needs on chip and what there is."""

    shape: tuple[int, ...]
    count: int
    needs_bytes: int
    has_bytes: int
    extra_macs: int


def _tile(run: Run, room: Room) -> Tile:
    assert run.tiling is not None
    return Tile(
        shape=run.tiling.tile,
        count=run.tiling.count,
        needs_bytes=run.tiling.tile_bytes,
        has_bytes=room.tile_bytes,
        extra_macs=run.extra_macs,
    )


class Tiled(NamedTuple):
    """What the level did, by identity of the groups: the tile of each run, the macs that it computes again and its rule;
    and what keeps neighbours apart for want of room."""

    tiles: dict[int, Tile]
    rules: dict[int, str]
    apart: dict[tuple[int, int], str]


def room_of(hardware: Hardware) -> Room | None:
    """Tiles live in the memory that a unit of the chip has to itself, weights in the largest one on chip; None where a
    capacity is not published."""
    shared_memory = hardware.value("sm.shared")
    levels = {m.level: m for m in hardware.memory if m.level not in OFFCHIP}
    own = shared_memory or next(
        (_one(hardware, levels[n]) for n in _OWN if n in levels and _one(hardware, levels[n])), None
    )
    if not own:
        return None
    most = max((_one(hardware, m) or 0 for m in levels.values()), default=0)
    weights = max(int(own), most)
    return Room(tile_bytes=int(own), weight_bytes=weights, shared=weights == int(own))


_OWN = ("scratchpad", "vmem", "l2", "shared", "l1")  # in the order in which a chip without SMs is asked


def _one(hardware: Hardware, level: MemoryLevel) -> int | None:
    """Capacity of one instance."""
    found = hardware.value(f"memory.{level.level}.capacity")
    return None if found is None else int(found)


def merge_tiles(sheet: CostSheet, chains: Chains, room: Room, pace: Pace) -> Tiled:
    clusters = clusters_of(chains)
    table = _Table(sheet, chains, clusters, room, pace)
    runs = table.best()
    tiled = [run for run in runs if run.tiling is not None]
    for run in tiled:
        _merge(chains, clusters[run.start : run.stop])
    return Tiled(
        tiles={id(clusters[run.start]): _tile(run, room) for run in tiled},
        rules={id(clusters[run.start]): rule_of(table.stages[run.start : run.stop]) for run in tiled},
        apart=_apart(table, runs, clusters),
    )


def rule_of(run: Sequence[Stage | None]) -> str:
    """What the run is called: by what its stages are."""
    signs = "".join(stage.sign for stage in run if stage is not None)
    if set(signs) <= set("L."):
        return r.MLP
    if signs.endswith("M") and "M" not in signs[:-1]:
        return r.POOLED
    if signs == "PDP" and "M" not in signs:
        return r.INVERTED
    if set(signs) == set("DP"):
        return r.SEPARABLE
    return r.BLOCK if any(stage.adds for stage in run if stage is not None) else r.DEPTH_FIRST


class _Table:
    """What each group reads and writes, and the best way to cut the first n of them into runs."""

    def __init__(self, sheet: CostSheet, chains: Chains, clusters: list[Cluster], room: Room, pace: Pace) -> None:
        self.chains, self.room, self.pace = chains, room, pace
        self.loads = [load_of(sheet, c.ops) for c in clusters]
        self.stages = [stage_of(sheet, chains, c) for c in clusters]
        self.shapes = _shapes(self.stages)
        self.number = {id(c): n for n, c in enumerate(clusters)}
        self.reads = [_reads(sheet, chains, c) for c in clusters]
        self.writes = [_writes(sheet, chains, c) for c in clusters]
        self.gone_at = [{owner: self._last_reader(owner) for owner in made} for made in self.writes]
        self.fits: dict[tuple[int, ...], Tiling | TooLarge | None] = {}

    def best(self) -> list[Run]:
        """The runs that save most bytes, of those that cost no time; of equal ones the shorter."""
        count = len(self.stages)
        saved, chosen = [0] * (count + 1), [Run(0, 0, 0, None, 0)] * (count + 1)
        for stop in range(1, count + 1):
            saved[stop], chosen[stop] = saved[stop - 1], Run(stop - 1, stop, 0, None, 0)
            runs = [(saved[start] + gain, start, gain) for start, gain in self._runs_to(stop) if gain]
            for whole, start, gain in sorted(runs, reverse=True):
                tiling = self.fit(start, stop) if whole > saved[stop] else None
                if not isinstance(tiling, Tiling):
                    continue
                run = Run(start, stop, gain, tiling, self._extra(start, stop, tiling))
                if self._pays(run):
                    saved[stop], chosen[stop] = whole, run
                    break
        found = list[Run]()
        place = count
        while place:
            found.append(chosen[place])
            place = chosen[place].start
        return found[::-1]

    def _runs_to(self, stop: int) -> Iterator[tuple[int, int]]:
        """Where a run that ends here may start, and the bytes that its groups need not move: reads of what another of
        them wrote or read, and writes that nobody outside reads. Grown from its end, a group at a time."""
        saved, wanted = 0, dict[int, int]()  # bytes of the first read of what no member has written
        for start in range(stop - 1, max(-1, stop - 1 - LONGEST_RUN), -1):
            if not _alike(self.stages[start], self.stages[stop - 1]):
                return
            for owner, moved in self.writes[start].items():
                saved += wanted.pop(owner, 0) + (moved if self.gone_at[start][owner] < stop else 0)
            for owner, moved in self.reads[start].items():
                saved += wanted.get(owner, 0)
                wanted[owner] = moved
            if start < stop - 1:
                yield start, saved

    def _last_reader(self, owner: int) -> float:
        """The number of the group after which nobody wants it any more; never, where it is kept or nobody reads it."""
        readers = self.chains.flow.readers[owner]
        if not readers or owner in self.chains.flow.kept:
            return inf
        return max(self.number[id(self.chains.of[place])] for place in readers)

    def fit(self, start: int, stop: int) -> Tiling | TooLarge | None:
        """Blocks come many times in a network: runs of one shape are tiled alike."""
        run = [stage for stage in self.stages[start:stop] if stage is not None]
        if len(run) < stop - start:
            return None
        key = (self.shapes[start][0], *(n for _, n in self.shapes[start + 1 : stop]))
        if key not in self.fits:
            self.fits[key] = fit(run, self.room)
        return self.fits[key]

    def missing(self, start: int, stop: int) -> TooLarge | None:
        """What no tile fits into; or where one fits and costs more than it saves, what a tile without overlap would need."""
        found = self.fit(start, stop)
        if not isinstance(found, Tiling):
            return found
        gain = dict(self._runs_to(stop)).get(start, 0)
        if self._pays(Run(start, stop, gain, found, self._extra(start, stop, found))):
            return None
        return too_large([stage for stage in self.stages[start:stop] if stage is not None], self.room)

    def _pays(self, run: Run) -> bool:
        """Does the chip take no longer for it than for its groups one by one? Work that is not done again costs nothing."""
        if not run.extra_macs:
            return True
        moved = [sum(self.reads[n].values()) + sum(self.writes[n].values()) for n in range(run.start, run.stop)]
        loads = self.loads[run.start : run.stop]
        alone = [self.pace.time_s(load, n) for load, n in zip(loads, moved, strict=True)]
        as_one = self.pace.time_s(together(loads, run.extra_macs), sum(moved) - run.saved_bytes)
        known = [t for t in alone if t is not None]
        return as_one is None or len(known) < len(alone) or as_one <= sum(known)

    def _extra(self, start: int, stop: int, tiling: Tiling) -> int:
        run = [stage for stage in self.stages[start:stop] if stage is not None]
        return sum(again_macs(stage, pair) for stage, pair in zip(run, tiling.again, strict=True))


def _shapes(stages: Sequence[Stage | None]) -> list[tuple[int, int]]:
    """Numbers of what tells a stage from others but for the ids of its tensors, of which only differences count: by
    itself, and behind the stage before it."""
    numbers: dict[object, int] = {}
    found = list[tuple[int, int]]()
    before = 0
    for stage in stages:
        if stage is None:
            found.append((-1, -1))
            continue
        alone = replace(stage, owner=0, operands=tuple(replace(o, owner=o.owner - stage.owner) for o in stage.operands))
        number = numbers.setdefault(alone, len(numbers))
        found.append((number, numbers.setdefault((number, stage.owner - before), len(numbers))))
        before = stage.owner
    return found


def _alike(a: Stage | None, b: Stage | None) -> bool:
    """Images of as many axes, or rows: tiles of one can then be followed back through the other."""
    return a is not None and b is not None and (a.kind, a.items, len(a.size)) == (b.kind, b.items, len(b.size))


def _reads(sheet: CostSheet, chains: Chains, cluster: Cluster) -> dict[int, int]:
    """Owner to bytes that a group reads of others."""
    found: dict[int, int] = {}
    for place in cluster.ops:
        for access in sheet.traffic(place)[0]:
            writer = chains.flow.writers[access.region[0]]
            if writer < 0 or chains.of[writer] is not cluster:
                found[access.region[0]] = max(found.get(access.region[0], 0), access.bytes)
    return found


def _writes(sheet: CostSheet, chains: Chains, cluster: Cluster) -> dict[int, int]:
    """Owner to bytes that a group writes to memory."""
    return {
        access.region[0]: access.bytes
        for place in cluster.ops
        for access in sheet.traffic(place)[1]
        if stays(chains.flow, access.region[0], chains.of)
    }


def _merge(chains: Chains, run: Sequence[Cluster]) -> None:
    """All go into the first."""
    into = run[0]
    for cluster in run[1:]:
        for place in cluster.ops:
            chains.of[place] = into
        into.ops += cluster.ops
        into.last = max(into.last, cluster.last)


def _apart(table: _Table, runs: list[Run], clusters: list[Cluster]) -> dict[tuple[int, int], str]:
    """Neighbours that capacity alone keeps apart: what they would need together, and what there is."""
    found = {}
    for one, two in pairwise(runs):
        ends = table.stages[one.stop - 1], table.stages[two.stop - 1]
        if _alike(*ends) and _alike(table.stages[one.start], table.stages[two.start]):
            missing = table.missing(one.start, two.stop)
            if missing is not None:
                text = r.CAPACITY.format(show(missing.needs_bytes, "B"), show(missing.has_bytes, "B"))
                found[id(clusters[one.start]), id(clusters[two.start])] = text
    return found
