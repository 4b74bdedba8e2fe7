"""A suite's name, a `bench.toml`, layer text or `file.py:function` in, the Suite that they ask for out.

    name = "mine"               # default: the file's name
    time = "1s"                 # of each benchmark, over all processes
    processes = 5
    threshold = "5%"            # how much of a change matters
    dtype = "fp32"              # default: fp32 for layer text, a model's own

    [[benchmark]]
    name = "stem"               # default: what it runs
    layer = "8x64x32x32 | conv2d 128 k3 p1 bias"    # or  model = "layers.py:stem"
    passes = ["forward", "backward"]
    mode = "training"           # the forward pass as in training
    optimizer = "adamw"         # instead of passes: one step over the parameters
    threshold = "10%"           # and dtype: of this one alone

Nothing is built here: that a file exists is found out where it runs, which may be another revision of it.
"""

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rooflens.errors import ConfigError, InputError, ModelError, RooflensError, SyntaxFault, nearest
from rooflens.frontends.load import CATALOGUE_LATER
from rooflens.frontends.optimizer import STATES
from rooflens.frontends.text import parse_layers
from rooflens.hardware.load import read_toml
from rooflens.units import parse_as

SUITES = Path(__file__).parent / "suites"
DEFAULT_FILE = "bench.toml"
PASSES = ("forward", "backward")
DTYPES = ("fp32", "tf32", "bf16", "fp16")
TIME_S, LEAST_PROCESSES, THRESHOLD = 1.0, 5, 0.05
_ZOO = re.compile(r"(timm:)?[A-Za-z]\w*(\.\w+)*$")
_KEYS = ("name", "time", "processes", "threshold", "dtype", "benchmark")
_ROW_KEYS = ("name", "layer", "model", "passes", "mode", "optimizer", "threshold", "dtype")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is run: layer text, or a model: a zoo name, or `file.py:function` beside the suite's file. `optimizer`: instead
    of passes, one step of it. `training`: the forward pass as in training."""

    name: str
    layer: str | None = None
    model: str | None = None
    passes: tuple[str, ...] = PASSES
    training: bool = False
    optimizer: str | None = None
    threshold: float | None = None
    dtype: str | None = None

    @property
    def source(self) -> str:
        return self.layer or self.model or ""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"{self.name}/{p}" for p in self.passes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """`folder`: what files of cases are named from."""

    name: str
    cases: tuple[Case, ...]
    folder: Path
    time_s: float = TIME_S
    processes: int = LEAST_PROCESSES
    threshold: float = THRESHOLD

    def asked(self, time_s: float | None, processes: int | None) -> "Suite":
        """With what whoever runs it says instead of the suite."""
        if processes is not None and (isinstance(processes, bool) or not 1 <= processes <= 1000):
            raise SyntaxFault(f"--processes {processes}: must be a whole number from 1 to 1000")
        return replace(self, time_s=time_s or self.time_s, processes=processes or self.processes)

    def only(self, patterns: tuple[str, ...]) -> "Suite":
        """Tests whose name, or name/pass, holds one of the patterns (`conv*`, `*/backward`)."""
        if not patterns:
            return self
        kept = tuple(replace(t, passes=p) for t in self.cases if (p := _wanted(t, patterns)))
        if not kept:
            known = [k for t in self.cases for k in (t.name, *t.keys)]
            raise InputError(
                f"--only {','.join(patterns)}: suite '{self.name}' has no such benchmark.{nearest(patterns[0], known)}"
            )
        return replace(self, cases=kept)


def _wanted(case: Case, patterns: tuple[str, ...]) -> tuple[str, ...]:
    named = any(fnmatch.fnmatchcase(case.name, p) for p in patterns)
    keys = zip(case.passes, case.keys, strict=True)
    return tuple(pass_ for pass_, key in keys if named or any(fnmatch.fnmatchcase(key, p) for p in patterns))


def suite_names() -> tuple[str, ...]:
    return tuple(sorted(p.stem for p in SUITES.glob("*.toml")))


def suite_of(wanted: tuple[str, ...], folder: Path) -> Suite:
    """Several are one suite after the other. Nothing wanted: the folder's own `bench.toml`, else the suite `default`."""
    if not wanted:
        own = folder / DEFAULT_FILE
        return read_suite(own) if own.is_file() else _shipped("default", folder)
    found = [_one(text, folder) for text in wanted]
    suite = found[0] if len(found) == 1 else _joined(found)
    _check_names(suite, "the suites together")
    return suite


def _shipped(name: str, folder: Path) -> Suite:
    """One of ours, run in the user's folder."""
    return replace(read_suite(SUITES / f"{name}.toml"), folder=folder)


def _one(text: str, folder: Path) -> Suite:
    text = text.strip()
    if text in suite_names():
        return _shipped(text, folder)
    if text.lower().endswith(".toml"):
        return read_suite(folder / text)
    case = _test_of(text)
    return Suite(name=_short(case.source), cases=(case,), folder=folder)


