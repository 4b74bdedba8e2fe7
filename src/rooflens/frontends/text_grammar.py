"""Layer text in, parsed layers with their columns out; nothing here knows what any layer does.

A layer's usage line, such as `conv2d OUT kK [sS] [bias]`, is both what an error message prints and the rule by which
its arguments are read, so that the two cannot disagree.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rooflens.errors import ShapeError, SyntaxFault, nearest

MAX_DIM = 2**63 - 1
MAX_RANK = 8  # no layer works on more, and the work of more dimensions of 2^63 would overflow a float
MAX_LAYERS = 1_000_000
INPUT = "input"

_NUMBER = re.compile(r"[+-]?[0-9]+")
_SIZE = re.compile(r"([A-Za-z]+)([+-]?[0-9]+(?:x[+-]?[0-9]+)*)")
_REPEAT = re.compile(r"x([+-]?[0-9]+)")
_OPTION = re.compile(r"([A-Za-z_]+)=(.*)")
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SHAPE = re.compile(r"[+-]?[0-9]+(?:\s*x\s*[+-]?[0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a layer takes: numbers in order, sizes by letter, options by name, bare words, earlier layers."""

    usage: str
    numbers: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    references: int = 0  # the most it takes

    @property
    def spellings(self) -> tuple[str, ...]:
        return (*self.words, *(f"{o}=" for o in self.options))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arg:
    """`values` of a number or size; `text` of a word or an ID."""

    key: str
    text: str
    column: int
    values: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLayer:
    """`id` is empty where the text gives none."""

    name: str
    column: int
    args: tuple[Arg, ...] = ()
    repeat: int = 1
    id: str = ""

    def arg(self, key: str) -> Arg | None:
        return next((a for a in self.args if a.key == key), None)

    def number(self, key: str, default: int = 0) -> int:
        found = self.arg(key)
        return found.values[0] if found else default

    def size(self, key: str, axes: int, default: tuple[int, ...]) -> tuple[int, ...]:
        """One size per axis: k3 is 3x3, k1x7 says each."""
        found = self.arg(key)
        if found is None:
            return default
        if len(found.values) not in (1, axes):
            raise SyntaxFault(
                f"column {found.column}: '{found.text}' has {len(found.values)} sizes where {self.name} has {axes} "
                f"{'axis' if axes == 1 else 'axes'}: give one for all, or {axes}"
            )
        return found.values * axes if len(found.values) == 1 else found.values

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(a.text for a in self.args if a.key == "ID")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedNet:
    shape: tuple[int, ...]
    layers: tuple[ParsedLayer, ...]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    column: int


def read_usage(usage: str) -> Signature:
    """`OUT kK [sS] [context=N] [bias]` as a Signature; brackets mark what may be left out."""
    found: dict[str, list[str]] = {"numbers": [], "sizes": [], "options": [], "words": [], "ID": []}
    required: list[str] = []
    for piece in usage.split()[1:]:
        bare = piece.strip("[]…")
        key, table = _slot(bare)
        found[table].append(key)
        if bare == piece.strip("…"):
            required.append(key)
    return Signature(
        usage=usage,
        numbers=tuple(found["numbers"]),
        sizes=tuple(found["sizes"]),
        options=tuple(found["options"]),
        words=tuple(found["words"]),
        required=frozenset(required),
        references=MAX_LAYERS if "…" in usage else len(found["ID"]),
    )


def _slot(bare: str) -> tuple[str, str]:
    if bare == "ID":
        return bare, "ID"
    if bare.isupper():
        return bare, "numbers"
    if "=" in bare:
        return bare.partition("=")[0], "options"
    return (bare[:-1], "sizes") if bare[-1].isupper() else (bare, "words")


def parse(text: str, signatures: Mapping[str, Signature]) -> ParsedNet:
    """The whole text, or the first fault in it."""
    first, *rest = _pieces(text)
    return ParsedNet(shape=_shape(first), layers=_chain(rest, signatures, {INPUT}))


def parse_shape(text: str) -> tuple[int, ...]:
    return _shape(_Token(text.strip(), 1))


def parse_chain(text: str, signatures: Mapping[str, Signature], known: set[str]) -> tuple[ParsedLayer, ...]:
    """Layers without a shape before them. `known` are the IDs so far, and grows."""
    return _chain(_pieces(text), signatures, known)


