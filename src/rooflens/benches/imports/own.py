"""A run that was saved with `--format json` in (`rooflens.bench/1`, kind run), the same run out."""

import math
from typing import Any

from rooflens.benches.bench_run import BenchRun
from rooflens.benches.bench_stored import restored
from rooflens.benches.imports.found import Content, fields
from rooflens.errors import ConfigError, FormatError
from rooflens.resultfile import BENCH_SCHEMA

TOOL = "rooflens"


def is_own(content: Content) -> bool:
    return str(fields(content.document).get("schema", "")).startswith("rooflens.")


def read_own(content: Content) -> BenchRun:
    document = fields(content.document)
    schema, kind = document.get("schema"), document.get("kind")
    if (schema, kind) != (BENCH_SCHEMA, "run"):
        raise FormatError(
            f"{content.path}: {schema!r} of kind {kind!r}, not a run of '{BENCH_SCHEMA}': give 'bench run --format json'"
        )
    try:
        run = restored(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{content.path}: no whole run ({type(error).__name__}: {error}): save it again") from None
    _times_hold(content.path, run)
    return run


def _times_hold(path: str, run: BenchRun) -> None:
    for row in run.rows:
        for process in row.processes:
            if not all(_is_time(t) for t in process.samples.times_s):
                raise ConfigError(
                    f"{path}: samples_s of {row.benchmark.key} hold something that is no time: save it again"
                )


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
