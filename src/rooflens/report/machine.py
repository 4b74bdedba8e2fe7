"""Ceilings in, their document out (`rooflens.machine/1`): with raw samples, so that nothing has to be measured again."""

from dataclasses import asdict
from typing import Any

from rooflens.benches.ceilings import BandwidthPoint, Ceilings, GemmPoint, LevelCeiling, PeakCeiling
from rooflens.benches.sampling import Samples
from rooflens.report.samples import rejected_document
from rooflens.resultfile import MACHINE_SCHEMA
from rooflens.version import __version__


def machine_document(found: Ceilings, chip_file: str | None) -> dict[str, Any]:
    return {
        "schema": MACHINE_SCHEMA,
        "rooflens_version": __version__,
        "fingerprint": found.fingerprint,
        "date": found.date,
        "quick": found.quick,
        "device": found.device,
        "name": found.name,
        "kind": "gpu" if found.device == "cuda" else "cpu",
        "measured": True,
        "facts": _facts(found),
        "threads": found.threads,
        "cpus": list(found.cpus),
        "memory": [_level(c) for c in found.levels],
        "peak_flop_per_s": _by_dtype(found.peaks, "flop_per_s"),
        "one_core_peak_flop_per_s": _by_dtype(found.peaks, "one_core_flop_per_s"),
        "peaks": [_peak(p) for p in found.peaks],
        "launch_s": {"eager": found.launch.eager_s, "graph": found.launch.graph_s},
        "sweep": [_point(p) for p in found.sweep],
        "gemm": [_product(p) for p in found.gemm],
        "versions": dict(found.versions),
        "notes": list(found.notes),
        "chip_file": chip_file,
    }


def _facts(found: Ceilings) -> dict[str, Any]:
    """Of the computer, and of the device where one was measured."""
    host = asdict(found.host)
    host |= {"usable_cpus": list(found.host.usable_cpus), "caches": list(host["caches"])}
    host["isa"] = None if found.host.isa is None else list(found.host.isa)
    device = None if found.cuda is None else asdict(found.cuda)
    return {**host, "device": device, "clocks": [asdict(c) for c in found.clocks]}


def _level(c: LevelCeiling) -> dict[str, Any]:
    return {
        "level": c.level,
        "bandwidth_bytes_per_s": c.bandwidth_bytes_per_s,
        "capacity_bytes": c.capacity_bytes,
        "lower_bound": c.lower_bound,
        "spread": c.spread,
        "one_core_bandwidth_bytes_per_s": c.one_core_bandwidth_bytes_per_s,
        "kernel": c.kernel,
        "why": c.why or None,
    }


def _by_dtype(peaks: tuple[PeakCeiling, ...], field: str) -> dict[str, dict[str, float | None]]:
    """Dtypes that no unit here was found to do are left out."""
    dtypes = dict.fromkeys(p.dtype for p in peaks if p.flop_per_s is not None)
    return {d: {p.unit: getattr(p, field) for p in sorted(peaks, key=_unit) if p.dtype == d} for d in dtypes}


def _unit(peak: PeakCeiling) -> str:
    return peak.unit


def _peak(p: PeakCeiling) -> dict[str, Any]:
    return {
        "dtype": p.dtype,
        "unit": p.unit,
        "flop_per_s": p.flop_per_s,
        "one_core_flop_per_s": p.one_core_flop_per_s,
        "spread": p.spread,
        "how": p.how or None,
        "why": p.why or None,
        "absent": p.absent,
    }


def _point(p: BandwidthPoint) -> dict[str, Any]:
    return {
        "kernel": p.kernel,
        "bytes": p.bytes,
        "threads": p.threads,
        "bandwidth_bytes_per_s": p.bandwidth_bytes_per_s,
        **_readings(p.samples),
    }


def _product(p: GemmPoint) -> dict[str, Any]:
    return {
        "dtype": p.dtype,
        "library": p.library,
        "m": p.m,
        "k": p.k,
        "n": p.n,
        "threads": p.threads,
        "flop_per_s": p.flop_per_s,
        **_readings(p.samples),
    }


def _readings(samples: Samples) -> dict[str, Any]:
    return {
        "times_s": list(samples.times_s),
        "warmups_s": list(samples.warmups_s),
        "rejected": rejected_document(samples),
        "switches": samples.switches,
    }
