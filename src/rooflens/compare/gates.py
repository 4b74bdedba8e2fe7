"""A result document and gate texts in, passed or failed out: `totals.latency_s<=5ms`."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rooflens.errors import SyntaxFault, nearest
from rooflens.units import parse

_GATE = re.compile(r"^\s*([A-Za-z_][\w.\[\]]*)\s*(<=|>=|==|!=|<|>)\s*(.+?)\s*$")
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """`passed` is None where the value is unknown: then nobody can tell."""

    gate: str
    value: float | str | bool | None
    passed: bool | None


def judge(document: dict[str, Any], gate: str) -> GateResult:
    match = _GATE.match(gate)
    if match is None:
        raise SyntaxFault(f"--gate '{gate}': write FIELD<=VALUE, such as 'totals.latency_s<=5ms'")
    path, sign, wanted = match.groups()
    value = _field(document, path, gate)
    if value is None:
        return GateResult(gate=gate, value=None, passed=None)
    return GateResult(gate=gate, value=value, passed=_compare(value, path, sign, wanted, gate))


def _field(document: dict[str, Any], path: str, gate: str) -> Any:
    found: Any = document
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            known = list(found) if isinstance(found, dict) else []
            raise SyntaxFault(f"--gate '{gate}': unknown field '{name}' in '{path}'.{nearest(name, known)}")
        found = found[name]
    if isinstance(found, dict | list):
        raise SyntaxFault(f"--gate '{gate}': '{path}' is not a single value: name a field inside it")
    return found


def _compare(value: Any, path: str, sign: str, wanted: str, gate: str) -> bool:
    if isinstance(value, bool):
        return _TESTS[sign](value, wanted.lower() == "true")
    if isinstance(value, str):
        if sign not in ("==", "!="):
            raise SyntaxFault(f"--gate '{gate}': '{value}' is text: compare it with == or !=")
        return _TESTS[sign](value, wanted.strip("'\""))
    return _TESTS[sign](value, _wanted(path, wanted, gate))


# By the ending of a field's name, the longer ones first.
_DIMENSIONS = {
    "_flop_per_s": "flop_per_s", "_bytes_per_s": "bytes_per_s", "_per_s": "number", "_s": "s", "bytes": "bytes",
    "_j": "j", "flops": "flop",
}  # fmt: skip


def _wanted(path: str, wanted: str, gate: str) -> float:
    """A field's name ends in its unit; a bare number is taken in it, another unit is a slip."""
    found = parse(wanted)
    dimension = next((d for end, d in _DIMENSIONS.items() if path.endswith(end)), "number")
    if found.dimension not in ("number", dimension):
        raise SyntaxFault(f"--gate '{gate}': {path} is not in {found.dimension}: give {dimension} or a bare number")
    return found.value
