"""How much of its CPUs' time other processes took, from made and from real counts of the kernel."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rooflens.benches import others
from rooflens.benches.others import Watch

TICKS = os.sysconf("SC_CLK_TCK")


def stat(root: Path, **cpus: list[int]) -> None:
    """user nice system idle iowait irq softirq steal guest guest_nice."""
    lines = [f"{name} {' '.join(map(str, counts))}" for name, counts in cpus.items()]
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/stat").write_text("\n".join(["cpu 1 2 3 4", *lines, "ctxt 1"]))


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    told = {"process": 0.0, "wall": 0.0}
    monkeypatch.setattr(others.time, "process_time", lambda: told["process"])
    monkeypatch.setattr(others.time, "perf_counter", lambda: told["wall"])
    return told


def test_busy_time_less_our_own_is_that_of_others(tmp_path: Path, clocks: dict[str, float]) -> None:
    """Ten seconds; on two CPUs 12 s of user, system and stolen time, 5 s of them ours: 7 s less a tick for each CPU."""
    stat(tmp_path, cpu0=[0] * 10, cpu1=[0] * 10, cpu2=[0] * 10)
    told = Watch((0, 1), tmp_path)
    with told.watching():
        clocks.update(process=5.0, wall=10.0)
        second = [4 * TICKS, 0, 1 * TICKS, 4 * TICKS, 0, 0, 0, 1 * TICKS, 0, 0]
        stat(tmp_path, cpu0=[6 * TICKS, 0, 0, 4 * TICKS, 0, 0, 0, 0, 6 * TICKS, 0], cpu1=second, cpu2=[10 * TICKS] * 10)
    assert told.share == pytest.approx((12 - 5 - 2 / TICKS) / 10)


def test_idle_and_waiting_time_is_nobodys(tmp_path: Path, clocks: dict[str, float]) -> None:
    stat(tmp_path, cpu0=[0] * 10)
    told = Watch((0,), tmp_path)
    with told.watching():
        clocks.update(wall=10.0)
        stat(tmp_path, cpu0=[0, 0, 0, 6 * TICKS, 4 * TICKS, 0, 0, 0, 0, 0])
    assert told.share == 0.0


def test_a_kernel_that_does_not_tell_is_unknown(tmp_path: Path) -> None:
    told = Watch((0,), tmp_path)
    with told.watching():
        pass
    assert told.share is None


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="this system has no /proc/stat")
def test_a_process_that_works_beside_us_is_seen() -> None:
    cpu = min(os.sched_getaffinity(0))
    code = f"import os, time; os.sched_setaffinity(0, [{cpu}]); end = time.time() + 60\nwhile time.time() < end: pass"
    child = subprocess.Popen([sys.executable, "-c", code])
    try:
        time.sleep(0.3)
        told = Watch((cpu,))
        with told.watching():
            time.sleep(0.5)
    finally:
        child.kill()
        child.wait()
    assert told.share is not None
    assert told.share > 0.5
