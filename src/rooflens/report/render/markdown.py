"""Blocks in, GitHub Markdown out: names are text in it, never markup, links or HTML."""

import re

from rooflens.report.blocks import Block, Code, Heading, Paragraph, Roofline, Series, Table, Words
from rooflens.report.render import textplot
from rooflens.report.render.escape import CODE_LIMIT, NAME_LIMIT, safe_lines, safe_prose, safe_text
from rooflens.report.render.layout import ceilings
from rooflens.report.render.sparkline import sentences, sparkline

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# An underscore inside a word never starts emphasis on GitHub, and names are full of them.
_MARKUP = re.compile(r"[\\`*|\[\]~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_OPENER = re.compile(r"^(?:([#+=-])|(\d+)([.)]))")
# What can begin a tag, a comment or an instruction; 'a < b' cannot.
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_BREAK = "\n\n"
_SPARK = 100


def render(blocks: tuple[Block, ...]) -> str:
    return _BREAK.join(filter(None, map(_block, blocks))) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"## {_inline(block.text)}"
        case Paragraph():
            return ("**Warning:** " if block.tone == "warning" else "") + _prose(block.text)
        case Table():
            return _table(block)
        case Code():
            return _fenced([safe_text(line, CODE_LIMIT) for line in block.lines], "python")
        case Words():
            return _quoted(block)
        case Roofline():
            return _roofline(block)
        case Series():
            return _series(block)


def _escaped(safe: str) -> str:
    return _MARKUP.sub(lambda m: "\\" + m.group(), safe.translate(_HTML))


def _inline(text: str) -> str:
    return _escaped(safe_prose(text))


def _prose(text: str) -> str:
    """A sentence that begins like a heading or a list item would become one."""
    return _OPENER.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\{m[3]}", _inline(text))


def _table(table: Table) -> str:
    names = tuple(column.name for column in table.columns)
    lines = [_row(names), "|" + "|".join("---:" if c.numeric else "---" for c in table.columns) + "|"]
    lines += map(_row, table.rows)
    return "\n".join(lines) + (_BREAK + _elided(table) if table.elided else "")


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_escaped(safe_text(cell, NAME_LIMIT)) for cell in cells) + " |"


def _elided(table: Table) -> str:
    return f"{table.elided} more row{'s' * (table.elided != 1)}" + (f": {_inline(table.hint)}" if table.hint else "")


def _quoted(block: Words) -> str:
    """As Markdown of its own, in a quote: a fence or a list that it leaves open ends where the quote ends."""
    lines = (_TAG.sub("&lt;", line) for line in safe_lines(block.text))
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _roofline(chart: Roofline) -> str:
    """The ceilings as a table for whoever reads numbers, then the chart as the terminal draws it."""
    rows = ["| Roof | Main |", "|---|---|"]
    rows += [f"| {_inline(c.label)} | {'yes' if c.main else ''} |" for c in reversed(ceilings(chart))]
    lines = textplot.plain(textplot.draw(chart))
    title = f"**{_inline(chart.title)}**{_BREAK}" if chart.title.strip() else ""
    return title + "\n".join(rows) + _BREAK + _fenced(lines, "text")


def _series(series: Series) -> str:
    title = [f"**{_inline(series.title)}**"] if series.title.strip() else []
    line = [f"`{sparkline(series, _SPARK)}`"] if series.points else []
    first, *others = sentences(series)
    return _BREAK.join(
        [*title, *line, _prose(first), *(["\n".join(f"- {_prose(o)}" for o in others)] if others else [])]
    )


def _fenced(lines: list[str], language: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
    return "\n".join([f"{fence}{language}", *lines, fence])
