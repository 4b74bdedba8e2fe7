"""The error tree: every failure a user can cause, one line each, with the exit status it gets.

RooflensError
├── InputError (status 2: bad input or usage)
│   ├── FileError           E_FILE        the path cannot be read or written
│   ├── EmptyError          E_EMPTY       the file has no content
│   ├── FormatError         E_FORMAT      the file is not what its name says
│   ├── ModelError          E_MODEL       no such model, or the model raised
│   ├── ShapeError          E_SHAPE       a shape is impossible or rejected by a layer
│   ├── SyntaxFault         E_SYNTAX      layer text, quantity or option that does not parse
│   ├── ConfigError         E_CONFIG      a TOML or JSON document with wrong content
│   ├── HardwareError       E_HW          a chip description with wrong values
│   ├── DtypeError          E_HW          a dtype that the chip has no peak for
│   ├── GraphError          E_GRAPH       a graph that does not hold together
│   ├── StoreError          E_STORE       a store of runs that cannot be read or written
│   ├── SchemaError         E_SCHEMA      a store or a result of another version
│   ├── MismatchError       E_MISMATCH    runs that were taken under different conditions
│   ├── MissingExtra        E_EXTRA       an optional dependency is not installed
│   └── NotInThisVersion    E_VERSION     a part that comes with a later release
└── PartialResult (status 3: could not tell)
"""

import difflib
from collections.abc import Iterable


class RooflensError(Exception):
    """What went wrong, where, and what to do, in one line."""

    code = "E_ROOFLENS"
    status = 2

    def __str__(self) -> str:
        return one_line(super().__str__())


class InputError(RooflensError):
    code = "E_INPUT"


class FileError(InputError):
    code = "E_FILE"


class EmptyError(InputError):
    code = "E_EMPTY"


class FormatError(InputError):
    code = "E_FORMAT"


class ModelError(InputError):
    code = "E_MODEL"


class ShapeError(InputError):
    code = "E_SHAPE"


class SyntaxFault(InputError):
    code = "E_SYNTAX"


class ConfigError(InputError):
    code = "E_CONFIG"


class HardwareError(InputError):
    code = "E_HW"


class DtypeError(InputError):
    code = "E_HW"


class GraphError(InputError):
    code = "E_GRAPH"


class StoreError(InputError):
    code = "E_STORE"


class SchemaError(InputError):
    code = "E_SCHEMA"


class MismatchError(InputError):
    code = "E_MISMATCH"


class MissingExtra(InputError):
    code = "E_EXTRA"


class NotInThisVersion(InputError):
    code = "E_VERSION"


class PartialResult(RooflensError):
    code = "E_PARTIAL"
    status = 3


def one_line(text: str, limit: int = 2000) -> str:
    """Control characters and line breaks would break the one-line promise, and a terminal."""
    flat = " ".join(text.split())
    safe = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in flat)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def nearest(name: str, known: Iterable[str], count: int = 3) -> str:
    """' Did you mean a, b?' for error lines; empty where nothing is near."""
    words = list(known)
    begun = [w for w in words if name and w.startswith(name.lower())]
    close = difflib.get_close_matches(name.lower(), words, n=count, cutoff=0.5)
    found = list(dict.fromkeys((*begun, *close)))[:count]
    return f" Did you mean {', '.join(found)}?" if found else ""


def needs_extra(package: str, extra: str) -> MissingExtra:
    return MissingExtra(f"{package} is not installed: pip install 'rooflens[{extra}]'")
