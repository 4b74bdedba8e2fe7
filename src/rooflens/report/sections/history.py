"""The document of a history in, its Blocks and rows out: the runs, and each benchmark's times over them with its steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Level, Paragraph, Point, Series, Step, Table

Document = dict[str, Any]
_SHORT = 4  # of an id, where no two runs begin alike
_COMMIT = 7
_NOTE = 60
_REPEATING = ("suite", "tool", "processes", "machine")
_OPTIONAL = ("baselines", "note")
_BARS = "quickest to slowest process"
_METHODS = {
    "normalised": "Times are freed of the machine's own pace by the reference workload that ran in the same process.",
    "as measured": "Times are as measured: some run has no reference workload, and a slower machine looks like slower code.",
}


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of a document by id, and what to call them."""

    by_id: dict[str, Document]
    short: dict[str, str]

    def at(self, id: str) -> str:
        run = self.by_id[id]
        commit = f"commit {_commit(run)}, " if run["commit"] else ""
        return f"at run {self.short[id]} ({commit}{_day(run)})"


def history_blocks(document: Document) -> tuple[Block, ...]:
    title = Heading(text="History" + (f" of suite {document['suite']}" if document["suite"] else ""))
    if not document["runs"]:
        return title, Paragraph(text="No runs yet: 'rooflens bench run' makes one.")
    runs = _Runs({r["id"]: r for r in document["runs"]}, short_ids([r["id"] for r in document["runs"]]))
    methods = {s["method"] for b in document["benchmarks"] for s in b["stretches"]}
    return (
        title,
        Paragraph(text=_summary(document)),
        *(Paragraph(text=_METHODS[m]) for m in methods if len(methods) == 1),
        *_together(document, runs),
        *_table(document["runs"], runs),
        *(block for b in document["benchmarks"] for block in _benchmark(b, runs, tell_method=len(methods) > 1)),
    )


def history_rows(document: Document) -> list[dict[str, Any]]:
    """A row a run and benchmark, for CSV; a step is told with the run that it begins with."""
    runs = {r["id"]: r for r in document["runs"]}
    return [
        _row(b["key"], number, s, point, runs[point["run"]])
        for b in document["benchmarks"]
        for number, s in enumerate(b["stretches"], 1)
        for point in s["points"]
    ]


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """As much of each as tells all of them apart."""
    whole = max(map(len, ids), default=_SHORT)
    length = next((n for n in range(_SHORT, whole) if len({i[:n] for i in ids}) == len(set(ids))), whole)
    return {i: i[:length] for i in ids}


def _row(key: str, stretch: int, s: Document, point: Document, run: Document) -> dict[str, Any]:
    step: Document = next((t for t in s["steps"] if t["after"] == point["run"]), {})
    return {
        "benchmark": key, "run": point["run"],
        **{name: run[name] for name in ("date", "commit", "dirty", "suite", "tool", "machine")},
        "stretch": stretch, "method": s["method"],
        **{name: point[name] for name in ("time_s", "low_s", "high_s", "measured_s", "processes")},
        "step_ratio": step.get("ratio"), "step_low": step.get("low"), "step_high": step.get("high"),
        "step_sure": step.get("sure"),
    }  # fmt: skip


# what is said of all runs


def _summary(document: Document) -> str:
    runs, benchmarks = document["runs"], document["benchmarks"]
    found = [step for b in benchmarks for s in b["stretches"] for step in s["steps"]]
    told = (
        f"{_many(len(runs), 'run')} from {_day(runs[-1])} to {_day(runs[0])}, {_many(len(benchmarks), 'benchmark')}: "
    )
    if not found:
        return told + "no steps."
    slower, unsure = sum(t["ratio"] > 1 for t in found), sum(not t["sure"] for t in found)
    guess = f"; {unsure} of them not beyond doubt" if unsure else ""
    return f"{told}{_many(slower, 'step')} to slower, {_many(len(found) - slower, 'step')} to faster{guess}."


def _together(document: Document, runs: _Runs) -> Iterator[Block]:
    for moved in document["moved_together"]:
        how = f"Nearly all benchmarks moved together, by {_percent(moved['ratio'])}, {runs.at(moved['run'])}: "
        why = "look at the machine, or at what all of them rest on, before the code of each."
        yield Paragraph(text=how + why, tone="warning")


def _table(found: Sequence[Document], runs: _Runs) -> Iterator[Block]:
    """Columns that say the same of every run are a sentence instead, and empty ones nothing."""
    rows = [_cells(r, runs.short[r["id"]]) for r in found]
    alike = [name for name in _REPEATING if len(rows) > 1 and len({row[name] for row in rows}) == 1]
    if alike:
        yield Paragraph(text=f"Of every run: {', '.join(f'{name} {rows[0][name]}' for name in alike)}.")
    shown = [n for n in rows[0] if n not in alike and (n not in _OPTIONAL or any(row[n] for row in rows))]
    columns = tuple(Column(name=n, numeric=n == "processes", whole=n in ("run", "commit")) for n in shown)
    yield Table(columns=columns, rows=tuple(tuple(row[n] for n in shown) for row in rows))


