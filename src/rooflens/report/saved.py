"""A saved result in, its documents out, each checked against the published schema."""

from typing import Any

from rooflens.errors import ConfigError
from rooflens.jsonfile import read_json
from rooflens.report.document import COMPARISON_SCHEMA
from rooflens.resultfile import MACHINE_SCHEMA, PROFILE_SCHEMA, checked_analysis, checked_machine, checked_profile


def read_documents(path: str) -> list[dict[str, Any]]:
    found = read_json(path)
    kind = found.get("schema") if isinstance(found, dict) else None
    if kind == MACHINE_SCHEMA:
        return [checked_machine(path, found)]
    if kind == PROFILE_SCHEMA:
        return [checked_profile(path, found)]
    if kind != COMPARISON_SCHEMA:
        return [checked_analysis(path, found)]
    analyses = found.get("analyses")
    if not isinstance(analyses, list) or not analyses:
        raise ConfigError(f"{path}: field 'analyses' holds no results: save the result again")
    return [checked_analysis(f"{path}: analyses[{place}]", d) for place, d in enumerate(analyses)]
