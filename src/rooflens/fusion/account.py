"""Members of a group in, what they cost together out, by the same rows that each costs alone.

Work adds up. Memory that a member wrote is not read again, and not written where nobody outside reads it; what several
members read from outside is read once.
"""

from collections.abc import Sequence

from rooflens.costs.sheet import CostSheet, OpCost
from rooflens.costs.traffic import Access, Region
from rooflens.fusion.flow import Flow

Work = tuple[tuple[str, str, int], ...]  # unit, type and FLOP


def group_cost(sheet: CostSheet, flow: Flow, ops: Sequence[int], of: Sequence[object]) -> tuple[OpCost, Work]:
    """`of` tells the group of each op by its place."""
    rows = [sheet.rows[place] for place in ops]
    main = max(rows, key=lambda row: (row.unit == "matrix", row.flops))
    read = params = 0
    for access in outside_reads(sheet, flow, ops, of).values():
        if access.stored:
            params += access.bytes
        else:
            read += access.bytes
    written = sum(a.bytes for place in ops for a in sheet.traffic(place)[1] if stays(flow, a.region[0], of))
    cost = OpCost(
        sum(row.macs for row in rows), sum(row.alu for row in rows), sum(row.special for row in rows),
        read, written, params, main.dtype, main.unit, any(row.opaque for row in rows),
    )  # fmt: skip
    return cost, work_of(rows)


def work_of(rows: Sequence[OpCost]) -> Work:
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.flops:
            key = row.unit, row.dtype
            found[key] = found.get(key, 0) + row.flops
    return tuple((unit, dtype, flops) for (unit, dtype), flops in found.items())


def outside_reads(sheet: CostSheet, flow: Flow, ops: Sequence[int], of: Sequence[object]) -> dict[Region, Access]:
    """Each region that no member wrote, once, at the size of its largest reader."""
    mine, found = of[ops[0]], {}
    for place in ops:
        for access in sheet.traffic(place)[0]:
            writer = flow.writers[access.region[0]]
            if writer >= 0 and of[writer] is mine and writer != place:
                continue
            before = found.get(access.region)
            if before is None or before.bytes < access.bytes:
                found[access.region] = access
    return found


def stays(flow: Flow, owner: int, of: Sequence[object]) -> bool:
    """Is it written to memory? Results and what outlives the run are, and what anybody outside reads or nobody reads."""
    if owner in flow.kept:
        return True
    readers, mine = flow.readers[owner], of[flow.writers[owner]]
    return not readers or any(of[place] is not mine for place in readers)
