"""One op in, the memory it reads and writes out: distinct regions, each once at its stored type; views move nothing.

What an op moves by itself and what a group of ops moves together are both sums over these rows, so they cannot disagree.
"""

from collections.abc import Collection
from typing import NamedTuple

from rooflens.costs.weights import STORED_WHOLE, WeightStore
from rooflens.graph.records import BITS, STORED_ROLES, Op, Tensor, region, stored_bytes
from rooflens.ops.spec import OpSpec

Region = tuple[int, int, int]


class Access(NamedTuple):
    """`region` starts with the tensor that owns the bytes, so that its writer can be looked up."""

    region: Region
    bytes: int
    stored: bool  # a parameter or buffer


def reads(
    op: Op, spec: OpSpec | None, ins: list[Tensor], outs: list[Tensor], weights: WeightStore
) -> Collection[Access]:
    """A lookup reads the rows that it returns; weight matrices are read as they are stored."""
    share = None if spec is None or spec.reads is None else spec.reads(op, ins, outs)
    compressed = weights is not STORED_WHOLE and spec is not None and spec.unit == "matrix"
    found: dict[Region, Access] = {}
    for place, t in enumerate(ins):
        where = (t.base, t.offset, t.elements)
        elements = t.elements if share is None else min(t.elements, share[place])
        if share is not None and not elements:
            continue
        stored = t.role in STORED_ROLES
        as_stored = compressed and stored and len(t.shape) > 1
        size = weights.bytes(t) if as_stored else (elements * BITS[t.dtype] + 7) >> 3
        if where not in found or found[where].bytes < size:
            found[where] = Access(where, size, stored)
    return found.values()


def writes(op: Op, spec: OpSpec | None, ins: list[Tensor], outs: list[Tensor]) -> list[Access]:
    """An indexed store writes the elements that it is given."""
    if spec is None or spec.writes is None:
        return [Access(where, t.bytes, False) for where, t in {region(t): t for t in outs}.items()]
    share = spec.writes(op, ins, outs)
    kept = [(t, min(t.elements, count)) for t, count in zip(outs, share, strict=True) if count]
    return [Access(region(t), stored_bytes(count, t.dtype), False) for t, count in kept]
