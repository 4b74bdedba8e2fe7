"""The table of formats, and files in, a run out: each file is one process of it.

Samples of one file share a process; a verdict needs several processes, so several files.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from rooflens.benches.bench_run import FAILED, NOT_RUN, OK, Allocated, BenchMachine, BenchRow, BenchRun, ProcessTimes
from rooflens.benches.imports import go, google_benchmark, own, pytest_benchmark
from rooflens.benches.imports.found import Content, Found, FoundRow
from rooflens.benches.sampling import Raw, judged
from rooflens.errors import ConfigError, EmptyError, FormatError, MismatchError, SyntaxFault
from rooflens.textfile import read_text

ENOUGH = 5  # processes of either side, for a verdict
MAX_BYTES = 500_000_000
_ASKED = "the output of go test -bench, pytest-benchmark, Google Benchmark or 'rooflens bench run --format json'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """`told`: whether a file is of it, by its content. `how`: how the tool is asked for such a file."""

    name: str
    told: Callable[[Content], bool]
    read: Callable[[Content], Found]
    how: str


FORMATS = (
    Format(name="go", told=go.is_go, read=go.read_go, how="go test -bench . -benchmem > FILE"),
    Format(
        name="google-benchmark", told=google_benchmark.is_google_benchmark, read=google_benchmark.read_google_benchmark,
        how="--benchmark_out=FILE --benchmark_out_format=json",
    ),
    Format(
        name="pytest-benchmark", told=pytest_benchmark.is_pytest_benchmark, read=pytest_benchmark.read_pytest_benchmark,
        how="pytest --benchmark-json FILE",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    run: BenchRun
    notes: tuple[str, ...]


def imported(
    paths: Sequence[str], as_: str | None = None, suite: str | None = None, note: str | None = None
) -> Imported:
    """All files are of one format and one machine."""
    contents = [content_of(path) for path in paths]
    if as_ is None and any(map(own.is_own, contents)):
        return _own(contents, suite, note)
    format = _format(contents[0], as_)
    found = [_found(c, format, as_) for c in contents]
    _same_machine(paths, found)
    run = _run(found, suite, note)
    return Imported(run=run, notes=(*(n for f in found for n in f.notes), *_lost(paths, found, run), *_too_few(run)))


def content_of(path: str) -> Content:
    text = read_text(path, _ASKED, MAX_BYTES)
    at = datetime.fromtimestamp(Path(path).stat().st_mtime, UTC).isoformat(timespec="seconds")
    return Content(path=path, text=text, document=_document(path, text), modified=at)


def _document(path: str, text: str) -> Any:
    """None for what is not one JSON document. NaN stays: Google Benchmark writes it for what it has no number for."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply: is it {_ASKED}?") from None
    except ValueError as error:
        if go.is_go(Content(path=path, text=text, document=None, modified="")):
            return None  # a JSON document a line
        raise ConfigError(f"{path}: not valid JSON: {error}: is the file cut off?") from None


def _own(contents: list[Content], suite: str | None, note: str | None) -> Imported:
    """A run of ours is whole: its processes are in it, and its id stays where nothing is said of it anew."""
    if len(contents) > 1:
        raise SyntaxFault(f"{contents[0].path}: a saved run has all its processes: import such files one by one")
    run = own.read_own(contents[0])
    return Imported(run=replace(run, suite=suite or run.suite, note=note if note is not None else run.note), notes=())


def _format(content: Content, as_: str | None) -> Format:
    if as_ is not None:
        found = next((f for f in FORMATS if f.name == as_), None)
        if found is None:
            raise SyntaxFault(f"--as {as_}: use one of {' '.join(f.name for f in FORMATS)}")
        return found
    told = next((f for f in FORMATS if f.told(content)), None)
    if told is None:
        raise FormatError(f"{content.path}: not {_ASKED}: say which with --as")
    return told


def _found(content: Content, format: Format, as_: str | None) -> Found:
    if not format.told(content):
        other = "" if as_ else ", as the first file is"
        raise FormatError(f"{content.path}: no result of {format.name}{other}: make it with {format.how}")
    found = format.read(content)
    if not found.rows:
        raise EmptyError(f"{content.path}: holds no benchmark: make it with {format.how}")
    return found


