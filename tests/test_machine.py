"""Ceilings that were measured: their document, their chip file, `--on this`, and how they look in a picture."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rooflens.benches import machine_cpu, machine_cuda
from rooflens.benches.bandwidth import STREAMS, footprints
from rooflens.benches.ceilings import BandwidthPoint, Ceilings, GemmPoint, Launch, LevelCeiling, PeakCeiling
from rooflens.benches.chip import chip_of
from rooflens.benches.cuda_kernels import CHAINS, FMA, UNROLLED, _chain_source
from rooflens.benches.gemm import Pool, products
from rooflens.benches.gpu import DeviceFacts
from rooflens.benches.host import host_facts
from rooflens.benches.machine import checked_device, cpu_ceilings
from rooflens.benches.pinning import Crew, pinned
from rooflens.benches.plateaus import Capacity
from rooflens.benches.rounds import Pace, Probe, in_rounds
from rooflens.benches.sampling import Raw, Samples
from rooflens.errors import ConfigError, HardwareError
from rooflens.hardware.identity import fingerprint, identity
from rooflens.hardware.load import load_chip, load_file
from rooflens.hardware.this import checked, path_of
from rooflens.hardware.write import measured_toml
from rooflens.report.machine import machine_document
from rooflens.report.render.plot import draw
from rooflens.report.render.textplot import draw as draw_text
from rooflens.report.render.textplot import plain
from rooflens.report.saved import read_documents
from rooflens.report.sections.machine import machine_blocks, machine_chart, machine_rows
from rooflens.report.sections.reference import charts_of

ROOT = Path(__file__).parent.parent
DATE = "2026-01-02T03:04:05Z"
TINY = machine_cpu.Plan(
    seconds=0, per_octave=0.4, dtypes=("fp32",), sizes=(64,), one_core_sizes=(64,), stream_s=2e-4, product_s=1e-3,
    most_bytes=2**22, least_rounds=1,
)  # fmt: skip
H200 = DeviceFacts(
    name="NVIDIA H200", index=0, capability="9.0", multiprocessors=132, memory_bytes=150 * 10**9, l2_bytes=50 * 2**20,
    clock_hz=1.98e9, memory_clock_hz=None, power_limit_w=700.0, driver="550.1", cuda="12.9",
)  # fmt: skip


def samples(*times: float) -> Samples:
    return Samples(times_s=times, warmups_s=(9.0,), rejected=(("not a number", float("nan")),), switches=1)


def level(name: str, rate: float | None, *, lower_bound: bool = False) -> LevelCeiling:
    return LevelCeiling(
        level=name, bandwidth_bytes_per_s=rate, one_core_bandwidth_bytes_per_s=rate and rate / 2, capacity_bytes=2**20,
        lower_bound=lower_bound, spread=0.01, kernel="add", why="the loop" if lower_bound else "",
    )  # fmt: skip


def ceilings(**changed: Any) -> Ceilings:
    found = Ceilings(
        device="cpu", name="Some CPU 9000", date=DATE, quick=False, fingerprint=fingerprint(identity()), host=host_facts(),
        cuda=None, clocks=(), threads=2, cpus=(0, 1),
        levels=(level("l1", 8e11, lower_bound=True), level("l2", None), level("dram", 5e10)),
        peaks=(
            PeakCeiling(dtype="fp32", unit="vector", flop_per_s=2e11, one_core_flop_per_s=1e11, spread=0.02, how="GEMM of 8"),
            PeakCeiling(dtype="fp32", unit="matrix", flop_per_s=None, why="no matrix unit", absent=True),
            PeakCeiling(dtype="fp16", unit="vector", flop_per_s=None, why="no fast product"),
        ),
        launch=Launch(eager_s=9e-7, graph_why="nothing to replay"),
        sweep=(BandwidthPoint(kernel="add", bytes=3072, threads=2, samples=samples(1e-8, 2e-8)),),
        gemm=(GemmPoint(dtype="fp32", library="torch", m=8, n=8, k=8, threads=2, samples=samples(1e-6)),),
        versions=(("torch", "2"),), notes=("a virtual machine",),
    )  # fmt: skip
    return replace(found, **changed)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROOFLENS_HOME", str(tmp_path))
    return tmp_path


def save(found: Ceilings) -> None:
    path_of(found.device).write_text(measured_toml(chip_of(found)))


def on_gpu(**changed: Any) -> Ceilings:
    names = fingerprint(identity(), (H200.name,))
    return ceilings(
        device="cuda", name=H200.name, cuda=H200, fingerprint=names, levels=(level("hbm", 4e12),), **changed
    )


# the document


def schema() -> Any:
    return json.loads((ROOT / "src/rooflens/report/schemas/machine-1.json").read_text())


@pytest.mark.parametrize("found", [ceilings(), on_gpu()], ids=["cpu", "cuda"])
def test_the_document_follows_its_schema(found: Ceilings) -> None:
    import jsonschema

    document = json.loads(json.dumps(machine_document(found, None), allow_nan=False))
    jsonschema.validate(document, schema())
    assert document["peak_flop_per_s"] == {"fp32": {"matrix": None, "vector": 2e11}}
    assert document["sweep"][0]["times_s"] == [1e-8, 2e-8]
    assert document["sweep"][0]["rejected"] == [{"reason": "not a number", "time_s": None}]
    assert document["gemm"][0]["flop_per_s"] == pytest.approx(2 * 8**3 / 1e-6)


def test_every_field_is_documented() -> None:
    told = (ROOT / "docs" / "json.md").read_text() + (ROOT / "docs" / "machine.md").read_text()
    assert [name for name in schema()["properties"] if f"`{name}" not in told] == []


def test_a_saved_document_is_drawn_again(tmp_path: Path, cli: Any) -> None:
    file, picture = tmp_path / "m.json", tmp_path / "m.svg"
    file.write_text(json.dumps(machine_document(ceilings(), "/somewhere/this-cpu.toml")))
    done = cli("report", str(file), "--plot", str(picture), env={"ROOFLENS_HOME": str(tmp_path / "none")})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Some CPU 9000" in done.stdout
    assert ">= 800 GB/s" in done.stdout
    assert "dram measured 50 GB/s" in picture.read_text()
    again = cli("report", str(file), "--format", "csv").stdout.splitlines()
    assert again[1].startswith("bandwidth,l1,800000000000.0,B/s,400000000000.0,0.01,")


def test_a_damaged_document_is_refused_by_field(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps(machine_document(ceilings(), None) | {"memory": [{"level": "l9"}]}))
    with pytest.raises(ConfigError, match=r"memory\[0\]"):
        read_documents(str(file))


def test_rows_have_a_ceiling_each() -> None:
    rows = machine_rows(machine_document(ceilings(), None))
    assert [(r["what"], r["name"]) for r in rows] == [
        ("bandwidth", "l1"), ("bandwidth", "l2"), ("bandwidth", "dram"), ("peak", "fp32 vector"), ("peak", "fp32 matrix"),
        ("peak", "fp16 vector"), ("launch", "eager"), ("launch", "graph"),
    ]  # fmt: skip


# the chip file


@pytest.mark.parametrize("found", [ceilings(), on_gpu()], ids=["cpu", "cuda"])
def test_the_chip_file_loads_to_the_same_chip(found: Ceilings, home: Path) -> None:
    save(found)
    chip = load_file(path_of(found.device))
    assert chip == replace(chip_of(found), origin=chip.origin)
    assert all(DATE in f.source for f in chip.facts if f.value is not None)


def test_values_say_how_they_were_found(home: Path) -> None:
    save(ceilings())
    chip = load_chip("this")
    assert chip.measured
    assert (chip.peak("fp32", "vector"), chip.has("fp32", "matrix"), chip.has("fp16", "vector")) == (2e11, False, True)
    assert chip.value("launch.eager") == 9e-7
    assert [(m.level, m.lower_bound) for m in chip.memory] == [("l1", True), ("l2", False), ("dram", False)]
    dram = chip.fact("memory.dram.bandwidth")
    assert dram is not None
    assert dram.value == 5e10
    assert "spread 1.0%" in dram.source


def test_without_a_measurement_this_says_what_to_run(home: Path) -> None:
    for name, cure in (("this", "run 'rooflens machine'"), ("this-cuda", "run 'rooflens machine --device cuda'")):
        with pytest.raises(HardwareError, match=cure):
            load_chip(name)


def test_a_device_that_cannot_be_asked_for_is_a_note(home: Path, tmp_path: Path) -> None:
    """The driver's files name the devices that are here; without them nobody knows."""
    chip = replace(chip_of(on_gpu()), fingerprint=fingerprint(identity(tmp_path), (H200.name,)))
    assert "could not be checked" in checked(chip, "this", tmp_path).note
    names = tmp_path / "proc/driver/nvidia/gpus/0/information"
    names.parent.mkdir(parents=True)
    names.write_text("Model: NVIDIA H200\n")
    assert checked(chip, "this", tmp_path) == chip
    names.write_text("Model: NVIDIA L4\n")
    with pytest.raises(HardwareError, match="here is NVIDIA L4"):
        checked(chip, "this", tmp_path)


