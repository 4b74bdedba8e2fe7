"""The numbers that the product must show, from derivations written here and from exact counts made by hand."""

import json
from math import prod

import pytest

import rooflens
from rooflens.hardware.load import catalog_ids, load_chip

RESNET18 = {
    "ops": 69, "kernels": 68, "flops": 3_637_806_568, "macs": 1_814_073_344, "input_bytes": 37_232_640,
    "output_bytes": 32_921_504, "param_bytes": 46_796_448, "bytes": 116_950_592,
}  # fmt: skip
MOBILENET_V2 = {
    "ops": 153, "kernels": 151, "flops": 627_396_456, "macs": 300_774_272, "input_bytes": 80_186_368,
    "output_bytes": 78_722_720, "param_bytes": 14_155_936, "bytes": 173_065_024,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wanted", "params"), [("resnet18", RESNET18, 11_689_512), ("mobilenet_v2", MOBILENET_V2, 3_504_872)]
)
def test_totals(name: str, wanted: dict[str, int], params: int) -> None:
    d = rooflens.analyze(name).to_dict()
    assert {k: d["totals"][k] for k in wanted} == wanted
    assert d["model"]["params"] == params
    assert d["coverage"]["opaque"] == []


@pytest.mark.parametrize(("name", "wanted"), [("resnet18", 7_020_265_472), ("mobilenet_v2", 1_181_421_056)])
def test_backward_of_conv_and_linear(name: str, wanted: int) -> None:
    """Twice the forward's macs, less the image's gradient; 2 per mac, biases not counted."""
    d = rooflens.analyze(name, mode="training").to_dict()
    assert 2 * sum(op["macs"] for op in d["ops"] if op["pass"] == "backward") == wanted
    forward = sum(op["macs"] for op in d["ops"] if op["pass"] == "forward")
    image = next(op["macs"] for op in d["ops"] if op["kind"] == "conv")
    assert wanted == 2 * (2 * forward - image)


@pytest.mark.parametrize(("name", "gmac"), [("vit_b_16", 17.564), ("resnext50_32x4d", 4.230)])
def test_macs_of_other_models(name: str, gmac: float) -> None:
    assert round(rooflens.analyze(name).to_dict()["totals"]["macs"] / 1e9, 3) == gmac


def test_vit_attention_by_hand() -> None:
    """12 layers of 197 tokens, 768 wide: q kT and p v are 197*197*768 macs each."""
    d = rooflens.analyze("vit_b_16").to_dict()
    attention = [op for op in d["ops"] if op["kind"] == "attention"]
    assert len(attention) == 12
    assert {op["macs"] for op in attention} == {2 * 197 * 197 * 768}


def test_the_textbook_view() -> None:
    """int8, one channel: conv 3x3 18 ops over 9 + 1 bytes, ReLU 1 over 2, 2x2 max-pool 3 over 5."""
    d = rooflens.analyze("1x1x64x64 | conv2d 1 k3 | relu | maxpool2d k2", dtype="int8", reuse="none").to_dict()
    found = [(r["ops_per_output"], r["bytes_per_output"], r["intensity"]) for r in (op["reuse"] for op in d["ops"])]
    assert found == [(18, 10, 1.8), (1, 2, 0.5), (3, 5, 0.6)]
    plain = rooflens.analyze("1x1x64x64 | conv2d 1 k3 | relu | maxpool2d k2", dtype="int8").to_dict()
    assert [op["bytes"] for op in d["ops"]] == [op["bytes"] for op in plain["ops"]]
    assert all(op["reuse"] is None for op in plain["ops"])


def test_line_buffer_reads_each_input_once() -> None:
    """A padded 3x3 over 8x8: 64 bytes in, 64 out, 2 bytes an output; pool: 4 in and 1 out; weights on chip."""
    d = rooflens.analyze("1x1x8x8 | conv2d 1 k3 p1 | relu | maxpool2d k2", dtype="int8", reuse="line-buffer").to_dict()
    assert [op["reuse"]["bytes_per_output"] for op in d["ops"]] == [2, 2, 5]


NET = "8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2"


