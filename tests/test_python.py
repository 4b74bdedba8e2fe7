"""The Python functions: the same words as the command line, and errors of the same kind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rooflens
from rooflens.errors import InputError, ModelError, RooflensError
from rooflens.version import __version__

NET = "8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2"


def test_on_may_stand_in_its_place() -> None:
    assert rooflens.analyze(NET, None, "l4").to_dict() == rooflens.analyze(NET, on="l4").to_dict()


@pytest.mark.parametrize("on", [["l4", "t4"], ("l4", rooflens.load_chip("t4")), "l4,t4", ["l4,t4"]])
def test_several_chips_are_a_comparison(on: Any) -> None:
    """What stands beside each other is what each would be alone."""
    c = rooflens.analyze(NET, on=on)
    alone = [rooflens.analyze(NET, on=chip).to_dict() for chip in ("l4", "t4")]
    assert c.to_dict() == {"schema": "rooflens.comparison/1", "rooflens_version": __version__, "analyses": alone}
    first, second = c
    assert (len(c), c[0], first.on, second.on) == (2, first, "l4", "t4")
    assert json.loads(c.to_json()) == c.to_dict()


def test_a_comparison_is_what_the_command_line_shows(cli, tmp_path: Path) -> None:
    chips = ("--on", "l4", "--on", "t4")
    for verb, make in (("analyze", rooflens.analyze), ("fuse", rooflens.fuse)):
        c = make(NET, on=["l4", "t4"], plot=tmp_path / "p.svg", output=tmp_path / "r.csv", format="csv")
        assert (tmp_path / "r.csv").read_text() == cli(verb, NET, *chips, "--format", "csv").stdout
        assert c.to_markdown() == cli(verb, NET, *chips, "--format", "md").stdout
        assert cli(verb, NET, *chips, "-o", "t.txt", "--plot", "q.svg").returncode == 0
        assert str(c) == (tmp_path / "t.txt").read_text()
        assert (tmp_path / "p.svg").read_text() == (tmp_path / "q.svg").read_text()
        assert len(c.to_pandas()) == 2 * len(c[0].to_pandas())
    assert repr(c) == "<Comparison of layers on l4, t4>"
    with pytest.raises(InputError, match="one picture shows one model"):
        rooflens.fuse(NET, on=["l4", "t4"], format="dot", output=tmp_path / "x.dot")
    with pytest.raises(InputError, match="one machine"):
        rooflens.measure(NET, on=["l4", "t4"])


def test_files_are_written_as_on_the_command_line(cli, tmp_path: Path) -> None:
    a = rooflens.analyze(NET, on="l4", plot=str(tmp_path / "p.svg"), output=tmp_path / "r.json", format="json")
    assert json.loads((tmp_path / "r.json").read_text()) == a.to_dict()
    assert a.to_dict()["settings"]["plot"] == str(tmp_path / "p.svg")
    assert cli("analyze", NET, "--on", "l4", "--plot", "q.svg", "-o", "t.txt").returncode == 0
    assert (tmp_path / "p.svg").read_text() == (tmp_path / "q.svg").read_text()
    rooflens.analyze(NET, on="l4", output=tmp_path / "u.txt")
    assert (tmp_path / "u.txt").read_text() == (tmp_path / "t.txt").read_text()


def test_settings_hold_every_option_as_given(cli) -> None:
    from rooflens.pipeline.settings import OPTION_NAMES

    done = json.loads(cli("analyze", NET, "--format", "json", "--strict").stdout)["settings"]
    assert set(done) == {*OPTION_NAMES, "on"}
    assert done["input"] == "8x64x32x32"
    assert (done["format"], done["output"], done["html"], done["plot"], done["trace_out"]) == ("json", *[None] * 4)
    assert rooflens.analyze(NET).to_dict()["settings"]["format"] is None


def test_names_of_later_versions_are_there_and_say_so() -> None:
    for name in ("map_to", "trace", "sweep", "check"):
        assert hasattr(rooflens, name)
        with pytest.raises(rooflens.NotInThisVersion, match=name):
            getattr(rooflens, name)("resnet18", on="l4")
    assert not hasattr(rooflens, "fuze")


MODEL = """
import torch
def make():
    return torch.nn.Linear(4, 3), torch.zeros(2, 4)
