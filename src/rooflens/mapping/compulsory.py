"""Partition and Hardware in, Mapping out: the mapper that assumes compulsory traffic and the published peak.

It answers one question per group: which unit of this chip does the work, at which rate, behind which memory? Rates that
the vendor does not publish stay None, and so does every time that needs them.
"""

from dataclasses import dataclass
from typing import NamedTuple

from rooflens.errors import DtypeError
from rooflens.fusion.partition import Group, Partition
from rooflens.hardware.records import Hardware

# A vector unit without a rate of its own for a narrow type computes in the next wider one that it has.
_WIDER = {
    "int4": ("int8", "fp16", "fp32"),
    "fp4": ("fp8", "fp16", "fp32"),
    "int8": ("int8", "fp16", "bf16", "fp32"),
    "fp8": ("fp16", "bf16", "fp32"),
    "bf16": ("bf16", "fp32"),
    "fp16": ("fp16", "fp32"),
    "tf32": ("fp32",),
}
_NEVER_ASKED = ("fp64", "fp4", "int4")  # a chip has peaks for them, --dtype does not take them


class Ceiling(NamedTuple):
    """What one group can reach: the unit that does the work and its rate, None where unpublished. A named tuple, because
    estimates are looked up by it."""

    unit: str
    dtype: str
    flop_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    partition: Partition
    hardware: Hardware
    mapper: str
    ceilings: tuple[Ceiling, ...]  # one per group: of the unit that does its main work
    parts: tuple[tuple[tuple[Ceiling, int], ...], ...]  # per group, the ceiling and FLOP of each kind of work in it
    dram_bytes: tuple[int, ...]  # one per group


def map_compulsory(partition: Partition, hardware: Hardware, dtype: str, sparse: bool = False) -> Mapping:
    """`dtype` is the one asked for: the chip must have it, while helper ops may fall back to what the chip has. `sparse`:
    matrix work with weights runs at the 2:4 rate where the chip has one."""
    check_dtype(hardware, dtype)
    known: dict[tuple[str, str, bool], Ceiling] = {}

    def above(row_dtype: str, unit: str, stored: bool) -> Ceiling:
        key = (row_dtype, unit, sparse and stored)
        if key not in known:
            known[key] = _sparse(hardware, ceiling(hardware, row_dtype, unit, dtype), key[2])
        return known[key]

    def parts(group: Group) -> tuple[tuple[Ceiling, int], ...]:
        stored = group.cost.param_bytes > 0
        return tuple([(above(kind, unit, stored), flops) for unit, kind, flops in group.work])

    groups = partition.groups
    return Mapping(
        partition=partition,
        hardware=hardware,
        mapper="compulsory",
        ceilings=tuple(above(g.cost.dtype, g.cost.unit, g.cost.param_bytes > 0) for g in groups),
        parts=tuple(parts(g) for g in groups),
        dram_bytes=tuple(g.cost.bytes for g in groups),
    )


def compute_type(dtype: str) -> str:
    """Weight-only quantisation computes in the activations' type."""
    return "bf16" if dtype in ("w8a16", "w4a16") else dtype


def check_dtype(hardware: Hardware, dtype: str) -> None:
    wanted = compute_type(dtype)
    have = list(dict.fromkeys(p.dtype for p in hardware.peaks))
    if wanted not in have and not (dtype in ("w8a16", "w4a16") and "fp16" in have):
        asked = [d for d in have if d not in _NEVER_ASKED]
        instead = f"use one of {' '.join(asked)}, or add" if asked else "add"
        raise DtypeError(f"{hardware.id} has no peak for {dtype}: {instead} peak.{wanted}")


def ceiling(hardware: Hardware, dtype: str, unit: str, asked: str) -> Ceiling:
    """Matrix work without a matrix unit of that type runs on the vector unit; vector work never runs on a matrix unit."""
    listed = {p.dtype for p in hardware.peaks}
    if dtype == "bf16" and asked in ("w8a16", "w4a16") and dtype not in listed and "fp16" in listed:
        dtype = "fp16"  # the activations have 16 bits, of whichever type the chip computes in
    if dtype not in listed:
        dtype = "fp32" if "fp32" in listed else compute_type(asked)
    if unit == "matrix" and hardware.has(dtype, "matrix"):
        return Ceiling("matrix", dtype, hardware.peak(dtype, "matrix"))
    return _vector(hardware, dtype)


def _sparse(hardware: Hardware, dense: Ceiling, sparse: bool) -> Ceiling:
    rate = hardware.value(f"peak.{dense.dtype}.matrix_sparse") if sparse and dense.unit == "matrix" else None
    return dense if rate is None else Ceiling("matrix", dense.dtype, rate)


def _vector(hardware: Hardware, dtype: str) -> Ceiling:
    for candidate in _WIDER.get(dtype, (dtype,)):
        rate = hardware.peak(candidate, "vector")
        if rate is not None:
            return Ceiling("vector", candidate, rate)
    return Ceiling("vector", dtype, None)