def _same_machine(paths: Sequence[str], found: list[Found]) -> None:
    first = found[0]
    for path, other in zip(paths[1:], found[1:], strict=True):
        a, b = first.machine, other.machine
        if (a.fingerprint, a.threads) != (b.fingerprint, b.threads):
            raise MismatchError(
                f"{path}: measured on {_machine(b)}, and {paths[0]} on {_machine(a)}: import files of different machines apart"
            )
        if first.versions != other.versions or first.revision != other.revision:
            raise MismatchError(f"{path}: of another version or commit than {paths[0]}: import them apart")


def _machine(m: BenchMachine) -> str:
    threads = f", {m.threads} threads" if m.threads else ""
    return f"{m.name} ({m.fingerprint}{threads})"


def _run(found: list[Found], suite: str | None, note: str | None) -> BenchRun:
    first = found[0]
    return BenchRun(
        date=max(f.date for f in found),
        suite=suite or first.suite,
        tool=first.tool,
        machine=first.machine,
        versions=first.versions,
        rows=tuple(_rows(found)),
        revision=first.revision,
        settings=first.settings,
        note=note,
    )


def _rows(found: list[Found]) -> list[BenchRow]:
    """In the order in which they are first seen."""
    keys = dict.fromkeys(row.benchmark.key for f in found for row in f.rows)
    by_key = [_by_key(f) for f in found]
    return [_row([rows.get(key) for rows in by_key]) for key in keys]


def _by_key(found: Found) -> dict[str, FoundRow]:
    rows: dict[str, FoundRow] = {}
    for row in found.rows:
        before = rows.get(row.benchmark.key)
        if before is not None and before.processes and row.processes:
            several = len(before.processes) > 1 or len(row.processes) > 1
            joined = (before.processes[0] + row.processes[0],)
            row = replace(row, processes=before.processes + row.processes if several else joined)
        rows[row.benchmark.key] = row
    return rows


def _row(files: list[FoundRow | None]) -> BenchRow:
    """Of each file what it took; a file without the row has no process of it."""
    first = next(row for row in files if row is not None)
    times: list[ProcessTimes] = []
    number = 0
    for row in files:
        for samples in row.processes if row else ():
            times.append(ProcessTimes(process=number, samples=judged(tuple(Raw(time_s=t) for t in samples))))
            number += 1
        number += 0 if row and row.processes else 1
    known = [row for row in files if row is not None and row.processes] or [first]
    lost = next((r for r in files if r is not None and r.status in (FAILED, NOT_RUN)), first)
    return BenchRow(
        benchmark=first.benchmark,
        status=OK if times else lost.status,
        reason="" if times else lost.reason,
        processes=tuple(times),
        allocated=Allocated(
            **{n: _middle(getattr(r.allocated, n) for r in known) for n in Allocated.__dataclass_fields__}
        ),
        peak_bytes=_middle(r.peak_bytes for r in known),
        bytes=_middle(r.bytes for r in known),
    )


def _middle(values: Any) -> int | None:
    found = [v for v in values if v is not None]
    return round(median(found)) if found else None


def _lost(paths: Sequence[str], found: list[Found], run: BenchRun) -> Iterator[str]:
    """What failed in one file and ran in another."""
    timed = {row.benchmark.key for row in run.rows if row.processes}
    for path, file in zip(paths, found, strict=True):
        for row in file.rows:
            if row.status == FAILED and row.benchmark.key in timed:
                yield f"{path}: {row.benchmark.key} failed: {row.reason}"


def _too_few(run: BenchRun) -> list[str]:
    most = max((len(r.processes) for r in run.rows), default=0)
    if most >= ENOUGH:
        return []
    return [
        f"{most} process{'es' * (most != 1)}: samples of one file are one process, and a verdict needs {ENOUGH}: run the "
        f"benchmarks {ENOUGH} times into {ENOUGH} files and import them together"
    ]
