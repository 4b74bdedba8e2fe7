"""The catalogue as it stands: every file loads, every value has a source, and the figures agree with each other."""

import pytest

from rooflens.hardware.lint import lint
from rooflens.hardware.load import catalog_ids, load_chip

GPUS = (
    *("b200", "h200-sxm", "h100-sxm", "h100-pcie", "a100-sxm-80gb", "a100-sxm-40gb", "v100-sxm2"),
    *("t4", "l4", "l40s", "a10g", "rtx-3090", "rtx-4090", "rtx-5090", "mi250x", "mi300x"),
    *("jetson-orin-agx", "jetson-orin-nano", "apple-m2-max", "apple-m4-max"),
)
IDS = catalog_ids()

# (chip, dtype, unit, dense peak, off-chip bandwidth, ridge of the two)
SPOT_CHECKS = [
    # 132 SMs x 4096 per clock x 1.83 GHz = 989.4 T; five HBM3 stacks print 3.35 TB/s; 989.4 / 3.35 = 295
    ("h100-sxm", "bf16", "matrix", 989.4e12, 3.35e12, 295.3),
    # 114 SMs x 4096 x 1.62 GHz = 756 T, half of the 1,513 with sparsity; HBM2e at 2 TB/s
    ("h100-pcie", "bf16", "matrix", 756e12, 2.0e12, 378.0),
    # the same GPU as H100 SXM with HBM3e at 4.8 TB/s
    ("h200-sxm", "bf16", "matrix", 989.4e12, 4.8e12, 206.1),
    # 4.5 PFLOP/s with sparsity, so 2.25 dense; 64 TB/s over the eight GPUs of a DGX
    ("b200", "bf16", "matrix", 2.25e15, 8.0e12, 281.3),
    # 108 SMs x 2048 x 1.41 GHz = 311.9 T; HBM2e at 2039 GB/s
    ("a100-sxm-80gb", "bf16", "matrix", 312e12, 2.039e12, 153.0),
    ("a100-sxm-40gb", "bf16", "matrix", 312e12, 1.555e12, 200.6),
    # 80 SMs x 1024 x 1.53 GHz = 125.3 T; Volta has no bf16
    ("v100-sxm2", "fp16", "matrix", 125e12, 0.9e12, 138.9),
    # 40 SMs x 1024 x 1.59 GHz = 65.1 T; 256 bits of GDDR6 at 10 Gbit/s
    ("t4", "fp16", "matrix", 65e12, 0.32e12, 203.1),
    # 82 SMs x 512 x 1.695 GHz = 71.2 T with fp32 accumulate; 384 bits of GDDR6X at 19.5 Gbit/s
    ("rtx-3090", "fp16", "matrix", 71e12, 0.936e12, 75.9),
    # 128 SMs x 512 x 2.52 GHz = 165.2 T with fp32 accumulate; 384 bits at 21 Gbit/s
    ("rtx-4090", "bf16", "matrix", 165.2e12, 1.008e12, 163.9),
    # 170 SMs x 512 x 2.407 GHz = 209.5 T with fp32 accumulate; 512 bits at 28 Gbit/s
    ("rtx-5090", "bf16", "matrix", 209.5e12, 1.792e12, 116.9),
    # 220 CUs x 1024 x 1.7 GHz = 383 T for the package; 8192 bits at 3.2 Gbit/s
    ("mi250x", "bf16", "matrix", 383e12, 3.2768e12, 116.9),
    # 304 CUs x 2048 x 2.1 GHz = 1307 T; 8192 bits at 5.2 Gbit/s
    ("mi300x", "bf16", "matrix", 1307.4e12, 5.3e12, 246.7),
    # 58 SMs x 1024 x 2.04 GHz = 121.2 T, half of the 242 with sparsity
    ("l4", "bf16", "matrix", 121e12, 0.3e12, 403.3),
    # 38 cores x 256 x 1.398 GHz = 13.6 T; no matrix units
    ("apple-m2-max", "fp32", "vector", 13.6e12, 0.4e12, 34.0),
]


def test_gpus_of_the_contract_are_there() -> None:
    assert set(GPUS) <= set(IDS)


@pytest.mark.parametrize("chip_id", IDS)
def test_file_loads_under_its_own_name(chip_id: str) -> None:
    chip = load_chip(chip_id)
    assert chip.id == chip_id
    assert chip.name and chip.vendor != "unknown" and chip.family and chip.year
    assert chip.offchip is not None


@pytest.mark.parametrize("chip_id", IDS)
def test_no_value_without_source(chip_id: str) -> None:
    for fact in load_chip(chip_id).facts:
        assert " " in fact.source.strip(), f"{chip_id}: {fact.key}: '{fact.source}' names no document"


def test_lint_of_the_whole_catalogue_gives_no_error() -> None:
    findings = lint(tuple(load_chip(i) for i in IDS))
    assert [f"{f.chip}: {f.key}: {f.message}" for f in findings if f.severity == "error"] == []


@pytest.mark.parametrize("chip_id", GPUS)
def test_gpus_give_not_even_a_warning(chip_id: str) -> None:
    assert lint((load_chip(chip_id),)) == ()


