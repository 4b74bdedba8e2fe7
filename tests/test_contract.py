"""The outer contract: verbs, flags, ids, schemas and exit statuses, as documented and as they are."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import rooflens
from rooflens.hardware.load import catalog_ids, load_chip, parse_chip, split_chips
from rooflens.hardware.write import chip_toml
from rooflens.ops.table import OPS
from rooflens.pipeline.settings import OPTION_NAMES

ROOT = Path(__file__).parent.parent
DOCS = {p.name: p.read_text() for p in (ROOT / "docs").glob("*.md")}
NET = "8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2"
CHIPS = [
    "b200", "h200-sxm", "h100-sxm", "h100-pcie", "a100-sxm-80gb", "a100-sxm-40gb", "v100-sxm2", "t4", "l4",
    "l40s", "a10g", "rtx-3090", "rtx-4090", "rtx-5090", "mi250x", "mi300x", "jetson-orin-agx",
    "jetson-orin-nano", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "edge-tpu", "gaudi2", "gaudi3",
    "apple-m2-max", "apple-m4-max", "hailo-8", "hexagon-v73", "ethos-u55", "cortex-m7", "raspberry-pi-5",
    "kpu-t64", "kpu-t256", "kpu-t768", "linebuffer-cnn", "xeon-8480plus", "epyc-9654", "graviton4", "i7-8750h",
    "i7-12700k", "i9-10940x",
]  # fmt: skip


def schema(name: str) -> Any:
    return json.loads((ROOT / "src/rooflens/report/schemas" / name).read_text())


def valid(document: Any) -> None:
    import jsonschema

    jsonschema.validate(document, schema("analysis-1.json"))


def test_every_promised_chip_is_there() -> None:
    assert sorted(CHIPS) == list(catalog_ids())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"on": "h100-sxm"},
        {"on": "hailo-8", "dtype": "int8"},
        {"on": "kpu-t64", "reuse": "none"},
        {"mode": "training", "on": "l4"},
    ],
)
def test_json_follows_its_schema(options: dict[str, str]) -> None:
    a = rooflens.analyze(NET, gate=["totals.flops>0"], **options)
    valid(json.loads(a.to_json()))
    assert a.to_dict() == json.loads(a.to_json())


def test_torch_json_follows_its_schema() -> None:
    valid(rooflens.analyze("resnet18", on="h100-sxm", mode="training").to_dict())


def test_several_chips_give_a_comparison(cli) -> None:
    done = cli(
        "analyze",
        NET,
        "--on",
        "h100-sxm with memory.hbm.bandwidth=5TB/s, peak.fp32.vector=70TFLOP/s,l4",
        "--on",
        "t4",
        "--format",
        "json",
    )
    d = json.loads(done.stdout)
    assert d["schema"] == "rooflens.comparison/1"
    assert [a["hardware"]["id"] for a in d["analyses"]] == ["h100-sxm", "l4", "t4"]
    changed = d["analyses"][0]["hardware"]
    assert changed["peak_flop_per_s"]["fp32"]["vector"] == 70e12
    for a in d["analyses"]:
        valid(a)


def test_a_piece_with_an_equals_sign_belongs_to_the_with_before_it() -> None:
    assert split_chips("a with x=1, y=2, b,c") == ("a with x=1, y=2", "b", "c")


def test_same_input_same_bytes(cli) -> None:
    runs = [
        cli("analyze", NET, "--on", "l4", "--format", "json", "--plot", "p.svg", env={"PYTHONHASHSEED": s})
        for s in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != ""


@pytest.mark.parametrize(
    ("gate", "status"),
    [("totals.device_time_s<=5ms", 0), ("totals.device_time_s<=1ns", 1), ("totals.flops==0", 1), ("totals.energy_j<=1mJ", 3),
     ("totals.bound==compute", 0), ("totals.bytes<=100MB", 0)],
)  # fmt: skip
def test_gates(cli, gate: str, status: int) -> None:
    done = cli("analyze", NET, "--on", "h100-sxm", "--gate", gate, "--format", "json")
    assert done.returncode == status, done.stderr
    found = json.loads(done.stdout)["gates"]
    assert found[0]["gate"] == gate
    assert found[0]["passed"] == {0: True, 1: False, 3: None}[status]
    said = {0: "", 1: f"rooflens: gate {gate}: it is {found[0]['value']}\n"}
    assert done.stderr == said.get(status, f"rooflens: gate {gate}: cannot be judged: its value is unknown\n")


OPAQUE = """
import torch
@torch.library.custom_op("rooflens_test::mystery", mutates_args=())
def mystery(x: torch.Tensor) -> torch.Tensor:
    return x.clone()
@mystery.register_fake
def _(x):
    return torch.empty_like(x)
