"""A written table in, what each of its columns holds out: names, measured numbers, or claims about them.

Columns are told by the words of their headers, and by the units of their cells where a header says nothing.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property

from rooflens.compare.figures import BYTES, COUNT, TIME, UNIT, VALUE, Figure, figure
from rooflens.compare.written import Grid

NAME, MEASURED, CLAIM, OTHER = "name", "measured", "claim", "other"

_CLAIM = re.compile(
    r"speed-?\s?up|reduction|saving|saved|change|\bvs\b|versus|delta|Δ|\bdiff|improvement|\bgain|increase|decrease|faster"
    r"|slower|\bratio\b|relative|\bfactor\b|compared|fewer|\bless\b", re.I)  # fmt: skip
_NOT_A_TIME = re.compile(
    r"\bstd|dev\b|error|±|\bci\b|iqr|interval|target|limit|budget|throughput|\bops\b|rate|flop|[kmgt]i?b/s|it/s|iterations|rounds"
    r"|runs\b|samples|\bcount of\b", re.I)  # fmt: skip
_COUNT = re.compile(r"alloc", re.I)
_BYTES = re.compile(r"memory|\bmem\b|bytes|\bb/op|\bfootprint|\bram\b|\b[kmg]i?b\b", re.I)
_TIME = re.compile(
    r"duration|\btime\b|latency|\b(?:ns|us|µs|μs|ms|sec|secs|seconds)\b|\bs/op|\(s\)|runtime|elapsed", re.I
)
_HEADER_UNIT = re.compile(rf"(?:^|[(\[\s,/]){UNIT}(?=/op|/iter|/call|[)\]\s,]|$)")
_BASE = re.compile(r"(?:\bvs\.?|versus|against|compared to|relative to|over|from)\s+(.+)", re.I)

# Words of a title that say which side of a change a table or a column is on.
_SIDES = (
    ("previous", r"prev(?:ious)?\b|last run|prior"),
    ("after", r"after|optimi[sz]ed|\bnew\b|improved"),
    ("current", r"current|latest|this run|\bnow\b|\bpr\b|\bhead\b|candidate"),
    ("before", r"before|original|initial|\bold\b|unoptimi[sz]ed|naive"),
    ("baseline", r"baseline|\bbase\b|reference|\bmain\b|\bmaster\b"),
)
_BEFORE = ("before", "baseline", "previous")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`base`: what the header says that the claim is relative to; empty where it says nothing."""

    place: int
    header: str
    kind: str
    metric: str = ""
    unit: str = ""
    base: str = ""

    @property
    def side(self) -> str:
        return side_of(self.header)


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """`key`: its names, in lower case; `figures` by the place of their column."""

    key: tuple[str, ...]
    place: int
    line: int
    figures: dict[int, Figure]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """A table that has numbers in it. `number` is its place in the document."""

    number: int
    grid: Grid
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @cached_property
    def by_key(self) -> dict[tuple[str, ...], Row]:
        """Names that stand there twice name no row."""
        found: dict[tuple[str, ...], Row] = {}
        for row in self.rows:
            found[row.key] = row
        twice = {r.key for r in self.rows if found[r.key] is not r}
        return {key: row for key, row in found.items() if key not in twice}

    @cached_property
    def side(self) -> str:
        return next(filter(None, map(side_of, self.grid.headings)), "")

    @cached_property
    def topic(self) -> tuple[str, ...]:
        """Its headings without those that say which side it is: tables of one topic belong together."""
        return tuple(h.lower() for h in self.grid.headings if not side_of(h))

    def of_kind(self, kind: str) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.kind == kind)

    def measured(self, metric: str) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.kind == MEASURED and c.metric in (metric, VALUE))


def measured_table(grid: Grid, number: int) -> Measured | None:
    """None for a table that measures nothing."""
    columns = _columns(grid)
    names = [c.place for c in columns if c.kind == NAME]
    figures = [c for c in columns if c.kind == MEASURED]
    if not figures and not any(c.kind == CLAIM for c in columns):
        return None
    rows = tuple(
        Row(
            key=tuple(words(row[n].text) for n in names),
            place=place,
            line=row[0].line,
            figures={c.place: f for c in figures if (f := _figure(row[c.place].text, c)) is not None},
        )
        for place, row in enumerate(grid.rows)
        if row
    )
    return Measured(number=number, grid=grid, columns=columns, rows=rows)


