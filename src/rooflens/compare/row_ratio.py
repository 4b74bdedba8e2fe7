"""Two rows of one benchmark in, the interval of their ratio out, freed of what the machine did as far as can be told.

Interleaved runs are held against each other pair by pair. Runs of different times are held against the pace of the machine
in either, and that has several: a row may lie anywhere between the piece of reference work that changed least and the one
that changed most, so that the interval is stretched by both.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean, median

from rooflens.benches.bench_run import BenchRow, BenchRun, ProcessTimes
from rooflens.compare.bootstrap import Interval, paired_interval, ratio_interval
from rooflens.compare.states import Seconds, processes_of, undisturbed, usual_state

INTERLEAVED, NORMALISED, AS_MEASURED = "interleaved", "normalised", "as measured"
Processes = tuple[ProcessTimes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """`usual`: the machine's usual state in both runs together."""

    method: str
    usual: Seconds
    confidence: float


def terms_of(base: BenchRun, new: BenchRun, confidence: float) -> Terms:
    return Terms(method=_method(base, new), usual=usual_state(processes_of(base, new)), confidence=confidence)


def _method(base: BenchRun, new: BenchRun) -> str:
    if base.session is not None and base.session == new.session:
        return INTERLEAVED
    processes = processes_of(base, new)
    return NORMALISED if processes and all(p.references_s for p in processes) else AS_MEASURED


def evidence(base: BenchRow, new: BenchRow, terms: Terms) -> tuple[Processes, Processes]:
    """Processes that met the machine in its usual state; of interleaved ones the pairs that both did."""
    return _sides(undisturbed(base.processes, terms.usual), undisturbed(new.processes, terms.usual), terms.method)


def _sides(base: Processes, new: Processes, method: str) -> tuple[Processes, Processes]:
    a, b = ({p.process: p for p in side if p.time_s} for side in (base, new))
    if method == INTERLEAVED:
        both = sorted(a.keys() & b.keys())
        return tuple(a[n] for n in both), tuple(b[n] for n in both)
    return tuple(a.values()), tuple(b.values())


def all_pairs(base: BenchRow, new: BenchRow) -> tuple[Processes, Processes]:
    """Of interleaved runs, whatever the machine did: it did it to both of a pair."""
    return _sides(base.processes, new.processes, INTERLEAVED)


def ratio_of(base: BenchRow, new: BenchRow, method: str) -> float | None:
    """Of all processes: what was seen, whether or not it is evidence."""
    a, b = _sides(base.processes, new.processes, method)
    if not a or not b:
        return None
    pairs = zip(_times(a), _times(b), strict=False)
    ratio = median(y / x for x, y in pairs) if method == INTERLEAVED else median(_times(b)) / median(_times(a))
    return ratio / geometric_mean(_paces(a, b)[:2]) if method == NORMALISED else ratio


def interval(base: Processes, new: Processes, terms: Terms) -> Interval:
    a, b = _times(base), _times(new)
    if terms.method == INTERLEAVED:
        return paired_interval(a, b, terms.confidence)
    found = ratio_interval(a, b, terms.confidence)
    if terms.method == AS_MEASURED:
        return found
    paces = _paces(base, new)
    middle = found.middle / geometric_mean(paces[:2])
    low, high = found.low / max(paces), found.high / min(paces)
    return Interval(middle=min(max(middle, low), high), low=low, high=high)


def _times(side: Processes) -> list[float]:
    return [p.time_s for p in side if p.time_s]


def _paces(base: Processes, new: Processes) -> list[float]:
    """How much longer each piece of the reference work took in the new run."""
    return [b / a for a, b in zip(_middles(base), _middles(new), strict=True)]


def _middles(side: Iterable[ProcessTimes]) -> list[float]:
    return [median(part) for part in zip(*(p.references_s for p in side), strict=True)]
