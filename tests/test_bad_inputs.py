"""Bad input: status 2, one line that names what, where and what to do; no traceback, no partial file.

Row numbers are those of the project's list of bad inputs, in docs/bad-inputs.md.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import rooflens
from rooflens.errors import RooflensError
from rooflens.hardware.load import load_chip

NET = "8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2"


def refused(done: "subprocess.CompletedProcess[str]", code: str, *words: str) -> None:
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert f"{code}: " in lines[0], lines[0]
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in lines[0], lines[0]
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["missing.toml", "missing.json", "missing.pt2", "missing.py:make", "sub/missing.pt"])
def test_row_1_missing_file(cli, name: str) -> None:
    refused(cli("analyze", name), "E_FILE", name.partition(":")[0])


@pytest.mark.parametrize("ending", [".toml", ".json", ".pt2", ".pt"])
def test_row_1_folder(cli, tmp_path: Path, ending: str) -> None:
    (tmp_path / f"folder{ending}").mkdir()
    refused(cli("analyze", f"folder{ending}"), "E_FILE", "folder")


def test_row_1_no_permission(tmp_path: Path) -> None:
    file = tmp_path / "secret.toml"
    file.write_text("kind = 'gpu'")
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("this user may read everything, so permission cannot be refused")
    with pytest.raises(RooflensError, match="cannot be read"):
        load_chip(str(file))


@pytest.mark.parametrize("dim", ["-1", "-8"])
def test_row_16_negative_dim(cli, dim: str) -> None:
    refused(cli("analyze", "--", f"{dim}x3 | linear 4"), "E_SHAPE", dim)
    refused(cli("analyze", f"8x{dim} | relu"), "E_SHAPE", dim)
    refused(cli("analyze", "resnet18", "--input", f"1x3x{dim}x224"), "E_SHAPE", dim)


def test_row_16_zero_dim_is_zero_work() -> None:
    d = rooflens.analyze("0x3x8x8 | conv2d 4 k3 | relu", on="h100-sxm").to_dict()
    assert d["totals"]["flops"] == 0
    assert d["totals"]["input_bytes"] == d["totals"]["output_bytes"] == 0
    assert d["totals"]["param_bytes"] == 4 * 3 * 9 * 4  # the weights are there all the same


def test_row_17_huge_dims_are_whole_numbers() -> None:
    big = 2**62
    d = rooflens.analyze(f"{big}x{big} | relu", on="h100-sxm").to_dict()
    assert d["totals"]["flops"] == big * big
    assert d["totals"]["bytes"] == 2 * 4 * big * big


def test_row_17_beyond_64_bits(cli) -> None:
    refused(cli("analyze", f"{2**63}x2 | relu"), "E_SHAPE")
    refused(cli("analyze", "resnet18", "--input", f"1x3x{2**63}x224"), "E_SHAPE")


@pytest.mark.parametrize(
    "args",
    [
        ("--input", f"{2**63 - 1}x3x224x224"), ("--batch", str(2**62)), ("--batch", str(2**63)),
        ("--batch", "100000000000000"), ("--batch", "10000000000000"),  # the second: conv1's output alone is too large
    ],
)  # fmt: skip
def test_row_17_beyond_what_torch_counts(cli, args: tuple[str, str]) -> None:
    refused(cli("analyze", "resnet18", *args), "E_SHAPE")


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "model.pkl", "script.jit"])
def test_rows_33_34_pickles_are_refused_unread(cli, tmp_path: Path, name: str) -> None:
    canary = tmp_path / "canary"

    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {canary}",)

    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    refused(cli("analyze", name), "E_FORMAT", "torch.export", "ONNX", "file.py:function")
    assert not canary.exists()


def _archive(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def test_row_36_zip_bomb(cli, tmp_path: Path) -> None:
    _archive(tmp_path / "bomb.pt2", {"m/models/model.json": b" " * 50_000_000}, zipfile.ZIP_DEFLATED)
    refused(cli("analyze", "bomb.pt2"), "E_FORMAT", "bomb")


def test_row_36_path_outside(cli, tmp_path: Path) -> None:
    _archive(tmp_path / "slip.pt2", {"../../evil": b"x", "m/models/model.json": b"{}"})
    refused(cli("analyze", "slip.pt2"), "E_FORMAT", "outside")


@pytest.mark.parametrize("data", [b"", b"<html></html>", b"PK\x03\x04broken", b"\x80\x04junk", b"\x00" * 100])
def test_row_36_not_an_archive(cli, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.pt2").write_bytes(data)
    refused(cli("analyze", "x.pt2"), "E_FORMAT", "x.pt2")


def test_pt2_with_pickled_weight_is_refused(cli, tmp_path: Path) -> None:
    config = json.dumps(
        {"config": {"w": {"path_name": "weight_0", "is_param": True, "use_pickle": True, "tensor_meta": None}}}
    )
    entries = {"m/models/model.json": b"{}", "m/data/weights/model_weights_config.json": config.encode()}
    _archive(tmp_path / "p.pt2", entries)
    refused(cli("analyze", "p.pt2"), "E_FORMAT", "pickle", "torch.export.save")


def test_pt2_with_code_in_an_expression_is_refused(cli, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    evil = {"graph_module": {"x": [{"expr_str": f"__import__('os').system('touch {canary}')"}]}}
    _archive(tmp_path / "e.pt2", {"m/models/model.json": json.dumps(evil).encode()})
    refused(cli("analyze", "e.pt2"), "E_FORMAT", "expr_str")
    assert not canary.exists()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x = " + "[" * 3000 + "]" * 3000, "nested"),
        ("#" + "a" * 1_000_000, "larger"),
        ("kind = 'gpu'\n[memory.hbm]\nbandwidth = 2026-01-01\n[peak.fp32]\nvector = '1 TFLOP/s'", "bandwidth"),
        ("kind = 'gpu'\n[memory.hbm]\nbandwidth = [1, 2]\n[peak.fp32]\nvector = true", "bandwidth"),
        ("kind = ", "TOML"),
    ],
)
def test_row_39_toml(cli, tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "chip.toml").write_text(text)
    began = time.monotonic()
    done = cli("analyze", NET, "--on", "chip.toml")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert word in done.stderr
    assert time.monotonic() - began < 60  # quick, not a benchmark


def test_row_39_dates_in_layer_toml(cli, tmp_path: Path) -> None:
    (tmp_path / "net.toml").write_text("input = 2026-01-01\nlayers = ['relu']")
    refused(cli("analyze", "net.toml"), "E_CONFIG", "net.toml", "input")


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": "rooflens.analysis/1", "x": NaN}',
        '{"schema": "rooflens.analysis/1", "x": Infinity}',
        '{"schema": "rooflens.analysis/1", "x": 1e999}',
        '{"schema": "rooflens.analysis/1", "schema": "again"}',
        '{"x": ' + "9" * 5000 + "}",
        "[" * 100_000,
        "{",
    ],
)
@pytest.mark.parametrize("verb", ["analyze", "report"])
def test_row_40_json(cli, tmp_path: Path, text: str, verb: str) -> None:
    (tmp_path / "r.json").write_text(text)
    refused(cli(verb, "r.json"), "E_CONFIG", "r.json")


def test_row_40_utf16_is_refused_and_a_bom_accepted(cli, tmp_path: Path) -> None:
    text = rooflens.analyze(NET).to_json()
    (tmp_path / "wide.json").write_bytes(text.encode("utf-16"))
    refused(cli("report", "wide.json"), "E_CONFIG", "UTF-8")
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert cli("report", "bom.json").returncode == 0


def test_row_41_every_fault_of_a_chip_at_once(cli, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(
        "kind = 'gpu'\ncolour = 3\n[memory.hbm]\nbandwidth = '0 GB/s'\ncapacity = '-1 GB'\nspeed = 3\n"
        "[peak.fp32]\nvector = 'nan TFLOP/s'\nmatrix = '3 GB/s'\n[peak.fp33]\nvector = '1 TFLOP/s'\n"
    )
    words = (
        "colour",
        "memory.hbm.bandwidth",
        "memory.hbm.capacity",
        "memory.hbm.speed",
        "peak.fp32.vector",
        "peak.fp32.matrix",
        "fp33",
    )
    refused(cli("analyze", NET, "--on", "bad.toml"), "E_HW", *words)


def test_row_41_no_peak_for_the_dtype(cli) -> None:
    refused(cli("analyze", NET, "--on", "v100-sxm2", "--dtype", "fp8"), "E_HW", "v100-sxm2", "fp8", "fp16")


def test_row_41_only_types_that_can_be_asked_for_are_proposed(cli) -> None:
    """A T4 has peaks for fp64 fp32 fp16 int8 int4; --dtype takes neither fp64 nor int4."""
    refused(cli("analyze", NET, "--on", "t4", "--dtype", "bf16"), "E_HW", "use one of fp32 fp16 int8, or add peak.bf16")


def test_row_41_inner_memory_slower_than_outer_warns(cli, tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(
        "kind = 'gpu'\nsource = 'made up for a test'\n[memory.hbm]\nbandwidth = '1 TB/s'\n[memory.l1]\nbandwidth = '1 GB/s'\n"
        "[peak.fp32]\nvector = '10 TFLOP/s'\n"
    )
    done = cli("hardware", "lint", "slow.toml", "--format", "json")
    found = json.loads(done.stdout)["findings"]
    assert any(f["severity"] == "warning" and "l1" in f["key"] for f in found)
    assert done.returncode == 0


def test_row_50_old_file_stays_whole(cli, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    assert cli("analyze", "1x2 | nonsense", "-o", str(target)).returncode == 2
    assert target.read_text() == "old"
    assert cli("analyze", NET, "--format", "json", "-o", str(target)).returncode == 0
    assert json.loads(target.read_text())["schema"] == "rooflens.analysis/1"
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


def test_row_50_missing_folder(cli) -> None:
    refused(cli("analyze", NET, "-o", "nowhere/out.txt"), "E_FILE", "nowhere")
    refused(cli("analyze", NET, "--on", "l4", "--plot", "nowhere/out.svg"), "E_FILE", "nowhere")


def test_row_50_disk_full_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rooflens.report.output import write_text

    target = tmp_path / "out.txt"
    target.write_text("old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RooflensError, match="No space left"):
        write_text(str(target), "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_row_51_broken_pipe() -> None:
    command = f"{sys.executable} -c 'from rooflens.cli import main; main()' hardware show h100-sxm | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_row_51_interrupted(tmp_path: Path, sent: signal.Signals, status: int) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\nfrom pathlib import Path\ndef make():\n    Path('up').touch()\n    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", "from rooflens.cli import main; main()", "analyze", "slow.py:make", "-o", "out.txt"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for _ in range(600):
        if (tmp_path / "up").exists():
            break
        time.sleep(0.1)
    process.send_signal(sent)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == status
    assert "Traceback" not in errors
    assert not (tmp_path / "out.txt").exists()


def test_row_54_locale_terminal_time_zone_and_paths(cli, tmp_path: Path) -> None:
    plain = cli("analyze", NET, "--on", "l4", "--format", "json").stdout
    odd = {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7"}
    assert cli("analyze", NET, "--on", "l4", "--format", "json", env=odd).stdout == plain
    narrow = cli("analyze", NET, "--on", "l4", env={"PYTHONIOENCODING": "ascii"})
    assert narrow.returncode == 0
    assert narrow.stdout.isascii()
    folder = tmp_path / "a folder with ünicode"
    folder.mkdir()
    assert cli("analyze", NET, "-o", str(folder / "out put.txt")).returncode == 0
    assert (folder / "out put.txt").exists()


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (("analyze", "resnet81"), "E_MODEL", "resnet18"),
        (("analyze", "timm:convnext_tinny"), "E_MODEL", "timm:convnext_tiny"),
        (("analyze", NET, "--on", "h100-smx"), "E_HW", "h100-sxm"),
        (("analyze", "8x64 | linaer 4"), "E_SYNTAX", "linear"),
        (("analyze", NET, "--dtype", "fp31"), "E_SYNTAX", "fp32"),
        (("analyze", NET, "--format", "yaml"), "E_SYNTAX", "json"),
        (("analyze", NET, "--batch", "0"), "E_SYNTAX", "batch"),
        (("analyze", NET, "--batch", "4"), "E_SHAPE", "contradicts"),
        (("analyze", "resnet18", "--input", "2x3x224x224", "--batch", "4"), "E_SHAPE", "contradicts"),
        (("analyze", NET, "--gate", "totals.latncy_s<=5ms"), "E_SYNTAX", "latency_s"),
        (("analyze", NET, "--gate", "totals.flops"), "E_SYNTAX", "gate"),
        (("analyze", NET, "--weight-density", "0"), "E_SYNTAX", "weight-density"),
        (("analyze", NET, "--fusion", "chian"), "E_SYNTAX", "use one of none chain residual tile"),
        (("fuse", NET, "--against", "inductr"), "E_SYNTAX", "use one of inductor"),
        (("fuse", NET, "--format", "doot"), "E_SYNTAX", "use one of table json csv md dot mermaid"),
        (("fuse", NET, NET, "--format", "dot"), "E_SYNTAX", "one picture shows one model"),
        (("analyze", NET, "--format", "dot"), "E_SYNTAX", "use one of table json csv md"),
        (("fuse",), "E_USAGE", "Missing argument"),
        (("analyze", NET, "--html", "x.html"), "E_VERSION", "not in this version"),
        (("map", "resnet18"), "E_VERSION", "not in this version"),
        (("analyze", "model.onnx"), "E_VERSION", "not in this version"),
        (("analyze", "llama-3-8b"), "E_VERSION", "not in this version"),
        (("analyze", NET, "--on", "this"), "E_HW", "run 'rooflens machine' first"),
        (("analyze", ""), "E_MODEL", "no model"),
        (("analyze",), "E_USAGE", "MODEL"),
        (("nonsense",), "E_USAGE", "nonsense"),
        (("analyse", NET), "E_USAGE", "Did you mean analyze?"),
        (("hardware", "show"), "E_USAGE", "'rooflens hardware show --help'"),
        (("hardware", "shw"), "E_USAGE", "'rooflens hardware --help'"),
        (("analyze", "llama-3-9b"), "E_MODEL", "llama-3-8b"),
        (("analyze", "resnet18", "--input", "3x224x224"), "E_SHAPE", "1x3x224x224"),
        (("analyze", "-1x3x8x8 | relu"), "E_SHAPE", "-1"),
        (("analyze", "--strict", "-1x3x8x8", "--on", "l4"), "E_SHAPE", "-1"),
        (("analyze", "resnet18", "--input", "-1x3x8x8"), "E_SHAPE", "--input"),
        (("analyze", "resnet18", "--batch", "-1"), "E_SYNTAX", "--batch -1"),
        (("analyze", NET, "--on", "l4 with"), "E_HW", "nothing after 'with'"),
        (("analyze", NET, "--on", "l4 with units.count=1.5"), "E_HW", "units.count: 1.5 is not a whole number"),
        (("analyze", NET, "--mode", "training", "--dtype", "w4a16"), "E_SYNTAX", "not trained"),
        (("report", "page.html"), "E_VERSION", "not in this version"),
        (("report", "r.json", "--html", "p.html"), "E_VERSION", "not in this version"),
        (("analyze", NET, "--nonsense"), "E_USAGE", "--nonsense"),
        (("analyze", NET, "--plot", "x.bmp", "--on", "l4"), "E_SYNTAX", ".svg"),
        (("analyze", NET, "--plot", "x.svg"), "E_SYNTAX", "--on"),
        (("plot", "--peak", "0GFLOPS", "--bandwidth", "1GB/s"), "E_SYNTAX", "above 0"),
        (("plot", "--peak", "1GB/s", "--bandwidth", "1GB/s"), "E_SYNTAX", "flop_per_s"),
        (("plot", "--peak", "1GFLOPS", "--bandwidth", "1GB/s", "--point", "a,1"), "E_SYNTAX", "NAME,AI,PERF"),
        (("plot", "--peak", "1GFLOPS", "--bandwidth", "1GB/s", "--point", "a,0,1GFLOPS"), "E_SYNTAX", "--point a,0"),
        (("hardware", "show", "h100-sxm with memory.hbm.bandwith=5TB/s"), "E_HW", "bandwidth"),
        (("ops", "show", "convv"), "E_SYNTAX", "conv"),
    ],
)  # fmt: skip
def test_usage(cli, args: tuple[str, ...], code: str, word: str) -> None:
    refused(cli(*args), code, word)


def test_layer_text_points_at_the_column(cli) -> None:
    text = "8x64x32x32 | conv2d 128 k3 | rellu"
    refused(cli("analyze", text), "E_SYNTAX", f"column {text.index('rellu') + 1}", "relu")


MODELS = """
import torch
class Bad(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(5, 2))
    def forward(self, x):
        return self.body(x)
