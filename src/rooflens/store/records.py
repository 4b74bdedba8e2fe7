"""A run in, the columns that a store keeps of it out; and back. Lists are made of the light columns alone."""

import json
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rooflens.benches.bench_run import BenchRun, hash_of
from rooflens.benches.bench_stored import restored, stored
from rooflens.errors import StoreError

MAX_DOCUMENT_BYTES = 2**29  # unpacked; no run comes near it, a forged store might
_GZIP = 31  # what zlib calls the container that has a checksum and that any tool unpacks
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LIGHT = (
    "at_us", "id", "date", "suite", "tool", "row_count", "process_count", "commit_id", "dirty", "machine",
    "fingerprint", "note",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A run in a list. `machine`: its name. `commit` and `dirty` are None where the project has no revision."""

    id: str
    date: str
    suite: str
    tool: str
    rows: int
    processes: int
    commit: str | None
    dirty: bool | None
    machine: str
    fingerprint: str
    note: str | None
    baselines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A name for a run; `date` and `suite` are the run's."""

    name: str
    run: str
    date: str
    suite: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A baseline of another store whose name stands for another run here."""

    name: str
    here: str
    there: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Runs that were added, runs that were there already, baselines that were added, and those that could not be."""

    added: int
    already: int
    baselines: tuple[str, ...]
    taken: tuple[Taken, ...]


def columns_of(run: BenchRun) -> dict[str, Any]:
    revision, document = run.revision, stored(run)
    try:
        id = hash_of(document)
    except ValueError:
        raise StoreError(
            f"a run of suite '{run.suite}' has a number that is not finite: nothing of it was kept"
        ) from None
    columns = {
        "at_us": _microseconds(run.date),
        "id": id,
        "date": run.date,
        "suite": run.suite,
        "tool": run.tool,
        "row_count": len(run.rows),
        "process_count": run.processes,
        "commit_id": None if revision is None else revision.commit,
        "dirty": None if revision is None else int(revision.dirty),
        "machine": run.machine.name,
        "fingerprint": run.machine.fingerprint,
        "note": run.note,
    }
    return {**{name: _encodable(value) for name, value in columns.items()}, "document": packed(document)}


def summary_of(columns: dict[str, Any], baselines: tuple[str, ...]) -> Summary:
    dirty = columns["dirty"]
    return Summary(
        id=columns["id"],
        date=columns["date"],
        suite=columns["suite"],
        tool=columns["tool"],
        rows=columns["row_count"],
        processes=columns["process_count"],
        commit=columns["commit_id"],
        dirty=None if dirty is None else bool(dirty),
        machine=columns["machine"],
        fingerprint=columns["fingerprint"],
        note=columns["note"],
        baselines=baselines,
    )


def packed(document: dict[str, Any]) -> bytes:
    """ASCII, so that text which no encoding knows comes back as it was."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    if len(text) > MAX_DOCUMENT_BYTES:
        raise StoreError(
            f"a run of {len(text)} bytes is more than a store takes ({MAX_DOCUMENT_BYTES}): split the suite"
        )
    return zlib.compress(text.encode("ascii"), wbits=_GZIP)


def unpacked(document: bytes) -> BenchRun:
    """ValueError where it is not what `packed` makes."""
    reader = zlib.decompressobj(wbits=_GZIP)
    try:
        text = reader.decompress(document, MAX_DOCUMENT_BYTES)
        if not reader.eof:
            raise ValueError("it is cut short or too large")
        return restored(json.loads(text))
    except (zlib.error, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def encodable(text: str) -> str:
    """Half a surrogate pair, which JSON can hold, is no text to SQLite."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _encodable(value: Any) -> Any:
    return encodable(value) if isinstance(value, str) else value


def _microseconds(date: str) -> int:
    """What runs are ordered by: the same moment is written in more than one way."""
    try:
        at = datetime.fromisoformat(date)
    except ValueError:
        raise StoreError(f"a run dated '{date}': not a date of ISO 8601, such as 2026-01-02T03:04:05+00:00") from None
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
