"""Points of a sweep in, the best that any kernel shows of each memory level out."""

from collections.abc import Iterable

from rooflens.benches.ceilings import BandwidthPoint
from rooflens.benches.plateaus import Capacity, Plateau, Point, plateaus


def best_plateaus(points: Iterable[BandwidthPoint], levels: tuple[Capacity, ...]) -> dict[str, tuple[str, Plateau]]:
    """Level to kernel and plateau: the kernel that reaches most of that level. Each has a curve of its own, because
    reads and writes meet different limits."""
    curves: dict[str, list[Point]] = {}
    for p in points:
        rate = p.bandwidth_bytes_per_s
        if rate is not None:
            point = Point(bytes=p.bytes, bandwidth_bytes_per_s=rate, spread=p.samples.spread or 0.0)
            curves.setdefault(p.kernel, []).append(point)
    found = [(kernel, plateaus(tuple(curve), levels)) for kernel, curve in curves.items()]
    return {level.level: _fastest([(k, f[i]) for k, f in found]) for i, level in enumerate(levels) if found}


def _fastest(found: list[tuple[str, Plateau]]) -> tuple[str, Plateau]:
    return max(found, key=lambda f: f[1].bandwidth_bytes_per_s or 0.0)
