"""Two runs of benchmarks in, a verdict a row out, and what can be said of all rows together.

A row is `faster` or `slower` where the interval of its ratio lies wholly beyond the threshold, `same` where it lies wholly
within, and `inconclusive` otherwise. The interval is of processes, never of samples, and the wider the more rows there are:
of many rows one would be far out by chance.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from rooflens.benches.bench_run import OK, BenchRow, BenchRun
from rooflens.compare.bootstrap import Interval
from rooflens.compare.row_ratio import (
    INTERLEAVED,
    Terms,
    all_pairs,
    evidence,
    interval,
    ratio_of,
    terms_of,
)
from rooflens.errors import MismatchError

FASTER, SLOWER, SAME, INCONCLUSIVE, NOT_COMPARABLE = "faster", "slower", "same", "inconclusive", "not comparable"
VERDICTS = (SLOWER, FASTER, INCONCLUSIVE, NOT_COMPARABLE, SAME)
LEAST_PROCESSES = 5
THRESHOLD = 0.05
CONFIDENCE = 0.99
PLAIN = 0.5  # of a change in turns: more than a disturbed machine does to one of a pair alone
TOGETHER_ROWS = 4  # fewer may well move together by themselves
TOGETHER_SHARE = 0.9  # of the rows
TOGETHER_SPREAD = 1.25  # a machine that slows down does not slow every kernel by the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`ratio` is new over base, freed of the machine as far as `Comparison.method` says, with its interval; None where
    nothing can be said. `why` is empty where the interval speaks for itself."""

    base: BenchRow
    new: BenchRow
    verdict: str
    threshold: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""

    @property
    def key(self) -> str:
        return self.new.benchmark.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`method`: interleaved | normalised | as measured. `moved`: the factor by which all rows moved together, None where
    they did not. `renamed`: old and new key of rows that do the same. `mismatches`: conditions that differ, allowed by
    the user."""

    base: BenchRun
    new: BenchRun
    verdicts: tuple[Verdict, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    method: str
    confidence: float
    moved: float | None = None
    mismatches: tuple[str, ...] = ()

    def count(self, verdict: str) -> int:
        return sum(v.verdict == verdict for v in self.verdicts)


def compared(
    base: BenchRun, new: BenchRun, *, threshold: float | None = None, allow_mismatch: bool = False
) -> Comparison:
    """`threshold` instead of what each benchmark says of itself."""
    mismatches = tuple(_mismatches(base, new))
    if mismatches and not allow_mismatch:
        raise MismatchError(
            f"runs {base.id} and {new.id} cannot be compared: {'; '.join(mismatches)}: compare runs of one machine and one "
            "torch, or allow it with --allow-mismatch"
        )
    pairs = [(old, row) for row in new.rows if (old := base.row(row.benchmark.key)) is not None]
    terms = terms_of(base, new, 1 - (1 - CONFIDENCE) / max(1, len(pairs)))
    ratios = [r for pair in pairs if (r := ratio_of(*pair, terms.method)) is not None and not _apart(*pair)]
    moved = together(ratios) if terms.method != INTERLEAVED and not mismatches else None
    verdicts = (_verdict(*pair, terms, threshold, moved) for pair in pairs)
    labels = (*mismatches, *_threads(base, new))
    added, removed, renamed = _unmatched(base, new)
    return Comparison(
        base=base,
        new=new,
        verdicts=tuple(_labelled(v, labels) for v in verdicts),
        added=added,
        removed=removed,
        renamed=renamed,
        method=terms.method,
        confidence=terms.confidence,
        moved=moved,
        mismatches=mismatches,
    )


def together(ratios: Iterable[float], threshold: float = THRESHOLD) -> float | None:
    """The factor by which nearly all rows moved the same way; None where they did not."""
    found = sorted(ratios)
    if len(found) < TOGETHER_ROWS:
        return None
    middle = median(found)
    if abs(math.log(middle)) <= math.log1p(threshold):
        return None
    near = [r for r in found if 1 / TOGETHER_SPREAD <= r / middle <= TOGETHER_SPREAD and (r > 1) == (middle > 1)]
    return middle if len(near) >= TOGETHER_SHARE * len(found) else None


# which runs, and which rows, can be held against each other


def _mismatches(base: BenchRun, new: BenchRun) -> Iterable[str]:
    a, b = base.machine, new.machine
    if a.fingerprint != b.fingerprint:
        yield f"another machine ({a.name}, {a.fingerprint}, and {b.name}, {b.fingerprint})"
    if (a.device, a.device_name) != (b.device, b.device_name) and a.fingerprint == b.fingerprint:
        yield f"another device ({a.device_name} and {b.device_name})"
    if base.tool != new.tool:
        yield f"another tool ({base.tool} and {new.tool})"
    old, found = dict(base.versions), dict(new.versions)
    for name in ("torch", "cuda"):
        if old.get(name) != found.get(name):
            yield f"another {name} ({old.get(name, 'none')} and {found.get(name, 'none')})"


def _threads(base: BenchRun, new: BenchRun) -> Iterable[str]:
    a, b = base.machine.threads, new.machine.threads
    if a is not None and b is not None and a != b:
        yield f"another number of threads ({a} and {b})"


def _unmatched(base: BenchRun, new: BenchRun) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Added, removed and renamed: what does the same under another name, where just one row does it."""
    gone = [r for r in base.rows if new.row(r.benchmark.key) is None]
    come = [r for r in new.rows if base.row(r.benchmark.key) is None]
    renamed = tuple(
        (old.benchmark.key, row.benchmark.key)
        for row in come
        for old in gone
        if _does(old) == _does(row) is not None
        and sum(_does(r) == _does(old) for r in gone) == sum(_does(r) == _does(old) for r in come) == 1
    )
    names = {name for pair in renamed for name in pair}
    added = tuple(k for r in come if (k := r.benchmark.key) not in names)
    return added, tuple(k for r in gone if (k := r.benchmark.key) not in names), renamed


