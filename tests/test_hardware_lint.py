"""Each lint check finds its planted fault, and says nothing about the chip without it."""

import json
from pathlib import Path

import pytest

from rooflens.hardware.lint import CHIP_CHECKS, SET_CHECKS, Finding, lint
from rooflens.hardware.load import load_chip, parse_chip
from rooflens.hardware.records import Hardware, with_fact

PLANTED = [
    ("sparse peak in the dense row", "h100-sxm", {"peak.int8.matrix": 3957.8e12}, "error", "peak.int8.matrix"),
    ("bandwidth in GB/s instead of TB/s", "h100-sxm", {"memory.hbm.bandwidth": 3.35e9}, "error", "peak.fp8.matrix"),
    ("peak in GFLOP/s", "rtx-4090", {"peak.fp32.vector": 82.6e9}, "error", "peak.fp32.vector"),
    ("int8 rate in the fp32 row", "l4", {"peak.fp32.matrix": 242.5e12}, "error", "peak.fp32.matrix"),
    (
        "int8 slower than fp16",
        "t4",
        {"peak.int8.matrix": 32e12, "peak.int4.matrix": 32e12},
        "warning",
        "peak.int8.matrix",
    ),
    (
        "sparse not twice dense",
        "a100-sxm-80gb",
        {"peak.bf16.matrix_sparse": 312e12},
        "error",
        "peak.bf16.matrix_sparse",
    ),
    ("fp32 rate in the int8 row of a CPU", "i7-8750h", {"peak.int8.vector": 748.8e9}, "warning", "peak.fp32.vector"),
    ("sparse without dense", "v100-sxm2", {"peak.bf16.matrix_sparse": 250e12}, "error", "peak.bf16.matrix_sparse"),
    ("wrong number of units", "rtx-3090", {"units.count": 84 * 2}, "error", "peak.fp32.vector"),
    ("capacity in GiB", "h100-sxm", {"memory.hbm.capacity": 80 * 2**30}, "warning", "memory.hbm.capacity"),
    ("bandwidth in GiB/s", "mi300x", {"memory.hbm.bandwidth": 5300 * 2**30}, "warning", "memory.hbm.bandwidth"),
    ("cache in decimal MB", "h100-sxm", {"memory.l2.capacity": 50e6}, "warning", "memory.l2.capacity"),
    ("L1 of one SM", "a100-sxm-80gb", {"memory.l1.bandwidth": 19.49e12 / 108}, "warning", "memory.l1.bandwidth"),
    ("L3 slower than HBM", "mi300x", {"memory.l3.bandwidth": 1.72e12}, "warning", "memory.l3.bandwidth"),
]


def _with(chip: Hardware, changes: dict[str, float], source: str = "planted by a test") -> Hardware:
    for key, value in changes.items():
        chip = with_fact(chip, key, value, source)
    return chip


def _found(findings: tuple[Finding, ...]) -> set[tuple[str, str]]:
    return {(f.severity, f.key) for f in findings}


@pytest.mark.parametrize(("chip", "changes", "severity", "key"), [p[1:] for p in PLANTED], ids=[p[0] for p in PLANTED])
def test_planted_fault_is_found(chip: str, changes: dict[str, float], severity: str, key: str) -> None:
    good = load_chip(chip)
    assert (severity, key) not in _found(lint((good,)))
    assert (severity, key) in _found(lint((_with(good, changes),)))


@pytest.mark.parametrize(("source", "said"), [("", "without a source"), ("datashet", "names no document")])
def test_value_that_nobody_can_look_up(source: str, said: str) -> None:
    (finding,) = lint((_with(load_chip("t4"), {"power.tdp": 70.0}, source),))
    assert (finding.chip, finding.severity, finding.key) == ("t4", "error", "power.tdp")
    assert said in finding.message


def test_unpublished_needs_a_reason() -> None:
    document = {"kind": "gpu", "peak": {"fp32": {"vector": {"value": 1e12, "source": "a test"}}}}
    document["memory"] = {"hbm": {"capacity": {"unpublished": ""}}}
    (finding,) = lint((parse_chip(document, origin="x.toml", default_id="x"),))
    assert (finding.key, finding.severity) == ("memory.hbm.capacity", "error")


def test_newer_chip_of_no_lower_power_must_not_be_worse() -> None:
    older, newer = load_chip("h100-sxm"), load_chip("h200-sxm")
    worse = {p.dtype: p.flop_per_s * 0.4 for p in newer.peaks if p.unit == "matrix" and p.flop_per_s}
    changes = {f"peak.{d}.matrix": v for d, v in worse.items()} | {"memory.hbm.bandwidth": 2.4e12}
    found = lint((older, _with(newer, changes)))
    assert ("error", "year") in _found(found)
    assert next(f.chip for f in found if f.key == "year") == "h200-sxm"


def test_a_file_of_ones_own_is_held_against_its_family(cli, tmp_path: Path) -> None:
    """0.9 TB/s and 125 TFLOP/s are a V100's; an H100's are 3.35 TB/s and 1979 TFLOP/s at 700 W."""
    (tmp_path / "worse.toml").write_text(
        'kind = "gpu"\nfamily = "nvidia-datacenter"\nyear = 2026\nsource = "a test of rooflens"\n'
        '[peak.fp16]\nmatrix = "125 TFLOP/s"\n[memory.hbm]\nbandwidth = "900 GB/s"\n[power]\ntdp = "1000 W"\n'
    )
    done = cli("hardware", "lint", "worse.toml", "--format", "json")
    found = {(f["key"], f["message"].split(",")[0]) for f in json.loads(done.stdout)["findings"]}
    assert ("year", "newer than h100-sxm") in found
    assert done.returncode == 1


def test_a_reason_needs_no_document() -> None:
    document = {"kind": "gpu", "peak": {"fp32": {"vector": {"value": 1e12, "source": "a test"}}}}
    document["memory"] = {"hbm": {"capacity": {"unpublished": "secret"}}}
    assert not lint((parse_chip(document, origin="x.toml", default_id="x"),))


def test_smaller_sibling_of_a_later_year_is_no_fault() -> None:
    assert not lint((load_chip("jetson-orin-agx"), load_chip("jetson-orin-nano")))


def test_either_clock_may_reproduce_a_peak() -> None:
    """H100's vector rates hold at the boost clock, 8 % above the tensor clock."""
    chip = load_chip("h100-sxm")
    count, ops = chip.value("units.count"), chip.value("ops_per_clock.fp32.vector")
    assert count and ops
    assert count * ops * 1.83e9 < 0.93 * 66.9e12
    assert not lint((chip,))
    assert ("error", "peak.fp32.vector") in _found(lint((_with(chip, {"peak.fp32.vector": 133.8e12}),)))


def test_tpu_capacity_in_gib_is_how_google_prints_it() -> None:
    chip = _with(load_chip("tpu-v4"), {"memory.hbm.capacity": 32 * 2**30})
    assert ("warning", "memory.hbm.capacity") not in _found(lint((chip,)))


def test_lint_is_pure_and_ordered() -> None:
    chips = (load_chip("t4"), _with(load_chip("l4"), {"peak.fp32.matrix": 242.5e12}))
    assert lint(chips) == lint(chips)
    assert lint(()) == ()


def test_every_check_says_why_it_exists() -> None:
    assert all(check.__doc__ for check in (*CHIP_CHECKS, *SET_CHECKS))
