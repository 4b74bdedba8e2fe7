"""Partition and Hardware in, Mapping out: the mapper that assumes compulsory traffic and the published peak.

It answers one question per group: which unit of this chip does the work, at which rate, behind which memory? Rates that
the vendor does not publish stay None, and so does every time that needs them.
"""

from dataclasses import dataclass

from rooflens.errors import DtypeError
from rooflens.fusion.partition import Group, Partition
from rooflens.hardware.records import Hardware
from rooflens.hardware.roofs import Ceiling, Parts, ceiling, compute_type

_NEVER_ASKED = ("fp64", "fp4", "int4")  # a chip has peaks for them, --dtype does not take them


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    partition: Partition
    hardware: Hardware
    mapper: str
    ceilings: tuple[Ceiling, ...]  # one per group: of the unit that does its main work
    parts: tuple[Parts, ...]  # one per group
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

    def parts(group: Group) -> Parts:
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


def check_dtype(hardware: Hardware, dtype: str) -> None:
    wanted = compute_type(dtype)
    have = list(dict.fromkeys(p.dtype for p in hardware.peaks))
    if wanted not in have and not (dtype in ("w8a16", "w4a16") and "fp16" in have):
        asked = [d for d in have if d not in _NEVER_ASKED]
        instead = f"use one of {' '.join(asked)}, or add" if asked else "add"
        raise DtypeError(f"{hardware.id} has no peak for {dtype}: {instead} peak.{wanted}")


def _sparse(hardware: Hardware, dense: Ceiling, sparse: bool) -> Ceiling:
    rate = hardware.value(f"peak.{dense.dtype}.matrix_sparse") if sparse and dense.unit == "matrix" else None
    return dense if rate is None else Ceiling("matrix", dense.dtype, rate)