def _chain(pieces: list[_Token], signatures: Mapping[str, Signature], known: set[str]) -> tuple[ParsedLayer, ...]:
    layers: list[ParsedLayer] = []
    total = 0
    for piece in pieces:
        layer = _layer(piece, signatures, known)
        total += layer.repeat
        if total > MAX_LAYERS:
            raise SyntaxFault(
                f"column {layer.column}: {total} layers in all, the limit is {MAX_LAYERS}: repeat less often"
            )
        if layer.id:
            known.add(layer.id)
        layers.append(layer)
    return tuple(layers)


def _pieces(text: str) -> list[_Token]:
    """What stands between the bars, with the column (from 1) where each piece begins."""
    found, at = [], 0
    for piece in text.split("|"):
        lead = len(piece) - len(piece.lstrip())
        found.append(_Token(piece.strip(), at + (lead if piece.strip() else 0) + 1))
        at += len(piece) + 1
    return found


def _shape(piece: _Token) -> tuple[int, ...]:
    if not _SHAPE.fullmatch(piece.text):
        shown = f"'{piece.text[:60]}' is no shape" if piece.text else "no shape"
        raise SyntaxFault(f"column {piece.column}: {shown}: begin with one, such as 8x64x32x32 | conv2d 128 k3")
    dims = piece.text.split("x")
    if len(dims) > MAX_RANK:
        raise ShapeError(f"column {piece.column}: {len(dims)} dimensions, the limit is {MAX_RANK}: join some")
    return tuple(_whole(d.strip(), piece.column, "a dimension", 0) for d in dims)


def _whole(digits: str, column: int, what: str, least: int) -> int:
    """A number that a 64-bit index can hold, and not below `least`. Python refuses thousands of digits, even zeros."""
    bare = digits.lstrip("+-").lstrip("0") or "0"
    if len(bare) > 19 or int(bare) > MAX_DIM:
        raise ShapeError(f"column {column}: {digits[:24]} is beyond 2^63-1: give a smaller number")
    value = -int(bare) if digits[0] == "-" else int(bare)
    if value < least:
        fault = ShapeError if what == "a dimension" else SyntaxFault
        raise fault(f"column {column}: {what} must be {least} or more, not {value}: give a larger one")
    return value


def _layer(piece: _Token, signatures: Mapping[str, Signature], known: set[str]) -> ParsedLayer:
    tokens = [_Token(m.group(), piece.column + m.start()) for m in re.finditer(r"\S+", piece.text)]
    if not tokens:
        raise SyntaxFault(f"column {piece.column}: a layer is missing beside '|': name one, or take the bar out")
    name, *rest = tokens
    takes = signatures.get(name.text)
    if takes is None:
        raise SyntaxFault(
            f"column {name.column}: unknown layer '{name.text[:60]}'.{_known_layers(name.text, signatures)}"
        )
    rest, id_ = _split_id(rest, known)
    rest, repeat = _split_repeat(rest)
    args = _args(rest, name, takes, known)
    return ParsedLayer(name=name.text, column=name.column, args=args, repeat=repeat, id=id_)


def _known_layers(name: str, signatures: Iterable[str]) -> str:
    return nearest(name[:60], signatures) or f" Known are {' '.join(signatures)}"


def _split_id(tokens: list[_Token], known: set[str]) -> tuple[list[_Token], str]:
    """`as ID` ends a layer. The ID may be anything that no argument could be mistaken for."""
    place = next((i for i, t in enumerate(tokens) if t.text == "as"), None)
    if place is None:
        return tokens, ""
    named = tokens[place + 1 :]
    if len(named) != 1:
        raise SyntaxFault(f"column {tokens[place].column}: 'as' takes one ID and ends the layer: write '… as skip'")
    _check_id(named[0], known)
    return tokens[:place], named[0].text


def _check_id(token: _Token, known: set[str]) -> None:
    fault = ""
    if not _ID.fullmatch(token.text) or _REPEAT.fullmatch(token.text) or token.text == "as":
        fault = "is no ID: use a letter, then letters, digits, _ or -, and not xN, which is a repeat"
    elif token.text == INPUT:
        fault = "already names the network's input: use another ID"
    elif token.text in known:
        fault = "names an earlier layer already: use another ID"
    if fault:
        raise SyntaxFault(f"column {token.column}: '{token.text[:60]}' {fault}")


