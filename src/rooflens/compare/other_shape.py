"""Tables and what their layers need in, the rows of them that were measured with another shape out.

Where one side takes just what the stated shape needs and the other a multiple of it, the multiple is one of the shape.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from rooflens.compare.columns import MEASURED, Measured, Row
from rooflens.compare.figures import BYTES
from rooflens.compare.needs import Need, multiple

SURELY = 4  # times what is needed: two and three may be copies of the same shape


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherShape:
    """A row whose bytes on one side are so many times what the configuration needs, and on the other side just that.
    `sides`: number and line of the two tables' rows, base first; `surely`: no number of copies explains it."""

    key: tuple[str, ...]
    tables: tuple[Measured, Measured]
    rows: tuple[Row, Row]
    needed: int
    times: int
    big: int  # which of the two
    bytes: tuple[int, int]
    need: Need
    surely: bool


def other_shapes(tables: tuple[Measured, ...], known: dict[str, Need]) -> Iterator[OtherShape]:
    found = [o for a, b in combinations(tables, 2) for o in _between(a, b, known)] if known else []
    for o in found:
        same = [x for x in found if x.need is o.need and x.tables == o.tables]
        whole = len({x.times for x in same}) == 1 and len(same) > 1
        yield replace(o, surely=o.times >= SURELY or whole)


def _between(a: Measured, b: Measured, known: dict[str, Need]) -> Iterator[OtherShape]:
    for row in a.rows:
        beside = b.by_key.get(row.key) if a.by_key.get(row.key) is row else None
        need = next((known[part] for part in row.key if part in known), None)
        needed = need.of(row.key) if need else None
        sizes = (_bytes(a, row), _bytes(b, beside)) if beside else (None, None)
        if beside is None or need is None or not needed or sizes[0] is None or sizes[1] is None:
            continue
        times = (multiple(needed, sizes[0]), multiple(needed, sizes[1]))
        if times[0] is None or times[1] is None or min(times[0], times[1]) != 1 or times[0] == times[1]:
            continue
        big = 0 if times[0] != 1 else 1
        yield OtherShape(
            key=row.key, tables=(a, b), rows=(row, beside), needed=needed, times=max(times[0], times[1]), big=big,
            bytes=(sizes[0], sizes[1]), need=need, surely=False,
        )  # fmt: skip


def _bytes(table: Measured, row: Row | None) -> int | None:
    columns = [c for c in table.of_kind(MEASURED) if c.metric == BYTES]
    found = row.figures.get(columns[0].place) if row and len(columns) == 1 else None
    return round(found.value) if found is not None and found.low == found.high else None
