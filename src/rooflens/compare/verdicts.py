"""Two runs of benchmarks in, a verdict a row out, and what can be said of all rows together."""

from dataclasses import dataclass

from rooflens.benches.bench_run import BenchRow, BenchRun

FASTER, SLOWER, SAME, INCONCLUSIVE, NOT_COMPARABLE = "faster", "slower", "same", "inconclusive", "not comparable"


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
