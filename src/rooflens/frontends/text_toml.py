"""A TOML file of layers in, its layer text with a name and a dtype out.

    name = "stem"                        # default: the file's name
    dtype = "bf16"                       # default: what the caller asks for
    input = "8x64x32x32"
    layers = ["conv2d 128 k3 p1 bias", { text = "relu", id = "skip" }, "conv2d 128 k3 p1 x2 | add skip"]

Each entry is one layer or several with bars between them; a file may write `[[layer]]` tables with `text` and `id`
instead of the list. It becomes plain layer text, so that both have one meaning.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooflens.errors import ConfigError, InputError, nearest
from rooflens.frontends.text import DTYPES
from rooflens.frontends.text_grammar import INPUT, parse_chain, parse_shape
from rooflens.frontends.text_layers import SIGNATURES
from rooflens.hardware.load import read_toml

_KEYS = ("name", "dtype", "input", "layers", "layer")
_ENTRY_KEYS = ("text", "id")
# Weight-only types are stored after recording, so a file may name them too.
FILE_DTYPES = (*DTYPES, "w8a16", "w4a16")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetFile:
    """`text` is layer text; `dtype` is None where the file leaves it out."""

    text: str
    name: str
    dtype: str | None


def read_net(path: Path) -> NetFile:
    """The file, checked field by field; a ConfigError names the first field at fault."""
    document = read_toml(path)
    _check_keys(f"{path}", document, _KEYS)
    shape = _text(path, document, "input", None)
    _at(path, "input", lambda: parse_shape(shape))
    dtype = _text(path, document, "dtype", "")
    if dtype and dtype not in FILE_DTYPES:
        raise ConfigError(
            f"{path}: dtype: '{dtype}' is unknown.{nearest(dtype, FILE_DTYPES)} Use one of {' '.join(FILE_DTYPES)}"
        )
    layers = _layers(path, document)
    return NetFile(
        text=" | ".join((shape, *layers)), name=_text(path, document, "name", path.stem), dtype=dtype or None
    )


def _check_keys(where: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise ConfigError(f"{where}: unknown field '{key}'.{nearest(key, known)} Known are {' '.join(known)}")


def _text(path: Path, table: dict[str, Any], key: str, default: str | None) -> str:
    value = table.get(key, default)
    if value is None:
        raise ConfigError(f'{path}: {key}: is missing: add a line such as input = "8x64x32x32"')
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {key}: must be text in quotes, not {type(value).__name__}")
    return value


def _layers(path: Path, document: dict[str, Any]) -> list[str]:
    if ("layers" in document) == ("layer" in document):
        raise ConfigError(
            f'{path}: layers: give a list, layers = ["relu"], or [[layer]] tables: exactly one of the two'
        )
    key = "layers" if "layers" in document else "layer"
    entries = document[key]
    if not isinstance(entries, list):
        raise ConfigError(f"{path}: {key}: must be a list, not {type(entries).__name__}")
    known = {INPUT}
    return [_entry(path, f"{key}[{place}]", entry, known) for place, entry in enumerate(entries)]


def _entry(path: Path, field: str, entry: Any, known: set[str]) -> str:
    """One entry as layer text, with its ID joined on."""
    if isinstance(entry, dict):
        _check_keys(f"{path}: {field}", entry, _ENTRY_KEYS)
    text = entry.get("text") if isinstance(entry, dict) else entry
    id_ = entry.get("id", "") if isinstance(entry, dict) else ""
    if not isinstance(text, str) or not isinstance(id_, str) or "|" in id_:
        raise ConfigError(f"{path}: {field}: must be layer text, or a table with text and perhaps id, both in quotes")
    whole = f"{text} as {id_}" if id_ else text
    _at(path, field, lambda: parse_chain(whole, SIGNATURES, known))
    return whole


def _at(path: Path, field: str, read: Any) -> None:
    try:
        read()
    except InputError as error:
        raise ConfigError(f"{path}: {field}: {error}") from None