def _test_of(text: str) -> Case:
    if "|" in text:
        parse_layers(text)
        return Case(name=_short(text), layer=text)
    if ".py:" in text:
        return Case(name=text.rpartition(":")[2], model=text)
    if not _ZOO.match(text) or text in CATALOGUE_LATER or nearest(text, suite_names()):
        raise ModelError(
            f"benchmark '{text[:60]}': give a suite ({' '.join(suite_names())}), a bench.toml, layer text such as "
            "'8x64x32x32 | conv2d 128 k3 p1 bias', file.py:function, or a zoo name"
        )
    return Case(name=text, model=text)


def _short(source: str) -> str:
    """Of layer text what comes after its shape."""
    shape, bar, layers = source.partition("|")
    return " ".join((layers if bar else shape).split())


def _joined(suites: list[Suite]) -> Suite:
    """Files are named from one folder."""
    folders = {s.folder for s in suites if any(t.model for t in s.cases)}
    if len(folders) > 1:
        raise InputError("suites with models in different folders: run them one after the other")
    first = suites[0]
    cases = tuple(t for s in suites for t in s.cases)
    name = "+".join(dict.fromkeys(s.name for s in suites))
    return replace(first, name=name, cases=cases, folder=next(iter(folders), first.folder))


def read_suite(path: Path) -> Suite:
    """The file, checked field by field; a ConfigError names the first one at fault."""
    document = read_toml(path)
    reader = _Reader(f"{path}", document, _KEYS)
    rows = document.get("benchmark")
    if not isinstance(rows, list) or not rows:
        raise ConfigError(f"{path}: benchmark: holds no benchmarks: write [[benchmark]] tables with a layer or a model")
    suite = Suite(
        name=reader.text("name") or path.stem,
        cases=tuple(_read_test(f"{path}: benchmark[{i}]", r, reader.dtype()) for i, r in enumerate(rows)),
        folder=path.parent,
        time_s=reader.seconds("time", TIME_S),
        processes=reader.count("processes", LEAST_PROCESSES),
        threshold=reader.share("threshold") or THRESHOLD,
    )
    _check_names(suite, f"{path}")
    return suite


def _check_names(suite: Suite, where: str) -> None:
    names = [t.name for t in suite.cases]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise ConfigError(f"{where}: two benchmarks are named '{twice}': give each a name of its own")


def _read_test(where: str, found: Any, dtype: str | None) -> Case:
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: must be a table, [[benchmark]], with a layer or a model")
    reader = _Reader(where, found, _ROW_KEYS)
    layer, model = reader.text("layer"), reader.text("model")
    if (layer is None) == (model is None):
        raise ConfigError(f'{where}: give layer = "8x64x32x32 | …" or model = "file.py:function": one of the two')
    if layer is not None:
        reader.at("layer", lambda: parse_layers(layer))
    if model is not None:
        reader.at("model", lambda: _test_of(model))
    optimizer = reader.choice("optimizer", tuple(STATES))
    return Case(
        name=reader.text("name") or _short(layer or model or ""),
        layer=layer,
        model=model,
        passes=("step",) if optimizer else reader.passes(),
        training=reader.choice("mode", ("inference", "training")) == "training",
        optimizer=optimizer,
        threshold=reader.share("threshold"),
        dtype=reader.dtype() or dtype,
    )


class _Reader:
    """A table whose fields are read one by one, and complain by their name."""

    def __init__(self, where: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
        self.where, self.table = where, table
        for key in table:
            if key not in known:
                raise ConfigError(f"{where}: unknown field '{key}'.{nearest(key, known)} Known are {' '.join(known)}")

    def text(self, key: str) -> str | None:
        value = self.table.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"{self.where}: {key}: must be text in quotes, not {self.shown(key)}")
        return value.strip()

    def shown(self, key: str) -> str:
        return repr(self.table[key])[:40]

    def at(self, key: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except RooflensError as error:
            raise ConfigError(f"{self.where}: {key}: {error}") from None

    def seconds(self, key: str, default: float) -> float:
        value = self.table.get(key, default)
        found = self.at(key, lambda: parse_as(value, "s")) if isinstance(value, str) else value
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 3600:
            raise ConfigError(f'{self.where}: {key}: must be above 0 s and below an hour, such as "1s"')
        return float(found)

    def count(self, key: str, default: int) -> int:
        value = self.table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1000:
            raise ConfigError(f"{self.where}: {key}: must be a whole number from 1 to 1000, not {self.shown(key)}")
        return value

    def share(self, key: str) -> float | None:
        value = self.table.get(key)
        if value is None:
            return None
        found = self.at(key, lambda: parse_as(value, "number")) if isinstance(value, str) else value
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 10:
            raise ConfigError(f'{self.where}: {key}: must be a share above 0, such as "5%" or 0.05')
        return float(found)

    def choice(self, key: str, known: tuple[str, ...]) -> str | None:
        value = self.text(key)
        if value is not None and value not in known:
            raise ConfigError(f"{self.where}: {key}: '{value}' is unknown: use one of {' '.join(known)}")
        return value

    def dtype(self) -> str | None:
        return self.choice("dtype", DTYPES)

    def passes(self) -> tuple[str, ...]:
        value = self.table.get("passes", list(PASSES))
        if not isinstance(value, list) or not value or any(p not in PASSES for p in value):
            raise ConfigError(
                f"{self.where}: passes: must be a list of {' and '.join(PASSES)}, not {self.shown('passes')}"
            )
        return tuple(dict.fromkeys(value))
