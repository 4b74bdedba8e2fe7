"""Members of a group in, what they cost together out, by the same rows that each costs alone.

Work adds up. Memory that a member wrote is not read again, and not written where nobody outside reads it; what several
members read from outside is read once.
"""

from collections.abc import Collection, Sequence
from itertools import chain

from rooflens.costs.sheet import CostSheet, OpCost, flop
from rooflens.costs.traffic import Access, Region
from rooflens.fusion.flow import Flow
from rooflens.graph.records import STORED_ROLES

Work = tuple[tuple[str, str, int], ...]  # unit, type and FLOP


def group_cost(sheet: CostSheet, flow: Flow, ops: Sequence[int], of: Sequence[object]) -> tuple[OpCost, Work]:
    """`of` tells the group of each op by its place. One loop over the rows: it runs for every group of every graph."""
    macs = alu = special = most = 0
    opaque, main = False, sheet.rows[ops[0]]
    work: dict[tuple[str, str], int] = {}
    for place in ops:
        row = sheet.rows[place]
        flops = flop(row.macs, row.alu, row.special)
        macs, alu, special, opaque = macs + row.macs, alu + row.alu, special + row.special, opaque or row.opaque
        if flops:
            work[row.unit, row.dtype] = work.get((row.unit, row.dtype), 0) + flops
        if (row.unit == "matrix", flops) > (main.unit == "matrix", most):
            main, most = row, flops
    read, params = _read_bytes(sheet, flow, ops, of)
    written = _written_bytes(sheet, flow, ops, of)
    cost = OpCost(macs, alu, special, read, written, params, main.dtype, main.unit, opaque)
    return cost, tuple([(unit, dtype, flops) for (unit, dtype), flops in work.items()])


def work_of(row: OpCost) -> Work:
    flops = row.flops
    return ((row.unit, row.dtype, flops),) if flops else ()


def _read_bytes(sheet: CostSheet, flow: Flow, ops: Sequence[int], of: Sequence[object]) -> tuple[int, int]:
    """Activations and parameters. Members that share nothing and read only from outside, or only weights from there, have
    the sums of their own rows; the others are taken tensor by tensor."""
    mine, tensors, writers = of[ops[0]], sheet.graph.tensors, flow.writers
    read, params, split = 0, 0, list[int]()
    seen = list[int]()
    kept_by = []
    for place in ops:
        kept = [o for o in flow.reads[place] if (w := writers[o]) < 0 or w == place or of[w] != mine]
        seen += kept
        kept_by.append(kept)
    shared = {o for o in seen if seen.count(o) > 1} if len(set(seen)) < len(seen) else ()
    for place, kept in zip(ops, kept_by, strict=True):
        row = sheet.rows[place]
        if shared and not shared.isdisjoint(kept):
            split.append(place)
        elif len(kept) == len(flow.reads[place]):
            read += row.input_bytes
            params += row.param_bytes
        elif not kept or all([tensors[o].role in STORED_ROLES for o in kept]):  # noqa: C419  a generator takes as long as the rest
            params += row.param_bytes
        else:
            split.append(place)
    for owner, readers in outside_reads(sheet, flow, split, of, mine).items() if split else ():
        if is_stored(readers):
            params += once(readers.values(), tensors[owner].bytes)
        else:
            read += once(readers.values(), tensors[owner].bytes)
    return read, params


def _written_by(flow: Flow, owner: int, place: int, mine: object, of: Sequence[object]) -> bool:
    """Did another member of this group write it?"""
    writer = flow.writers[owner]
    return writer >= 0 and writer != place and of[writer] == mine


def _written_bytes(sheet: CostSheet, flow: Flow, ops: Sequence[int], of: Sequence[object]) -> int:
    total, graph = 0, sheet.graph
    for place in ops:
        op = graph.ops[place]
        if op.view:
            continue
        stay = [stays(flow, graph.tensors[o].base, of) for o in op.outputs]
        if False not in stay:
            total += sheet.rows[place].output_bytes
        elif True in stay:
            total += sum(a.bytes for a in sheet.traffic(place)[1] if stays(flow, a.region[0], of))
    return total


Readers = dict[int, list[Access]]  # by place of the op: what it reads of one tensor's memory


def once(readers: Collection[Sequence[Access]], whole: int) -> int:
    """Bytes of one tensor's memory that are read, however many read them: each region once, at the size of its largest
    reader. Regions may be overlapping parts: together they are no more than the `whole`, or than what one op reads by
    itself, which counts each of its own regions."""
    largest: dict[Region, int] = {}
    for access in chain.from_iterable(readers):
        largest[access.region] = max(largest.get(access.region, 0), access.bytes)
    total = sum(largest.values())
    if len(largest) == 1 or total <= whole:
        return total
    return min(total, max(whole, *(sum(a.bytes for a in accesses) for accesses in readers)))


def is_stored(readers: Readers) -> bool:
    return next(iter(readers.values()))[0].stored


def outside_reads(
    sheet: CostSheet, flow: Flow, ops: Sequence[int], of: Sequence[object], mine: object
) -> dict[int, Readers]:
    """What `ops`, members of the group `mine`, read that no member wrote, by the tensor that owns it."""
    found: dict[int, Readers] = {}
    for place in ops:
        for access in sheet.traffic(place)[0]:
            if not _written_by(flow, access.region[0], place, mine, of):
                found.setdefault(access.region[0], {}).setdefault(place, []).append(access)
    return found


def stays(flow: Flow, owner: int, of: Sequence[object]) -> bool:
    """Is it written to memory? Results and what outlives the run are, and what anybody outside reads or nobody reads."""
    if owner in flow.kept:
        return True
    readers, mine = flow.readers[owner], of[flow.writers[owner]]
    if len(readers) == 1:
        return of[readers[0]] != mine
    return not readers or any(of[place] != mine for place in readers)