@pytest.mark.parametrize("chip_id", GPUS)
def test_units_times_operations_times_clock_is_the_printed_peak(chip_id: str) -> None:
    """Within 3 %; Hopper and B200 quote tensor rates at a lower clock than the vector rates."""
    chip = load_chip(chip_id)
    count, clocks = chip.value("units.count"), (chip.value("clock.peak"), chip.value("clock.boost"))
    rates = [(p.flop_per_s, chip.value(f"ops_per_clock.{p.dtype}.{p.unit}")) for p in chip.peaks]
    known = [(peak, ops) for peak, ops in rates if peak is not None]
    assert count and known
    for peak, ops in known:
        assert ops is not None
        assert any(count * ops * clock == pytest.approx(peak, rel=0.03) for clock in clocks if clock)


@pytest.mark.parametrize("chip_id", GPUS)
def test_ridges_are_plausible(chip_id: str) -> None:
    """In FLOP/byte: matrix units from 4 (fp64) to 2000 (4 bits); no vector rate above the matrix rate of its dtype."""
    chip = load_chip(chip_id)
    matrix = {p.dtype: r for p in chip.peaks if p.unit == "matrix" and (r := chip.ridge(p.dtype, "matrix"))}
    vector = {p.dtype: r for p in chip.peaks if p.unit == "vector" and (r := chip.ridge(p.dtype, "vector"))}
    assert all(4 < r < 2000 for r in matrix.values())
    assert all(0.5 < r < 200 for r in vector.values())
    assert all(vector[d] <= matrix[d] for d in matrix.keys() & vector.keys())


@pytest.mark.parametrize("chip_id", GPUS)
def test_matrix_rows_hold_what_matrix_units_do(chip_id: str) -> None:
    """No fp32 under matrix but on AMD, whose matrix cores have it; no tf32 under vector anywhere."""
    chip = load_chip(chip_id)
    assert (chip.peak("fp32", "matrix") is not None) == (chip.vendor == "AMD")
    assert chip.peak("tf32", "vector") is None


@pytest.mark.parametrize(("chip_id", "dtype", "unit", "peak", "bandwidth", "ridge"), SPOT_CHECKS)
def test_spot(chip_id: str, dtype: str, unit: str, peak: float, bandwidth: float, ridge: float) -> None:
    chip = load_chip(chip_id)
    assert chip.peak(dtype, unit) == pytest.approx(peak, rel=0.002)
    assert chip.offchip is not None
    assert chip.offchip.bandwidth_bytes_per_s == pytest.approx(bandwidth, rel=0.002)
    assert chip.ridge(dtype, unit) == pytest.approx(ridge, rel=0.005)


def test_capacities_are_the_vendors_gb() -> None:
    sizes = {"h100-sxm": 80e9, "h200-sxm": 141e9, "b200": 180e9, "mi300x": 192e9, "rtx-5090": 32e9, "v100-sxm2": 16e9}
    assert {i: load_chip(i).value(f"memory.{level}.capacity") for i in sizes if (level := _offchip(i))} == sizes


def test_l1_of_a_gpu_counts_every_sm() -> None:
    """108 SMs of 192 KiB on A100."""
    level = next(m for m in load_chip("a100-sxm-80gb").memory if m.level == "l1")
    assert level.capacity_bytes == 108 * 192 * 1024


def _offchip(chip_id: str) -> str:
    level = load_chip(chip_id).offchip
    return level.level if level else ""


def test_list_prints_every_id_whole_in_80_columns(cli) -> None:
    """An id that is cut cannot be typed after --on."""
    lines = cli("hardware", "list").stdout.splitlines()
    assert set(IDS) <= {line.split()[0] for line in lines if line.strip()}
    assert max(map(len, lines)) <= 80
    assert "hypothetical) (hypothetical" not in " ".join(" ".join(lines).split())


@pytest.mark.parametrize("chip", ["h100-sxm", "hexagon-v73", "tpu-v4"])
def test_show_cuts_no_key_and_no_source(cli, chip: str) -> None:
    assert "…" not in cli("hardware", "show", chip).stdout


def test_sizes_read_as_in_the_datasheet(cli) -> None:
    """H100: 50 MiB of L2 (52.43 MB) and 80 GB of HBM (74.51 GiB); i9-10940X: 19.25 MiB of L3."""
    shown = cli("hardware", "compare", "h100-sxm", "i9-10940x").stdout
    cells = {line.split()[0]: " ".join(line.split()[1:]) for line in shown.splitlines() if line.startswith("memory.")}
    assert cells["memory.l2.capacity"] == "50 MiB 1 MiB"
    assert cells["memory.hbm.capacity"] == "80 GB –"
    assert cells["memory.l3.capacity"] == "– 19.25 MiB"


def test_many_chips_are_compared_a_row_each(cli) -> None:
    """H100 SXM's datasheet: 67 TFLOPS fp32, 989 bf16 and 1,979 int8 dense, 80 GB at 3.35 TB/s; 989.4 / 3.35 = 295."""
    shown = cli("hardware", "compare").stdout.splitlines()
    rows = [line.split() for line in shown if "B/s" in line]
    assert [row[0] for row in rows] == sorted(catalog_ids())
    assert max(map(len, shown)) <= 80
    (h100,) = (" ".join(row) for row in rows if row[0] == "h100-sxm")
    assert h100 == "h100-sxm 66.9 TOP/s 989 TOP/s 1.98 POP/s 3.35 TB/s 80 GB 295"
    assert "Hypothetical: kpu-t256, kpu-t64, kpu-t768" in " ".join(shown)
