"""A header and rows of plain values in, RFC 4180 text out, that a spreadsheet reads as data and never as a formula.

Numbers are written as Python writes them, whatever the locale; text that a spreadsheet would run gets a leading quote.
"""

import numbers
from collections.abc import Iterable

from rooflens.report.render.escape import safe_text

_LIMIT = 1000
_RUNS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def render_rows(header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = (",".join(_quoted(_cell(value)) for value in row) for row in (header, *rows))
    return "".join(f"{line}\n" for line in lines)


def _cell(value: object) -> str:
    """Unknown is empty; a number stays a number, a minus sign included; all else is text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    return _text(str(value))


def _text(text: str) -> str:
    return ("'" if text.startswith(_RUNS) else "") + safe_text(text, _LIMIT)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(c in cell for c in ',"\r\n') else cell
