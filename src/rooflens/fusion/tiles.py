"""A run of groups in, the tile in which it goes through depth first out: how large it may be, what must be on chip for
it at once, and what is computed again where windows overlap.

The last group's output is cut into equal tiles. Each tile's range is followed back through the run: a window asks its
input for more than its own output (the halo), an element-wise op for as much. A tile runs through all groups before the
next one starts, so that between them nothing but tiles exists.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import NamedTuple

from rooflens.graph.records import BITS

MOST_AGAIN = 0.5  # a tile whose halo computes more than this share of the work again is no gain

Range = tuple[int, int]


class Window(NamedTuple):
    """How a group reads one tensor along one axis: element-wise is a window of one."""

    kernel: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    def reads(self, piece: Range, size: int) -> Range:
        start, stop = piece
        low = start * self.stride - self.padding
        high = (stop - 1) * self.stride - self.padding + self.dilation * (self.kernel - 1) + 1
        return max(0, min(low, size)), max(0, min(high, size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A tensor that a stage reads: its owner, how many values it has at each place, and a window per axis; without
    windows it is small and held whole."""

    owner: int
    bytes_per_place: int
    windows: tuple[Window, ...]
    size: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One group of the run as tiles see it: the axes of its output, what it reads, and the bytes of its weights."""

    kind: str  # image | rows: what its axes are
    items: int  # images of the batch: tiles stay within one
    sign: str  # P pointwise, D depthwise and C other convolution, L linear, M pool, . element-wise
    owner: int
    size: tuple[int, ...]
    bytes_per_place: int
    operands: tuple[Operand, ...]
    param_bytes: int
    macs: int
    adds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """`again` is, per stage, computed over needed elements: 1 where nothing is computed twice."""

    tile: tuple[int, ...]
    count: int
    tile_bytes: int
    again: tuple[tuple[int, int], ...]  # (computed, needed) elements per stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """On-chip memory of a chip: for tiles, and for the weights that every tile needs again. One memory may be both."""

    tile_bytes: int
    weight_bytes: int
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLarge:
    """The least that any tile worth having needs, and what there is."""

    needs_bytes: int
    has_bytes: int


def bytes_of(elements: int, dtype: str) -> int:
    return ceil(elements * BITS[dtype] / 8)


def fit(run: Sequence[Stage], room: Room) -> Tiling | TooLarge | None:
    """The largest tile that fits; None where the run is no run: a stage that nothing after it reads, or whose output is
    read along other axes than it was made along."""
    least = None
    for tile in _tiles(run[-1].size):
        found = _tiling(run, tile)
        if found is None:
            return None
        if least is not None and again_share(run, found) > MOST_AGAIN:
            break
        least = _missing(run, found, room)
        if least is None:
            return found
    return least


def too_large(run: Sequence[Stage], room: Room) -> TooLarge | None:
    """What the run needs to go through as a whole, where that does not fit."""
    found = _tiling(run, run[-1].size)
    return None if found is None else _missing(run, found, room)


def again_share(run: Sequence[Stage], tiling: Tiling) -> float:
    """Macs that are computed again, over those that are needed."""
    needed = sum(stage.macs for stage in run)
    return sum(again_macs(stage, pair) for stage, pair in zip(run, tiling.again, strict=True)) / max(1, needed)


def again_macs(stage: Stage, again: tuple[int, int]) -> int:
    computed, needed = again
    return stage.macs * max(0, computed - needed) // max(1, needed)


def _tiles(size: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The whole, then half of its longest axis, and so on down to single elements."""
    tile = list(size)
    while True:
        yield tuple(tile)
        longest = max(range(len(tile)), key=lambda axis: tile[axis])
        if tile[longest] <= 1:
            return
        tile[longest] = ceil(tile[longest] / 2)


