"""CHIP text: what `with` may change, which files it may name, and the types that a chip computes in."""

from pathlib import Path

import pytest

import rooflens
from rooflens.errors import HardwareError
from rooflens.hardware.load import catalog_ids, load_chip, split_chips

GEMM = "4096x4096 | linear 4096"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("l4 with memory.hbm.bandwidth=1TB/s", ("gddr", "memory.gddr.bandwidth", "memory.offchip.bandwidth")),
        ("h100-sxm with memory.dram.capacity=1GB", ("hbm", "memory.hbm.capacity", "memory.offchip.capacity")),
        ("l4 with", ("nothing after 'with'",)),
        ("l4 with ", ("nothing after 'with'",)),
    ],
)
def test_with_that_cannot_be_meant(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(HardwareError) as error:
        load_chip(text)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("level", ["gddr", "offchip"])
def test_with_changes_the_one_memory_that_there_is(level: str) -> None:
    chip = load_chip(f"l4 with memory.{level}.bandwidth=1TB/s")
    assert chip.offchip is not None
    assert chip.offchip.bandwidth_bytes_per_s == 1e12
    assert len(chip.memory) == len(load_chip("l4").memory)


VARIANT = "l4 with memory.gddr.bandwidth=1TB/s"


def test_a_chip_and_its_variant_are_told_apart(cli) -> None:
    """The id stays, as it says where to find the chip; its name says what was changed, and so does every report."""
    assert (load_chip(VARIANT).id, load_chip(VARIANT).name) == (
        "l4",
        "NVIDIA L4 24 GB with memory.gddr.bandwidth=1TB/s",
    )
    assert load_chip("l4").name == "NVIDIA L4 24 GB"
    rows = cli("analyze", GEMM, "--on", f"l4,{VARIANT}", "--format", "csv").stdout.splitlines()
    assert [row.split(",")[0] for row in rows] == ["chip", "l4", VARIANT]
    assert cli("analyze", GEMM, "--on", VARIANT).stdout.startswith(f"layers on {load_chip(VARIANT).name} (fp32")
    head = cli("hardware", "compare", "l4", VARIANT, "--format", "md").stdout.splitlines()[2]
    assert head == "| key | NVIDIA L4 24 GB | NVIDIA L4 24 GB with memory.gddr.bandwidth=1TB/s |"


def test_a_file_may_have_commas_and_with_in_its_name(cli, tmp_path: Path) -> None:
    name = "a with b, c=d.toml"
    (tmp_path / name).write_text("kind='gpu'\n[memory.hbm]\nbandwidth='1 TB/s'\n[peak.fp32]\nvector='10 TFLOP/s'\n")
    assert split_chips(str(tmp_path / name)) == (str(tmp_path / name),)
    assert load_chip(str(tmp_path / name)).peak("fp32", "vector") == 10e12
    for args in (("analyze", GEMM, "--on", name), ("hardware", "show", name)):
        assert cli(*args).returncode == 0


FP16_ONLY = [c for c in catalog_ids() if load_chip(c).has("fp16", "matrix") and not load_chip(c).has("bf16", "vector") and not
             load_chip(c).has("bf16", "matrix")]  # fmt: skip


def test_there_are_chips_of_fp16_without_bf16() -> None:
    assert {"t4", "v100-sxm2"} <= set(FP16_ONLY)


@pytest.mark.parametrize("chip", FP16_ONLY)
@pytest.mark.parametrize("dtype", ["w8a16", "w4a16"])
def test_16_bit_activations_run_at_the_16_bit_rate(chip: str, dtype: str) -> None:
    d = rooflens.analyze(GEMM, on=chip, dtype=dtype).to_dict()
    rate = load_chip(chip).peak("fp16", "matrix")
    op = d["ops"][0]
    assert (op["ceiling_dtype"], op["unit"]) == ("fp16", "matrix")
    if rate is not None:
        floor = 2 * 4096**3 / rate
        assert op["device_time_s"] == pytest.approx(
            max(floor, op["bytes"] / load_chip(chip).offchip.bandwidth_bytes_per_s)
        )
        assert any(f"bf16 matrix work runs at the fp16 matrix rate of {chip}" in n for n in d["notes"])