def _cells(r: Document, short: str) -> dict[str, str]:
    return {
        "run": short, "date": _minute(r), "commit": _commit(r), "suite": r["suite"], "tool": r["tool"],
        "processes": str(r["processes"]), "machine": r["machine"], "baselines": ", ".join(r["baselines"]),
        "note": _noted(r),
    }  # fmt: skip


def _noted(run: Document) -> str:
    """The first line; the whole of it is in the JSON."""
    stopped = f"stopped: {run['stopped_by']}" if run["stopped_by"] else ""
    line = next(iter((run["note"] or "").strip().splitlines()), "").strip()
    note = line if len(line) <= _NOTE else line[: _NOTE - 1] + "…"
    return "; ".join(filter(None, (stopped, note)))


# what is said of one benchmark


def _benchmark(b: Document, runs: _Runs, *, tell_method: bool) -> Iterator[Block]:
    """How times were made comparable is said of each stretch only where not all are alike."""
    yield Heading(text=b["key"])
    if not b["stretches"]:
        yield Paragraph(text="No run has a time of it.")
    if len(b["stretches"]) > 1:
        yield Paragraph(text=f"{len(b['stretches'])} stretches that are not comparable with each other, newest first.")
    differing = _differing([s["conditions"] for s in b["stretches"]])
    for s in b["stretches"]:
        under = ", ".join(f"{name} {_or_dash(s['conditions'][name])}" for name in differing)
        notes = (_METHODS[s["method"]],) if tell_method else ()
        yield _series(under[:1].upper() + under[1:], s, notes, runs)


def _differing(conditions: Sequence[Document]) -> tuple[str, ...]:
    """What tells stretches apart; of computers of one name the fingerprint does."""
    names = [n for n in (conditions[0] if conditions else ()) if len({c[n] for c in conditions}) > 1]
    apart = len({c["machine"] for c in conditions}) == len({c["fingerprint"] for c in conditions})
    return tuple(n for n in names if n != "fingerprint" or not apart)


def _series(title: str, s: Document, notes: tuple[str, ...], runs: _Runs) -> Series:
    places = {p["run"]: place for place, p in enumerate(s["points"])}
    return Series(
        title=title,
        unit="s",
        points=tuple(_point(p, runs) for p in s["points"]),
        levels=tuple(_level(level, places, runs) for level in s["levels"]),
        steps=tuple(_step(step, places, runs) for step in s["steps"]),
        bars=_BARS,
        notes=notes,
    )


def _point(p: Document, runs: _Runs) -> Point:
    """One process spans nothing."""
    run = runs.by_id[p["run"]]
    commit = f"commit {_commit(run)}" if run["commit"] else ""
    low, high = (p["low_s"], p["high_s"]) if p["processes"] > 1 else (None, None)
    note = ", ".join(filter(None, (_minute(run), commit, *run["baselines"])))
    return Point(label=runs.short[p["run"]], value=p["time_s"], low=low, high=high, note=note)


def _level(level: Document, places: dict[str, int], runs: _Runs) -> Level:
    first, last = level["first"], level["last"]
    days = f"{_day(runs.by_id[first])} to {_day(runs.by_id[last])}"
    way = f"from run {runs.short[first]} to run {runs.short[last]} ({days})"
    text = f"Drifts by {_percent(level['end_s'] / level['start_s'])} {way}, without a step." if level["drifts"] else ""
    return Level(first=places[first], last=places[last], start=level["start_s"], end=level["end_s"], text=text)


def _step(step: Document, places: dict[str, int], runs: _Runs) -> Step:
    """The interval is of the ratio between the levels on both sides."""
    change = _percent(step["ratio"])
    interval = f"99 % interval {_percent(step['low'])} to {_percent(step['high'])}"
    text = f"{change} {runs.at(step['after'])}; {interval}"
    return Step(after=places[step["after"]], short=change, text=text, up=step["ratio"] > 1, sure=step["sure"])


# words


def _commit(run: Document) -> str:
    """With + where files differed from it."""
    return f"{run['commit'][:_COMMIT]}{'+' if run['dirty'] else ''}" if run["commit"] else "–"


def _percent(ratio: float) -> str:
    share = 100 * (ratio - 1)
    return f"{share:+.0f} %" if abs(share) >= 9.95 else f"{share:+.1f} %"


def _minute(run: Document) -> str:
    return str(run["date"][:16]).replace("T", " ")


def _day(run: Document) -> str:
    return str(run["date"][:10])


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _or_dash(value: object) -> str:
    return "–" if value is None else str(value)