def test_roofline_of_the_contract_example_by_hand() -> None:
    """A chip of 1 TFLOP/s and 100 GB/s has its ridge at 10. The conv: 8*128*1024 outputs of 576 macs and a bias."""
    chip = load_chip("i7-12700k with peak.fp32.vector=1TFLOP/s, memory.dram.bandwidth=100GB/s")
    d = rooflens.analyze(NET, on=chip).to_dict()
    conv, relu, pool = d["ops"]
    outputs = 8 * 128 * 32 * 32
    flops = outputs * (2 * 576 + 1)
    moved = 4 * (8 * 64 * 1024 + 128 * 64 * 9 + 128 + outputs)
    assert (conv["flops"], conv["bytes"]) == (flops, moved)
    assert conv["roofline_time_s"] == pytest.approx(flops / 1e12, rel=1e-12)
    assert (conv["zone"], conv["unit"], conv["bound"]) == ("compute-bound", "vector", "compute")
    assert relu["roofline_time_s"] == pytest.approx(8 * outputs / 100e9, rel=1e-12)
    assert (relu["zone"], relu["bound"], relu["intensity_flop_per_byte"]) == ("memory-bound", "memory", 1 / 8)
    assert relu["ceiling_flop_per_s"] == pytest.approx(100e9 / 8, rel=1e-12)
    assert pool["flops"] == outputs // 4 * 3
    assert d["totals"]["roofline_time_s"] == pytest.approx(sum(op["roofline_time_s"] for op in d["ops"]), rel=1e-12)
    assert sum(op["share"] for op in d["ops"]) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(
    ("factor", "zone"), [(0.85, "compute-bound"), (1.05, "ridge"), (0.95, "ridge"), (1.2, "memory-bound")]
)
def test_zone_is_ridge_within_ten_percent(factor: float, zone: str) -> None:
    """A 512-cube product does 512/6 FLOP per byte in fp32; the ridge is put at `factor` times that."""
    intensity = 2 * 512**3 / (4 * 3 * 512**2)
    chip = f"i7-12700k with peak.fp32.vector={intensity * factor}TFLOP/s, memory.dram.bandwidth=1TB/s"
    assert rooflens.analyze("512x512 | linear 512", on=chip).to_dict()["ops"][0]["zone"] == zone


def test_a_relu_never_stands_under_a_matrix_roof() -> None:
    d = rooflens.analyze("64x4096 | linear 4096 | relu", on="h100-sxm", dtype="bf16").to_dict()
    linear, relu = d["ops"]
    assert (linear["unit"], relu["unit"]) == ("matrix", "vector")
    assert linear["ridge_flop_per_byte"] == pytest.approx(989.4e12 / 3.35e12, rel=1e-9)
    assert relu["ridge_flop_per_byte"] == pytest.approx(133.8e12 / 3.35e12, rel=1e-9)


def test_unpublished_is_null_with_a_note_and_status_0(cli) -> None:
    done = cli("analyze", NET, "--on", "tpu-v6e", "--dtype", "bf16", "--format", "json")
    assert done.returncode == 0
    d = json.loads(done.stdout)
    assert d["totals"]["roofline_time_s"] is None
    assert any("vector" in n for n in d["notes"])
    assert d["ops"][0]["roofline_time_s"] is not None  # the matrix rate is published
    assert d["ops"][1]["roofline_time_s"] is None


@pytest.mark.parametrize("chip", catalog_ids())
def test_every_chip_prices_a_net_in_a_dtype_it_has(chip: str) -> None:
    """No time below work/peak or bytes/bandwidth of the chip (the roof holds)."""
    hardware = load_chip(chip)
    have = {p.dtype for p in hardware.peaks}
    dtype = next(d for d in ("bf16", "fp16", "int8", "fp32") if d in have)
    d = rooflens.analyze(NET, on=chip, dtype=dtype).to_dict()
    best = max((p.flop_per_s for p in hardware.peaks if p.flop_per_s), default=None)
    bandwidth = hardware.offchip.bandwidth_bytes_per_s if hardware.offchip else None
    for op in d["ops"]:
        if op["device_time_s"] is not None:
            assert op["device_time_s"] >= op["flops"] / best * (1 - 1e-12)
            assert op["device_time_s"] >= op["bytes"] / bandwidth * (1 - 1e-12)
        else:
            assert d["notes"]


