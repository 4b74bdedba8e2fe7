"""A written report in, what is wrong with it out: claims that its own numbers do not give, the same thing claimed twice with
different values, rows of different shapes held against each other."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice

from rooflens.compare.claims import FASTER, agree
from rooflens.compare.column_claims import judged_columns
from rooflens.compare.columns import NAME, Column, Measured, Row, measured_table
from rooflens.compare.figures import TIME
from rooflens.compare.needs import needs
from rooflens.compare.other_shape import OtherShape, other_shapes
from rooflens.compare.prose import said
from rooflens.compare.rederived import NOT_CHECKABLE, RIGHT, WRONG, Judged, Names, Place, judged_said
from rooflens.compare.verdicts import TOGETHER_SPREAD, together
from rooflens.compare.written import Writing

CONTRADICTION, NOT_COMPARABLE, NOTE = "contradiction", "not comparable", "note"
KINDS = (WRONG, CONTRADICTION, NOT_COMPARABLE, NOTE)
TOGETHER_LEAST = 0.10  # less than that is seldom told as a change
MOST_CLAIMS, _FEW = 2_000, 5
_WORDING = 50  # percent, from which "faster" by a share of the time misleads


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`lines`: others that it is about. `should_be` is empty where nothing else should stand there."""

    kind: str
    line: int
    claim: str
    should_be: str
    why: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Counts of claims by what became of them; `left_out`: what was too much to be read."""

    findings: tuple[Finding, ...]
    tables: int
    right: int
    wrong: int
    not_checkable: int
    left_out: tuple[str, ...]

    @property
    def faults(self) -> int:
        return sum(f.kind != NOTE for f in self.findings)


def checked(writing: Writing) -> Checked:
    tables = tuple(t for n, g in enumerate(writing.grids) if (t := measured_table(g, n)) is not None)
    names = Names(tables)
    claims = list(islice((s for p in writing.passages for s in said(p)), MOST_CLAIMS + 1))
    more = len(claims) > MOST_CLAIMS
    judged = [*judged_columns(tables), *(judged_said(s, tables, names) for s in claims[:MOST_CLAIMS])]
    judged = list(_repeated(judged))
    good = _right_ones(judged)
    other = tuple(other_shapes(tables, needs(writing.passages)))
    findings = (
        *(_wrong(j, good.get(_thing(j), ()), tables) for j in judged if j.verdict == WRONG),
        *_undecided_contradictions(judged),
        *(_not_comparable(o, judged) for o in other),
        *_moved_together(tables, other),
        *_wording(judged),
    )
    return Checked(
        findings=tuple(sorted(findings, key=lambda f: (KINDS.index(f.kind) == KINDS.index(NOTE), f.line))),
        tables=len(tables),
        right=sum(j.verdict == RIGHT for j in judged),
        wrong=sum(j.verdict == WRONG for j in judged),
        not_checkable=sum(j.verdict == NOT_CHECKABLE for j in judged),
        left_out=(*writing.left_out, *([f"claims of the text after the first {MOST_CLAIMS}"] if more else [])),
    )


# wrong claims


def _repeated(judged: list[Judged]) -> Iterator[Judged]:
    """A claim that leaves open which row it means, and that each of them fails, is wrong where it repeats a wrong one."""
    wrong = {(_number(j), key): j for j in judged if j.verdict == WRONG for key in j.keys}
    for j in judged:
        same = next((wrong[_number(j), k] for k in j.keys if (_number(j), k) in wrong), None) if j.failed else None
        again = same is not None and j.verdict == NOT_CHECKABLE
        yield replace(j, verdict=WRONG, base=same.base, new=same.new, keys=same.keys) if same and again else j


def _number(j: Judged) -> tuple[object, ...]:
    return j.claim.number, j.claim.factor, j.metric


def _wrong(j: Judged, right_ones: tuple[Judged, ...], tables: tuple[Measured, ...]) -> Finding:
    beside = next((o for o in right_ones if not agree(o.claim, j.claim)), None)
    why = _numbers(j, tables)
    if beside is not None:
        why = f"line {beside.claim.line} says {beside.claim.text} of the same: {why}"
    return Finding(
        kind=WRONG if beside is None else CONTRADICTION,
        line=j.claim.line,
        claim=j.claim.text,
        should_be=j.should_be,
        why=why,
        lines=() if beside is None else (beside.claim.line,),
    )


def _right_ones(judged: list[Judged]) -> dict[tuple[object, ...], tuple[Judged, ...]]:
    """By what they are about, a few of each."""
    found: dict[tuple[object, ...], tuple[Judged, ...]] = {}
    for j in judged:
        if j.verdict == RIGHT and j.base is not None and len(found.get(_thing(j), ())) < _FEW:
            found[_thing(j)] = (*found.get(_thing(j), ()), j)
    return found


def _thing(j: Judged) -> tuple[object, ...]:
    """The two numbers that are compared, and whether as a factor."""
    return _where(j.base), _where(j.new), j.claim.factor


def _where(place: Place | None) -> tuple[object, ...]:
    return () if place is None else (place.table, place.key, place.column, place.figure.value)


def _numbers(j: Judged, tables: tuple[Measured, ...]) -> str:
    if j.base is None or j.new is None:
        return ""
    name = " ".join(_as_written(j.new, tables) or _as_written(j.base, tables))
    return f"{name}{', ' if name else ''}{_figure(j.base)} to {_figure(j.new)}"


def _as_written(place: Place, tables: tuple[Measured, ...]) -> tuple[str, ...]:
    if place.table is None:
        return ()
    table = next(t for t in tables if t.number == place.table)
    row = table.by_key.get(place.key)
    return _label(table, row) if row else place.key


def _label(table: Measured, row: Row) -> tuple[str, ...]:
    return tuple(table.grid.rows[row.place][c.place].text for c in table.of_kind(NAME))


def _figure(place: Place) -> str:
    return f"{place.figure.text} (line {place.line})"


def _undecided_contradictions(judged: list[Judged]) -> Iterator[Finding]:
    """The same row against the same unknown run, claimed twice."""
    first: dict[tuple[object, ...], Judged] = {}
    for j in judged:
        if j.verdict != NOT_CHECKABLE or len(j.keys) != 1 or not j.relative_to or j.failed:
            continue
        before = first.setdefault((j.keys, j.metric, j.relative_to, j.side), j)
        if not agree(before.claim, j.claim):
            yield Finding(
                kind=CONTRADICTION, line=j.claim.line, claim=j.claim.text, should_be="",
                why=f"line {before.claim.line} says {before.claim.text} of the same, and no numbers of it are given",
                lines=(before.claim.line,),
            )  # fmt: skip


# rows that are not comparable


def _not_comparable(o: OtherShape, judged: list[Judged]) -> Finding:
    table, row = o.tables[1], o.rows[1]
    resting = sorted({j.claim.line for j in judged if _rests_on(j, o)} - {row.line})
    big, small = o.bytes[o.big], o.bytes[1 - o.big]
    title = _side_name(o.tables[o.big])
    what = "input gradient" if o.needed == o.need.input_bytes and "back" in " ".join(o.key) else "output"
    end = "the shape was another one" if o.surely else "another shape, or that many copies"
    why = (
        f"{title} bytes are {o.times} times what this shape needs: its {what} (line {o.need.line}) is {o.needed:,} B; "
        f"{big:,} B (line {o.rows[o.big].line}) is {o.times} x {o.needed:,} + {big - o.times * o.needed:,}, {small:,} B "
        f"(line {o.rows[1 - o.big].line}) is {o.needed:,} + {small - o.needed:,}: {end}"
    )
    if resting:
        why += f"; claims that rest on it: line{'s' * (len(resting) > 1)} {', '.join(map(str, resting))}"
    claim = " ".join(_label(table, row))
    kind = NOT_COMPARABLE if o.surely else NOTE
    return Finding(kind=kind, line=row.line, claim=claim, should_be="", why=why, lines=tuple(resting))


def _rests_on(j: Judged, o: OtherShape) -> bool:
    ends = {(p.table, p.key) for p in (j.base, j.new) if p is not None}
    return ends == {(t.number, o.key) for t in o.tables}


def _side_name(table: Measured) -> str:
    return table.side.upper() if table.side else f"'{table.grid.title}'"


# all rows together


def _moved_together(tables: tuple[Measured, ...], other: tuple[OtherShape, ...]) -> Iterator[Finding]:
    for a, b in combinations(tables, 2):
        times = a.measured(TIME), b.measured(TIME)
        if len(times[0]) != 1 or len(times[1]) != 1:
            continue
        apart = {o.key for o in other if o.surely and o.tables == (a, b)}
        pairs = [(r, b.by_key[r.key]) for r in a.rows if r.key in b.by_key and r.key in a.by_key and r.key not in apart]
        yield from _together(a, b, [(*_time(x, times[0][0]), *_time(y, times[1][0])) for x, y in pairs])


def _time(row: Row, column: Column) -> tuple[float]:
    found = row.figures.get(column.place)
    return (found.value if found is not None else 0.0,)


def _together(a: Measured, b: Measured, times: list[tuple[float, float]]) -> Iterator[Finding]:
    known = [(x, y) for x, y in times if x > 0 and y > 0]
    ratios = sorted(y / x for x, y in known)
    moved = together(ratios, TOGETHER_LEAST)
    if moved is None:
        return
    near = [r for r in ratios if (r > 1) == (moved > 1) and abs(r / moved - 1) <= TOGETHER_SPREAD - 1]
    number = f"all {len(ratios)}" if len(near) == len(ratios) else f"{len(near)} of {len(ratios)}"
    low, high = (f"{100 * (r - 1):+.1f}%" for r in (near[0], near[-1]))
    why = (
        f"{number} comparable rows moved together against {_side_name(a)}, by {low} to {high}: what they share, the machine "
        f"first of all, moved; not {len(near)} {'regressions' if moved > 1 else 'improvements'}"
    )
    yield Finding(kind=NOTE, line=b.grid.line, claim=_side_name(b), should_be="", why=why)


def _wording(judged: list[Judged]) -> Iterator[Finding]:
    """Once a document: the share of the time that is gone is no rate."""
    found = [j for j in judged if j.verdict == RIGHT and _only_of_time(j)]
    if not found or found[0].new is None or found[0].base is None:
        return
    first, times = found[0], found[0].base.figure.value / found[0].new.figure.value
    lines = tuple(dict.fromkeys(j.claim.line for j in found))
    why = (
        f"right as a cut of the time, which is {times:.1f}x as fast: 'takes {first.claim.number}% less time' says that"
    )
    yield Finding(kind=NOTE, line=first.claim.line, claim=first.claim.text, should_be="", why=why, lines=lines[1:])


def _only_of_time(j: Judged) -> bool:
    return j.claim.form == FASTER and j.claim.number >= _WORDING and "faster" in j.claim.text.lower()