class Net(torch.nn.Module):
    def forward(self, x):
        return mystery(x) + 1
def make():
    return Net(), torch.zeros(2, 8)
"""


def test_unknown_ops_are_opaque_shown_first_and_strict_makes_them_status_3(cli, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(OPAQUE)
    done = cli("analyze", "m.py:make", "--on", "l4", "--format", "json")
    assert done.returncode == 0, done.stderr
    d = json.loads(done.stdout)
    assert [(o["kind"], o["count"]) for o in d["coverage"]["opaque"]] == [("mystery", 1)]
    assert d["coverage"]["share_counted"] == 0.5
    unknown = next(op for op in d["ops"] if op["kind"] == "mystery")
    assert unknown["flops"] is None
    assert unknown["bytes"] == 2 * 2 * 8 * 4
    t = d["totals"]  # 16 additions are known; what they are of 256 bytes is not
    assert (t["flops"], t["bytes"], t["intensity_flop_per_byte"], t["mac_intensity_flop_per_byte"]) == (
        16,
        256,
        None,
        None,
    )
    strict = cli("analyze", "m.py:make", "--on", "l4", "--strict")
    assert strict.returncode == 3
    assert "Not counted: 1 x mystery" in strict.stdout.split("Verdict")[0]
    for options, status in ((("csv", "--strict"), 3), (("csv",), 0), (("json", "--strict"), 3)):
        rows = cli("analyze", "m.py:make", "--on", "l4", "--format", *options)
        assert (rows.returncode, rows.stderr) == (
            status,
            "rooflens: not counted: 1 x mystery; 50.0% of the ops are counted\n",
        )


def test_csv_has_a_row_an_op_and_plain_numbers(cli) -> None:
    lines = cli("analyze", NET, "--on", "l4", "--format", "csv").stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("id,module,kind,pass,")
    assert str(8 * 128 * 32 * 32 * (2 * 576 + 1)) in lines[1]


def test_markdown_and_table(cli) -> None:
    md = cli("analyze", NET, "--on", "l4", "--format", "md").stdout
    assert "| conv1 |" in md.replace("  ", " ").replace("  ", " ") or "conv1" in md
    table = cli("analyze", NET, "--on", "l4").stdout
    assert max(len(line) for line in table.splitlines()) <= 80
    assert "\x1b[" not in table


def test_saved_result_is_a_model_and_a_report(cli, tmp_path: Path) -> None:
    assert cli("analyze", "resnet18", "--on", "h100-sxm", "--format", "json", "-o", "r.json").returncode == 0
    direct = json.loads(cli("analyze", "resnet18", "--on", "l4", "--format", "json").stdout)
    again = json.loads(cli("analyze", "r.json", "--on", "l4", "--format", "json").stdout)
    assert again["totals"] == direct["totals"]
    assert again["ops"] == direct["ops"]
    drawn = cli("report", "r.json", "--plot", "r.svg")
    assert drawn.stdout == cli("analyze", "resnet18", "--on", "h100-sxm").stdout
    assert (tmp_path / "r.svg").read_text().startswith("<?xml")


def test_chip_files_round_trip(cli, tmp_path: Path) -> None:
    assert cli("hardware", "new", "mine.toml", "--from", "mi300x").returncode == 0
    assert cli("hardware", "new", "mine.toml", "--from", "mi300x").returncode == 2  # never over an old file
    mine, original = load_chip(str(tmp_path / "mine.toml")), load_chip("mi300x")
    assert {(f.key, f.value, f.source, f.absent) for f in mine.facts} == {
        (f.key, f.value, f.source, f.absent) for f in original.facts
    }
    assert cli("hardware", "lint", "mine.toml").returncode == 0


def test_a_new_chip_file_reads_like_a_datasheet(cli, tmp_path: Path) -> None:
    """As NVIDIA prints them: 1.98 GHz, 3.35 TB/s, 50 MB (binary) of L2; and 0.2 pJ, which has no smaller prefix."""
    cli("hardware", "new", "gpu.toml", "--from", "h100-sxm")
    cli("hardware", "new", "kpu.toml", "--from", "kpu-t64")
    text = (tmp_path / "gpu.toml").read_text() + (tmp_path / "kpu.toml").read_text()
    for value in (
        '"1.98 GHz"',
        '"3.35 TB/s"',
        '"989.4 TFLOP/s"',
        '"50 MiB"',
        '"80 GB"',
        '"6.7 us"',
        '"0.2 pJ/OP"',
        "132,",
    ):
        assert f"value = {value}" in text, value


@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip_survives_being_written(chip: str) -> None:
    original = load_chip(chip)
    again = parse_chip(tomllib.loads(chip_toml(original, "mine")), origin="mine.toml", default_id="mine")
    assert sorted((f.key, f.value, f.source) for f in again.facts if f.value is not None) == sorted(
        (f.key, f.value, f.source) for f in original.facts if f.value is not None
    )


def test_a_chip_file_gets_a_name_that_finds_it_again(cli, tmp_path: Path) -> None:
    """CHIP knows a file by its ending, so one without it would be written and never be read."""
    done = cli("hardware", "new", "mine", "--from", "l4")
    assert (done.returncode, done.stdout) == (2, "")
    assert "write mine.toml" in done.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "args",
    [("hardware", "list"), ("hardware", "show", "h100-sxm"), ("hardware", "compare", "h100-sxm", "l4"), ("hardware", "lint"),
     ("ops", "list"), ("ops", "show", "conv"), ("models", "list", "resnet1"), ("doctor",),
     ("plot", "--peak", "1TFLOPS", "--bandwidth", "100GB/s", "--point", "a,1,50GFLOPS")],
)  # fmt: skip
def test_verbs_speak_every_format(cli, args: tuple[str, ...]) -> None:
    table = cli(*args)
    assert table.returncode == 0, table.stderr
    assert max(len(line) for line in table.stdout.splitlines()) <= 80
    assert json.loads(cli(*args, "--format", "json").stdout)["schema"].startswith("rooflens.")
    for form in ("csv", "md"):
        done = cli(*args, "--format", form)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_plot_writes_its_result_and_its_picture_apart(cli, tmp_path: Path) -> None:
    done = cli(
        "plot", "--peak", "100GFLOPS", "--bandwidth", "50GB/s", "--format", "json", "-o", "r.json", "--plot", "p.svg"
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((tmp_path / "r.json").read_text())["ridge_flop_per_byte"] == 2.0  # 100 / 50
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


def test_a_point_above_its_roof_is_kept_and_flagged(cli, tmp_path: Path) -> None:
    done = cli("plot", "--peak", "100GFLOPS", "--bandwidth", "50GB/s", "--point", "hot,1,60GFLOPS", "--format", "json")
    d = json.loads(done.stdout)
    assert d["ridge_flop_per_byte"] == 2
    assert d["points"][0]["flag"] == "above-roof"
    assert d["points"][0]["flop_per_s"] == 60e9
    cli("plot", "--peak", "100GFLOPS", "--bandwidth", "50GB/s", "--point", "hot,1,60GFLOPS", "--plot", "p.svg")
    assert ">hot above-roof</text>" in (tmp_path / "p.svg").read_text()


def test_every_verb_and_flag_is_documented_and_has_help(cli) -> None:
    from rooflens.cli.app import VERBS

    for verb in VERBS:
        assert re.search(rf"^## {verb}$", DOCS["verbs.md"], re.M), verb
        done = cli(verb, "--help")
        assert done.returncode == 0, verb
    for name in OPTION_NAMES:
        assert f"--{name.replace('_', '-')}" in DOCS["verbs.md"], name
    for verb, section in re.findall(r"^## (analyze|fuse)$(.*?)^## ", f"{DOCS['verbs.md']}\n## ", re.M | re.S):
        help_text = cli(verb, "--help").stdout
        for flag in re.findall(r"--[a-z][a-z-]+", section):
            assert flag in help_text, (verb, flag)


def test_every_chip_and_schema_is_documented() -> None:
    for chip in catalog_ids():
        assert f"`{chip}`" in DOCS["hardware.md"], chip
    sources = "".join(p.read_text() for p in (ROOT / "src/rooflens").rglob("*.py"))
    for name in sorted(set(re.findall(r'"(rooflens\.[a-z]+/\d)"', sources))):
        assert name in DOCS["json.md"], name


def test_every_field_is_documented() -> None:
    for field in schema("analysis-1.json")["required"]:
        assert f"`{field}" in DOCS["json.md"], field


def test_every_layer_of_layer_text_is_documented() -> None:
    from rooflens.frontends.text_layers import LAYERS

    text = DOCS["layer-text.md"]
    for name in LAYERS:
        stem = re.sub(r"[123]d$", "", name)
        assert name in text or stem in text, name


def test_every_op_kind_has_a_formula() -> None:
    assert all(row.formula for row in OPS.values())


def test_exceptions_match_the_command_line(cli) -> None:
    with pytest.raises(rooflens.RooflensError) as error:
        rooflens.analyze(NET, on="h100-smx")
    assert cli("analyze", NET, "--on", "h100-smx").stderr.strip() == f"rooflens: {error.value.code}: {error.value}"


def test_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["version"] == rooflens.__version__


def test_core_imports_no_heavy_package() -> None:
    import subprocess
    import sys

    heavy = ("torch", "numpy", "pandas", "matplotlib", "rich")
    code = f"import sys, rooflens.cli.app, rooflens.api; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
