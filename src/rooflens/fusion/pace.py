"""Groups in, how long a chip takes at least for each, launch included, out: whether what tiles compute again is worth it.

A tile that saves bytes may still cost time, where the chip is short of arithmetic and not of bandwidth.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rooflens.costs.sheet import CostSheet, flop
from rooflens.hardware.records import Hardware
from rooflens.hardware.roofs import ceiling, work_floor_s

Kind = tuple[str, str]  # unit and type


class Load(NamedTuple):
    """A group's FLOP by kind. Its heaviest op, if it can a matrix product, says which unit the group runs on."""

    flops: dict[Kind, int]
    heaviest: tuple[bool, int, Kind]


def load_of(sheet: CostSheet, ops: Iterable[int]) -> Load:
    rows = [sheet.rows[place] for place in ops]
    return together(
        [
            Load({(row.unit, row.dtype): row.flops}, (row.unit == "matrix", row.flops, (row.unit, row.dtype)))
            for row in rows
        ]
    )


def together(loads: Sequence[Load], extra_macs: int = 0) -> Load:
    """As one group, which computes some of it again."""
    heaviest = max(load.heaviest for load in loads)
    flops = {heaviest[2]: flop(extra_macs, 0, 0)}
    for load in loads:
        for kind, n in load.flops.items():
            flops[kind] = flops.get(kind, 0) + n
    return Load(flops, heaviest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    hardware: Hardware
    launch_s: float

    def time_s(self, load: Load, moved: int) -> float | None:
        """None where the chip publishes no rate that it takes."""
        level = self.hardware.offchip
        bandwidth = level.bandwidth_bytes_per_s if level else None
        parts = tuple((ceiling(self.hardware, dtype, unit, dtype), n) for (unit, dtype), n in load.flops.items() if n)
        unit, dtype = load.heaviest[2]
        main = ceiling(self.hardware, dtype, unit, dtype).flop_per_s
        work_s = work_floor_s(sum(load.flops.values()), main, parts)
        if work_s is None or (moved and bandwidth is None):
            return None
        return max(self.launch_s, work_s, moved / bandwidth if bandwidth else 0.0)


def pace_of(hardware: Hardware, execution: str) -> Pace:
    """A launch whose cost is not published costs nothing here: then the device's time alone decides."""
    return Pace(hardware=hardware, launch_s=hardware.launch_s(execution) or 0.0)
