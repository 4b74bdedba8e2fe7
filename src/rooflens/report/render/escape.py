"""Any text in, text that is safe to show out: no terminal, browser or spreadsheet acts on a name.

Names come from models and files of strangers: control characters, bidi overrides and lone surrogates are spelt as \\u
escapes, very long names are cut with a hash so that two of them stay apart.
"""

import hashlib
import unicodedata

from rooflens.report.render.columns import columns, fit

_PLAIN = {"…": "...", "–": "-", "—": "-", "−": "-", "×": "x", "·": ".", "µ": "u", "μ": "u", "→": "->", "←": "<-"}
_PLAIN |= {"≥": ">=", "≤": "<=", "±": "+-", "’": "'", "‘": "'", "“": '"', "”": '"'}
WORD_LIMIT = 120
TEXT_LIMIT = 20_000
NAME_LIMIT = 300
CODE_LIMIT = 1000


def safe_text(text: str, limit: int, *, ascii_only: bool = False) -> str:
    """At most `limit` columns, every character visible; what was cut is told by a hash: name…#a1b2c3."""
    pieces = [_shown(c, ascii_only) for c in text[: limit + 1]]
    if len(text) <= limit and sum(map(columns, pieces)) <= limit:
        return "".join(pieces)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    suffix = f"{'...' if ascii_only else '…'}#{digest}"[-limit:]
    return fit(pieces, limit - len(suffix)) + suffix


def safe_prose(text: str, *, ascii_only: bool = False) -> str:
    """Running text: white space is one blank, each word safe, so that one long name does not bury the sentence."""
    words = text[:TEXT_LIMIT].split()
    safe = [safe_text(word, WORD_LIMIT, ascii_only=ascii_only) for word in words]
    return " ".join(safe) + ("" if len(text) <= TEXT_LIMIT else " (cut)")


def safe_lines(text: str, *, ascii_only: bool = False) -> list[str]:
    """The lines of a text as they stand, each character visible; blank ones at the ends are no part of it."""
    lines = text[:TEXT_LIMIT].expandtabs(4).splitlines()
    safe = [safe_text(line.rstrip(), TEXT_LIMIT, ascii_only=ascii_only) for line in lines]
    while safe and not safe[-1]:
        safe.pop()
    first = next((place for place, line in enumerate(safe) if line), 0)
    return [*safe[first:], *(["(cut)"] if len(text) > TEXT_LIMIT else [])]


def _shown(c: str, ascii_only: bool) -> str:
    if c.isascii() and c.isprintable():
        return c
    if unicodedata.category(c) == "Zs":
        return " "
    if c.isprintable() and not ascii_only:
        return c
    return _PLAIN.get(c, "") or (f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}")
