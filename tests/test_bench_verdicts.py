"""The exact bootstrap against drawing again and again, and verdicts on runs that are made so that the right one is known."""

import itertools
import random
import statistics
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflens.benches.bench_run import BenchMachine, Benchmark, BenchRow, BenchRun, ProcessTimes
from rooflens.benches.sampling import Samples
from rooflens.compare.bootstrap import interval_of, medians, paired_interval, ratio_interval
from rooflens.compare.verdicts import Verdict, compared, together
from rooflens.errors import MismatchError

SHAPE = "fp32[8,64] -> fp32[8,64]"


def row(
    name: str, times: list[float], reference: list[float] | None = None, *, shape: str | None = SHAPE, status: str = "ok",
    source: str = "8x64 | relu", threshold: float | None = None,
) -> BenchRow:  # fmt: skip
    references = reference or [None] * len(times)
    processes = tuple(
        ProcessTimes(process=n, samples=Samples(times_s=(t,)), references_s=() if r is None else (r, r, r))
        for n, (t, r) in enumerate(zip(times, references, strict=True))
    )
    benchmark = Benchmark(name=name, pass_="forward", source=source, shape=shape, threshold=threshold)
    return BenchRow(
        benchmark=benchmark, processes=processes, status=status, reason="it raised" if status != "ok" else ""
    )


def run(*rows: BenchRow, session: str | None = None, torch: str = "2.13.0", **machine: object) -> BenchRun:
    facts = {"fingerprint": "aaaa", "name": "a CPU", "device": "cpu", "device_name": "a CPU", "threads": 2, **machine}
    return BenchRun(
        date="2026-01-01T00:00:00+00:00", suite="s", tool="rooflens", machine=BenchMachine(**facts),
        versions=(("torch", torch),), rows=rows, session=session,
    )  # fmt: skip


def verdict(base: BenchRow, new: BenchRow, **options: object) -> Verdict:
    (found,) = compared(run(base), run(new), **options).verdicts
    return found


NEAR = [1.00, 1.01, 0.99, 1.005, 0.995]


def times(factor: float, of: list[float] = NEAR) -> list[float]:
    return [t * factor for t in of]


# the bootstrap


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_every_median_has_its_exact_chance(n: int) -> None:
    """Against all n^n ways to draw again."""
    values = [1.0, 2.0, 4.0, 8.0, 16.0][:n]
    every = Counter(statistics.median(drawn) for drawn in itertools.product(values, repeat=n))
    found: Counter[float] = Counter()
    for value, chance in medians(values):
        found[value] += chance
    assert found.keys() >= {v for v, count in every.items() if count}
    for value, count in every.items():
        assert found[value] == pytest.approx(count / n**n, abs=1e-12)


@pytest.mark.parametrize("n", [6, 7, 12])
def test_intervals_are_those_of_many_draws(n: int) -> None:
    draw = random.Random(n)
    values = [draw.gauss(10, 1) for _ in range(n)]
    drawn = sorted(statistics.median(draw.choices(values, k=n)) for _ in range(20_000))
    found = interval_of(values, 0.9)
    ordered = sorted(values)
    gaps = max(b - a for a, b in itertools.pairwise(ordered))
    assert abs(found.low - drawn[1000]) <= gaps / 2
    assert abs(found.high - drawn[-1001]) <= gaps / 2


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=9))
def test_chances_add_up_to_one(values: list[float]) -> None:
    assert sum(p for _, p in medians(values)) == pytest.approx(1)


@given(st.lists(st.floats(0.5, 2), min_size=5, max_size=9), st.floats(0.5, 2))
@settings(max_examples=50)
def test_an_interval_holds_its_middle_and_scales(values: list[float], factor: float) -> None:
    found = interval_of(values)
    assert found.low <= found.middle <= found.high
    scaled = ratio_interval(values, [v * factor for v in values])
    assert scaled.low * (1 - 1e-12) <= factor <= scaled.high * (1 + 1e-12)


def test_five_numbers_reach_from_the_least_to_the_largest() -> None:
    """The median of five draws is the least with a chance of 5.8 %, far above half of 1 %."""
    found = interval_of([3.0, 1.0, 2.0, 5.0, 4.0], 0.99)
    assert (found.low, found.middle, found.high) == (1.0, 3.0, 5.0)


def test_pairs_are_freed_of_what_both_had() -> None:
    machine = [1.0, 2.0, 5.0, 0.7, 1.4]
    found = paired_interval(machine, [t * 1.1 for t in machine])
    assert found.low == pytest.approx(1.1)
    assert found.high == pytest.approx(1.1)


# verdicts of one row


@pytest.mark.parametrize(
    ("factor", "said"), [(1.0, "same"), (1.02, "same"), (1.2, "slower"), (1 / 1.2, "faster"), (1.05, "inconclusive")]
)
def test_the_interval_decides(factor: float, said: str) -> None:
    assert verdict(row("a", NEAR), row("a", times(factor))).verdict == said


def test_the_threshold_is_the_benchmarks_own_or_that_of_the_user() -> None:
    base, new = row("a", NEAR, threshold=0.3), row("a", times(1.2), threshold=0.3)
    assert verdict(base, new).verdict == "same"
    assert verdict(base, new, threshold=0.1).verdict == "slower"


