"""Tables in, the claims of their columns judged out.

What a column compares is seldom written whole: its header says which number changed, or against what, or neither. So each way
to read the column is tried on all of its cells, and the one that gives most of them is taken; a cell that it does not give is
wrong. Where nothing names the base and no reading gives half of the cells, the column is not checkable.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rooflens.compare.claims import (
    FASTER,
    PERCENT_LESS,
    PERCENT_MORE,
    PERCENT_OF,
    TIMES_LESS,
    TIMES_MORE,
    Claim,
    ratios,
    right,
)
from rooflens.compare.columns import CLAIM, MEASURED, NAME, Column, Measured, Row, earlier, sides_meant, tokens
from rooflens.compare.figures import BYTES, COUNT, NUMBER, TIME, VALUE, decimal, ratio
from rooflens.compare.prose import form_said
from rooflens.compare.rederived import NOT_CHECKABLE, RIGHT, WRONG, Judged, Place

_CELL = re.compile(rf"([+−–-]?)\s?({NUMBER})\s?(%|％|[x×X](?!\w))?(?=\s|$|\(|\))")
_MANY = 6  # columns of one metric in a table, and tables, beyond which not every pair is tried
_BASE_ROW = re.compile(r"\b(?:baseline|base|before|reference|original|naive|old)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where base and new of a cell are: columns of one metric, in tables or in a row."""

    bases: tuple[Measured, ...]
    base_columns: tuple[int, ...]
    new_column: int
    instead: tuple[int, str] | None = None  # the name that the base row has at this place of its key


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    form: tuple[str, str]  # of a factor, and of a percentage
    metric: str
    source: Source


def judged_column(table: Measured, column: Column, tables: tuple[Measured, ...]) -> Iterator[Judged]:
    cells = [(row, claim) for row in table.rows if (claim := _claim(table, row, column)) is not None]
    readings = tuple(_readings(table, column, tables))
    best, clear = _best(readings, cells, table, column)
    for row, claim in cells:
        form = (
            claim.form
            or _forms(column.header, best.metric if best else column.metric or TIME)[0][not _is_factor(claim)]
        )
        shown = replace(claim, form=form)
        told = Judged(claim=shown, verdict=NOT_CHECKABLE, keys=(row.key,), relative_to=sides_meant(column.base))
        told = replace(told, side=table.side, metric=best.metric if best else column.metric or TIME)
        yield _judged(best, row, claim, table, told) if best and clear else told


def _judged(reading: Reading, row: Row, claim: Claim, table: Measured, told: Judged) -> Judged:
    ends = _ends(reading.source, row, table)
    told_by = [(m, right(m, ends[0].figure, ends[1].figure)) for m in _meant(claim, reading, ends)] if ends else []
    if ends is None or not told_by or told_by[0][1] is None:
        return told
    meant, holds = next((t for t in told_by if t[1]), told_by[0])
    return replace(told, claim=meant, verdict=RIGHT if holds else WRONG, base=ends[0], new=ends[1])


def _claim(table: Measured, row: Row, column: Column) -> Claim | None:
    """Only what begins with a number claims something: `N/A` and `~` do not."""
    text = table.grid.rows[row.place][column.place].text
    found = _CELL.match(text)
    number = decimal(found.group(2)) if found else None
    if found is None or number is None:
        return None
    bare = found.group(3) is None
    if bare and not re.search(r"speed-?\s?up|ratio|factor|\bx\b|%", column.header, re.I):
        return None
    percent = "%" in found.group() or "％" in found.group() or (bare and "%" in column.header)
    sign = -1 if found.group(1) in ("-", "−", "–") else 1
    form = form_said(text[found.end() :][:60], percent=percent)
    shown = found.group().strip() + ("%" if bare and percent else "")
    return Claim(text=shown, line=row.line, number=sign * number, form=form, signed=found.group(1) == "+")


def _meant(claim: Claim, reading: Reading, ends: tuple[Place, Place]) -> Iterator[Claim]:
    """As the cell's own words say, else as the column is read. Of a quantity without a unit nobody knows whether more of it is
    better."""
    if claim.form:
        yield claim
        return
    yield replace(claim, form=reading.form[0] if _is_factor(claim) else reading.form[1])
    if ends[0].figure.metric == VALUE:
        for form in (TIMES_LESS, TIMES_MORE) if _is_factor(claim) else (PERCENT_LESS, PERCENT_MORE):
            yield replace(claim, form=form)


def _is_factor(claim: Claim) -> bool:
    return not claim.text.rstrip().endswith(("%", "％"))


