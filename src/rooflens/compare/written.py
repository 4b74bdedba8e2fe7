"""Markdown in, its tables and its running text out, each with the headings, the list items and the lines it stands under.

Only what numbers of a report stand in is read: headings, pipe tables, paragraphs and list items. Code blocks and HTML are
left out. Every line is looked at once, and no further than its first characters, so that no document takes long.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

# What nobody writes by hand is not read to its end: characters of a line or a paragraph, tables, rows of all of them.
LONGEST, MOST_TABLES, MOST_ROWS, MOST_PASSAGES = 20_000, 100, 5_000, 20_000
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*)")
_UNDERLINE = re.compile(r"\s{0,3}(=+|-{2,})\s*")
_BOLD = re.compile(r"\s*(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,4}[.)])\s+(.*)")
_FENCE = re.compile(r"\s*(```|~~~)")
_RULE_CELL = re.compile(r"\s*:?-+:?\s*")
_PIPE = re.compile(r"(?<!\\)\|")
_MARKUP = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A paragraph or a list item, in one line without markup. `starts`: where each of its lines begins in it. `above`: the
    list items that it stands in, nearest first; `headings` likewise."""

    text: str
    line: int
    starts: tuple[int, ...]
    above: tuple[str, ...]
    headings: tuple[str, ...]

    def line_of(self, place: int) -> int:
        return self.line + max(n for n, start in enumerate(self.starts) if start <= place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table as written. `title`: the heading that it stands under, nearest first, and the line before it if it names it."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    line: int
    headings: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.headings[0] if self.headings else f"the table at line {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    grids: tuple[Grid, ...]
    passages: tuple[Passage, ...]
    left_out: tuple[str, ...]  # what was too much to read


@dataclass(slots=True)
class _Reader:
    """Where the reading stands: the only thing here that changes."""

    headings: list[tuple[int, str]] = field(default_factory=list)
    items: list[tuple[int, str]] = field(default_factory=list)
    open: Passage | None = None
    grids: list[Grid] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)

    def close(self) -> None:
        if self.open is not None:
            self.passages.append(self.open)
        self.open = None

    def begin(self, text: str, line: int) -> None:
        above = tuple(t for _, t in reversed(self.items))
        self.open = Passage(text=text, line=line, starts=(0,), above=above, headings=self.titles())

    def titles(self) -> tuple[str, ...]:
        return tuple(t for _, t in reversed(self.headings))


def written(text: str) -> Writing:
    raw = text.splitlines()
    lines = [line[:LONGEST] for line in raw]
    reader, place = _Reader(), 0
    fenced = ""
    while place < len(lines):
        line = lines[place]
        fence = _FENCE.match(line)
        if fenced or fence:
            fenced = _fence(fenced, fence.group(1) if fence else "")
            reader.close()
        elif _is_table(lines, place):
            place = _table(reader, lines, place)
            continue
        else:
            _line(reader, line, place + 1)
        place += 1
    reader.close()
    return _within(reader, sum(len(line) > LONGEST for line in raw))


def _within(reader: _Reader, long_lines: int) -> Writing:
    grids, rows = list[Grid](), 0
    for grid in reader.grids[:MOST_TABLES]:
        grids.append(replace(grid, rows=grid.rows[: MOST_ROWS - rows]))
        rows += len(grids[-1].rows)
    all_rows = sum(len(g.rows) for g in reader.grids)
    left_out = (
        (long_lines, f"of {long_lines} lines what comes after character {LONGEST}"),
        (len(reader.grids) > MOST_TABLES, f"tables after the first {MOST_TABLES}"),
        (all_rows > rows, f"{all_rows - rows} rows of tables, after {rows}"),
        (len(reader.passages) > MOST_PASSAGES, f"paragraphs after the first {MOST_PASSAGES}"),
    )
    return Writing(
        grids=tuple(grids),
        passages=tuple(reader.passages[:MOST_PASSAGES]),
        left_out=tuple(what for many, what in left_out if many),
    )


def plain(text: str) -> str:
    """Without emphasis and code marks: what a reader sees."""
    return " ".join(_MARKUP.sub("", text.replace("\\|", "|").replace("&nbsp;", " ")).split())


def _fence(now: str, mark: str) -> str:
    if not now:
        return mark
    return "" if mark == now else now


def _line(reader: _Reader, line: str, number: int) -> None:
    line = _unquoted(line)
    heading, item = _HEADING.match(line), _ITEM.match(line)
    underline = _UNDERLINE.fullmatch(line) if reader.open is not None and not reader.items else None
    if not line.strip():
        reader.close()
    elif underline and reader.open is not None and reader.open.starts == (0,):
        title, reader.open = reader.open.text, None
        _heading(reader, 1 if "=" in underline.group(1) else 2, title)
    elif heading:
        _heading(reader, len(heading.group(1)), plain(heading.group(2).rstrip("# ")))
    elif item:
        reader.close()
        depth = len(item.group(1).expandtabs(4))
        while reader.items and reader.items[-1][0] >= depth:
            reader.items.pop()
        reader.begin(plain(item.group(2)), number)
        reader.items.append((depth, plain(item.group(2))))
    elif reader.open is not None:
        _continued(reader, plain(line), number)
    else:
        if not line[:1].isspace():
            reader.items.clear()
        reader.begin(plain(line) + (":" if _BOLD.fullmatch(line) and not plain(line).endswith(":") else ""), number)


def _continued(reader: _Reader, text: str, number: int) -> None:
    before = reader.open
    if before is None or len(before.text) > LONGEST:
        reader.close()
        reader.begin(text, number)
        return
    reader.open = replace(before, text=f"{before.text} {text}", starts=(*before.starts, len(before.text) + 1))


def _heading(reader: _Reader, level: int, text: str) -> None:
    reader.close()
    reader.items.clear()
    while reader.headings and reader.headings[-1][0] >= level:
        reader.headings.pop()
    reader.headings.append((level, text))


# tables


def _is_table(lines: list[str], place: int) -> bool:
    if place + 1 >= len(lines) or "|" not in lines[place]:
        return False
    rule = _cells(lines[place + 1])
    return "-" in lines[place + 1] and all(_RULE_CELL.fullmatch(c) for c in rule) and "|" in lines[place + 1]


def _table(reader: _Reader, lines: list[str], place: int) -> int:
    """The place after it."""
    named = _caption(reader, place)
    reader.close()
    header = tuple(map(plain, _cells(lines[place])))
    rows, end = [], place + 2
    while end < len(lines) and "|" in lines[end] and lines[end].strip():
        cells = [Cell(text=plain(c), line=end + 1) for c in _cells(lines[end])][: len(header)]
        rows.append((*cells, *(Cell(text="", line=end + 1) for _ in range(len(header) - len(cells)))))
        end += 1
    headings = (*named, *reader.titles())
    reader.grids.append(Grid(header=header, rows=tuple(rows), line=place + 1, headings=headings))
    return end


def _caption(reader: _Reader, place: int) -> Iterator[str]:
    """A short line that ends in a colon, right before the table, names it."""
    last = reader.open or (reader.passages[-1] if reader.passages else None)
    near = last is not None and place - last.line <= 1 + len(last.starts)
    if last is not None and near and last.text.endswith(":") and len(last.text) < 120:
        yield last.text.rstrip(":")


def _cells(line: str) -> list[str]:
    cells = _PIPE.split(_unquoted(line).strip())
    if cells and not cells[0].strip():
        cells = cells[1:]
    return cells[:-1] if cells and not cells[-1].strip() else cells


def _unquoted(line: str) -> str:
    return re.sub(r"^\s{0,3}(?:>\s?)+", "", line)
