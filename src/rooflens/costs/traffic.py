"""One op in, the memory it reads and writes out: distinct regions, each once at its stored type; views move nothing.

What an op moves by itself and what a group of ops moves together are both sums over these rows, so they cannot disagree.
"""

from typing import NamedTuple

from rooflens.costs.weights import STORED_WHOLE, WeightStore
from rooflens.graph.records import BITS, STORED_ROLES, Tensor, region, stored_bytes
from rooflens.ops.spec import OpSpec

Region = tuple[int, int, int]


class Access(NamedTuple):
    """`region` starts with the tensor that owns the bytes, so that its writer can be looked up."""

    region: Region
    bytes: int
    stored: bool  # a parameter or buffer


def reads(spec: OpSpec | None, ins: list[Tensor], outs: list[Tensor], weights: WeightStore) -> list[Access]:
    """A lookup reads the rows that it returns; weight matrices are read as they are stored."""
    limit = outs[0].elements if spec is not None and spec.gathers and outs else None
    compressed = weights is not STORED_WHOLE and spec is not None and spec.unit == "matrix"
    seen: set[Region] = set()
    found: list[Access] = []
    for place, t in enumerate(ins):
        where = (t.base, t.offset, t.elements)
        if where in seen:
            continue
        seen.add(where)
        stored = t.role in STORED_ROLES
        elements = t.elements if limit is None or place else min(t.elements, limit)
        if compressed and stored and len(t.shape) > 1:
            found.append(Access(where, weights.bytes(t), stored))
        else:
            found.append(Access(where, (elements * BITS[t.dtype] + 7) >> 3, stored))
    return found


def writes(spec: OpSpec | None, ins: list[Tensor], outs: list[Tensor]) -> list[Access]:
    """An indexed store writes the rows that it is given."""
    if spec is not None and spec.scatters and ins and outs:
        kept = min(outs[0].elements, ins[0].elements)
        return [Access(region(outs[0]), stored_bytes(kept, outs[0].dtype), False)]
    return [Access(where, t.bytes, False) for where, t in {region(t): t for t in outs}.items()]
