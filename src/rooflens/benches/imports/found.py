"""What one file of another tool's holds, before files become processes of one run."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rooflens.benches.bench_run import OK, Allocated, BenchMachine, Benchmark, Revision
from rooflens.errors import FormatError

PASSES = ("forward", "backward")
NOTHING_KNOWN = Allocated()
LONGEST_S, MOST = 1e9, 2**63  # thirty years; more bytes than there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file as read. `document` is what it says as JSON, None where it is not JSON. `modified`: when it was written, for
    formats that give no date."""

    path: str
    text: str
    document: Any
    modified: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """`processes`: the samples of each process, in seconds for one operation; most formats know one process a file."""

    benchmark: Benchmark
    processes: tuple[tuple[float, ...], ...] = ()
    status: str = OK
    reason: str = ""
    allocated: Allocated = NOTHING_KNOWN
    peak_bytes: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`suite`: what it would be called where the user says nothing. `notes`: what is worth a line to the user."""

    tool: str
    suite: str
    date: str
    machine: BenchMachine
    rows: tuple[FoundRow, ...]
    versions: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str | int | float | bool | None], ...] = ()
    revision: Revision | None = None
    notes: tuple[str, ...] = ()


def benchmark_of(name: str, source: str) -> Benchmark:
    """A last part that says which pass it is becomes the pass, as our own benchmarks have it."""
    head, slash, last = name.rpartition("/")
    if slash and head and last.lower() in PASSES:
        return Benchmark(name=head, pass_=last.lower(), source=source)
    return Benchmark(name=name, source=source)


def fingerprint_of(facts: Any) -> str:
    """Of what stays, in any order."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def utc(date: Any, otherwise: str) -> str:
    """ISO 8601 in UTC; a date without a zone is taken as UTC."""
    try:
        found = datetime.fromisoformat(str(date))
    except ValueError:
        return otherwise
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")


def seconds(value: Any, path: str, where: str) -> float:
    """A time that a clock can have shown; zero is kept, and judged as a sample."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_S:
        raise FormatError(f"{path}: {where}: {_shown(value)} is no time: run the benchmark again")
    return float(value)


def whole(value: Any) -> int | None:
    """A count or bytes; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST:
        return None
    return round(value)


def word(value: Any, otherwise: str = "") -> str:
    return value if isinstance(value, str) else otherwise


def fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _shown(value: Any) -> str:
    text = str(value) if isinstance(value, int | float) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:39]}…"
