"""Blocks to show and blocks to fold away in, a pull-request comment of at most so many bytes out: tables give up rows until
it fits, and say how many."""

from bisect import bisect_right
from dataclasses import replace
from html import escape

from rooflens.report.blocks import Block, Table
from rooflens.report.render.escape import safe_prose
from rooflens.report.render.markdown import render as markdown

LIMIT_BYTES = 60_000  # GitHub takes 65,536 characters
MARK = "<!-- rooflens bench report -->"  # by which a workflow finds the comment that it wrote before
_HINT = "see the whole report"
Folded = tuple[str, tuple[Block, ...]]


def render(shown: tuple[Block, ...], folded: tuple[Folded, ...], limit_bytes: int = LIMIT_BYTES) -> str:
    most = max((len(b.rows) for b in _all(shown, folded) if isinstance(b, Table)), default=0)
    fitting = bisect_right(range(most + 1), limit_bytes, key=lambda rows: _size(_drawn(shown, folded, rows))) - 1
    if fitting >= 0:
        return _drawn(shown, folded, fitting)
    return _first_lines(_drawn(shown, (), 0), limit_bytes)


def _all(shown: tuple[Block, ...], folded: tuple[Folded, ...]) -> tuple[Block, ...]:
    return (*shown, *(block for _, blocks in folded for block in blocks))


def _size(text: str) -> int:
    return len(text.encode("utf-8"))


def _drawn(shown: tuple[Block, ...], folded: tuple[Folded, ...], rows: int) -> str:
    parts = [MARK, markdown(tuple(_cut(b, rows) for b in shown)).rstrip("\n")]
    parts += [_details(title, tuple(_cut(b, rows) for b in blocks)) for title, blocks in folded if blocks]
    return "\n\n".join(parts) + "\n"


def _details(title: str, blocks: tuple[Block, ...]) -> str:
    """The blank lines make GitHub read Markdown inside."""
    return f"<details><summary>{escape(safe_prose(title), quote=False)}</summary>\n\n{markdown(blocks)}\n</details>"


def _cut(block: Block, rows: int) -> Block:
    if not isinstance(block, Table) or len(block.rows) <= rows:
        return block
    return replace(block, rows=block.rows[:rows], elided=block.elided + len(block.rows) - rows, hint=_HINT)


def _first_lines(text: str, limit_bytes: int) -> str:
    """Where sentences alone are too long, as many whole lines as fit."""
    kept: list[str] = []
    for line in text.splitlines(keepends=True):
        limit_bytes -= _size(line)
        if limit_bytes < 0:
            break
        kept.append(line)
    return "".join(kept)