def test_this_is_the_one_measured_last(home: Path) -> None:
    save(ceilings())
    save(on_gpu(date="2026-01-02T03:04:06Z"))
    assert load_chip("this").id == "this-cuda"
    save(ceilings(date="2026-01-02T03:04:07Z"))
    assert load_chip("this").id == "this-cpu"
    assert load_chip("this-cuda with memory.hbm.bandwidth=1TB/s").value("memory.hbm.bandwidth") == 1e12


def test_another_machines_roofs_are_refused(home: Path, cli: Any) -> None:
    save(ceilings(fingerprint="0123456789ab"))
    done = cli("analyze", "8x8 | linear 8", "--on", "this")
    assert done.returncode == 2
    assert done.stderr.startswith("rooflens: E_HW: chip 'this': ")
    assert "another machine" in done.stderr
    assert done.stderr.count("\n") == 1
    assert load_chip(str(path_of("cpu"))).measured  # by its path it is anybody's


def test_on_this_analyses(home: Path, cli: Any) -> None:
    save(ceilings())
    document = json.loads(cli("analyze", "64x64 | linear 64", "--on", "this", "--format", "json").stdout)
    hardware = document["hardware"]
    assert (hardware["id"], hardware["measured"]) == ("this-cpu", True)
    (op,) = document["ops"]
    assert op["device_time_s"] == pytest.approx(max(2 * 64**3 / 2e11, op["bytes"] / 5e10))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('measured = "yes"', "measured: must be true or false"),
        ('lower_bounds = ["l9"]', "lower_bounds: must be a list of l1"),
    ],
)
def test_faults_of_the_plain_keys(home: Path, line: str, fault: str) -> None:
    save(ceilings())
    file, key = path_of("cpu"), line.split()[0]
    kept = [text for text in file.read_text().splitlines() if not text.startswith(f"{key} ")]
    file.write_text("\n".join([line, *kept]))
    with pytest.raises(HardwareError, match=fault):
        load_chip("this")


