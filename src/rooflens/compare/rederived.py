"""A written report in, each of its claims derived again from its own numbers out.

What the numbers of the document do not decide is `not checkable`, and never called right or wrong. A claim that may be meant
in several ways is right where one of them gives it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from rooflens.compare.claims import Claim, right, should_be
from rooflens.compare.columns import NAME, Measured, earlier, side_of, sides_meant, tokens
from rooflens.compare.figures import BYTES, COUNT, TIME, VALUE, Figure
from rooflens.compare.prose import Pair, Said

RIGHT, WRONG, NOT_CHECKABLE = "right", "wrong", "not checkable"
_LONGEST_NAME = 6  # words
_MANY_ROWS = 50  # that a claim may be about, beyond which it names none
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A cell with a number. `table` is None for a number of the text itself."""

    figure: Figure
    line: int
    table: int | None = None
    key: Key = ()
    side: str = ""
    column: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """`keys`: the rows that it may be about. `failed`: every way to read it gives something else, though which one is meant
    is not certain."""

    claim: Claim
    verdict: str
    metric: str = ""
    keys: tuple[Key, ...] = ()
    base: Place | None = None
    new: Place | None = None
    relative_to: tuple[str, ...] = ()
    side: str = ""
    failed: bool = False

    @property
    def should_be(self) -> str:
        if self.base is None or self.new is None:
            return ""
        return should_be(self.claim, self.base.figure, self.new.figure)


class Names:
    """Which rows the words of a passage name, nearest words first."""

    def __init__(self, tables: tuple[Measured, ...]) -> None:
        self.tables = tables
        self.rows_by_name = [_rows_by_name(t) for t in tables]
        self.labels = [[frozenset(names) for names in columns] for columns in self.rows_by_name]

    def rows(self, one: Said) -> tuple[tuple[Key, ...], bool]:
        """The keys that may be meant, and whether it can be one alone."""
        levels = [one.clause, one.sentence, one.passage.text, *one.passage.above, *one.passage.headings]
        grams = [_grams(level) for level in levels]
        found: dict[Key, None] = {}
        certain = True
        told = [[_bound(labels, grams) for labels in columns] for columns in self.labels]
        nearest = min((level for columns in told for level, names in columns if names), default=0)
        for rows, columns in zip(self.rows_by_name, told, strict=True):
            bound = [names for _, names in columns]
            if any(names and level == nearest for level, names in columns):
                certain = certain and all(len(b) == 1 for b in bound)
                found.update(dict.fromkeys(_named_rows(rows, bound)))
        return (tuple(found), certain and len(found) == 1) if len(found) <= _MANY_ROWS else ((), False)


def _rows_by_name(table: Measured) -> list[dict[str, list[Key]]]:
    """For each column of names."""
    found: list[dict[str, list[Key]]] = [{} for _ in table.of_kind(NAME)]
    for row in table.rows:
        for rows, name in zip(found, row.key, strict=True):
            if name:
                rows.setdefault(name, []).append(row.key)
    return found


def _named_rows(rows: list[dict[str, list[Key]]], bound: list[frozenset[str]]) -> Iterator[Key]:
    """Those that bear one of the names in each column that is bound."""
    place = min((n for n, b in enumerate(bound) if b), key=lambda n: sum(len(rows[n][name]) for name in bound[n]))
    for name in sorted(bound[place]):
        for key in rows[place][name]:
            if all(not b or k in b for k, b in zip(key, bound, strict=True)):
                yield key


@lru_cache(maxsize=256)
def _grams(text: str) -> frozenset[str]:
    found = tokens(text[:2000])
    return frozenset(" ".join(found[i : i + n]) for n in range(1, _LONGEST_NAME + 1) for i in range(len(found) - n + 1))


def _bound(labels: frozenset[str], levels: Iterable[frozenset[str]]) -> tuple[int, frozenset[str]]:
    """The nearest level that has any names, and which; of two of which one holds the other, the longer."""
    for level, grams in enumerate(levels):
        found = labels & grams
        if found:
            return level, frozenset(f for f in found if not any(f != g and f" {f} " in f" {g} " for g in found))
    return 0, frozenset()


# claims of the text


