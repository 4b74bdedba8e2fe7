"""How the weights of matrix ops are stored: whole, compressed to a density, or 2:4 sparse. Tensor in, bytes out."""

from dataclasses import dataclass
from math import ceil

from rooflens.graph.records import BITS, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightStore:
    """`density` is the stored share of a weight's bytes as the user states it, index included. 2:4 keeps two values of
    four and a 2-bit position for each of the two."""

    density: float = 1.0
    sparsity: str = "none"

    def bytes(self, t: Tensor) -> int:
        bits: float = BITS[t.dtype]
        if self.sparsity == "2:4":
            bits = bits / 2 + 1
        return ceil(t.elements * bits * self.density / 8)


STORED_WHOLE = WeightStore()