# the pictures


def test_measured_roofs_look_different_everywhere(home: Path) -> None:
    save(ceilings())
    mine = load_chip("this")
    measured, published = charts_of((mine, replace(mine, measured=False)))
    assert draw(measured, "svg").count(b"#ffffff") > draw(published, "svg").count(
        b"#ffffff"
    )  # the inside of a double line
    assert b"dram measured 50 GB/s" in draw(measured, "svg")
    overlay = draw((measured, published), "svg")
    assert overlay.count(b"dram measured 50 GB/s") == 1
    assert overlay.count(b"#ffffff") > draw((published, published), "svg").count(b"#ffffff")
    for unicode, double in ((True, "═"), (False, "=")):
        told, other = ("\n".join(plain(draw_text(c, unicode=unicode))) for c in (measured, published))
        assert double * 5 in told
        assert double not in other
        assert "l1 measured at least" in " ".join(told.split())


def test_the_picture_of_a_document_is_that_of_its_chip(home: Path) -> None:
    save(ceilings())
    chart = machine_chart(machine_document(ceilings(), None))
    (chip,) = charts_of((load_chip("this"),))
    assert chart is not None
    assert (set(chart.roofs), chart.slopes) == (set(chip.roofs), chip.slopes)
    assert any("Double lines" in note for note in chart.footnotes)


def test_a_machine_without_a_peak_has_tables_alone() -> None:
    document = machine_document(ceilings(peaks=()), None)
    assert machine_chart(document) is None
    assert machine_blocks(document)


# the probes