class Raises(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        return self.inner(x)
class Inner(torch.nn.Module):
    def forward(self, x):
        raise KeyError("nope")
def bad(): return Bad(), torch.zeros(2, 8)
def raises(): return Raises(), torch.zeros(2, 8)
def explodes(): raise ZeroDivisionError("boom")
def number(): return 3
"""


@pytest.mark.parametrize(
    ("name", "code", "word"),
    [
        ("bad", "E_SHAPE", "body.1"), ("raises", "E_MODEL", "inner"), ("explodes", "E_MODEL", "boom"),
        ("number", "E_MODEL", "int"), ("badd", "E_MODEL", "bad"), ("xyzzy", "E_MODEL", "explodes"),
    ],
)  # fmt: skip
def test_a_module_that_fails(cli, tmp_path: Path, name: str, code: str, word: str) -> None:
    (tmp_path / "m.py").write_text(MODELS)
    refused(cli("analyze", f"m.py:{name}"), code, word)


def test_a_shape_that_a_zoo_model_rejects(cli) -> None:
    refused(cli("analyze", "resnet18", "--input", "1x4x224x224"), "E_SHAPE", "conv1")


def test_row_1_folder_without_an_ending(cli, tmp_path: Path) -> None:
    (tmp_path / "adir").mkdir()
    refused(cli("analyze", "adir"), "E_FILE", "adir")
    refused(cli("analyze", NET, "--on", "adir"), "E_FILE", "adir")


def test_a_file_without_its_function(cli, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODELS)
    refused(cli("analyze", "m.py"), "E_MODEL", "m.py:FUNCTION")


def test_a_function_that_exits(cli, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def make():\n    raise SystemExit(7)\n")
    refused(cli("analyze", "m.py:make"), "E_MODEL", "SystemExit")


def test_row_50_pipes_and_links_are_written_to(cli, tmp_path: Path) -> None:
    fifo, target, link = tmp_path / "pipe", tmp_path / "target", tmp_path / "link"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE, text=True)
    assert cli("analyze", NET, "--format", "csv", "-o", str(fifo)).returncode == 0
    assert reader.communicate(timeout=30)[0].startswith("id,")
    assert fifo.is_fifo()
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    assert cli("analyze", NET, "--format", "csv", "-o", str(link)).returncode == 0
    assert link.is_symlink()
    assert target.read_text().startswith("id,")
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full on this system")
def test_row_50_full_standard_output() -> None:
    command = f"{sys.executable} -c 'from rooflens.cli import main; main()' hardware list > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert "E_FILE" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_row_17_does_not_fit_is_said() -> None:
    d = rooflens.analyze(f"{2**40}x8 | relu", on="h100-sxm").to_dict()
    assert any(n.startswith("does not fit") for n in d["notes"])
    assert not any(n.startswith("does not fit") for n in rooflens.analyze(NET, on="h100-sxm").to_dict()["notes"])


@pytest.mark.parametrize("on", [5, [3], [], ["l4", 3], ["l4", "l5"]])
def test_python_on(on: object) -> None:
    with pytest.raises(RooflensError):
        rooflens.analyze(NET, on=on)


def test_python_accepts_what_the_command_line_does(tmp_path: Path) -> None:
    assert rooflens.analyze(NET, on=["l4"]).to_dict() == rooflens.analyze(NET, on="l4").to_dict()
    file = tmp_path / "r.json"
    file.write_text(rooflens.analyze(NET).to_json())
    assert rooflens.analyze(file).to_dict()["totals"] == rooflens.analyze(NET).to_dict()["totals"]
    with pytest.raises(RooflensError, match="type int"):
        rooflens.analyze(5)
    with pytest.raises(RooflensError, match="not in this version"):
        rooflens.map_to(NET)


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("--gate", "totals.flops<=5ms"), "totals.flops"), (("--gate", "totals.device_time_s<=5MB"), "device_time_s"),
        (("--seq", "128"), "--seq"), (("--optimizer", "adamw"), "--mode training"), (("--dim", "N=1"), "--dim"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_here(cli, args: tuple[str, ...], word: str) -> None:
    done = cli("analyze", NET, "--on", "l4", *args)
    assert done.returncode == 2
    assert word in done.stderr


@pytest.mark.parametrize(("model", "extra"), [("resnet18", "zoo"), ("timm:vgg11", "zoo"), ("net.py:make", "torch")])
def test_without_torch_the_extra_that_is_enough_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: str, extra: str
) -> None:
    """`torch` alone would leave a zoo name without torchvision or timm."""
    (tmp_path / "net.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RooflensError, match=rf"pip install 'rooflens\[{extra}\]'"):
        rooflens.analyze(model)