def _split_repeat(tokens: list[_Token]) -> tuple[list[_Token], int]:
    """A lone xN is always the repeat, and comes after the arguments."""
    places = [i for i, t in enumerate(tokens) if _REPEAT.fullmatch(t.text)]
    if not places:
        return tokens, 1
    last = tokens[-1]
    if places != [len(tokens) - 1]:
        raise SyntaxFault(
            f"column {tokens[places[0]].column}: '{tokens[places[0]].text[:60]}' is a repeat: write it once, after the "
            "arguments and before 'as'"
        )
    return tokens[:-1], _whole(last.text[1:], last.column, "a repeat", 1)


def _args(tokens: list[_Token], name: _Token, takes: Signature, known: set[str]) -> tuple[Arg, ...]:
    args: list[Arg] = []
    given: set[str] = set()
    for token in tokens:
        arg = _arg(token, takes, given, known)
        if arg.key in given and arg.key != "ID":
            raise SyntaxFault(f"column {arg.column}: '{token.text[:60]}' says '{arg.key}' a second time: keep one")
        given.add(arg.key)
        args.append(arg)
    missing = [key for key in (*takes.numbers, *takes.sizes, "ID") if key in takes.required and key not in given]
    if missing:
        raise SyntaxFault(f"column {name.column}: {name.text} needs {_shown(missing[0], takes)}: write {takes.usage}")
    if sum(a.key == "ID" for a in args) > takes.references:
        raise SyntaxFault(f"column {args[-1].column}: {name.text} takes one ID: write {takes.usage}")
    return tuple(args)


def _shown(key: str, takes: Signature) -> str:
    return f"{key}{key.upper()}, such as {key}3" if key in takes.sizes else key


def _arg(token: _Token, takes: Signature, given: set[str], known: set[str]) -> Arg:
    if takes.references:
        return _reference(token, known)
    if _NUMBER.fullmatch(token.text):
        return _number(token, takes, given)
    size, option = _SIZE.fullmatch(token.text), _OPTION.fullmatch(token.text)
    if size and size.group(1) in takes.sizes:
        return _sizes(token, size.group(1), size.group(2))
    if option and option.group(1) in takes.options:
        return _option(token, option.group(1), option.group(2))
    if token.text in takes.words:
        return Arg(key=token.text, text=token.text, column=token.column)
    hint = nearest(token.text[:60], takes.spellings)
    raise SyntaxFault(f"column {token.column}: cannot read '{token.text[:60]}'.{hint} {_takes(takes)}")


def _takes(takes: Signature) -> str:
    name, found, _ = takes.usage.partition(" ")
    return f"Write {takes.usage}" if found else f"{name} takes no arguments"


def _reference(token: _Token, known: set[str]) -> Arg:
    if token.text not in known:
        hint = nearest(token.text[:60], sorted(known)) or " Name one with 'as ID', or use input"
        raise SyntaxFault(f"column {token.column}: no earlier layer is called '{token.text[:60]}'.{hint}")
    return Arg(key="ID", text=token.text, column=token.column)


def _number(token: _Token, takes: Signature, given: set[str]) -> Arg:
    free = [key for key in takes.numbers if key not in given]
    if not free:
        raise SyntaxFault(f"column {token.column}: one number too many, '{token.text[:60]}'. {_takes(takes)}")
    value = _whole(token.text, token.column, free[0], 1)
    return Arg(key=free[0], text=token.text, column=token.column, values=(value,))


def _sizes(token: _Token, letters: str, digits: str) -> Arg:
    least = 0 if letters == "p" else 1
    values = tuple(_whole(d, token.column, f"{letters} in {token.text[:60]}", least) for d in digits.split("x"))
    return Arg(key=letters, text=token.text, column=token.column, values=values)


def _option(token: _Token, key: str, raw: str) -> Arg:
    if not _NUMBER.fullmatch(raw):
        raise SyntaxFault(
            f"column {token.column}: {key} needs a whole number: write {key}=512, not '{token.text[:60]}'"
        )
    return Arg(key=key, text=token.text, column=token.column, values=(_whole(raw, token.column, key, 1),))
