"""Facts of a computer, from trees of files as systems and containers show them."""

from pathlib import Path

import pytest

from rooflens.benches.cgroup import limits
from rooflens.benches.gpu import driver_version
from rooflens.benches.host import host_facts, one_cpu_per_core
from rooflens.hardware.identity import fingerprint, identity, listed
from rooflens.hardware.this import device_names

KIB, GIB = 2**10, 2**30
V2 = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1 = (
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)
X86 = """processor\t: 0
model name\t: Some  CPU 9000
flags\t\t: fpu avx2 avx512f avx512_bf16 hypervisor sse2

processor\t: 1
model name\t: Some  CPU 9000
flags\t\t: fpu
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd i8mm bf16 sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


def cpu(n: int, siblings: str, l3: str) -> dict[str, str]:
    """A CPU with 48 KiB of L1, 1 MiB of L2 for its core, and 32 MiB of L3 for those in `l3`."""
    at = f"sys/devices/system/cpu/cpu{n}"
    caches = (
        ("1", "Data", "48K", siblings),
        ("1", "Instruction", "32K", siblings),
        ("2", "Unified", "1024K", siblings),
    )
    found = {f"{at}/topology/core_cpus_list": siblings}
    for i, (level, kind, size, shared) in enumerate((*caches, ("3", "Unified", "32768K", l3))):
        index = f"{at}/cache/index{i}"
        found |= {
            f"{index}/level": level,
            f"{index}/type": kind,
            f"{index}/size": size,
            f"{index}/shared_cpu_list": shared,
        }
    return found


def server(root: Path, **more: str) -> Path:
    """Four cores of two threads each, siblings n and n + 4; two pieces of L3."""
    files = {"sys/devices/system/cpu/online": "0-7\n", "proc/cpuinfo": X86, "proc/loadavg": "0.25 0.1 0.1 1/100 1\n"}
    files["proc/meminfo"] = f"MemTotal: {64 * 2**20} kB\nMemFree: 1 kB\nMemAvailable: {40 * 2**20} kB\n"
    files["proc/sys/kernel/osrelease"] = "6.1.0\n"
    files |= {f"sys/devices/system/node/node{n}/cpulist": "0-3" for n in range(2)}
    for n in range(8):
        core = n % 4
        files |= cpu(n, f"{core},{core + 4}", "0-1,4-5" if core < 2 else "2-3,6-7")
    return tree(root, {**files, **more})


def test_a_whole_machine(tmp_path: Path) -> None:
    facts = host_facts(server(tmp_path), frozenset(range(8)))
    assert (facts.cpu_model, facts.physical_cores, facts.usable_cores, facts.threads) == ("Some CPU 9000", 4, 4, 4)
    assert [(c.level, c.bytes, c.usable_instances) for c in facts.caches] == [
        (1, 48 * KIB, 4), (2, KIB * KIB, 4), (3, 32 * KIB * KIB, 2),
    ]  # fmt: skip
    assert facts.cache_bytes(3) == facts.last_cache_bytes == 64 * KIB * KIB
    assert facts.isa == ("avx2", "avx512f", "avx512_bf16")
    assert (facts.memory_bytes, facts.memory_available_bytes, facts.memory_limit_bytes) == (64 * GIB, 40 * GIB, None)
    assert (facts.numa_nodes, facts.kernel, facts.hypervisor, facts.load) == (2, "6.1.0", True, 0.25)
    assert one_cpu_per_core(facts, tmp_path) == (0, 1, 2, 3)


def test_only_what_this_process_may_use_counts(tmp_path: Path) -> None:
    facts = host_facts(server(tmp_path), frozenset({1, 5, 6}))
    assert (facts.usable_cores, facts.threads) == (2, 2)  # 1 and 5 are one core
    assert [(c.level, c.usable_instances) for c in facts.caches] == [(1, 2), (2, 2), (3, 2)]
    assert one_cpu_per_core(facts, tmp_path) == (1, 6)


def test_nothing_is_guessed_where_the_system_hides_it(tmp_path: Path) -> None:
    facts = host_facts(tmp_path, frozenset({0}))
    unknown = (
        "cpu_model",
        "physical_cores",
        "usable_cores",
        "cpu_limit",
        "memory_bytes",
        "memory_available_bytes",
        "isa",
    )
    assert [getattr(facts, name) for name in (*unknown, "numa_nodes", "kernel", "hypervisor", "load")] == [None] * 11
    assert (facts.threads, facts.caches, facts.last_cache_bytes) == (1, (), None)
    assert one_cpu_per_core(facts, tmp_path) == (0,)


def test_an_arm_core_is_named_by_its_numbers(tmp_path: Path) -> None:
    facts = host_facts(tree(tmp_path, {"proc/cpuinfo": ARM}), frozenset({0}))
    assert facts.cpu_model == "Arm implementer 0x41 part 0xd4f"
    assert facts.isa == ("neon", "sve", "i8mm", "bf16")
    assert facts.hypervisor is None


V2_LIMIT = {
    "proc/self/cgroup": "0::/pod/box\n", "proc/self/mountinfo": V2, "sys/fs/cgroup/pod/cpu.max": "250000 100000\n",
    "sys/fs/cgroup/pod/box/cpu.max": "max 100000\n", "sys/fs/cgroup/pod/memory.max": f"{8 * GIB}\n",
    "sys/fs/cgroup/pod/memory.current": f"{3 * GIB}\n", "sys/fs/cgroup/pod/memory.stat": f"anon 5\ninactive_file {GIB}\n",
    "sys/fs/cgroup/pod/box/memory.max": "max\n",
}  # fmt: skip
V1_LIMIT = {
    "proc/self/cgroup": "9:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n", "proc/self/mountinfo": V1,
    "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "150000\n",
    "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": f"{2 * GIB}\n",
    "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": f"{GIB}\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
}  # fmt: skip


def test_the_tightest_limit_of_the_group_and_its_parents_counts(tmp_path: Path) -> None:
    found = limits(tree(tmp_path, V2_LIMIT))
    assert (found.cpus, found.memory_bytes, found.memory_free_bytes) == (2.5, 8 * GIB, 6 * GIB)  # 8 - (3 - 1)


def test_version_1_has_a_hierarchy_a_controller(tmp_path: Path) -> None:
    found = limits(tree(tmp_path, V1_LIMIT))
    assert (found.cpus, found.memory_bytes, found.memory_free_bytes) == (1.5, 2 * GIB, GIB)


def test_a_container_that_sees_its_own_group_as_the_top(tmp_path: Path) -> None:
    """The path is told from the host's top, and the mount shows that very group as its root."""
    files = {"proc/self/cgroup": "0::/docker/abc\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}
    files["proc/self/mountinfo"] = "31 23 0:28 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    assert limits(tree(tmp_path, files)).cpus == 0.5


def test_no_limit_is_none(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": V2, "sys/fs/cgroup/cpu.max": "max 100000\n"}
    assert limits(tree(tmp_path, files)) == limits(tmp_path / "nothing")


def test_threads_and_memory_respect_the_container(tmp_path: Path) -> None:
    facts = host_facts(server(tmp_path, **V2_LIMIT), frozenset(range(8)))
    assert (facts.cpu_limit, facts.threads) == (2.5, 2)
    assert (facts.memory_limit_bytes, facts.memory_available_bytes) == (8 * GIB, 6 * GIB)
    assert len(one_cpu_per_core(facts, tmp_path)) == 2
    half = host_facts(server(tmp_path, **{**V2_LIMIT, "sys/fs/cgroup/pod/cpu.max": "50000 100000"}), frozenset({0}))
    assert half.threads == 1  # less than a CPU still runs


def test_a_fingerprint_holds_what_stays(tmp_path: Path) -> None:
    here = fingerprint(identity(server(tmp_path / "a")))
    busy = server(tmp_path / "b", **{"proc/loadavg": "9 9 9 1/1 1", "proc/cpuinfo": X86 + "cpu MHz : 1\n"})
    assert fingerprint(identity(busy)) == here
    assert fingerprint(identity(server(tmp_path / "c", **{"proc/cpuinfo": X86.replace("9000", "9001")}))) != here
    assert fingerprint(identity(server(tmp_path / "d", **{"proc/meminfo": "MemTotal: 1024 kB\n"}))) != here
    assert fingerprint(identity(tmp_path / "a"), ("NVIDIA H200",)) != here


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("a-b", set()), ("3-", set())]
)
def test_sets_of_cpus(text: str, cpus: set[int]) -> None:
    assert listed(text) == cpus


def test_the_driver_speaks_for_itself(tmp_path: Path) -> None:
    shown = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
    root = tree(tmp_path, {"proc/driver/nvidia/version": shown})
    assert driver_version(root) == "550.54.15"
    assert device_names(root) is None
    root = tree(tmp_path, {"proc/driver/nvidia/gpus/0000:18:00.0/information": "Model: \t\t NVIDIA H200\nIRQ: 1\n"})
    assert device_names(root) == ("NVIDIA H200",)