def _does(row: BenchRow) -> tuple[str, ...] | None:
    """What a row does, whatever it is called; None where only its name says so."""
    b = row.benchmark
    return (b.source, b.shape, b.pass_) if b.source and b.shape and b.source != b.name else None


def _apart(base: BenchRow, new: BenchRow) -> str:
    """Why two rows of one name are not the same benchmark; empty where they are."""
    for row, which in ((base, "base"), (new, "new")):
        if row.status != OK:
            return f"{which}: {row.status}" + (f" ({row.reason})" if row.reason else "")
    a, b = base.benchmark, new.benchmark
    if a.shape is not None and b.shape is not None and a.shape != b.shape:
        return f"another shape: {a.shape}, now {b.shape}"
    return ""


# verdicts


def _verdict(base: BenchRow, new: BenchRow, terms: Terms, threshold: float | None, moved: float | None) -> Verdict:
    limit = threshold or new.benchmark.threshold or base.benchmark.threshold or THRESHOLD
    apart = _apart(base, new)
    if apart:
        return Verdict(base=base, new=new, verdict=NOT_COMPARABLE, threshold=limit, why=apart)
    a, b = evidence(base, new, terms)
    if min(len(a), len(b)) < LEAST_PROCESSES:
        plain = _plain(base, new, terms, limit) if terms.method == INTERLEAVED else None
        if plain is not None:
            return plain
        ratio, why = ratio_of(base, new, terms.method), _few(min(len(a), len(b)), base, new)
        return Verdict(base=base, new=new, verdict=INCONCLUSIVE, threshold=limit, ratio=ratio, why=why)
    found = interval(a, b, terms)
    verdict, why = _judged(found, limit) if moved is None else _judged_beside(found, moved)
    return Verdict(
        base=base,
        new=new,
        verdict=verdict,
        threshold=limit,
        ratio=found.middle,
        low=found.low,
        high=found.high,
        why=why,
    )


def _plain(base: BenchRow, new: BenchRow, terms: Terms, limit: float) -> Verdict | None:
    """What is so large that a disturbed machine cannot hide it, as long as it disturbed both of each pair."""
    a, b = all_pairs(base, new)
    if len(a) < LEAST_PROCESSES:
        return None
    found = interval(a, b, terms)
    verdict, _ = _judged(found, max(limit, PLAIN))
    if verdict not in (SLOWER, FASTER):
        return None
    return Verdict(
        base=base, new=new, verdict=verdict, threshold=limit, ratio=found.middle, low=found.low, high=found.high,
        why="although the machine was disturbed",
    )  # fmt: skip


def _few(count: int, base: BenchRow, new: BenchRow) -> str:
    """Which of two reasons it is: nobody ran more, or the machine was not itself."""
    ran = min(len(base.times_s), len(new.times_s))
    if ran >= LEAST_PROCESSES:
        return f"the machine was disturbed: {count} of {ran} processes count, and {LEAST_PROCESSES} are needed"
    return f"{ran} process{'es' * (ran != 1)} on one side: {LEAST_PROCESSES} are needed for a verdict"


def _judged(found: Interval, limit: float) -> tuple[str, str]:
    """Beyond the threshold is as far to one side as to the other: 1.05 times the time, or 1 / 1.05 of it."""
    if found.low > 1 + limit:
        return SLOWER, ""
    if found.high < 1 / (1 + limit):
        return FASTER, ""
    if 1 / (1 + limit) <= found.low and found.high <= 1 + limit:
        return SAME, ""
    return INCONCLUSIVE, ""


def _judged_beside(found: Interval, moved: float) -> tuple[str, str]:
    """Where all rows moved, only one that went quite another way says something of itself."""
    verdict, _ = _judged(
        Interval(middle=found.middle / moved, low=found.low / moved, high=found.high / moved), TOGETHER_SPREAD - 1
    )
    if verdict in (SLOWER, FASTER):
        return verdict, "beside what all rows moved by"
    return INCONCLUSIVE, "moved with all other rows"


def _labelled(verdict: Verdict, labels: tuple[str, ...]) -> Verdict:
    """The ratio is shown, and nothing is concluded from it."""
    if not labels or verdict.verdict == NOT_COMPARABLE:
        return verdict
    return Verdict(
        base=verdict.base, new=verdict.new, verdict=NOT_COMPARABLE, threshold=verdict.threshold, ratio=verdict.ratio,
        low=verdict.low, high=verdict.high, why="; ".join(labels),
    )  # fmt: skip
