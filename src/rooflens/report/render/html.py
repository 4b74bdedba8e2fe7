"""Blocks in, one page out that needs nothing else: no script, no network, the same bytes for the same blocks.

The page's own policy forbids whatever is not its style, so that a name that got through as markup would still do nothing;
and every text goes through `_text` or `_prose`, so that none does.
"""

import base64
import hashlib
import html
from collections.abc import Iterator

from rooflens.report.blocks import Block, Code, Column, Heading, Paragraph, Roofline, Series, Table, Words
from rooflens.report.render import series_svg, textplot
from rooflens.report.render.escape import CODE_LIMIT, NAME_LIMIT, safe_lines, safe_prose, safe_text
from rooflens.report.render.layout import ceilings
from rooflens.report.render.page_style import CSS
from rooflens.report.render.sparkline import finite, sentences, shown, span_text

_CONTENTS = 3  # sections from which on a list of them is of use


def render(blocks: tuple[Block, ...], title: str = "") -> str:
    """`title`: of the window; without one it is the first heading's."""
    headings = [(place, b.text) for place, b in enumerate(blocks) if isinstance(b, Heading)]
    first = headings[0][0] if headings else None
    drawn = [_block(b, place, first=place == first) for place, b in enumerate(blocks)]
    above = 0 if first is None else first + 1
    body = "\n".join([*drawn[:above], *_contents(headings[1:]), *drawn[above:]])
    named = title or (headings[0][1] if headings else "rooflens")
    return _PAGE.format(policy=_policy(), title=_prose(named), style=CSS, body=body)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _policy() -> str:
    """Nothing but the one style sheet, known by its hash."""
    digest = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _block(block: Block, place: int, *, first: bool) -> str:
    match block:
        case Heading():
            return _heading(block, place, first=first)
        case Paragraph():
            return _paragraph(block)
        case Table():
            return _table(block, f"Table {place}")
        case Code():
            return _code(block)
        case Words():
            return _words(block)
        case Roofline():
            return _roofline(block, place)
        case Series():
            return _series(block, place)


def _text(text: str, limit: int = NAME_LIMIT) -> str:
    return html.escape(safe_text(text, limit))


def _prose(text: str) -> str:
    return html.escape(safe_prose(text))


def _contents(headings: list[tuple[int, str]]) -> Iterator[str]:
    if len(headings) >= _CONTENTS:
        links = "".join(f'<li><a href="#part-{place}">{_prose(text)}</a></li>' for place, text in headings)
        yield f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _heading(block: Heading, place: int, *, first: bool) -> str:
    return f"<h1>{_prose(block.text)}</h1>" if first else f'<h2 id="part-{place}">{_prose(block.text)}</h2>'


def _paragraph(block: Paragraph) -> str:
    if block.tone == "warning":
        return f'<p class="warning"><strong>Warning:</strong> {_prose(block.text)}</p>'
    return f"<p>{_prose(block.text)}</p>"


def _code(block: Code) -> str:
    lines = "\n".join(_text(line, CODE_LIMIT) for line in block.lines)
    return f'<pre tabindex="0"><code>{lines}</code></pre>'


def _words(block: Words) -> str:
    """As text and nothing else: it may look like markup."""
    lines = "\n".join(map(html.escape, safe_lines(block.text)))
    return f"<blockquote>{lines}</blockquote>"


def _table(table: Table, name: str) -> str:
    """What names a row, its first cell that is no number, is the row's header."""
    header = next((i for i, c in enumerate(table.columns) if not c.numeric), None)
    head = "".join(f'<th scope="col"{_aligned(c)}>{_text(c.name)}</th>' for c in table.columns)
    rows = "\n".join(f"<tr>{''.join(_cells(table.columns, row, header))}</tr>" for row in table.rows)
    drawn = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    return _scrolled(drawn, name) + _elided(table)


def _cells(columns: tuple[Column, ...], row: tuple[str, ...], header: int | None) -> Iterator[str]:
    for i, (column, cell) in enumerate(zip(columns, row, strict=True)):
        tag, scope = ("th", ' scope="row"') if i == header else ("td", "")
        yield f"<{tag}{scope}{_aligned(column)}>{_text(cell)}</{tag}>"


def _aligned(column: Column) -> str:
    return ' class="n"' if column.numeric else ""


def _elided(table: Table) -> str:
    if not table.elided:
        return ""
    hint = f": {_prose(table.hint)}" if table.hint else ""
    return f'\n<p class="minor">{table.elided} more row{"s" * (table.elided != 1)}{hint}</p>'


def _scrolled(drawn: str, name: str) -> str:
    """What is too wide moves by itself, also by keyboard, and never the page."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{_prose(name)}">\n{drawn}\n</div>'


def _roofline(chart: Roofline, place: int) -> str:
    """The chart as a terminal draws it, and its roofs as a table for whoever reads numbers."""
    lines = "\n".join(map(html.escape, textplot.plain(textplot.draw(chart))))
    picture = f'<pre role="img" tabindex="0" aria-label="{_prose(chart.title)}: roofline">{lines}</pre>'
    roofs = Table(
        columns=(Column(name="roof"), Column(name="main")),
        rows=tuple((c.label, "yes" if c.main else "") for c in reversed(ceilings(chart))),
    )
    return _figure(chart.title, picture, _table(roofs, f"Roofs of chart {place}"))


def _series(series: Series, place: int) -> str:
    """The chart, what moved in words, and every number that it was drawn from."""
    said = list(sentences(series))
    listed = "".join(f"<li>{_prose(text)}</li>" for text in said)
    drawn = []
    if finite(series.points):
        chart = series_svg.draw(
            series, f"chart-{place}", _text(series.title.strip() or said[0]), _prose(" ".join(said))
        )
        numbers = _table(_numbers(series), f"Numbers of chart {place}")
        drawn = [_scrolled(chart, f"Chart {place}"), f"<details><summary>Numbers</summary>\n{numbers}\n</details>"]
    return _figure(series.title, *drawn[:1], f"<ul>{listed}</ul>", *drawn[1:])


def _numbers(series: Series) -> Table:
    names = (("run", False), ("value", True), (series.bars or "range", True), ("note", False))
    rows = tuple((p.label, shown(series, p.value), span_text(series, p), p.note) for p in series.points)
    return Table(columns=tuple(Column(name=name, numeric=numeric) for name, numeric in names), rows=rows)


def _figure(title: str, *parts: str) -> str:
    caption = [f"<figcaption>{_prose(title)}</figcaption>"] if title.strip() else []
    return "\n".join(["<figure>", *caption, *parts, "</figure>"])