def test_one_far_out_process_is_no_regression() -> None:
    assert verdict(row("a", NEAR), row("a", [1.0, 1.01, 0.99, 1.0, 9.0])).verdict == "inconclusive"


@pytest.mark.parametrize("few", [1, 4])
def test_fewer_than_five_processes_are_no_evidence(few: int) -> None:
    found = verdict(row("a", NEAR[:few]), row("a", times(3.0)))
    assert found.verdict == "inconclusive"
    assert found.ratio == pytest.approx(3.0, rel=0.02)
    assert (found.low, found.high) == (None, None)
    assert f"{few} process" in found.why


def test_a_slower_clock_is_told_by_the_reference() -> None:
    """The machine of the new run was slower by 12 % all the time, and so was the reference work."""
    slow = [1.12] * 5
    new = row("a", times(1.12), slow)
    assert verdict(row("a", NEAR, [1.0] * 5), new).verdict == "same"
    found = compared(run(row("a", NEAR, [1.0] * 5)), run(row("a", times(1.12 * 1.2), slow)))
    assert (found.method, found.verdicts[0].verdict) == ("normalised", "slower")
    assert found.verdicts[0].ratio == pytest.approx(1.2)


def test_pieces_that_moved_apart_widen_the_interval() -> None:
    """Products took 2 % longer, sums 15 %, what cores do together as long as before: a row that took 20 % longer may be
    slower by 4 % of its own, or by 20 %."""
    base, new = row("a", [1.0] * 5, [1.0] * 5), row("a", [1.2] * 5, [1.0] * 5)
    pieces = tuple(replace(p, references_s=(1.02, 1.15, 1.0)) for p in new.processes)
    found = verdict(base, replace(new, processes=pieces))
    assert found.verdict == "inconclusive"
    assert (found.low, found.high) == (pytest.approx(1.2 / 1.15), pytest.approx(1.2))
    assert found.ratio == pytest.approx(1.2 / (1.02 * 1.15) ** 0.5)


@pytest.mark.parametrize("what", ["slower", "changing"])
def test_processes_that_met_another_state_of_the_machine_are_no_evidence(what: str) -> None:
    """Half of the new ones met cores that were twice as slow together; or met a machine that changed meanwhile."""
    base, new = row("a", NEAR * 2, [1.0] * 10), row("a", [*NEAR, *times(1.8)], [1.0] * 10)
    changed = {"references_s": (1.0, 1.0, 2.0)} if what == "slower" else {"drift": 1.5}
    met = tuple(replace(p, **changed) if p.process >= 5 else p for p in new.processes)
    found = verdict(base, replace(new, processes=met))
    assert found.verdict == "same"
    every = tuple(replace(p, **changed) if p.process >= 4 else p for p in new.processes)
    silent = verdict(base, replace(new, processes=every))
    assert silent.verdict == "inconclusive"
    assert "4 of 10 processes" in silent.why


def test_interleaved_runs_are_compared_pair_by_pair() -> None:
    machine = [1.0, 2.0, 5.0, 0.7, 1.4]
    base, new = row("a", machine), row("a", [1.1 * m for m in machine])
    found = compared(run(base, session="x"), run(new, session="x"))
    assert (found.method, found.verdicts[0].verdict) == ("interleaved", "slower")
    assert compared(run(base), run(new)).verdicts[0].verdict == "inconclusive"


def test_more_rows_need_more_certainty() -> None:
    one = compared(run(row("a", NEAR)), run(row("a", NEAR))).confidence
    four = [row(n, NEAR) for n in "abcd"]
    assert one == pytest.approx(0.99)
    assert compared(run(*four), run(*four)).confidence == pytest.approx(1 - 0.01 / 4)


# what cannot be compared


@pytest.mark.parametrize(
    ("base", "new", "why"),
    [
        (row("a", NEAR), row("a", NEAR, shape="fp32[16,64] -> fp32[16,64]"), "shape"),
        (row("a", NEAR), row("a", [], status="failed"), "failed"),
        (row("a", [], status="n/a"), row("a", NEAR), "n/a"),
    ],
)
def test_other_benchmarks_are_not_comparable(base: BenchRow, new: BenchRow, why: str) -> None:
    found = verdict(base, new)
    assert found.verdict == "not comparable"
    assert why in found.why


def test_an_unknown_shape_is_no_other_shape() -> None:
    assert verdict(row("a", NEAR, shape=None), row("a", NEAR)).verdict == "same"


@pytest.mark.parametrize(
    "changed", [{"fingerprint": "bbbb"}, {"device": "cuda", "device_name": "a GPU"}, {"torch": "2.14.0"}]
)
def test_other_conditions_are_refused_and_labelled_where_allowed(changed: dict[str, str]) -> None:
    base, new = run(row("a", NEAR)), run(row("a", times(2.0)), **changed)
    with pytest.raises(MismatchError, match="--allow-mismatch"):
        compared(base, new)
    found = compared(base, new, allow_mismatch=True)
    assert found.mismatches
    assert found.verdicts[0].verdict == "not comparable"
    assert found.verdicts[0].why == found.mismatches[0]
    assert found.verdicts[0].ratio == pytest.approx(2.0)


