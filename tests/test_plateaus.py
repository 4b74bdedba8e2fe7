"""Plateaus of made-up curves: what they say of each level, and what they do not say."""

import math
from collections.abc import Callable

import pytest

from rooflens.benches.ceilings import BandwidthPoint
from rooflens.benches.levels import best_plateaus
from rooflens.benches.plateaus import Capacity, Plateau, Point, pieces_of, plateaus
from rooflens.benches.rounds import quick_s
from rooflens.benches.sampling import Samples

K, M, G = 2**10, 2**20, 1e9
LEVELS = (
    Capacity(level="l1", bytes=48 * K), Capacity(level="l2", bytes=M), Capacity(level="l3", bytes=32 * M),
    Capacity(level="dram", bytes=None, clear=8.0),
)  # fmt: skip
SIZES = [round(12 * K * 2 ** (i / 3)) for i in range(47)]  # to 16 times the L3


def curve(rate: Callable[[int], float], sizes: list[int] = SIZES) -> tuple[Point, ...]:
    return tuple(Point(bytes=s, bandwidth_bytes_per_s=rate(s)) for s in sizes)


def steps(l1: float, l2: float, l3: float, dram: float) -> Callable[[int], float]:
    return lambda s: (l1 if s <= 48 * K else l2 if s <= M else l3 if s <= 32 * M else dram) * G


def by_level(points: tuple[Point, ...], levels: tuple[Capacity, ...] = LEVELS) -> dict[str, Plateau]:
    return {p.level: p for p in plateaus(points, levels)}


def test_a_staircase_is_read_step_by_step() -> None:
    found = by_level(curve(steps(800, 400, 200, 50)))
    assert [p.bandwidth_bytes_per_s for p in found.values()] == [800 * G, 400 * G, 200 * G, 50 * G]
    assert [p.lower_bound for p in found.values()] == [True, False, False, False]  # nothing shows that L1 limits
    assert [p.spread for p in found.values()] == [0.0] * 4


def test_ripples_are_no_steps() -> None:
    ripple = steps(800, 400, 200, 50)
    found = by_level(curve(lambda s: ripple(s) * (1 + 0.04 * math.sin(s))))
    for level, expected in (("l1", 800), ("l2", 400), ("l3", 200), ("dram", 50)):
        assert found[level].bandwidth_bytes_per_s == pytest.approx(expected * G, rel=0.05)
    assert len(pieces_of(curve(lambda s: ripple(s) * (1 + 0.04 * math.sin(s))))) == 4


def test_one_bad_reading_moves_nothing() -> None:
    good, bad = steps(800, 400, 200, 50), SIZES[12]
    found = by_level(curve(lambda s: 90 * G if s == bad else good(s)))
    assert [p.bandwidth_bytes_per_s for p in found.values()] == [800 * G, 400 * G, 200 * G, 50 * G]


def test_a_level_that_slows_nothing_has_a_lower_bound() -> None:
    """The loop costs as much as the L2: neither level was seen to limit."""
    found = by_level(curve(steps(400, 400, 200, 50)))
    assert (found["l2"].bandwidth_bytes_per_s, found["l2"].lower_bound) == (400 * G, True)
    assert "no slower than l1" in found["l2"].why
    assert not found["l3"].lower_bound


def test_a_slope_without_a_plateau_gives_a_lower_bound() -> None:
    """An L3 shared with others: the curve falls from the L2 to memory without a stop."""
    found = by_level(curve(lambda s: 1e9 * min(400.0, max(50.0, 400 * (M / s) ** 0.5)) if s > 48 * K else 800 * G))
    assert found["l3"].lower_bound
    assert "no plateau" in found["l3"].why
    first = min(s for s in SIZES if s >= 1.5 * M)
    assert found["l3"].bandwidth_bytes_per_s == pytest.approx(400 * G * (M / first) ** 0.5)


def test_a_level_that_no_size_lies_in_has_no_bandwidth() -> None:
    found = by_level(curve(steps(800, 400, 200, 50), [s for s in SIZES if s > 2 * M]))
    assert found["l1"].bandwidth_bytes_per_s is None
    assert found["l2"].bandwidth_bytes_per_s is None
    assert found["dram"].bandwidth_bytes_per_s == 50 * G


def test_without_sizes_of_caches_only_memory_is_named() -> None:
    (found,) = plateaus(curve(steps(800, 400, 200, 50)), (Capacity(level="dram", bytes=None),))
    assert found.level == "dram"
    assert found.lower_bound


def test_sizes_beside_a_boundary_belong_to_no_level() -> None:
    """A cache holds less than its size of somebody's data: 40 K to 72 K is neither L1 nor L2."""
    good = steps(800, 400, 200, 50)
    found = by_level(curve(lambda s: 600 * G if 39 * K < s < 72 * K else good(s)))
    assert (found["l1"].bandwidth_bytes_per_s, found["l2"].bandwidth_bytes_per_s) == (800 * G, 400 * G)


def test_the_kernel_that_reaches_most_of_a_level_speaks_for_it() -> None:
    def points(kernel: str, rate: Callable[[int], float]) -> list[BandwidthPoint]:
        return [
            BandwidthPoint(kernel=kernel, bytes=s, threads=1, samples=Samples(times_s=(s / rate(s),) * 4))
            for s in SIZES
        ]

    both = [*points("add", steps(700, 420, 200, 50)), *points("negate", steps(800, 400, 180, 40))]
    found = best_plateaus(both, LEVELS)
    assert [found[level.level][0] for level in LEVELS] == ["negate", "add", "add", "add"]
    assert found["dram"][1].bandwidth_bytes_per_s == pytest.approx(50 * G)


def test_no_points_no_levels() -> None:
    assert best_plateaus([], LEVELS) == {}


def test_a_ceiling_is_among_the_quicker_readings() -> None:
    """Sorted 1 2 3 4 5: the lower quartile is 2; a reading that another process slowed threefold moves it little."""
    assert quick_s(Samples(times_s=(5.0, 1.0, 3.0, 2.0, 4.0))) == 2.0
    assert quick_s(Samples(times_s=(1.0, 1.0, 1.0, 3.0))) == 1.0
    assert quick_s(Samples(times_s=(2.0,))) == 2.0
    assert quick_s(Samples(times_s=())) is None
