"""A saved result in, its documents out, each checked against the published schema."""

from typing import Any

from rooflens.benches.bench_run import BenchRun
from rooflens.benches.bench_stored import restored
from rooflens.errors import ConfigError, FormatError, SchemaError
from rooflens.jsonfile import read_json
from rooflens.report.document import COMPARISON_SCHEMA
from rooflens.resultfile import (
    BENCH_SCHEMA,
    MACHINE_SCHEMA,
    PROFILE_SCHEMA,
    checked_analysis,
    checked_bench,
    checked_machine,
    checked_profile,
)


def read_documents(path: str) -> list[dict[str, Any]]:
    found = read_json(path)
    kind = found.get("schema") if isinstance(found, dict) else None
    if kind == MACHINE_SCHEMA:
        return [checked_machine(path, found)]
    if kind == PROFILE_SCHEMA:
        return [checked_profile(path, found)]
    if kind == BENCH_SCHEMA:
        return [checked_bench(path, found)]
    if kind != COMPARISON_SCHEMA:
        return [checked_analysis(path, found)]
    analyses = found.get("analyses")
    if not isinstance(analyses, list) or not analyses:
        raise ConfigError(f"{path}: field 'analyses' holds no results: save the result again")
    return [checked_analysis(f"{path}: analyses[{place}]", d) for place, d in enumerate(analyses)]


def read_run(path: str) -> BenchRun:
    """A run of benchmarks, as `rooflens bench run --format json` prints it."""
    found = read_json(path)
    kind = found.get("schema") if isinstance(found, dict) else None
    family, _, _ = str(kind).partition("/")
    if family == BENCH_SCHEMA.partition("/")[0] and kind != BENCH_SCHEMA:
        raise SchemaError(
            f"{path}: schema '{kind}', and this version reads '{BENCH_SCHEMA}': use the rooflens that wrote it"
        )
    if kind != BENCH_SCHEMA or found.get("kind") != "run":
        raise FormatError(f"{path}: not a run of benchmarks: give what 'rooflens bench run --format json' printed")
    return restored(checked_bench(path, found))
