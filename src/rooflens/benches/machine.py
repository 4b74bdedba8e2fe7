"""A device's name in, its ceilings out with everything that they were measured on: what `rooflens machine` runs."""

import importlib.metadata
import platform
import time
from datetime import UTC, datetime
from importlib.util import find_spec

from rooflens.benches import machine_cpu, machine_cuda
from rooflens.benches.ceilings import Ceilings, rejected_share
from rooflens.benches.gpu import cuda_present, device_facts
from rooflens.benches.host import HostFacts, host_facts, load, one_cpu_per_core
from rooflens.benches.rounds import Tick
from rooflens.benches.sampling import Samples
from rooflens.errors import HardwareError, SyntaxFault, needs_extra
from rooflens.hardware.identity import fingerprint, identity
from rooflens.version import __version__

DEVICES = ("cpu", "cuda")
BUSY = 0.5  # running tasks a core before we start, from where on ceilings are not what an idle machine has
MANY_REJECTED = 0.1


def checked_device(device: str | None) -> str:
    """Which one to measure; one line where it cannot be, before anything is."""
    if device not in (None, *DEVICES):
        raise SyntaxFault(f"--device {device}: use {' or '.join(DEVICES)}")
    _importable("numpy", "torch")
    present = find_spec("torch") is not None and cuda_present()
    if device == "cuda" and not present:
        _importable("torch", "torch")
        raise HardwareError("--device cuda: torch sees no CUDA device here: use --device cpu, or a machine with one")
    return device or ("cuda" if present else "cpu")


def _importable(package: str, extra: str) -> None:
    if find_spec(package) is None:
        raise needs_extra(package, extra)


def cpu_ceilings(plan: machine_cpu.Plan, tick: Tick, *, quick: bool) -> Ceilings:
    facts, date = host_facts(), _now()
    cpus = one_cpu_per_core(facts)
    found = machine_cpu.read_cpu(cpus, facts, plan, tick)
    everything = (*(p.samples for p in found.sweep), *(p.samples for p in found.gemm))
    return Ceilings(
        device="cpu",
        name=facts.cpu_model or f"{platform.machine()} CPU",
        date=date,
        quick=quick,
        fingerprint=fingerprint(identity()),
        host=facts,
        cuda=None,
        clocks=(),
        threads=len(cpus),
        cpus=cpus,
        levels=machine_cpu.level_ceilings(found.sweep, cpus, facts),
        peaks=machine_cpu.peak_ceilings(found.gemm, facts.isa),
        launch=machine_cpu.launch_of(found.launch),
        sweep=found.sweep,
        gemm=found.gemm,
        versions=_versions(),
        notes=(*_cpu_notes(facts, len(cpus)), *_quality(everything)),
    )


def cuda_ceilings(plan: machine_cuda.Plan, tick: Tick, *, quick: bool) -> Ceilings:
    host, facts, date = host_facts(), device_facts(), _now()
    found = machine_cuda.read_cuda(facts, plan, tick)
    everything = (*(p.samples for p in found.sweep), *(p.samples for p in found.gemm))
    return Ceilings(
        device="cuda",
        name=facts.name,
        date=date,
        quick=quick,
        fingerprint=fingerprint(identity(), (facts.name,)),
        host=host,
        cuda=facts,
        clocks=found.clocks,
        threads=1,
        cpus=host.usable_cpus,
        levels=machine_cuda.level_ceilings(found.sweep, facts),
        peaks=machine_cuda.peak_ceilings(found, facts),
        launch=found.launch,
        sweep=found.sweep,
        gemm=found.gemm,
        versions=_versions(),
        notes=(*_cuda_notes(), *_quality(everything)),
    )


def measured(device: str, *, quick: bool, tick: Tick) -> Ceilings:
    if device == "cuda":
        return cuda_ceilings(machine_cuda.QUICK if quick else machine_cuda.FULL, tick, quick=quick)
    return cpu_ceilings(machine_cpu.QUICK if quick else machine_cpu.FULL, tick, quick=quick)


def _now() -> str:
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _versions() -> tuple[tuple[str, str], ...]:
    found = [("rooflens", __version__), ("python", platform.python_version())]
    for package in ("torch", "numpy", "nvidia-ml-py"):
        try:
            found.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return tuple(found)


def _cpu_notes(facts: HostFacts, threads: int) -> tuple[str, ...]:
    notes = []
    if facts.cpu_limit is not None:
        notes.append(
            f"this process may use {facts.cpu_limit:g} CPUs of {len(facts.usable_cpus)} (its cgroup): {threads} ran"
        )
    now = load() or 0.0
    if facts.load is not None and facts.load > BUSY * threads:
        notes.append(
            f"{facts.load:g} tasks were running when this began ({now:g} at its end, ours among them): "
            "ceilings of a busy machine are low, measure again when it is idle"
        )
    if facts.hypervisor:
        notes.append("a virtual machine: caches and memory are shared with others that cannot be seen from here")
    if not facts.caches:
        notes.append("the system does not tell how large its caches are: only memory has a bandwidth")
    return tuple(notes)


def _cuda_notes() -> tuple[str, ...]:
    if any(name == "nvidia-ml-py" for name, _ in _versions()):
        return ()
    return ("clocks and power are unknown: pip install nvidia-ml-py",)


def _quality(samples: tuple[Samples, ...]) -> tuple[str, ...]:
    share = rejected_share(samples)
    if share <= MANY_REJECTED:
        return ()
    return (f"{share:.0%} of the readings were disturbed by other processes and did not count",)
