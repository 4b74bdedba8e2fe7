"""The system's own words in, the facts of this computer out: what a measurement was taken on.

From /proc, /sys, the scheduler and the process's cgroups; never guessed. What cannot be read is None, and a container's
limits count: work is spread over the CPUs that this process may use, not over those that the board has.
"""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from rooflens.benches.cgroup import limits
from rooflens.hardware.identity import ROOT, Identity, cpuinfo, identity, meminfo, text

# The instructions that decide how fast a network can run here, as /proc/cpuinfo names them and as we do.
ISA = (
    "avx2", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx_vnni", "amx_tile", "amx_bf16", "amx_fp16",
    "amx_int8", "neon", "sve", "sve2", "i8mm", "bf16", "sme",
)  # fmt: skip
_NAMES = {"asimd": "neon", "svei8mm": "i8mm", "svebf16": "bf16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFacts:
    """One kind of cache; `usable_instances` are those that a CPU of this process has."""

    level: int
    bytes: int
    usable_instances: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """`usable_cpus` are those that the scheduler may give this process; `cpu_limit` is how much of them its cgroups
    allow. `memory_available_bytes` respects both the system and the limit."""

    cpu_model: str | None
    architecture: str
    physical_cores: int | None
    usable_cores: int | None
    usable_cpus: tuple[int, ...]
    cpu_limit: float | None
    caches: tuple[CacheFacts, ...]
    memory_bytes: int | None
    memory_limit_bytes: int | None
    memory_available_bytes: int | None
    isa: tuple[str, ...] | None
    numa_nodes: int | None
    kernel: str | None
    hypervisor: bool | None
    load: float | None

    @property
    def threads(self) -> int:
        """Threads that have a core each: two on one core share its units, and more than the limit are put to sleep."""
        cores = self.usable_cores or len(self.usable_cpus)
        return max(1, min(cores, int(self.cpu_limit)) if self.cpu_limit is not None else cores)

    def cache_bytes(self, level: int) -> int | None:
        """All usable instances of a level together."""
        return sum(c.bytes * c.usable_instances for c in self.caches if c.level == level) or None

    @property
    def last_cache_bytes(self) -> int | None:
        return self.cache_bytes(max((c.level for c in self.caches), default=0))


def host_facts(root: Path = ROOT, cpus: frozenset[int] | None = None) -> HostFacts:
    """`cpus` instead of those of this process, and another root instead of this system's, for tests."""
    usable = _affinity() if cpus is None else cpus
    who, limit, fields, memory = identity(root), limits(root), cpuinfo(root), meminfo(root)
    available = [b for b in (memory.get("MemAvailable"), limit.memory_free_bytes) if b is not None]
    return HostFacts(
        cpu_model=who.cpu_model,
        architecture=platform.machine(),
        physical_cores=len(who.cores) if who.cores else None,
        usable_cores=sum(bool(c & usable) for c in who.cores) if who.cores else None,
        usable_cpus=tuple(sorted(usable)),
        cpu_limit=limit.cpus,
        caches=_caches(who, usable),
        memory_bytes=who.memory_bytes,
        memory_limit_bytes=limit.memory_bytes,
        memory_available_bytes=min(available, default=None),
        isa=_isa(fields),
        numa_nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        kernel=text(root / "proc/sys/kernel/osrelease"),
        hypervisor=_hypervisor(root, fields),
        load=load(root),
    )


def one_cpu_per_core(facts: HostFacts, root: Path = ROOT) -> tuple[int, ...]:
    """The CPUs to pin to: one of each usable core, as many as there are threads to run."""
    usable = frozenset(facts.usable_cpus)
    cores = identity(root).cores or tuple(frozenset({n}) for n in facts.usable_cpus)
    return tuple(sorted(min(c & usable) for c in cores if c & usable))[: facts.threads]


def load(root: Path = ROOT) -> float | None:
    """Average number of running tasks over the last minute."""
    first = (text(root / "proc/loadavg") or "").split(" ")[0]
    return float(first) if first.replace(".", "", 1).isdecimal() else None


def _affinity() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _caches(who: Identity, usable: frozenset[int]) -> tuple[CacheFacts, ...]:
    found = (CacheFacts(level=c.level, bytes=c.bytes, usable_instances=c.usable(usable)) for c in who.caches)
    return tuple(c for c in found if c.usable_instances)


def _isa(fields: dict[str, str]) -> tuple[str, ...] | None:
    shown = fields.get("flags") or fields.get("Features")
    if shown is None:
        return None
    found = {_NAMES.get(flag, flag) for flag in shown.split()}
    return tuple(name for name in ISA if name in found)


def _hypervisor(root: Path, fields: dict[str, str]) -> bool | None:
    """x86 says so in a flag; elsewhere only a file that is there tells."""
    if "flags" in fields:
        return "hypervisor" in fields["flags"].split()
    return True if text(root / "sys/hypervisor/type") else None
