"""Samples in, verdicts out: what counts, what is rejected and why."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest

from rooflens.benches.sampling import Budget, Raw, judged, repeats, sampled


def raw(*times: float) -> tuple[Raw, ...]:
    return tuple(Raw(time_s=t, cpu_s=t) for t in times)


@pytest.mark.parametrize(
    ("bad", "word"), [(0.0, "no time"), (math.nan, "not a number"), (math.inf, "not a number"), (-1e-3, "backward")]
)
def test_a_broken_sample_is_rejected_and_counted(bad: float, word: str) -> None:
    found = judged(raw(*[1e-3] * 19, bad))
    assert len(found.times_s) == 19
    assert [word in why for why, _ in found.rejected] == [True]
    assert not found.inconclusive  # 1 of 20 is 5 %
    assert judged(raw(*[1e-3] * 8, bad)).inconclusive  # 1 of 9 is 11 %


def test_nothing_kept_is_inconclusive() -> None:
    found = judged(raw(0.0, 0.0))
    assert found.inconclusive
    assert found.median_s is None


def test_a_busy_process_takes_at_least_as_much_cpu_time_as_passes() -> None:
    stopped = Raw(time_s=5.0, cpu_s=0.01)
    found = judged((*raw(*[0.01] * 19), stopped))
    assert [why for why, _ in found.rejected] == ["the process was stopped"]
    assert found.median_s == 0.01


def test_a_switch_counts_against_a_sample_only_where_it_cost_time() -> None:
    quick, slow = Raw(time_s=1.1e-3, cpu_s=1.1e-3, switches=1), Raw(time_s=2e-3, cpu_s=2e-3, switches=1)
    found = judged((*raw(*[1e-3] * 20), quick, slow))
    assert [t for _, t in found.rejected] == [2e-3]
    assert found.switches == 2


def test_median_and_spread() -> None:
    found = judged(raw(1.0, 2.0, 3.0, 4.0, 5.0))
    assert found.median_s == 3.0
    assert found.spread == pytest.approx((4.0 - 2.0) / 2 / 3.0)  # quartiles of 1 to 5 are 2 and 4


def test_short_runs_are_repeated_within_a_sample() -> None:
    assert repeats(1e-3, Budget(sample_s=0.01)) == 10
    assert repeats(1.0, Budget(sample_s=0.01)) == 1


STOPPED = """
import time
from rooflens.benches.sampling import Budget, sampled
def busy():
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
print("ready", flush=True)
found = sampled(busy, Budget(total_s=1.5, least=30, most=60))
print([why for why, _ in found.rejected], flush=True)
"""


def test_a_process_that_is_stopped_rejects_that_sample() -> None:
    with subprocess.Popen([sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(child.pid, signal.SIGCONT)
        assert "the process was stopped" in child.stdout.read()


def test_warm_ups_are_kept_apart() -> None:
    calls: list[int] = []
    found = sampled(lambda: calls.append(1), Budget(total_s=0.0, least=5, most=5, warmups=3, sample_s=0.0))
    assert len(found.warmups_s) == 4  # the first call ever, and three more
    assert len(calls) == 4 + 5


def test_readings_that_are_no_numbers_are_told_by_their_reason_alone() -> None:
    from rooflens.report.samples import samples_document

    found = samples_document(judged(raw(*[1e-3] * 19, math.nan, math.inf, -1e-3)))
    assert [r["time_s"] for r in found["rejected"]] == [None, None, -1e-3]
    json.dumps(found, allow_nan=False)