def test_dtypes_store_what_they_say() -> None:
    """A 64x64 linear layer with bias, 8 rows: activations and weights at their stored sizes."""
    text = "8x64 | linear 64 bias"
    sizes = {
        "fp32": (4, 4, 4),
        "tf32": (4, 4, 4),
        "bf16": (2, 2, 2),
        "fp8": (1, 1, 1),
        "int8": (1, 1, 1),
        "w8a16": (2, 1, 2),
        "w4a16": (2, 0.5, 2),
    }
    for dtype, (activation, weight, bias) in sizes.items():
        op = rooflens.analyze(text, dtype=dtype).to_dict()["ops"][0]
        assert op["bytes"] == 2 * 8 * 64 * activation + 64 * 64 * weight + 64 * bias, dtype


def test_sparse_and_compressed_weights() -> None:
    """2:4 in bf16 keeps 8 bits of 16 and a 2-bit position for each of two of four: 9 bits a weight. Density halves."""
    text, n = "8x4096 | linear 4096", 4096 * 4096
    assert rooflens.analyze(text, dtype="bf16", sparsity="2:4").to_dict()["ops"][0]["param_bytes"] == n * 9 // 8
    assert rooflens.analyze(text, dtype="bf16", weight_density=0.5).to_dict()["ops"][0]["param_bytes"] == n
    dense = rooflens.analyze("8192x8192 | linear 8192", dtype="bf16", on="h100-sxm").to_dict()
    sparse = rooflens.analyze("8192x8192 | linear 8192", dtype="bf16", on="h100-sxm", sparsity="2:4").to_dict()
    assert dense["totals"]["device_time_s"] == pytest.approx(2 * sparse["totals"]["device_time_s"], rel=1e-3)


def test_advice_is_sorted_and_equals_a_run_with_the_change() -> None:
    a = rooflens.analyze("resnet18", on="a100-sxm-80gb with launch.eager=0s")
    found = a.to_dict()["advice"]
    assert [x["gain_s"] for x in found] == sorted((x["gain_s"] for x in found), reverse=True)
    assert {x["move"] for x in found} == {"right", "up", "roof"}
    before = a.to_dict()["totals"]["device_time_s"]

    def gain(action: str) -> float:
        return next(x["gain_s"] for x in found if x["action"] == action)

    bf16 = rooflens.analyze("resnet18", on="a100-sxm-80gb", dtype="bf16").to_dict()["totals"]["device_time_s"]
    assert gain("compute in bf16") == pytest.approx(before - bf16, rel=1e-9)
    tf32 = rooflens.analyze("resnet18", on="a100-sxm-80gb", dtype="tf32").to_dict()["totals"]["device_time_s"]
    assert gain("compute in tf32") == pytest.approx(before - tf32, rel=1e-9)
    batch = rooflens.analyze("resnet18", on="a100-sxm-80gb", batch=8).to_dict()["totals"]["device_time_s"]
    assert gain("batch 8 times larger") == pytest.approx(before - batch / 8, rel=1e-9)
    wide = rooflens.analyze("resnet18", on="a100-sxm-80gb with memory.hbm.bandwidth=4078GB/s").to_dict()["totals"][
        "device_time_s"
    ]
    assert gain("twice the memory bandwidth") == pytest.approx(before - wide, rel=1e-9)


def test_never_accelerate_relu_alone() -> None:
    """Its time is its bytes: free arithmetic gains nothing, where the convolution's gains most."""
    found = rooflens.analyze("resnet18", on="l4", batch=16).to_dict()["advice"]
    alone = {x["target"]: x["gain_s"] for x in found if x["target"].startswith("kind ")}
    assert alone["kind relu"] == 0
    assert alone["kind conv"] == max(alone.values()) > 0


def test_launch_bound_is_said_first() -> None:
    """68 kernels at 10 us each outlast their work; in a graph at 0 they do not."""
    chip = "h100-sxm with launch.eager=10us, launch.graph=0s"
    d = rooflens.analyze("resnet18", on=chip).to_dict()
    assert d["totals"]["launch_bound"] is True
    assert d["totals"]["bound"] == "launch"
    assert d["totals"]["latency_s"] == pytest.approx(68 * 10e-6, rel=1e-9)
    graph = rooflens.analyze("resnet18", on=chip, execution="graph").to_dict()
    assert graph["totals"]["latency_s"] == pytest.approx(graph["totals"]["device_time_s"], rel=1e-12)
    assert graph["totals"]["launch_bound"] is False