def words(text: str) -> str:
    """How names are compared: words alone, in lower case."""
    return " ".join(tokens(text))


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+(?:[./+:=\[\]-]+\w+)*", text.lower())


def side_of(title: str) -> str:
    """The first word of the title that says it."""
    found = [(m.start(), side) for side, pattern in _SIDES if (m := re.search(pattern, title, re.I))]
    return min(found)[1] if found else ""


def sides_meant(name: str) -> tuple[str, ...]:
    """Which sides a base may be, by how it is called: `baseline` alone is any of the earlier ones."""
    found = [side for side, pattern in _SIDES if re.search(pattern, name, re.I)]
    if not found:
        return ()
    if found[0] == "baseline":
        return ("baseline", "before", "after", "previous")
    return ("before", "baseline") if found[0] == "before" else (found[0],)


def earlier(side: str) -> bool:
    return side in _BEFORE


# which column is what


def _columns(grid: Grid) -> tuple[Column, ...]:
    told = [_by_header(place, header) for place, header in enumerate(grid.header)]
    told = [c if c.kind not in (NAME, MEASURED) else _by_cells(grid, c) for c in told]
    first = min((c.place for c in told if c.kind in (MEASURED, CLAIM)), default=len(told))
    return tuple(
        Column(place=c.place, header=c.header, kind=OTHER) if c.kind == NAME and c.place > first else c for c in told
    )


def _by_header(place: int, header: str) -> Column:
    header = header.replace("_", " ")
    base = _BASE.search(header)
    metric = metric_of(header)
    if _CLAIM.search(header):
        return Column(place=place, header=header, kind=CLAIM, metric=metric, base=base.group(1).strip() if base else "")
    if _NOT_A_TIME.search(header):
        return Column(place=place, header=header, kind=OTHER)
    if metric:
        return Column(place=place, header=header, kind=MEASURED, metric=metric, unit=_unit(header, metric))
    return Column(place=place, header=header, kind=NAME)


def metric_of(text: str) -> str:
    """Empty where no word says."""
    if _COUNT.search(text):
        return COUNT
    if _BYTES.search(text):
        return BYTES
    return TIME if _TIME.search(text) else ""


def _unit(header: str, metric: str) -> str:
    found = [m.group().strip("([,/ \t") for m in _HEADER_UNIT.finditer(header)]
    found = [u for u in found if (f := figure(f"1 {u}")) is not None and f.metric == metric]
    return found[0] if found else {COUNT: "allocs", BYTES: "B" if "b/op" in header.lower() else ""}.get(metric, "")


def _by_cells(grid: Grid, column: Column) -> Column:
    """Columns such as `Before` and `main` are known by what stands in them; a plain number needs a header that says a side.
    `alloc/op` is bytes to some tools, which the cells tell."""
    texts = [row[column.place].text for row in grid.rows[:200] if column.place < len(row)]
    found = [f for t in texts if t and (f := figure(t)) is not None and _all_of(t)]
    metrics = {f.metric for f in found}
    if column.kind == MEASURED:
        return replace(column, metric=BYTES, unit="") if column.metric == COUNT and metrics == {BYTES} else column
    mixed = len(metrics) != 1 or metrics == {VALUE}  # a row a quantity: each cell says its own
    few = len(found) * 2 < len([t for t in texts if t])
    if not found or column.place == 0 or (mixed and not side_of(column.header)) or (few and not mixed):
        return column
    return Column(place=column.place, header=column.header, kind=MEASURED, metric=VALUE if mixed else metrics.pop())


def _all_of(text: str) -> bool:
    """A number and its unit, an error after it at most: `3 x 3` and `8,64,32` are no measurements."""
    return re.fullmatch(rf"[\d.,_'eE+\s]+{UNIT}?(?:/op|/iter|/call)?\s*(?:±.*|\(.*\))?", text) is not None


def _figure(text: str, column: Column) -> Figure | None:
    found = figure(text, column.unit)
    return found if found is not None and (found.metric in (column.metric, VALUE) or column.metric == VALUE) else None
