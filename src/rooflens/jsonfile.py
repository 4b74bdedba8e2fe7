"""A path in, a JSON document out, of sane size and content: no NaN, no duplicate keys, no bottomless nesting; and back."""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rooflens.errors import ConfigError, EmptyError, FileError

MAX_BYTES = 2_000_000_000
MAX_DIGITS = 300  # what a float still holds
_ENCODE = json.JSONEncoder(allow_nan=False).encode


def json_text(document: Any, indent: int | None = 2, end: str = "") -> str:
    """A record of a list a line, such as an op: half the size of every number on its own line, and written ten times as
    fast. A document inside a document, such as an analysis in a comparison, is laid out as it is alone."""
    return "".join(chain(_pieces(document, indent, 0), [end]))


def _pieces(value: Any, indent: int | None, depth: int) -> Iterator[str]:
    inner, outer = _break(indent, depth + 1), _break(indent, depth)
    before = "," if indent is not None else ", "
    if isinstance(value, dict) and value:
        for place, (key, item) in enumerate(value.items()):
            yield f"{before if place else '{'}{inner}{_ENCODE(key)}: "
            yield from _pieces(item, indent, depth + 1)
        yield outer + "}"
    elif isinstance(value, list) and any(isinstance(item, dict | list | str) for item in value):
        for place, item in enumerate(value):
            yield f"{before if place else '['}{inner}"
            yield from _pieces(item, indent, depth + 1) if _is_document(item) else (_ENCODE(item),)
        yield outer + "]"
    else:
        yield _ENCODE(value)


def _break(indent: int | None, depth: int) -> str:
    return "" if indent is None else "\n" + " " * (indent * depth)


def _is_document(item: Any) -> bool:
    return isinstance(item, dict) and "schema" in item


def read_json(path: str, limit: int = MAX_BYTES) -> Any:
    text = _text(path, limit)
    try:
        return json.loads(text, parse_constant=_constant, parse_int=_int, parse_float=_float, object_pairs_hook=_pairs)
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply: flatten it") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None


def _text(path: str, limit: int) -> str:
    file = Path(path)
    try:
        if file.is_dir():
            raise FileError(f"{path}: is a folder, not a file: name the file inside it")
        if file.stat().st_size > limit:
            raise ConfigError(f"{path}: larger than {limit} bytes: is it the right file?")
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise ConfigError(f"{path}: not UTF-8 text: save it as UTF-8 JSON") from None
        raise FileError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}: check the path"
        ) from None
    if not text.strip():
        raise EmptyError(f"{path}: is empty: give a saved result")
    return text


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number that JSON knows")


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a whole number of {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is beyond what a number can hold")
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [k for k, _ in pairs]
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(f"key '{twice}' is given twice")
    return found
