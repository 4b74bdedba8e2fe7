"""A document in, the same document out where it holds what the published schema says; the first fault by its name.

Whoever reads a saved result checks it here first. Only the words of JSON Schema that the schema uses are known.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rooflens.errors import ConfigError, FormatError

ANALYSIS_SCHEMA = "rooflens.analysis/1"
MEASUREMENT_SCHEMA = "rooflens.measurement/1"  # an analysis with its `measured` part filled
MACHINE_SCHEMA = "rooflens.machine/1"
PROFILE_SCHEMA = "rooflens.profile/1"
BENCH_SCHEMA = "rooflens.bench/1"  # one kind of document each: a run, two compared, a report, …
_PUBLISHED = Path(__file__).parent / "report" / "schemas"
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),), "integer": (int,),
    "number": (int, float),
}  # fmt: skip
_CURE = "save the result again"


@cache
def published(schema: str) -> dict[str, Any]:
    file = schema.removeprefix("rooflens.").replace("/", "-") + ".json"
    found: dict[str, Any] = json.loads((_PUBLISHED / file).read_text("utf-8"))
    return found


def checked_analysis(path: str, document: Any) -> dict[str, Any]:
    kind = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or kind not in (ANALYSIS_SCHEMA, MEASUREMENT_SCHEMA):
        raise FormatError(
            f"{path}: schema is {kind!r}, not '{ANALYSIS_SCHEMA}': give a result of 'rooflens analyze --format json'"
        )
    return _held(path, document, kind)


def checked_machine(path: str, document: dict[str, Any]) -> dict[str, Any]:
    return _held(path, document, MACHINE_SCHEMA)


def checked_profile(path: str, document: dict[str, Any]) -> dict[str, Any]:
    return _held(path, document, PROFILE_SCHEMA)


def checked_bench(path: str, document: dict[str, Any]) -> dict[str, Any]:
    """Each kind of bench document has a schema of its own, in a branch of the one that is published."""
    _held(path, document, BENCH_SCHEMA)
    for branch in published(BENCH_SCHEMA)["allOf"]:
        if branch["if"]["properties"]["kind"]["const"] == document["kind"]:
            _refuse(path, document, branch["then"])
    return document


def _held(path: str, document: dict[str, Any], schema: str) -> dict[str, Any]:
    _refuse(path, document, published(schema))
    return document


def _refuse(path: str, document: dict[str, Any], schema: dict[str, Any]) -> None:
    for where, what in faults(document, schema, ""):
        raise ConfigError(f"{path}: field '{where}' {what}: {_CURE}")


def faults(value: Any, schema: dict[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """Each field that is not as published, and what is wrong with it. Fields beyond the published ones may be there."""
    if "anyOf" in schema:
        null, other = schema["anyOf"]
        yield from () if value is None and null == {"type": "null"} else faults(value, other, where)
        return
    wrong = _wrong(value, schema)
    if wrong:
        yield where, wrong
    elif isinstance(value, dict):
        yield from _in_object(value, schema, where)
    elif isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            yield from faults(item, schema["items"], f"{where}[{place}]")


def _in_object(value: dict[str, Any], schema: dict[str, Any], where: str) -> Iterator[tuple[str, str]]:
    dot = f"{where}." if where else ""
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{dot}{name}", "is missing"
    beyond = schema.get("additionalProperties")
    for name, item in value.items():
        inner = known.get(name, beyond if isinstance(beyond, dict) else None)
        if inner is not None:
            yield from faults(item, inner, f"{dot}{name}")


def _wrong(value: Any, schema: dict[str, Any]) -> str:
    """Why this value cannot stand here, by itself; empty where it can."""
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if choices is not None and not any(type(value) is type(c) and value == c for c in choices):
        return f"is {_shown(value)}, not one of {' '.join(_shown(c) for c in choices)}"
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(_is(value, n) for n in names):
        return f"is {_shown(value)}, where {' or '.join(names)} belongs"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _out_of_range(value, schema)
    return ""


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _out_of_range(value: float, schema: dict[str, Any]) -> str:
    if value < schema.get("minimum", value):
        return f"is {_shown(value)}, below {schema['minimum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"is {_shown(value)}, not above {schema['exclusiveMinimum']}"
    if value > schema.get("maximum", value):
        return f"is {_shown(value)}, above {schema['maximum']}"
    return ""


def _shown(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:39]}…"
