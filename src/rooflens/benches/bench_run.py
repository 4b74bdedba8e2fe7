"""What one run of a benchmark suite found, or of another tool's: rows, and under each the processes that measured it.

The unit of every verdict is the process: samples of one process share its memory layout, its cores and its minute, and say
nothing about the next one. Nothing here needs a framework, so that history is read without one.
"""

import hashlib
import json
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

from rooflens.benches.sampling import Samples

OK, NO_ANSWER, FAILED, NO_MEMORY, NOT_RUN = "ok", "n/a", "failed", "oom", "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """What a row measures. `source`: layer text, `file.py:function`, or another tool's name for it. `shape`: every input,
    output and parameter with its type, None where nobody says. `code_hash` is of what is written, not of what is called.
    `threshold`: how much of a change matters, None where the suite says nothing."""

    name: str
    pass_: str = ""
    source: str = ""
    shape: str | None = None
    code_hash: str | None = None
    threshold: float | None = None

    @property
    def key(self) -> str:
        return f"{self.name}/{self.pass_}" if self.pass_ else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTimes:
    """One process's samples of one row, and in what state the machine was meanwhile. `references_s`: what each piece of the
    reference work took around them, empty where there was none; `drift`: by what factor one of them changed from before to
    after; `others_share`: how much of one CPU's time other processes took. Runs that were taken in turns have processes of
    equal numbers side by side."""

    process: int
    samples: Samples
    references_s: tuple[float, ...] = ()
    drift: float | None = None
    others_share: float | None = None

    @property
    def time_s(self) -> float | None:
        return self.samples.median_s

    @property
    def reference_s(self) -> float | None:
        """The machine's pace: the geometric mean of the product and the sum. What cores do together tells of states, each
        layer feels it in a measure of its own, and nothing can be divided by it."""
        return geometric_mean(self.references_s[:2]) if self.references_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocated:
    """Of one run of the row. Framework-side: every request to the framework's allocator (or, of another tool, what that
    counts). Python-side: blocks of Python's own that one run leaves behind, and the most bytes of them at any moment."""

    framework_count: int | None = None
    framework_bytes: int | None = None
    python_count: int | None = None
    python_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow:
    """`status`: ok | n/a | failed | oom | not run, each but ok with its reason. `roof_s`: what the roof of the machine asks
    for; None where it, or what the row does, is not known."""

    benchmark: Benchmark
    status: str = OK
    reason: str = ""
    processes: tuple[ProcessTimes, ...] = ()
    allocated: Allocated = Allocated()
    peak_bytes: int | None = None
    kernels: int | None = None
    flops: int | None = None
    bytes: int | None = None
    roof_s: float | None = None

    @property
    def times_s(self) -> tuple[float, ...]:
        """One a process."""
        return tuple(p.time_s for p in self.processes if p.time_s is not None)

    @property
    def time_s(self) -> float | None:
        return median(self.times_s) if self.times_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchMachine:
    """`fingerprint` is of what stays (model, cores, caches, memory), never of a clock. `threads` None: not known."""

    fingerprint: str
    name: str
    device: str
    device_name: str
    threads: int | None
    system: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """Of the user's project. `dirty`: files differ from the commit."""

    commit: str
    dirty: bool
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """`date`: UTC, ISO 8601. `tool`: rooflens, or whose output was imported. `session`: runs of one session were taken in
    turns, process by process. `settings`: what else decides a time, by name. `note` is the user's own words."""

    date: str
    suite: str
    tool: str
    machine: BenchMachine
    versions: tuple[tuple[str, str], ...]
    rows: tuple[BenchRow, ...]
    revision: Revision | None = None
    settings: tuple[tuple[str, str | int | float | bool | None], ...] = ()
    session: str | None = None
    note: str | None = None
    stopped_by: str = ""

    @property
    def processes(self) -> int:
        return len({p.process for row in self.rows for p in row.processes})

    @property
    def id(self) -> str:
        """Of the content: the same run is the same one in every store."""
        from rooflens.benches.bench_stored import stored

        return hash_of(stored(self))

    def row(self, key: str) -> BenchRow | None:
        return next((r for r in self.rows if r.benchmark.key == key), None)


def hash_of(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]
