"""`rooflens calibrate`: classes of ops, the fit of what they reach, and the times that come from it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rooflens
from rooflens.compare.reach import Timing, reaches_of
from rooflens.estimate.calibrated import expected, together
from rooflens.frontends.text import text_graph
from rooflens.hardware.load import load_chip
from rooflens.hardware.profile import Profile, Reach, load_profile, profile_text, shipped_profile
from rooflens.ops.classes import class_of

ROOT = Path(__file__).parent.parent


def reach(**changes: Any) -> Reach:
    plain = {
        "op_class": "gemm", "dtype": "fp32", "layout": "nchw", "overhead_s": 1.0, "work_share": 0.5, "bytes_share": 0.25,
        "low": 0.8, "high": 1.5, "points": 5,
    }  # fmt: skip
    return Reach(**{**plain, **changes})


def timing(work_s: float, moved_s: float, time_s: float) -> Timing:
    return Timing(op_class="gemm", dtype="fp32", layout="nchw", work_s=work_s, moved_s=moved_s, time_s=time_s)


def test_a_time_is_overhead_and_the_longer_of_two() -> None:
    assert reach().time_s(10.0, 1.0) == 1.0 + 10.0 / 0.5
    assert reach().time_s(1.0, 10.0) == 1.0 + 10.0 / 0.25
    assert reach(bytes_share=None).time_s(1.0, 10.0) == 1.0 + 10.0 / 0.5  # unknown: taken as the other


def test_the_fit_finds_what_the_points_were_made_with() -> None:
    true = reach(overhead_s=2.0)
    sizes = [1.0, 2.0, 4.0, 64.0, 256.0, 1024.0]
    made = [timing(w, m, true.time_s(w, m)) for s in sizes for w, m in ((s, s / 10), (s / 10, s))]
    (found,) = reaches_of(made)
    assert found.overhead_s == pytest.approx(2.0, rel=0.05)
    assert found.work_share == pytest.approx(0.5, rel=0.02)
    assert found.bytes_share == pytest.approx(0.25, rel=0.02)
    assert (found.low, found.high) == (pytest.approx(1.0, abs=0.05), pytest.approx(1.0, abs=0.05))
    assert found.points == 12


def test_sizes_that_are_alike_tell_no_overhead() -> None:
    (found,) = reaches_of([timing(1.0, 0.1, 4.0), timing(1.1, 0.1, 4.4)])
    assert found.overhead_s == 0.0
    assert found.work_share == pytest.approx(0.25)


def test_a_share_is_never_above_the_roof() -> None:
    (found,) = reaches_of([timing(1.0, 0.1, 0.5)])  # a cache, or Winograd
    assert found.work_share == 1.0


def test_times_never_lie_below_the_roof() -> None:
    found = expected(10.0, 10.0, 1.0, reach(overhead_s=0.0, work_share=1.0, low=0.5))
    assert found.time_s == 10.0
    assert found.low_s == 10.0
    assert found.high_s == 15.0


def test_what_was_never_run_is_a_floor_of_low_confidence() -> None:
    assert expected(3.0, 3.0, 1.0, None) == (3.0, 3.0, None, "low")
    assert expected(3.0, 3.0, 1.0, reach(low=0.9, high=1.2)).confidence == "high"
    assert expected(3.0, 3.0, 1.0, reach(low=0.9, high=1.2, points=2)).confidence == "medium"
    assert expected(3.0, 3.0, 1.0, reach(low=0.2, high=5.0)).confidence == "low"


def test_a_sum_is_as_sure_as_nine_tenths_of_it() -> None:
    assert together([(9.0, "high"), (1.0, "low")]) == "high"
    assert together([(8.0, "high"), (2.0, "low")]) == "low"
    assert together([(8.0, "high"), (1.5, "medium"), (0.5, "low")]) == "medium"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1x64x8x8 | conv2d 64 k3", "conv"), ("1x64x8x8 | conv2d 64 k1", "conv 1x1"),
        ("1x64x8x8 | conv2d 64 k3 g64", "conv depthwise"), ("1x64x8x8 | conv2d 64 k3 g8", "conv grouped"),
        ("1x3x8x8 | conv2d 64 k3", "conv of few channels"), ("1x4x8x8 | convtranspose2d 4 k2", "conv transposed"),
        ("64x64 | linear 8", "gemm"), ("1x64 | linear 8", "gemm of few rows"), ("2x8 | gelu", "pointwise"),
        ("2x4x8x8 | avgpool 1 as a | mul input", "broadcast"), ("2x4x8x8 | concat input", "concat"),
        ("1x2x64x8 | attention", "attention"), ("1x2x1x8 | attention context=64", "attention decode"),
        ("2x8x16 | lstm 4", "recurrent"), ("2x8 | layernorm", "layernorm"), ("2x8 | embedding 10 4", "embedding"),
    ],
)  # fmt: skip
def test_classes(text: str, wanted: str) -> None:
    graph = text_graph(text)
    assert class_of(graph.ops[-1], graph.tensors) == wanted


def test_backward_kernels_are_their_own_classes() -> None:
    graph = text_graph("2x64x8x8 | conv2d 64 k3 | relu | conv2d 64 k3 g64", training=True)
    found = {class_of(op, graph.tensors) for op in graph.ops if op.pass_ == "backward"}
    assert found == {"conv backward", "pointwise backward", "conv depthwise backward"}


def profile(*reaches: Reach) -> Profile:
    return Profile(chip="l4", date="2026-01-01", device="L4", versions=(("torch", "2.13"),), reaches=reaches)


def test_an_estimate_comes_from_the_profile() -> None:
    """A product of 64 x 64 and 64 x 8 on an L4: what the roof asks for, and what the class reaches of it."""
    chip = load_chip("l4")
    floor = rooflens.analyze("64x64 | linear 8", on=chip).to_dict()
    slow = replace(chip, profile=profile(reach(overhead_s=1e-5, work_share=0.5, bytes_share=0.25)))
    d = rooflens.analyze("64x64 | linear 8", on=slow).to_dict()
    moved = (64 * 64 + 64 * 8 + 64 * 8) * 4 / chip.offchip.bandwidth_bytes_per_s
    assert floor["totals"]["device_time_s"] == pytest.approx(moved)
    assert d["totals"]["device_time_s"] == pytest.approx(1e-5 + moved / 0.25)
    assert d["totals"]["roofline_time_s"] == floor["totals"]["roofline_time_s"]
    assert d["totals"]["device_time_high_s"] == pytest.approx(1.5 * (1e-5 + moved / 0.25))
    assert d["hardware"]["calibrated"]
    assert d["totals"]["confidence"] == "medium"  # 1.5 / 0.8 is more than 1.5 apart
    bare = rooflens.analyze("64x64 | linear 8", on=slow, uncalibrated=True).to_dict()
    assert bare["totals"]["device_time_s"] == floor["totals"]["device_time_s"]
    assert not bare["hardware"]["calibrated"]


def test_the_other_sixteen_bits_and_the_usual_layout_stand_in() -> None:
    found = profile(reach(op_class="conv", dtype="bf16"))
    assert found.reach("conv", "fp16", "channels-last") is not None
    assert found.reach("conv", "fp32", "nchw") is None


def test_profiles_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFLENS_HOME", str(tmp_path))
    made = profile(reach())
    (tmp_path / "profile-l4.json").write_text(profile_text(made))
    schema = json.loads((ROOT / "src/rooflens/report/schemas/profile-1.json").read_text())
    jsonschema.validate(json.loads(profile_text(made)), schema)
    assert load_profile(tmp_path / "profile-l4.json") == made
    assert load_chip("l4").profile == made
    assert load_chip("l4 with memory.gddr.bandwidth=1TB/s").profile == made
    assert load_chip("t4").profile is None


@pytest.mark.parametrize("wrong", [{"work_share": 1.5}, {"overhead_s": -1}, {"points": 0}, {"layout": "odd"}])
def test_a_broken_profile_is_named(tmp_path: Path, wrong: dict[str, Any]) -> None:
    document = json.loads(profile_text(profile(reach())))
    document["reaches"][0] |= wrong
    file = tmp_path / "p.json"
    file.write_text(json.dumps(document))
    with pytest.raises(rooflens.RooflensError, match=next(iter(wrong))):
        load_profile(file)


def test_the_shipped_profile_is_sane() -> None:
    found = shipped_profile("h200-sxm")
    assert found is not None
    schema = json.loads((ROOT / "src/rooflens/report/schemas/profile-1.json").read_text())
    jsonschema.validate(json.loads(profile_text(found)), schema)
    gemm = found.reach("gemm", "bf16", "nchw")
    assert gemm is not None and gemm.work_share is not None
    assert 0.6 < gemm.work_share < 1  # cuBLAS on large bf16 products
    d = rooflens.analyze("resnet18", on="h200-sxm").to_dict()
    assert all(o["device_time_s"] >= o["roofline_time_s"] for o in d["ops"])


def test_a_real_run_of_a_few_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from rooflens.benches import calibration
    from rooflens.calibrating import calibrate_device

    monkeypatch.setattr(calibration, "TEXTS", ("64x64 | linear 64", "1x8x8x8 | conv2d 8 k3 p1", "4x64 | layernorm"))
    monkeypatch.setattr(calibration, "FUNCTIONS", calibration.FUNCTIONS[:1])
    monkeypatch.setattr(calibration, "_SHAPES", ((1, 4, 8, 8),) * 3)
    told: list[int] = []
    made, timings = calibrate_device(
        load_chip("i7-12700k"), device="cpu", quick=False, dtypes=("fp32",), progress=lambda w, n, of: told.append(n)
    )
    assert {"gemm", "conv", "conv backward", "layernorm", "layernorm backward", "copy"} <= {
        r.op_class for r in made.reaches
    }
    assert all(t.time_s > 0 for t in timings)
    assert told[-1] == len(told)


def test_without_a_machine_it_says_what_to_run_first(cli, tmp_path: Path) -> None:
    done = cli("calibrate", "--quick", env={"ROOFLENS_HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "rooflens machine" in done.stderr


@pytest.mark.parametrize(
    ("args", "word"),
    [(("--dtype", "fp99"), "fp99"), (("--on", "t4"), "gpu"), (("--on", "i7-12700k", "--dtype", "fp8"), "fp8")],
)
def test_what_cannot_be_calibrated_is_refused(cli, args: tuple[str, ...], word: str) -> None:
    """A CPU says nothing about a GPU's roofs."""
    given = args if "--on" in args else ("--on", "i7-12700k", *args)
    done = cli("calibrate", "--quick", "--device", "cpu", *given)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert word in done.stderr


def test_a_profile_is_shown_again(cli, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(profile_text(profile(reach())))
    done = cli("report", "p.json", "--format", "md")
    assert done.returncode == 0, done.stderr
    assert "| gemm | fp32 | nchw | 1 s | 50% | 25% | 0.80x | 1.50x | 5 |" in done.stdout


def test_a_forecast_is_not_held_against_a_floor() -> None:
    """A profile that knows products in fp32 alone: bf16 is taken to be as far from its roof, so half the bytes are half
    the time."""
    chip = replace(load_chip("l4"), profile=profile(reach(overhead_s=0.0, work_share=0.01, bytes_share=0.01)))
    found = rooflens.analyze("64x64 | linear 64", on=chip).to_dict()
    gain = next(a["gain_share"] for a in found["advice"] if a["action"] == "compute in bf16")
    assert gain == pytest.approx(0.5)