def _missing(run: Sequence[Stage], tiling: Tiling, room: Room) -> TooLarge | None:
    """Weights that one tile alone needs are streamed; those of several tiles stay on chip."""
    weights = sum(s.param_bytes for s in run) if tiling.count > 1 else 0
    if room.shared:
        needs = tiling.tile_bytes + weights
        return None if needs <= room.tile_bytes else TooLarge(needs_bytes=needs, has_bytes=room.tile_bytes)
    if weights > room.weight_bytes:
        return TooLarge(needs_bytes=weights, has_bytes=room.weight_bytes)
    fits = tiling.tile_bytes <= room.tile_bytes
    return None if fits else TooLarge(needs_bytes=tiling.tile_bytes, has_bytes=room.tile_bytes)


def _tiling(run: Sequence[Stage], tile: tuple[int, ...]) -> Tiling | None:
    axes = [_along(run, axis, tile[axis]) for axis in range(len(tile))]
    if any(a is None for a in axes):
        return None
    along = [a for a in axes if a is not None]
    count = run[-1].items * prod(ceil(n / t) if t else 1 for n, t in zip(run[-1].size, tile, strict=True))
    again = tuple((prod(a.computed[place] for a in along), prod(stage.size)) for place, stage in enumerate(run))
    return Tiling(tile=tile, count=count, tile_bytes=_live_bytes(run, along), again=again)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Along:
    """One axis: the longest piece of every stage's output and of every tensor that is read, and what is computed."""

    longest: tuple[int, ...]
    computed: tuple[int, ...]
    read: dict[int, int]


def _along(run: Sequence[Stage], axis: int, step: int) -> _Along | None:
    """Ranges of all tiles along one axis, last stage first. Axes are independent of each other."""
    made = {stage.owner: place for place, stage in enumerate(run)}
    size, step = run[-1].size[axis], max(1, step)
    wanted: list[list[Range] | None] = [None] * len(run)
    wanted[-1] = [(start, min(size, start + step)) for start in range(0, size, step)] or [(0, 0)]
    read: dict[int, int] = {}
    for place in range(len(run) - 1, -1, -1):
        pieces = wanted[place]
        if pieces is None:
            return None
        for operand in run[place].operands:
            if not operand.windows:
                continue
            asked = [operand.windows[axis].reads(piece, operand.size[axis]) for piece in pieces]
            read[operand.owner] = max(read.get(operand.owner, 0), _longest(asked))
            if operand.owner in made:
                if operand.size != run[made[operand.owner]].size:
                    return None  # seen through a view with other axes, so its tiles are not those that were made
                wanted[made[operand.owner]] = _united(wanted[made[operand.owner]], asked)
    made_pieces = [w or [] for w in wanted]
    return _Along(
        longest=tuple(_longest(w) for w in made_pieces),
        computed=tuple(sum(stop - start for start, stop in w) for w in made_pieces),
        read=read,
    )


def _longest(pieces: Sequence[Range]) -> int:
    return max(stop - start for start, stop in pieces)


def _united(a: list[Range] | None, b: list[Range]) -> list[Range]:
    return b if a is None else [(min(p[0], q[0]), max(p[1], q[1])) for p, q in zip(a, b, strict=True)]


def _live_bytes(run: Sequence[Stage], along: Sequence[_Along]) -> int:
    """The most that is on chip at once: what a stage reads and writes, and what later stages still want."""
    size: dict[int, int] = {}
    last: dict[int, int] = {}
    first: dict[int, int] = {}
    for place, stage in enumerate(run):
        for operand in stage.operands:
            places = prod(a.read[operand.owner] for a in along) if operand.windows else prod(operand.size)
            size[operand.owner] = max(size.get(operand.owner, 0), places * operand.bytes_per_place)
            last[operand.owner] = place
            first.setdefault(operand.owner, place)
        size[stage.owner] = max(size.get(stage.owner, 0), prod(a.longest[place] for a in along) * stage.bytes_per_place)
        first[stage.owner] = place
        last.setdefault(stage.owner, place)
    return max(sum(size[o] for o in size if first[o] <= place <= last[o]) for place in range(len(run)))
