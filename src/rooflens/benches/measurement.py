"""What one run of `measure` found: raw times, call by call and of the whole, and what they were taken on."""

from dataclasses import dataclass

from rooflens.benches.host import HostFacts
from rooflens.benches.isolated import Timed
from rooflens.benches.profiled import Spent
from rooflens.benches.sampling import Samples
from rooflens.frontends.pytorch.calls import Step


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
    stopped_by: str = ""
