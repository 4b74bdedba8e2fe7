"""Blocks in, text for a terminal or a pipe out: no line is wider than asked, and no name can act on the terminal."""

from rooflens.report.blocks import Block, Code, Column, Heading, Paragraph, Roofline, Series, Table, Words
from rooflens.report.render import textplot
from rooflens.report.render.columns import columns, cut_apart, pad, wrapped
from rooflens.report.render.escape import CODE_LIMIT, NAME_LIMIT, safe_lines, safe_prose, safe_text
from rooflens.report.render.layout import BOUNDS
from rooflens.report.render.sparkline import sentences, sparkline

_GAP = 2
# SGR codes. The hues follow the picture's: memory blue, compute red, launch green.
_STYLES = {
    "heading": "1",
    "head": "2",
    "warning": "33",
    "main": "1",
    "minor": "2",
    "memory": "1;34",
    "compute": "1;31",
    "launch": "1;32",
    "unknown": "1;35",
}


def render(blocks: tuple[Block, ...], *, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """Without `unicode` the text is pure ASCII: other characters in names become escapes."""
    width = max(width, 20)
    drawn = [_block(block, width, unicode, color) for block in blocks]
    return "\n\n".join("\n".join(_paint(line, color) for line in lines) for lines in drawn if lines) + "\n"


def _block(block: Block, width: int, unicode: bool, color: bool) -> list[textplot.Line]:
    match block:
        case Heading():
            return _heading(block, width, unicode)
        case Paragraph():
            return _paragraph(block, width, unicode)
        case Table():
            return _table(block, width, unicode)
        case Code():
            return [((f"    {safe_text(line, CODE_LIMIT, ascii_only=not unicode)}", ""),) for line in block.lines]
        case Words():
            return _words(block, width, unicode)
        case Roofline():
            return [*_roofline(block, width, unicode), *(_bounds(block) if color else ())]
        case Series():
            return _series(block, width, unicode)


def _paint(line: textplot.Line, color: bool) -> str:
    if not color:
        return "".join(text for text, _ in line).rstrip()
    return "".join(f"\033[{_STYLES[style]}m{text}\033[0m" if style in _STYLES else text for text, style in line)


def _heading(block: Heading, width: int, unicode: bool) -> list[textplot.Line]:
    lines = wrapped(safe_prose(block.text, ascii_only=not unicode), width)
    rule = ("─" if unicode else "-") * max(map(columns, lines))
    return [((line, "heading"),) for line in (*lines, rule)]


def _paragraph(block: Paragraph, width: int, unicode: bool) -> list[textplot.Line]:
    text, warning = safe_prose(block.text, ascii_only=not unicode), block.tone == "warning"
    lines = wrapped(text, width, "! ", "  ") if warning else wrapped(text, width)
    return [((line, "warning" if warning else ""),) for line in lines]


def _words(block: Words, width: int, unicode: bool) -> list[textplot.Line]:
    """Each line as it is, with the indent that it has; one too wide is folded under it."""
    lines = safe_lines(block.text, ascii_only=not unicode)
    return [((folded, ""),) for line in lines for folded in _folded_line(line, width)]


def _folded_line(line: str, width: int) -> list[str]:
    indent = line[: min(len(line) - len(line.lstrip()), width // 2)]
    return [line] if columns(line) <= width else wrapped(line, width, indent, indent)


def _roofline(chart: Roofline, width: int, unicode: bool) -> list[textplot.Line]:
    title = wrapped(safe_prose(chart.title, ascii_only=not unicode), width) if chart.title else []
    return [*(((line, "heading"),) for line in title), *textplot.draw(chart, width=width, unicode=unicode)]


def _series(series: Series, width: int, unicode: bool) -> list[textplot.Line]:
    title = wrapped(safe_prose(series.title, ascii_only=not unicode), width) if series.title.strip() else []
    line = [((sparkline(series, width, unicode=unicode), "main"),)] if series.points else []
    said = (safe_prose(text, ascii_only=not unicode) for text in sentences(series))
    return [*(((t, "heading"),) for t in title), *line, *(((t, ""),) for text in said for t in wrapped(text, width))]


def _bounds(chart: Roofline) -> list[textplot.Line]:
    """What the colours of the numbers mean."""
    found = {dot.bound if dot.bound in BOUNDS else "unknown" for dot in chart.dots}
    spans = [(f" {name}", name) for name in BOUNDS if name in found]
    return [(("Bound by:", "minor"), *spans)] if spans else []


def _table(table: Table, width: int, unicode: bool) -> list[textplot.Line]:
    safe = [[safe_text(cell, NAME_LIMIT, ascii_only=not unicode) for cell in row] for row in table.rows]
    names = [safe_text(column.name, NAME_LIMIT, ascii_only=not unicode) for column in table.columns]
    roomy = _widths(table.columns, names, safe, width, least=24, lines=2)
    widths = roomy or _widths(table.columns, names, safe, width, least=8, lines=99)
    body = _grid(table.columns, names, safe, widths, unicode) if widths else _stacked(names, safe, width)
    return [*body, *_elided(table, width, unicode)]


def _widths(
    columns_: tuple[Column, ...], names: list[str], rows: list[list[str]], width: int, *, least: int, lines: int
) -> list[int]:
    """Room for every cell and for names in so many lines; the widest text column gives way. Empty: it does not fit."""
    cells = [max((columns(row[i]) for row in rows), default=0) for i in range(len(names))]
    widths = [max(size, _name_width(name, lines)) for size, name in zip(cells, names, strict=True)]
    excess = sum(widths) + _GAP * (len(widths) - 1) - width
    while excess > 0:
        text = [i for i, c in enumerate(columns_) if not c.numeric and not c.whole and widths[i] > least]
        if not text:
            return []
        widest = max(text, key=lambda i: widths[i])
        widths[widest] -= 1
        excess -= 1
    return widths


def _name_width(name: str, lines: int) -> int:
    """The least width that wraps a name into so many lines without breaking a word."""
    width = max(map(columns, name.split()), default=0)
    while len(wrapped(name, width)) > lines:
        width += 1
    return width


def _grid(
    columns_: tuple[Column, ...], names: list[str], rows: list[list[str]], widths: list[int], unicode: bool
) -> list[textplot.Line]:
    def laid(cells: list[list[str]], style: str) -> list[textplot.Line]:
        height = max(map(len, cells), default=0)
        return [((line([c[i] if i < len(c) else "" for c in cells]), style),) for i in range(height)]

    def line(cells: list[str]) -> str:
        padded = (pad(c, w, right=k.numeric) for c, w, k in zip(cells, widths, columns_, strict=True))
        return (" " * _GAP).join(padded).rstrip()

    heads = [wrapped(name, w) for name, w in zip(names, widths, strict=True)]
    deep = max(map(len, heads), default=0)
    rule = [[("─" if unicode else "-") * w] for w in widths]
    drawn = [*laid([[""] * (deep - len(h)) + h for h in heads], "head"), *laid(rule, "head")]
    for row in zip(*(_folded([row[i] for row in rows], w, unicode) for i, w in enumerate(widths)), strict=True):
        drawn += laid(list(row), "")
    return drawn


def _folded(cells: list[str], width: int, unicode: bool) -> list[list[str]]:
    """Of one column what does not fit: what has several words is wrapped, names are cut so that they stay apart."""
    names = [cell for cell in dict.fromkeys(cells) if " " not in cell]
    short = dict(zip(names, cut_apart(names, width, "…" if unicode else "~"), strict=True))
    return [
        [short[cell]] if cell in short else wrapped(cell, width) if columns(cell) > width else [cell] for cell in cells
    ]


def _stacked(names: list[str], rows: list[list[str]], width: int) -> list[textplot.Line]:
    """Too narrow for columns: each row is a paragraph of 'name: cell'."""
    lines: list[textplot.Line] = []
    for row in rows:
        pairs = [f"{name}: {cell}".strip(": ") for name, cell in zip(names, row, strict=True) if cell]
        lines += [((line, ""),) for line in wrapped("; ".join(pairs), width, "- ", "  ")]
    return lines


def _elided(table: Table, width: int, unicode: bool) -> list[textplot.Line]:
    if not table.elided:
        return []
    text = f"{table.elided} more row{'s' * (table.elided != 1)}" + (f": {table.hint}" if table.hint else "")
    return [((line, "minor"),) for line in wrapped(safe_prose(text, ascii_only=not unicode), width)]