def test_a_real_machine_in_a_moment() -> None:
    threads, cpus = torch.get_num_threads(), os.sched_getaffinity(0)
    shares: list[float] = []
    found = cpu_ceilings(TINY, shares.append, quick=True)
    assert (torch.get_num_threads(), os.sched_getaffinity(0)) == (threads, cpus)
    assert shares
    assert max(shares) == 1.0
    assert chip_of(found).peak("fp32", "vector") or any("disturbed" in p.why for p in found.peaks)
    assert {p.kernel for p in found.sweep} == set(machine_cpu.KERNELS)
    assert all(p.samples.times_s or p.samples.rejected for p in found.sweep)
    assert found.fingerprint == fingerprint(identity())
    json.dumps(machine_document(found, None), allow_nan=False)


def test_all_cores_reach_what_one_does() -> None:
    """One core was quick while others were taken away: the level is what one reached, as a lower bound."""
    facts = host_facts()
    cpus = facts.usable_cpus[:2]
    sizes = footprints(machine_cpu.cache_levels(cpus), None, 2)

    def point(size: int, threads: int, rate: float) -> BandwidthPoint:
        return BandwidthPoint(kernel="add", bytes=size, threads=threads, samples=Samples(times_s=(size / rate,) * 4))

    sweep = tuple(
        point(s, n, rate) for s in sizes for n, rate in ((1, 4e10), (len(cpus), 2e10 if len(cpus) > 1 else 4e10))
    )
    dram = machine_cpu.level_ceilings(sweep, cpus, facts)[-1]
    assert dram.bandwidth_bytes_per_s == pytest.approx(4e10)
    assert dram.one_core_bandwidth_bytes_per_s == pytest.approx(4e10)


def test_peaks_belong_to_the_unit_that_multiplies() -> None:
    def point(dtype: str, threads: int, time_s: float) -> GemmPoint:
        return GemmPoint(
            dtype=dtype, library="torch", m=10, n=10, k=10, threads=threads, samples=Samples(times_s=(time_s,))
        )

    points = (point("bf16", 2, 1e-6), point("bf16", 1, 2e-6), point("fp32", 2, 4e-6))
    plain_cpu = {(p.dtype, p.unit): p for p in machine_cpu.peak_ceilings(points, ("avx512_bf16",))}
    with_amx = {(p.dtype, p.unit): p for p in machine_cpu.peak_ceilings(points, ("avx512_bf16", "amx_bf16"))}
    assert (plain_cpu["bf16", "vector"].flop_per_s, plain_cpu["bf16", "vector"].one_core_flop_per_s) == (2e9, 1e9)
    assert plain_cpu["bf16", "matrix"].absent
    assert with_amx["bf16", "matrix"].flop_per_s == 2e9
    assert with_amx["bf16", "vector"].flop_per_s is None
    assert not with_amx["bf16", "vector"].absent
    assert with_amx["fp32", "vector"].flop_per_s == 5e8
    assert "tenth of the fp32 rate" in plain_cpu["fp16", "vector"].why


def test_sizes_of_the_sweep_hold_every_level() -> None:
    levels = (
        Capacity(level="l1", bytes=48 * 2**10),
        Capacity(level="l2", bytes=2**20),
        Capacity(level="dram", bytes=None),
    )
    sizes = footprints(levels, None, 2)
    assert (sizes[0], sizes[-1]) == (12 * 2**10, 16 * 2**20)
    assert len(sizes) == 1 + 21  # 10.4 octaves of two sizes
    assert max(sizes) / 3 > 4 * 2**20  # each of three arrays, as STREAM asks
    assert footprints(levels, 8 * 2**20, 2)[-1] == 2 * 2**20  # a quarter of what is free


def test_products_stop_where_they_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(products(Pool(cpus=host_facts().usable_cpus[:1]), ("fp32", "fp64"), (32, 64, 8192), 1e-3))
    assert {p.n for p in found if p.dtype == "fp32" and p.m == p.k} == {32, 64}  # 8192 would take seconds
    assert list(products(Pool(cpus=(0,)), ("fp32",), (), 1e-3)) == []


def test_rounds_go_on_until_both_time_and_rounds_are_over() -> None:
    taken: list[str] = []

    def probe(name: str) -> Probe:
        def sample() -> Raw:
            taken.append(name)
            return Raw(time_s=1e-3)

        return Probe(name=name, sample=sample)

    found = in_rounds([probe("a"), probe("b")], Pace(seconds=0, least=2))
    assert taken == [*"aaabbb"] * 2
    assert [len(s.times_s) for s in found] == [4, 4]
    assert [len(s.warmups_s) for s in found] == [2, 2]