def test_shapes_multiply_out_in_the_json() -> None:
    d = rooflens.analyze("resnet18", batch=2).to_dict()
    conv = d["ops"][0]
    x, w = conv["inputs"]
    assert (x["shape"], w["shape"], w["role"]) == ([2, 3, 224, 224], [64, 3, 7, 7], "param")
    assert conv["macs"] == prod(conv["outputs"][0]["shape"]) * prod(w["shape"][1:])


@pytest.mark.parametrize("chip", ["h100-sxm", "t4", "mi300x", "tpu-v5e"])
def test_dots_of_narrow_types_stand_under_the_roof_they_were_priced_at(chip: str) -> None:
    """Vector work in int8 falls to another type's rate; the chart's main roofs are the ones that were used."""
    from rooflens.report.sections.chart import chart_of

    d = rooflens.analyze("8x64x32x32 | conv2d 128 k3 p1 | relu", on=chip, dtype="int8").to_dict()
    chart = chart_of(d)
    assert chart is not None
    slope = d["hardware"]["memory"][-1]["bandwidth_bytes_per_s"]
    ridges = {op["ridge_flop_per_byte"] for op in d["ops"] if op["ridge_flop_per_byte"]}
    assert {round(r.flop_per_s / slope, 6) for r in chart.roofs if r.main} == {round(r, 6) for r in ridges}


def test_a_ceiling_without_a_published_peak_is_null() -> None:
    conv = rooflens.analyze("resnet18", on="tpu-v4").to_dict()["ops"][0]
    assert (conv["ceiling_flop_per_s"], conv["roofline_time_s"], conv["zone"]) == (None, None, None)


def test_backward_belongs_to_the_module_that_caused_it() -> None:
    d = rooflens.analyze("resnet18", mode="training").to_dict()
    backward = [op for op in d["ops"] if op["pass"] == "backward"]
    assert [op["id"] for op in backward if op["kind"] == "matmul"] == ["fc@backward", "fc@backward:2"]
    assert {op["module"] for op in backward if op["kind"] in ("matmul", "sum")} == {"fc"}
    conv = next(op for op in backward if op["kind"] == "conv_backward")
    assert conv["module"] == "layer4.1.conv2"  # the last convolution goes first


def test_the_documented_chip_file_is_a_good_one(tmp_path) -> None:
    import re
    from pathlib import Path

    from rooflens.hardware.lint import lint

    text = (Path(__file__).parent.parent / "docs/hardware.md").read_text()
    block = re.search(r"## A chip file\n\n((?:    .*\n|\n)+)", text)
    assert block is not None
    file = tmp_path / "mychip.toml"
    file.write_text("\n".join(line[4:] for line in block.group(1).splitlines()))
    assert [f for f in lint((load_chip(str(file)),)) if f.severity == "error"] == []
    totals = rooflens.analyze(NET, on=str(file), dtype="bf16").to_dict()["totals"]
    assert totals["device_time_s"] is not None


def test_an_analysis_has_a_short_repr() -> None:
    assert len(repr(rooflens.analyze("resnet18", on="l4"))) < 200


def test_a_level_that_fuses_no_more_is_no_further_advice() -> None:
    """conv + relu are one unit at chain; residual and tile find nothing else in a graph of two ops."""
    advice = rooflens.analyze("1x1x64x64 | conv2d 1 k3 | relu", on="linebuffer-cnn", dtype="int8").to_dict()["advice"]
    assert [a["action"] for a in advice if a["action"].startswith("fuse")] == ["fuse (chain)"]


@pytest.mark.parametrize(("mode", "proposed"), [("inference", True), ("training", False)])
def test_nobody_is_told_to_train_in_int8(mode: str, proposed: bool) -> None:
    advice = rooflens.analyze("8x64 | linear 64 | relu", on="i7-8750h", mode=mode).to_dict()["advice"]
    assert ("compute in int8" in {a["action"] for a in advice}) is proposed
