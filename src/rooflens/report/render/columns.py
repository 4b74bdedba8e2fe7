"""Safe text in, text of a known width out, in terminal columns: wide characters take two, combining marks none."""

import unicodedata
from collections.abc import Iterable, Iterator


def columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_column, text))


def _column(c: str) -> int:
    if unicodedata.category(c) in ("Mn", "Me") and c != "\ufe0f":  # U+FE0F turns a narrow sign into a wide one
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def pad(text: str, width: int, *, right: bool = False) -> str:
    blank = " " * max(0, width - columns(text))
    return blank + text if right else text + blank


def fit(pieces: Iterable[str], room: int) -> str:
    """As many pieces from the front as there is room for."""
    kept: list[str] = []
    for piece in pieces:
        room -= columns(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept)


def cut_middle(text: str, width: int, mark: str = "…") -> str:
    """Both ends stay, because in layer names the ends tell most: layer1.…conv2."""
    if columns(text) <= width:
        return text
    room = width - len(mark)
    if room < 2:
        return fit(text, width)
    tail = fit(reversed(text), room // 2)[::-1]
    return fit(text, room - columns(tail)) + mark + tail


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most `width` columns, with a hanging indent; words longer than a line are broken."""
    lines: list[str] = []
    line = first
    for word in _words(text, max(2, width - max(len(first), len(rest)))):
        fresh = line == (rest if lines else first)
        joined = line + word if fresh else f"{line} {word}"
        if columns(joined) > width and not fresh:
            lines.append(line)
            joined = rest + word
        line = joined
    return [*lines, line]


def _words(text: str, width: int) -> Iterator[str]:
    for word in text.split():
        while columns(word) > width:
            head = fit(word, width)
            yield head
            word = word[len(head) :]
        yield word