def test_other_thread_counts_are_not_comparable() -> None:
    found = compared(run(row("a", NEAR)), run(row("a", NEAR), threads=4))
    assert found.verdicts[0].verdict == "not comparable"
    assert "threads" in found.verdicts[0].why


def test_rows_that_came_went_and_were_renamed_are_listed_as_that() -> None:
    base = run(row("stays", NEAR), row("old", NEAR, source="8x64 | gelu"), row("gone", NEAR, source="8x64 | tanh"))
    new = run(row("stays", NEAR), row("new", NEAR, source="8x64 | gelu"), row("come", NEAR, source="8x64 | silu"))
    found = compared(base, new)
    assert [v.key for v in found.verdicts] == ["stays/forward"]
    assert found.renamed == (("old/forward", "new/forward"),)
    assert (found.added, found.removed) == (("come/forward",), ("gone/forward",))


def test_two_candidates_are_no_renaming() -> None:
    base = run(row("old", NEAR), row("older", NEAR))
    found = compared(base, run(row("new", NEAR)))
    assert found.renamed == ()
    assert found.removed == ("old/forward", "older/forward")


# all rows together


def test_all_rows_together_are_the_machine() -> None:
    """What a published report read as six regressions of 24 to 46 %."""
    factors = [1.363, 1.459, 1.259, 1.294, 1.300, 1.241]
    base = run(*(row(f"r{n}", NEAR) for n in range(6)))
    found = compared(base, run(*(row(f"r{n}", times(f)) for n, f in enumerate(factors))))
    assert found.moved == pytest.approx(statistics.median(factors))
    assert {v.verdict for v in found.verdicts} == {"inconclusive"}


def test_one_row_that_goes_another_way_is_still_told() -> None:
    factors = [1.3] * 10 + [3.0]
    base = run(*(row(f"r{n}", NEAR) for n in range(11)))
    found = compared(base, run(*(row(f"r{n}", times(f)) for n, f in enumerate(factors))))
    assert found.moved == pytest.approx(1.3)
    assert [v.verdict for v in found.verdicts] == ["inconclusive"] * 10 + ["slower"]


def test_two_revisions_in_turns_cannot_be_moved_by_the_machine() -> None:
    base = run(*(row(f"r{n}", NEAR) for n in range(6)), session="x")
    found = compared(base, run(*(row(f"r{n}", times(1.3)) for n in range(6)), session="x"))
    assert found.moved is None
    assert {v.verdict for v in found.verdicts} == {"slower"}


@pytest.mark.parametrize(
    "ratios",
    [
        [1.3, 1.3, 1.3],
        [1.01, 1.02, 0.99, 1.0],
        [1.3, 1.0, 1.31, 0.99],
        [1.3, 0.7, 1.31, 0.69],
        [1.1, 1.2, 2.0, 5.0, 9.0],
    ],
)
def test_few_small_or_scattered_changes_are_no_moving_machine(ratios: list[float]) -> None:
    assert together(ratios) is None


def test_a_faster_machine_moves_too() -> None:
    assert together([0.7, 0.72, 0.69, 0.71]) == pytest.approx(0.705)


def test_runs_hold_what_they_were_made_of() -> None:
    base, new = run(row("a", NEAR)), run(row("a", times(2.0)))
    found = compared(base, new)
    assert found.base is base
    assert found.new is new
    assert replace(base, note="x").id != base.id


# other work on the machine


def busy(row: BenchRow, *shares: float) -> BenchRow:
    processes = zip(row.processes, shares, strict=True)
    return replace(row, processes=tuple(replace(p, others_share=s) for p, s in processes))


def test_processes_on_a_busy_machine_are_no_evidence() -> None:
    """Four of five had a machine of their own."""
    found = verdict(busy(row("a", NEAR), 0, 0, 0, 0, 0), busy(row("a", times(2.0)), 0, 0.9, 0, 0, 0))
    assert found.verdict == "inconclusive"
    assert "4 of 5 processes" in found.why
    assert found.ratio == pytest.approx(2.0, rel=0.02)


def test_enough_quiet_processes_are_evidence() -> None:
    seven = [*NEAR, 9.0, 9.0]
    found = verdict(busy(row("a", seven), 0, 0, 0, 0, 0, 0.5, 1.8), row("a", times(1.2)))
    assert found.verdict == "slower"


@pytest.mark.parametrize(("factor", "said"), [(2.0, "slower"), (0.4, "faster"), (1.2, "inconclusive")])
def test_pairs_of_a_disturbed_machine_show_what_is_plain(factor: float, said: str) -> None:
    """Both of a pair met the same machine; a change of more than half is no disturbance."""
    shares = [1.0] * 5
    base, new = busy(row("a", NEAR), *shares), busy(row("a", times(factor)), *shares)
    (found,) = compared(run(base, session="x"), run(new, session="x")).verdicts
    assert found.verdict == said
    assert "disturbed" in found.why
    assert verdict(base, new).verdict == "inconclusive"