# ways to read a column


def _readings(table: Measured, column: Column, tables: tuple[Measured, ...]) -> Iterator[Reading]:
    for metric in _metrics(table, column):
        for source in _sources(table, column, metric, tables):
            for form in _forms(column.header, metric):
                yield Reading(form=form, metric=metric, source=source)


def _forms(header: str, metric: str) -> tuple[tuple[str, str], ...]:
    better = FASTER if metric == TIME else PERCENT_LESS
    if re.search(r"speed-?\s?up|faster", header, re.I):
        return ((TIMES_LESS, better),)
    if re.search(r"reduction|saving|saved|decrease|fewer|\bless\b|improvement|\bgain", header, re.I):
        less = better if re.search(r"improvement|gain", header, re.I) else PERCENT_LESS
        return ((TIMES_LESS, less), (TIMES_LESS, PERCENT_MORE))
    if re.search(r"increase|slower", header, re.I):
        return ((TIMES_MORE, PERCENT_MORE),)
    either = ((TIMES_LESS, PERCENT_MORE), (TIMES_MORE, PERCENT_MORE), (TIMES_LESS, better))
    return (*either, (TIMES_MORE, PERCENT_OF)) if re.search(r"ratio|relative|factor", header, re.I) else either


def _metrics(table: Measured, column: Column) -> tuple[str, ...]:
    if column.metric == COUNT and not table.measured(COUNT):
        return (BYTES,)
    if column.metric or re.search(r"speed-?\s?up|faster|slower", column.header, re.I):
        return (column.metric or TIME,)
    left = [c.metric for c in table.of_kind(MEASURED) if c.place < column.place]
    if len({c.metric for c in table.of_kind(MEASURED)}) == 1:
        return (left[-1] if left else TIME,)
    return tuple(dict.fromkeys((*([] if column.base else left[-1:]), TIME, *left[-1:], COUNT, BYTES)))


def _sources(table: Measured, column: Column, metric: str, tables: tuple[Measured, ...]) -> Iterator[Source]:
    """Within a row, between tables, between rows: the more explicit first. A named base leaves those that bear its name."""
    columns = table.measured(metric)[:_MANY]
    for base in columns:
        for new in columns:
            if base.place != new.place and _is_named(column.base, base.header) and _forward(base, new):
                yield Source(bases=(), base_columns=(base.place,), new_column=new.place)
    if not columns:
        return
    news = [c for c in columns if not earlier(c.side)] or list(columns)
    yield from _tables(table, column, metric, tables, news[-1].place)
    if len(columns) == 1:
        for place, name in _base_rows(table, column):
            yield Source(bases=(), base_columns=(columns[0].place,), new_column=columns[0].place, instead=(place, name))


def _forward(base: Column, new: Column) -> bool:
    """The earlier side is the base; without sides the left one is."""
    if earlier(base.side) != earlier(new.side):
        return earlier(base.side)
    return base.place < new.place


def _tables(
    table: Measured, column: Column, metric: str, tables: tuple[Measured, ...], new_column: int
) -> Iterator[Source]:
    """Tables of one side together: each topic has its own. The nearest ones before it come first."""
    near = sorted(tables, key=lambda t: (t.number > table.number, abs(t.number - table.number)))
    sides: dict[str, list[Measured]] = {}
    for other in near:
        if (
            other is not table
            and other.measured(metric)
            and _is_named(column.base, other.grid.title, other.side)
            and other.side != table.side
        ):
            sides.setdefault(other.side or other.grid.title, []).append(other)
    groups = sorted(sides.values(), key=lambda ts: not earlier(ts[0].side)) if not column.base else list(sides.values())
    for found in groups[:_MANY]:
        same = [t for t in found if any(r.key in t.by_key for r in table.rows)]
        same.sort(key=lambda t: t.topic != table.topic)
        if same:
            places = tuple(t.measured(metric)[0].place for t in same)
            yield Source(bases=tuple(same), base_columns=places, new_column=new_column)


def _is_named(name: str, title: str, side: str = "") -> bool:
    if not name:
        return True
    sides = sides_meant(name)
    if sides:
        return (side or next(iter(sides_meant(title)), "")) in sides
    told = tokens(title)
    return all(any(t.startswith(word) for t in told) for word in tokens(name))