def judged_said(one: Said, tables: tuple[Measured, ...], names: Names) -> Judged:
    keys, certain = names.rows(one)
    if one.metric is None:
        return Judged(claim=one.claim, verdict=NOT_CHECKABLE)
    metrics = (one.metric,) if one.metric else (TIME, COUNT, BYTES)
    pair = one.pair if one.pair and _same_metric(one.pair, one.metric) else None
    places = [p for key in keys for m in metrics for p in _places(tables, key, m)]
    if pair is not None:
        ways: list[tuple[Place, Place]] = list(_paired(pair, places, one.claim.line))
        clear = True
    else:
        ways = _ways(one, places, names)
        clear = certain and (_named(one, tables) or len({(b.table, b.column, n.table, n.column) for b, n in ways}) == 1)
    found = decided(one.claim, ways, clear)
    return replace(found, metric=one.metric, keys=keys, relative_to=sides_meant(one.base), side=_side(one, tables))


def _same_metric(pair: Pair, metric: str) -> bool:
    return not metric or {pair.base.metric, pair.new.metric} <= {metric, VALUE}


def _places(tables: tuple[Measured, ...], key: Key, metric: str) -> Iterator[Place]:
    for table in tables:
        row = table.by_key.get(key)
        for column in table.measured(metric) if row else ():
            figure = row.figures.get(column.place) if row else None
            if row and figure is not None:
                yield Place(
                    figure=figure, line=row.line, table=table.number, key=key, side=column.side or table.side, column=column.place
                )  # fmt: skip


def _paired(pair: Pair, places: list[Place], line: int) -> Iterator[tuple[Place, Place]]:
    """The numbers of the text, or those of a table that they were rounded from."""
    bases = [p for p in places if pair.base.covers(p.figure)] or [Place(figure=pair.base, line=line)]
    news = [p for p in places if pair.new.covers(p.figure)] or [Place(figure=pair.new, line=line)]
    ways = [(b, n) for b, n in product(bases, news) if b.key == n.key or not b.key or not n.key]
    yield from ways
    if not pair.ordered:
        yield from ((n, b) for b, n in ways)


def _named(one: Said, tables: tuple[Measured, ...]) -> bool:
    """`baseline` names one where a table is called that; elsewhere it may be any earlier one."""
    sides = sides_meant(one.base)
    if one.base and not sides:
        return True
    return bool(sides) and (sides[0] != "baseline" or any(t.side == "baseline" for t in tables))


def _ways(one: Said, places: list[Place], names: Names) -> list[tuple[Place, Place]]:
    """What it may compare: with what it names, or with whatever stands before it in the document."""
    sides = sides_meant(one.base)
    here = _side(one, names.tables)
    if one.base and not any(p.side in sides for p in places):
        return list(_against_rows(one, places, names))
    bases = [p for p in places if not sides or p.side in sides]
    news = [p for p in places if p.side == here] if here and here not in sides else places
    return [
        (b, n) for b, n in product(bases, news)
        if b.key == n.key and (b.table, b.column) != (n.table, n.column) and _in_order(b, n)
    ]  # fmt: skip


def _against_rows(one: Said, places: list[Place], names: Names) -> Iterator[tuple[Place, Place]]:
    """The base is another row of the table, by its name."""
    told = _grams(one.base)
    for new in places:
        table, columns = next((t, c) for t, c in zip(names.tables, names.labels, strict=True) if t.number == new.table)
        for n, labels in enumerate(columns):
            for name in sorted(labels & told - {new.key[n]}):
                row = table.by_key.get((*new.key[:n], name, *new.key[n + 1 :]))
                if row is not None and new.column in row.figures:
                    yield replace(new, figure=row.figures[new.column], line=row.line, key=row.key), new


def _in_order(base: Place, new: Place) -> bool:
    if earlier(base.side) != earlier(new.side):
        return earlier(base.side)
    return (base.table or 0, base.column) < (new.table or 0, new.column)


def _side(one: Said, tables: tuple[Measured, ...]) -> str:
    """Of the headings that the claim stands under, the nearest that a table is of."""
    known = {t.side for t in tables}
    return next((s for h in one.passage.headings if (s := side_of(h)) in known and s), "")


def decided(claim: Claim, ways: list[tuple[Place, Place]], clear: bool) -> Judged:
    """Right where any way gives it; wrong where none does and it is certain which one is meant."""
    told = [(b, n, right(claim, b.figure, n.figure)) for b, n in ways]
    told = [t for t in told if t[2] is not None]
    if not told:
        return Judged(claim=claim, verdict=NOT_CHECKABLE)
    base, new, holds = next((t for t in told if t[2]), told[0])
    if holds:
        return Judged(claim=claim, verdict=RIGHT, base=base, new=new)
    return Judged(claim=claim, verdict=WRONG if clear else NOT_CHECKABLE, base=base, new=new, failed=True)