def bare():
    return torch.nn.Conv2d(3, 2, 1)
"""


def test_the_public_names_are_listed_before_they_are_loaded() -> None:
    """The tab key asks dir(), in a process where nothing was used yet."""
    listing = subprocess.run(
        [sys.executable, "-c", "import rooflens, sys; print(*dir(rooflens)); assert 'numpy' not in sys.modules"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"analyze", "load_chip", "Analysis", "RooflensError", "measure"} <= set(listing.stdout.split())


def test_inputs_beside_the_name_of_a_model(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    (tmp_path / "m.py").write_text(MODEL)
    x = torch.zeros(7, 4, device="meta")
    for given in (x, (x,), {"input": x}):
        d = rooflens.analyze(f"{tmp_path}/m.py:make", given).to_dict()
        assert d["totals"]["macs"] == 7 * 4 * 3
        assert d["settings"]["batch"] == 7
    d = rooflens.analyze(f"{tmp_path}/m.py:bare", torch.zeros(1, 3, 5, 5)).to_dict()
    assert d["totals"]["macs"] == 25 * 3 * 2
    assert not any("no input was given" in a for a in d["assumptions"])


def test_inputs_beside_a_zoo_name() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("timm")
    shaped = rooflens.analyze("timm:test_resnet", torch.zeros(2, 3, 64, 64)).to_dict()
    assert shaped["totals"] == rooflens.analyze("timm:test_resnet", input="2x3x64x64").to_dict()["totals"]
    with pytest.raises(RooflensError, match="contradicts"):
        rooflens.analyze("timm:test_resnet", torch.zeros(2, 3, 64, 64), batch=3)


def test_inputs_beside_what_brings_its_own(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="inputs beside layer text"):
        rooflens.analyze(NET, (1,))
    file = tmp_path / "r.json"
    file.write_text(rooflens.analyze(NET).to_json())
    with pytest.raises(InputError, match="inputs beside saved result"):
        rooflens.analyze(file, (1,))


def test_a_class_is_no_module() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ModelError, match="Linear is a class"):
        rooflens.analyze(torch.nn.Linear)
    with pytest.raises(ModelError, match="type function"):
        rooflens.analyze(lambda x: x)


def test_inputs_of_another_type_than_the_weights_are_refused_as_torch_does() -> None:
    torch = pytest.importorskip("torch")
    model, x = torch.nn.Linear(4, 4).half(), torch.zeros(2, 4)
    with pytest.raises(RuntimeError, match="same dtype"):
        model(x)
    with pytest.raises(ModelError, match="must have the same dtype, but got fp32 and fp16"):
        rooflens.analyze(model, x)
    for fitting in (
        {"inputs": x.half()},
        {"inputs": x, "dtype": "fp16"},
        {"inputs": x, "dtype": "bf16", "autocast": True},
    ):
        assert rooflens.analyze(model, **fitting).to_dict()["totals"]["macs"] == 2 * 4 * 4


def test_a_product_with_one_factor_from_outside_is_analysed() -> None:
    """affine_grid makes its other factor itself: each of the 8 x 8 places takes 2 x 3 multiply-adds."""
    torch = pytest.importorskip("torch")

    class Grid(torch.nn.Module):
        def forward(self, theta):
            return torch.nn.functional.affine_grid(theta, [1, 3, 8, 8], align_corners=False)

    assert rooflens.analyze(Grid(), torch.zeros(1, 2, 3)).to_dict()["totals"]["macs"] == 8 * 8 * 2 * 3
