"""A run that was saved with `--format json` in (`rooflens.bench/1`, kind run), the same run out.

Every field is held to the type that its record says, whatever somebody wrote into the file.
"""

from collections.abc import Iterator
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from itertools import chain
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from rooflens.benches.bench_run import BenchRun
from rooflens.benches.bench_stored import restored
from rooflens.benches.imports.found import LONGEST_S, Content, fields
from rooflens.errors import ConfigError, FormatError, SchemaError
from rooflens.jsonfile import read_json
from rooflens.resultfile import BENCH_SCHEMA

FAMILY = BENCH_SCHEMA.partition("/")[0]


def is_own(content: Content) -> bool:
    return str(fields(content.document).get("schema", "")).startswith("rooflens.")


def read_own(content: Content) -> BenchRun:
    path, document = content.path, read_json(content.path)
    schema, kind = document.get("schema"), document.get("kind")
    if str(schema).partition("/")[0] == FAMILY and schema != BENCH_SCHEMA:
        raise SchemaError(
            f"{path}: schema '{schema}', and this version reads '{BENCH_SCHEMA}': use the rooflens that wrote it"
        )
    if (schema, kind) != (BENCH_SCHEMA, "run"):
        raise FormatError(
            f"{path}: {schema!r} of kind {kind!r}, not a run: give what 'bench run --format json' printed"
        )
    try:
        run = restored(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{path}: no whole run ({type(error).__name__}: {error}): save it again") from None
    for where in chain(odd(run, BenchRun, "run"), _no_times(run)):  # types first: times are compared
        raise ConfigError(f"{path}: {where}: save it again")
    return run


def odd(value: Any, hint: Any, where: str) -> Iterator[str]:
    """Each part of a record that is not of the type that it is declared to be."""
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, hint):
        hints = get_type_hints(hint)
        for field in fields_of(hint):
            yield from odd(getattr(value, field.name), hints[field.name], f"{where}.{field.name}")
    elif get_origin(hint) is tuple and isinstance(value, tuple):
        inner = get_args(hint)
        hints_of = [inner[0]] * len(value) if inner[-1:] == (Ellipsis,) else list(inner)
        if len(hints_of) != len(value):
            yield f"{where} has {len(value)} parts, not {len(hints_of)}"
        for place, (item, of) in enumerate(zip(value, hints_of, strict=False)):
            yield from odd(item, of, f"{where}[{place}]")
    elif get_origin(hint) is UnionType:
        if not any(not list(odd(value, of, where)) for of in get_args(hint)):
            yield f"{where} is a {type(value).__name__}"
    elif not _is(value, hint):
        yield f"{where} is a {type(value).__name__}"


def _is(value: Any, hint: Any) -> bool:
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(hint, type) and isinstance(value, hint)


def _no_times(run: BenchRun) -> Iterator[str]:
    for row in run.rows:
        for process in row.processes:
            if not all(0 < t <= LONGEST_S for t in process.samples.times_s):
                yield f"samples_s of {row.benchmark.key} hold what is no time"
