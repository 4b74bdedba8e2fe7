"""Safe text in, text of a known width out, in terminal columns: wide characters take two, combining marks none."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence


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
    return fit(text, width) if room < 2 else _cut(text, room, room // 2, mark)


def _cut(text: str, room: int, behind: int, mark: str) -> str:
    """`behind`: columns of it that stay behind the mark."""
    tail = fit(reversed(text), behind)[::-1]
    return fit(text, room - columns(tail)) + mark + tail


def cut_apart(names: Sequence[str], width: int, mark: str = "…") -> list[str]:
    """Cut in the middle; of names that would look the same then, what tells them apart is kept, as far as there is room."""
    shown = {name: cut_middle(name, width, mark) for name in names}
    alike: dict[str, list[str]] = {}
    for name, cut in shown.items():
        alike.setdefault(cut, []).append(name)
    for group in alike.values():
        if len(group) > 1:
            best = max(_cuts(group, width, mark), key=lambda cuts: len(set(cuts) - alike.keys()), default=group)
            shown.update(zip(group, best, strict=True))
    return [shown[name] for name in names]


def _cuts(group: list[str], width: int, mark: str) -> Iterator[list[str]]:
    """Further from the middle, and then on both sides of where they differ."""
    room = width - len(mark)
    for behind in sorted(range(max(0, room)), key=lambda behind: abs(behind - room // 2)):
        yield [_cut(name, room, behind, mark) for name in group]
    before, after = _alike(group), _alike([name[::-1] for name in group])
    if width > 2 * len(mark):
        yield [_window(name, before, len(name) - after, width, mark) for name in group]


def _alike(names: list[str]) -> int:
    """How many characters they have in common from the front."""
    places = enumerate(zip(*names, strict=False))
    return next((i for i, characters in places if len(set(characters)) > 1), min(map(len, names)))


def _window(name: str, start: int, stop: int, width: int, mark: str) -> str:
    """What stands between two places, and as much around it as there is room for."""
    room = width - 2 * len(mark)
    begin = max(0, min(start, len(name) - room, start - (room - (stop - start)) // 2))
    shown = fit(name[begin:], room)
    return (mark if begin else "") + shown + (mark if begin + len(shown) < len(name) else "")


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
