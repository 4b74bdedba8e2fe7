"""Work of some kind and type in, what a chip can reach with it and the least time for it out: the formulas of the roof."""

from typing import NamedTuple

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


class Ceiling(NamedTuple):
    """What one group can reach: the unit that does the work and its rate, None where unpublished. A named tuple, because
    estimates are looked up by it."""

    unit: str
    dtype: str
    flop_per_s: float | None


Parts = tuple[tuple[Ceiling, int], ...]  # each kind of work in a group: the ceiling above it, and its FLOP


def compute_type(dtype: str) -> str:
    """Weight-only quantisation computes in the activations' type."""
    return "bf16" if dtype in ("w8a16", "w4a16") else dtype


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


def _vector(hardware: Hardware, dtype: str) -> Ceiling:
    for candidate in _WIDER.get(dtype, (dtype,)):
        rate = hardware.peak(candidate, "vector")
        if rate is not None:
            return Ceiling("vector", candidate, rate)
    return Ceiling("vector", dtype, None)


def work_floor_s(flops: int, peak: float | None, parts: Parts) -> float | None:
    """All of a group's work at the rate of its main unit, or any kind of its work at the rate of its own unit, whichever
    takes longer: units may work at the same time, so nothing is added up."""
    pieces = [(flops, peak)] if len(parts) < 2 else [(flops, peak), *((n, c.flop_per_s) for c, n in parts)]
    if any(n and rate is None for n, rate in pieces):
        return None
    return max((n / rate for n, rate in pieces if n and rate), default=0.0)


def floor_time_s(flops: int, moved: int, peak: float | None, bandwidth: float | None) -> float | None:
    """The least time for so much work and so many bytes; what is not needed need not be known."""
    if (flops and peak is None) or (moved and bandwidth is None):
        return None
    return max(flops / peak if flops and peak else 0.0, moved / bandwidth if moved and bandwidth else 0.0)
