"""Members of a group in, what they cost together out, by the same rows that each costs alone.

Work adds up. Memory that a member wrote is not read again, and not written where nobody outside reads it; what several
members read from outside is read once.
"""

from collections.abc import Sequence

from rooflens.costs.sheet import CostSheet, OpCost
from rooflens.costs.traffic import Access, Region
from rooflens.fusion.flow import Flow
from rooflens.graph.records import STORED_ROLES

Work = tuple[tuple[str, str, int], ...]  # unit, type and FLOP


def group_cost(sheet: CostSheet, flow: Flow, ops: Sequence[int], of: Sequence[object]) -> tuple[OpCost, Work]:
    """`of` tells the group of each op by its place."""
    rows = [sheet.rows[place] for place in ops]
    main = max(rows, key=lambda row: (row.unit == "matrix", row.flops))
    read, params = _read_bytes(sheet, flow, ops, of)
    cost = OpCost(
        sum([row.macs for row in rows]), sum([row.alu for row in rows]), sum([row.special for row in rows]),
        read, _written_bytes(sheet, flow, ops, of), params, main.dtype, main.unit, any(row.opaque for row in rows),
    )  # fmt: skip
    return cost, work_of(rows)


def work_of(rows: Sequence[OpCost]) -> Work:
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        flops = row.flops
        if flops:
            key = row.unit, row.dtype
            found[key] = found.get(key, 0) + flops
    return tuple([(unit, dtype, flops) for (unit, dtype), flops in found.items()])


def _read_bytes(sheet: CostSheet, flow: Flow, ops: Sequence[int], of: Sequence[object]) -> tuple[int, int]:
    """Activations and parameters. Members that share nothing and read only from outside, or only weights from there, have
    the sums of their own rows; the others are taken region by region."""
    mine, tensors, outside = of[ops[0]], sheet.graph.tensors, dict[int, int]()
    for place in ops:
        for owner in flow.reads[place]:
            if not _written_by(flow, owner, place, mine, of):
                outside[owner] = outside.get(owner, 0) + 1
    read, params, split = 0, 0, list[int]()
    for place in ops:
        owners = flow.reads[place]
        kept = [owner for owner in owners if owner in outside]
        if any(outside[owner] > 1 for owner in kept):
            split.append(place)
        elif len(kept) == len(owners):
            read += sheet.rows[place].input_bytes
            params += sheet.rows[place].param_bytes
        elif all(tensors[owner].role in STORED_ROLES for owner in kept):
            params += sheet.rows[place].param_bytes
        else:
            split.append(place)
    for owner, accesses in outside_reads(sheet, flow, split, of, mine).items():
        if accesses[0].stored:
            params += once(accesses, tensors[owner].bytes)
        else:
            read += once(accesses, tensors[owner].bytes)
    return read, params


def once(accesses: Sequence[Access], whole: int) -> int:
    """Bytes of one tensor's memory that are read, however often: each region once, at the size of its largest reader, and
    together never more than the `whole`, of which regions may be overlapping parts."""
    largest: dict[Region, int] = {}
    for access in accesses:
        largest[access.region] = max(largest.get(access.region, 0), access.bytes)
    total = sum(largest.values())
    return total if len(largest) == 1 else min(total, max(whole, *largest.values()))


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
        if all(stay):
            total += sheet.rows[place].output_bytes
        elif any(stay):
            total += sum(a.bytes for a in sheet.traffic(place)[1] if stays(flow, a.region[0], of))
    return total


def outside_reads(
    sheet: CostSheet, flow: Flow, ops: Sequence[int], of: Sequence[object], mine: object
) -> dict[int, list[Access]]:
    """What `ops`, members of the group `mine`, read that no member wrote, by the tensor that owns it."""
    found: dict[int, list[Access]] = {}
    for place in ops:
        for access in sheet.traffic(place)[0]:
            if not _written_by(flow, access.region[0], place, mine, of):
                found.setdefault(access.region[0], []).append(access)
    return found


def stays(flow: Flow, owner: int, of: Sequence[object]) -> bool:
    """Is it written to memory? Results and what outlives the run are, and what anybody outside reads or nobody reads."""
    if owner in flow.kept:
        return True
    readers, mine = flow.readers[owner], of[flow.writers[owner]]
    if len(readers) == 1:
        return of[readers[0]] != mine
    return not readers or any(of[place] != mine for place in readers)