def test_a_crew_starts_together_and_tells_of_faults() -> None:
    cpus = host_facts().usable_cpus[:2]
    with Crew(cpus) as crew:
        places: list[set[int]] = [set() for _ in cpus]
        jobs = [lambda i=i: places[i].update(os.sched_getaffinity(0)) for i in range(len(cpus))]
        assert crew.together(jobs) > 0
        assert places == [{c} for c in cpus]
        with pytest.raises(ZeroDivisionError):
            crew.together([lambda: 1 / 0] * len(cpus))
        assert crew.together(jobs) > 0


def test_pinning_is_undone_also_after_a_fault() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(ValueError, match="x"), pinned((min(before),)):
        assert os.sched_getaffinity(0) == {min(before)}
        raise ValueError("x")
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("NVIDIA H200", "hbm"), ("NVIDIA A100-SXM4-80GB", "hbm"), ("AMD Instinct MI300X", "hbm"), ("Tesla V100-SXM2-16GB", "hbm"),
        ("NVIDIA H100 80GB HBM3", "hbm"), ("NVIDIA GeForce RTX 4090", "gddr"), ("NVIDIA RTX A3000", "gddr"), ("Tesla T4", "gddr"),
        ("NVIDIA L40S", "gddr"), ("Orin", "lpddr"), ("NVIDIA GB10", "lpddr"),
    ],
)  # fmt: skip
def test_the_memory_that_a_board_is_sold_with(name: str, memory: str) -> None:
    assert machine_cuda.offchip_level(name) == memory


def test_what_a_device_reached_is_put_under_its_unit() -> None:
    def point(dtype: str, time_s: float) -> GemmPoint:
        return GemmPoint(
            dtype=dtype, library="torch", m=10, n=10, k=10, threads=None, samples=Samples(times_s=(time_s,))
        )

    found = machine_cuda.Readings(
        sweep=(), gemm=(point("bf16", 1e-9), point("fp32", 1e-8)), launch=Launch(), clocks=(),
        chains=(("fp32", 3e11, 0.01, ""), ("bf16", None, None, "no kernel could be compiled here: x")),
    )  # fmt: skip
    peaks = {(p.dtype, p.unit): p for p in machine_cuda.peak_ceilings(found, H200)}
    assert peaks["bf16", "matrix"].flop_per_s == pytest.approx(2e12)
    assert peaks["bf16", "vector"].why == "no kernel could be compiled here: x"
    assert peaks["fp32", "vector"].flop_per_s == 3e11  # the chain is quicker than the product
    assert peaks["fp32", "matrix"].absent
    assert peaks["tf32", "vector"].absent
    assert peaks["fp8", "matrix"].flop_per_s is None
    older = {(p.dtype, p.unit): p for p in machine_cuda.peak_ceilings(found, replace(H200, capability="7.5"))}
    assert older["bf16", "matrix"].absent
    assert older["bf16", "vector"].flop_per_s == pytest.approx(2e12)


def test_a_chain_has_the_multiply_adds_that_are_counted() -> None:
    for dtype, (instruction, *_) in FMA.items():
        assert _chain_source(dtype).count(f'"{instruction} ') == CHAINS * UNROLLED


def test_kernels_are_named_by_the_arrays_they_touch() -> None:
    assert STREAMS == {"add": 3, "negate": 2}


# the command line


def test_a_device_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(HardwareError, match="torch sees no CUDA device here: use --device cpu"):
        checked_device("cuda")
    assert checked_device(None) == "cpu"


def test_a_device_of_no_kind(cli: Any, tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = cli("machine", "--device", "tpu", env={"ROOFLENS_HOME": str(home)})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "use cpu or cuda" in done.stderr
    assert not home.exists()


def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path) -> None:
    code = "from rooflens.cli import main; print('ready', flush=True); main()"
    args = [sys.executable, "-c", code, "machine", "--device", "cpu", "-o", str(tmp_path / "m.txt")]
    env = {**os.environ, "ROOFLENS_HOME": str(tmp_path / "home")}
    with subprocess.Popen(args, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert list(tmp_path.rglob("*.*")) == []
