"""Named runs of a suite and their comparisons in, the document of a report out (`rooflens.bench/1`, kind report).

What stands out is taken from verdicts alone: a row is a highlight where its verdict is faster, of note where it is slower,
and neither where the times merely look so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rooflens.benches.bench_run import BenchRun
from rooflens.compare.verdicts import FASTER, INCONCLUSIVE, NOT_COMPARABLE, SLOWER, Comparison
from rooflens.report.bench import bench_document, comparison_document, run_summary
from rooflens.report.ratios import claim

BEFORE, AFTER, CURRENT, PREVIOUS = "before", "after", "current", "previous"
ROLES = (BEFORE, AFTER, CURRENT, PREVIOUS)
PAIRS = ((BEFORE, AFTER), (AFTER, CURRENT), (PREVIOUS, CURRENT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A run of the report: its role, what the user calls it, or why there is none."""

    role: str
    name: str
    run: BenchRun | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One run held against another, or why it was not."""

    base: str
    new: str
    found: Comparison | None = None
    why_not: str = ""


def report_document(suite: str, parts: tuple[Part, ...], held: tuple[Held, ...]) -> dict[str, Any]:
    pairs = [_held(h) for h in held]
    judged = [(pair, row) for pair in pairs if pair["comparison"] for row in pair["comparison"]["rows"]]
    current = next((p.run for p in parts if p.role == CURRENT), None)
    return {
        **bench_document("report"),
        "suite": suite,
        "runs": [_part(p) for p in parts],
        "configurations": _configurations(parts),
        "comparisons": pairs,
        "highlights": [_claimed(pair, row) for pair, row in _best_first(judged) if row["verdict"] == FASTER],
        "areas_of_note": [_claimed(pair, row) for pair, row in judged if row["verdict"] == SLOWER],
        "undecided": [
            _undecided(pair, row) for pair, row in judged if row["verdict"] in (INCONCLUSIVE, NOT_COMPARABLE)
        ],
        "note": current.note if current else None,
    }


def _best_first(judged: list[tuple[dict[str, Any], dict[str, Any]]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of runs in their order, the rows of each the other way round: a comparison begins with the worst."""
    for _, rows in groupby(judged, key=lambda found: (found[0]["base"], found[0]["new"])):
        yield from reversed(list(rows))


def _part(part: Part) -> dict[str, Any]:
    run = None if part.run is None else run_summary(part.run)
    return {"role": part.role, "name": part.name, "why_not": part.why_not, "run": run}


def _held(held: Held) -> dict[str, Any]:
    found = None if held.found is None else comparison_document(held.found)
    return {"base": held.base, "new": held.new, "why_not": held.why_not, "comparison": found}


def _configurations(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    """What each benchmark is, once, unless runs differ in it: then once for each, with the runs that had it."""
    found: dict[tuple[Any, ...], dict[str, list[str]]] = {}
    for place, part in enumerate(parts):
        again = any(part.run == p.run for p in parts[:place])
        for row in part.run.rows if part.run and not again else ():
            b = row.benchmark
            at = found.setdefault((b.name, b.source, b.shape), {"passes": [], "runs": []})
            at["passes"] += [b.pass_] if b.pass_ and b.pass_ not in at["passes"] else []
            at["runs"] += [part.role] if part.role not in at["runs"] else []
    order = list(dict.fromkeys(name for name, _, _ in found))
    rows = ({"name": name, "source": source, "shape": shape, **at} for (name, source, shape), at in found.items())
    return sorted(rows, key=lambda row: order.index(row["name"]))


def _claimed(pair: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Where all rows moved, a row is faster or slower beside them, and that is what is said of it."""
    beside = pair["comparison"]["moved"] is not None
    low, high = (row["beside_low"], row["beside_high"]) if beside else (row["low"], row["high"])
    words = claim(low, high) + (", beside what all rows moved by" if beside else "")
    return {**_of(pair, row), "low": low, "high": high, "claim": words}


def _undecided(pair: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    return {**_of(pair, row), **{name: row[name] for name in ("verdict", "why", "new_status", "ratio", "low", "high")}}


def _of(pair: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "base": pair["base"], "new": pair["new"]}


def pairs_of(parts: tuple[Part, ...]) -> Iterator[tuple[Part, Part]]:
    """Which runs a report holds against each other: none against itself, and no two of them twice."""
    of = {p.role: p for p in parts if p.run}
    seen: list[tuple[BenchRun | None, BenchRun | None]] = []
    for base, new in PAIRS if AFTER in of else ((BEFORE, CURRENT), *PAIRS):
        if base in of and new in of:
            runs = of[base].run, of[new].run
            if runs[0] != runs[1] and runs not in seen:
                seen.append(runs)
                yield of[base], of[new]
