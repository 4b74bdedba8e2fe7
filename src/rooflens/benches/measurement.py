"""What one run of `measure` found: raw times, call by call and of the whole, and what they were taken on."""

from collections.abc import Mapping
from dataclasses import dataclass

from rooflens.benches.host import HostFacts
from rooflens.benches.isolated import Timed
from rooflens.benches.profiled import Spent
from rooflens.benches.sampling import Samples
from rooflens.frontends.pytorch.calls import Step
from rooflens.graph.records import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """One recorded call in one pass. `in_situ`: what each run of the whole model spent on it."""

    step: Step
    pass_: str
    alone: Timed
    in_situ: tuple[Spent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTime:
    """The model as its user runs it. `pass_`: forward, or step (forward and backward)."""

    pass_: str
    status: str
    reason: str = ""
    samples: Samples | None = None
    peak_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A call in compiled code. `numbers`: the compiler's kernels that it runs, none where the profiler saw what no schedule
    names. `what`: the ops that loops compute, or the call of a library with what else it does."""

    name: str
    numbers: frozenset[int]
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTimes:
    """One run of compiled code: what each kernel took, None where it was not seen; why the run does not count."""

    times_s: tuple[float | None, ...]
    rejected: str = ""
    switches: int = 0

    def of(self, shares: Mapping[int, float]) -> float | None:
        found = [(self.times_s[place], share) for place, share in shares.items()]
        return sum(t * share for t, share in found if t is not None) if all(t is not None for t, _ in found) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRun:
    """The forward pass as a compiler made it. `made_of`: per op of `graph`, the numbers of the kernels that compute it.
    `frozen`: weights are constants in it. Runs are in the order they were made."""

    compiler: str
    frozen: bool
    compile_s: float
    graph: Graph
    made_of: tuple[frozenset[int], ...]
    whole: "WholeTime"
    kernels: tuple[Kernel, ...] = ()
    warmups: tuple[KernelTimes, ...] = ()
    runs: tuple[KernelTimes, ...] = ()

    def samples_of(self, shares: Mapping[int, float]) -> Samples | None:
        """Of such shares of kernels, by their place, in every run; None where a run has not shown one of them."""
        times = [(run, run.of(shares)) for run in self.runs]
        seen = [(run, time_s) for run, time_s in times if time_s is not None]
        if not shares or not seen or len(seen) < len(times):
            return None
        return Samples(
            times_s=tuple(time_s for run, time_s in seen if not run.rejected),
            warmups_s=tuple(time_s for time_s in (run.of(shares) for run in self.warmups) if time_s is not None),
            rejected=tuple((run.rejected, time_s) for run, time_s in seen if run.rejected),
            switches=sum(run.switches for run in self.runs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """On what, when and how."""

    device: str
    device_name: str
    facts: HostFacts
    date: str
    threads: int
    pinned_cpus: tuple[int, ...]
    switches: tuple[tuple[str, str | int | bool], ...]
    versions: tuple[tuple[str, str], ...]
    load_before: float | None
    load_after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    layers: tuple[LayerTime, ...]
    wholes: tuple[WholeTime, ...]
    taken: Taken
    compiled: CompiledRun | None = None
    stopped_by: str = ""
