"""A saved result in, its documents out, checked against the published schema's required fields."""

from typing import Any

from rooflens.errors import ConfigError, FormatError
from rooflens.jsonfile import read_json
from rooflens.report.document import COMPARISON_SCHEMA, SCHEMA

REQUIRED = (
    "model",
    "settings",
    "hardware",
    "coverage",
    "totals",
    "ops",
    "advice",
    "gates",
    "notes",
    "assumptions",
    "convention",
)


def read_documents(path: str) -> list[dict[str, Any]]:
    found = read_json(path)
    kind = found.get("schema") if isinstance(found, dict) else None
    if kind == COMPARISON_SCHEMA and isinstance(found.get("analyses"), list):
        return [_checked(path, d) for d in found["analyses"]]
    return [_checked(path, found)]


def _checked(path: str, document: Any) -> dict[str, Any]:
    kind = document.get("schema") if isinstance(document, dict) else None
    if kind != SCHEMA:
        raise FormatError(
            f"{path}: schema is {kind!r}, not '{SCHEMA}': give a result of 'rooflens analyze --format json'"
        )
    missing = [name for name in REQUIRED if name not in document]
    if missing:
        raise ConfigError(f"{path}: field '{missing[0]}' is missing: save the result again")
    checked: dict[str, Any] = document
    return checked