def _base_rows(table: Measured, column: Column) -> Iterator[tuple[int, str]]:
    """Names that a row may be compared with: those that the header names, those that say baseline, or the first."""
    for place in range(len(table.of_kind(NAME))):
        labels = list(dict.fromkeys(row.key[place] for row in table.rows))
        if column.base:
            named = [name for name in labels if name and _row_named(column.base, name)]
        else:
            marked = [row.key[place] for row in table.rows if _marked(table, row, column)]
            named = list(
                dict.fromkeys((*(name for name in labels if _BASE_ROW.search(name)), *marked[:3], *labels[:1]))
            )
        yield from ((place, name) for name in named[:_MANY])


def _marked(table: Measured, row: Row, column: Column) -> bool:
    """The row that the others are compared with claims nothing of itself."""
    text = table.grid.rows[row.place][column.place].text.lower()
    return re.fullmatch(r"[-–—]|baseline|base|reference|1(?:\.0+)?\s?[x×]?", text) is not None


def _row_named(base: str, name: str) -> bool:
    return " ".join(tokens(base)) in name or (bool(sides_meant(base)) and _BASE_ROW.search(name) is not None)


def _ends(source: Source, row: Row, table: Measured) -> tuple[Place, Place] | None:
    base = _base(source, row, table)
    new = _place(table, row, source.new_column)
    return (base, new) if base is not None and new is not None else None


def _base(source: Source, row: Row, table: Measured) -> Place | None:
    if source.instead is not None:
        place, name = source.instead
        key = (*row.key[:place], name, *row.key[place + 1 :])
        found = table.by_key.get(key) if key != row.key else None
        return _place(table, found, source.base_columns[0]) if found else None
    if not source.bases:
        return _place(table, row, source.base_columns[0])
    for other, column in zip(source.bases, source.base_columns, strict=True):
        if row.key in other.by_key:
            return _place(other, other.by_key[row.key], column)
    return None


def _place(table: Measured, row: Row, column: int) -> Place | None:
    figure = row.figures.get(column)
    if figure is None:
        return None
    return Place(figure=figure, line=row.line, table=table.number, key=row.key, side=table.side, column=column)


# the best of them


def _best(
    readings: tuple[Reading, ...], cells: Iterable[tuple[Row, Claim]], table: Measured, column: Column
) -> tuple[Reading | None, bool]:
    """The reading that gives most cells, and whether it may call the others wrong."""
    cells = list(cells)
    scored = [(r, *_score(r, cells, table)) for r in readings]
    scored = [s for s in scored if s[2]]
    if not scored:
        return None, False
    best, given, checked = max(scored, key=lambda s: s[1])
    if not given:
        best = min((r for r, _, _ in scored), key=lambda r: _gap(r, cells, table))
    one_metric = len({c.metric for c in table.of_kind(MEASURED)}) == 1
    certain = bool(column.metric) or one_metric or len({s[0].metric for s in scored}) == 1 or bool(column.base)
    alone = len({s[0].source for s in scored}) == 1
    return best, (certain and _clear(best.source, column, alone)) or (checked >= 2 and given * 2 >= checked)


def _clear(source: Source, column: Column, alone: bool) -> bool:
    """Whether anything says that this is what the column compares. The first row of a table is but a guess."""
    if source.instead is None:
        return alone or bool(column.base)
    return alone and (bool(column.base) or _BASE_ROW.search(source.instead[1]) is not None)


def _score(reading: Reading, cells: list[tuple[Row, Claim]], table: Measured) -> tuple[int, int]:
    ends = [(_ends(reading.source, row, table), claim) for row, claim in cells]
    told = [
        [right(meant, e[0].figure, e[1].figure) for meant in _meant(claim, reading, e)]
        for e, claim in ends
        if e is not None
    ]
    return sum(True in t for t in told), sum(t[0] is not None for t in told)


def _gap(reading: Reading, cells: list[tuple[Row, Claim]], table: Measured) -> float:
    """How far the cells are from what the reading gives, in factors: of readings that give none, the nearest is meant."""
    gaps = []
    for row, claim in cells:
        ends = _ends(reading.source, row, table)
        found = ratio(ends[0].figure, ends[1].figure) if ends else None
        said = [s.low for m in _meant(claim, reading, ends) for s in ratios(m)] if ends else []
        if found is not None and found.low > 0 and any(s > 0 for s in said):
            gaps.append(min(abs(math.log(s / found.low)) for s in said if s > 0))
    return sum(gaps) / len(gaps) if gaps else math.inf


def judged_columns(tables: tuple[Measured, ...]) -> Iterator[Judged]:
    for table in tables:
        for column in table.of_kind(CLAIM):
            yield from judged_column(table, column, tables)
