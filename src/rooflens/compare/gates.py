"""A result document and gate texts in, passed or failed out: `totals.latency_s<=5ms`."""

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rooflens.errors import SyntaxFault, nearest
from rooflens.resultfile import ANALYSIS_SCHEMA, published
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gate:
    path: str
    sign: str
    wanted: float | str | bool


def check_gate(gate: str) -> None:
    """A SyntaxFault where the gate makes no sense for any document: before anything is analysed."""
    _parsed(gate)


def judge(document: dict[str, Any], gate: str) -> GateResult:
    parsed = _parsed(gate)
    value = _value(document, parsed.path, gate)
    if value is None:
        return GateResult(gate=gate, value=None, passed=None)
    passed: bool | None = _TESTS[parsed.sign](value, parsed.wanted)
    if document["coverage"]["opaque"] and parsed.path.startswith("totals."):
        passed = _of_part(value, parsed, passed)
    return GateResult(gate=gate, value=value, passed=passed)


def _of_part(value: Any, gate: _Gate, passed: bool | None) -> bool | None:
    """Work that could not be counted makes a count a lower bound, which decides some gates, and a ratio unknown."""
    name = gate.path.rpartition(".")[2]
    if name in ("macs", "flops"):
        already = value > gate.wanted or (gate.sign in (">=", "<") and value == gate.wanted)
        return passed if already else None
    return None if "intensity" in name or name.endswith("_s") else passed


def _value(document: dict[str, Any], path: str, gate: str) -> Any:
    """None where the field, or anything above it, is not known here."""
    found: Any = document
    for name in path.split("."):
        if found is None:
            return None
        if name not in found:
            raise _unknown(gate, path, name, found)
        found = found[name]
    return found


def _unknown(gate: str, path: str, name: str, known: Iterable[str]) -> SyntaxFault:
    return SyntaxFault(f"--gate '{gate}': unknown field '{name}' in '{path}'.{nearest(name, known)}")


def _parsed(gate: str) -> _Gate:
    match = _GATE.match(gate)
    if match is None:
        raise SyntaxFault(f"--gate '{gate}': write FIELD<=VALUE, such as 'totals.latency_s<=5ms'")
    path, sign, wanted = match.groups()
    return _Gate(path=path, sign=sign, wanted=_wanted(_published(path, gate), path, sign, wanted, gate))


def _published(path: str, gate: str) -> dict[str, Any]:
    """What the schema says of a field; nothing of one whose form is left open."""
    found: Any = published(ANALYSIS_SCHEMA)
    for name in path.split("."):
        found = found["anyOf"][-1] if "anyOf" in found else found
        known, beyond = found.get("properties", {}), found.get("additionalProperties")
        if name not in known and beyond is True:
            return {}
        if name not in known and not isinstance(beyond, dict):
            raise _unknown(gate, path, name, known)
        found = known.get(name) or beyond
    if {"object", "array"} & set(_types(found)) or "anyOf" in found:
        raise SyntaxFault(f"--gate '{gate}': '{path}' is not a single value: name a field inside it")
    single: dict[str, Any] = found
    return single


def _types(field: dict[str, Any]) -> list[str]:
    names = field.get("type", [])
    return [names] if isinstance(names, str) else names


def _wanted(field: dict[str, Any], path: str, sign: str, wanted: str, gate: str) -> float | str | bool:
    """The value that a gate names, in the field's own type and unit."""
    if not field or {"number", "integer"} & set(_types(field)):  # fields left open are measurements
        return _quantity(path, wanted, gate)
    if sign not in ("==", "!="):
        raise SyntaxFault(f"--gate '{gate}': {path} is not a number: compare it with == or !=")
    text = wanted.strip("'\"")
    choices = ["true", "false"] if "boolean" in _types(field) else [c for c in field.get("enum", ()) if c is not None]
    text = text.lower() if "boolean" in _types(field) else text
    if choices and text not in choices:
        raise SyntaxFault(f"--gate '{gate}': {path} is never '{text}': use one of {' '.join(choices)}")
    return text == "true" if "boolean" in _types(field) else text


# By the ending of a field's name, the longer ones first.
_DIMENSIONS = {
    "_flop_per_s": "flop_per_s", "_bytes_per_s": "bytes_per_s", "_per_s": "number", "_s": "s", "bytes": "bytes",
    "_j": "j", "flops": "flop",
}  # fmt: skip


def _quantity(path: str, wanted: str, gate: str) -> float:
    """A field's name ends in its unit; a bare number is taken in it, another unit is a slip."""
    try:
        found = parse(wanted)
    except SyntaxFault as error:
        raise SyntaxFault(f"--gate '{gate}': {error}") from None
    if not math.isfinite(found.value):
        raise SyntaxFault(f"--gate '{gate}': {wanted} is not finite: give a number")
    names = reversed(path.split("."))
    dimension = next((d for n in names for end, d in _DIMENSIONS.items() if n.endswith(end)), "number")
    if found.dimension not in ("number", dimension):
        raise SyntaxFault(f"--gate '{gate}': {path} is not in {found.dimension}: give {dimension} or a bare number")
    if wanted.endswith("%") and not any(word in path for word in ("share", "density")):
        raise SyntaxFault(f"--gate '{gate}': {path} is no share: give {dimension} or a bare number, not a percentage")
    return found.value
