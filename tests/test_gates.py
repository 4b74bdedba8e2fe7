"""Gates: what they may name is what the schema publishes, and it is checked before anything is analysed."""

from pathlib import Path

import pytest

import rooflens
from rooflens.errors import RooflensError, SyntaxFault

NET = "8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2"
FLOPS = 8 * 128 * 32 * 32 * (2 * 64 * 9 + 1) + 8 * 128 * 32 * 32 + 8 * 128 * 16 * 16 * 3


@pytest.mark.parametrize(
    "gate",
    [
        "totals.latency_s<=5GB", "totals.latency_s<=abc", "totals.latency_s<=nan", "totals.latency_s<=inf",
        "totals.flops<=abc", "totals.flops==true", "totals.bound==fast", "totals.bound<=memory",
        "totals.launch_bound==maybe", "totals.launch_bound>=true", "totals.latency_s<=5%", "totals.flops<=10%",
        "totals.latncy_s<=5ms", "hardware.idd==l4", "fusion.speedupp>1", "llm.tokens>1", "nothing.at.all==1", "totals==1",
        "fusion.edges==1", "groups==1", "fusion.after.bytes<=5ms", "fusion.level==chian",
        "ops==1", "ops[0].flops==1", "hardware==l4", "totals.bound.x==1", "settings.mode==dreaming", "totals.flops",
        "hardware.peak_flop_per_s.fp32.matrx>1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("on", [None, "l4"])
def test_a_gate_that_makes_no_sense_is_refused_before_anything_runs(gate: str, on: str | None) -> None:
    with pytest.raises(SyntaxFault, match="--gate"):
        rooflens.analyze("no-such-model", on=on, gate=gate)


def test_on_the_command_line_it_is_status_2(cli) -> None:
    done = cli("analyze", NET, "--gate", "totals.latency_s<=5GB")  # null without a chip, and wrong all the same
    assert done.returncode == 2
    assert "totals.latency_s is not in bytes" in done.stderr


@pytest.mark.parametrize(
    "gate",
    [
        "hardware.id==l4", "fusion.speedup>=1.1", "llm.tokens_per_s>100", "fusion.before.latency_s<5ms", "totals.latency_s<=5ms",
        "measured.whatever.s<5", "hardware.peak_flop_per_s.fp32.vector>1TFLOP/s", "totals.energy_j<=1mJ",
        "totals.bound==memory", "totals.launch_bound==false",
    ],
)  # fmt: skip
def test_what_is_not_known_here_is_undecided(cli, gate: str) -> None:
    found = rooflens.analyze(NET, gate=gate).to_dict()["gates"]
    assert found == [{"gate": gate, "value": None, "passed": None}]
    if gate.startswith("llm"):
        assert cli("analyze", NET, "--gate", gate).returncode == 3


@pytest.mark.parametrize(
    ("gate", "passed"),
    [
        (f"totals.flops=={FLOPS}", True), (f"totals.flops<{FLOPS}FLOP", False), ("hardware.id==l4", True),
        ("hardware.id!='l4'", False), ("coverage.share_counted>=100%", True), ("totals.launch_bound==FALSE", True),
        ("hardware.peak_flop_per_s.fp32.vector>=30.3TFLOP/s", True), ("settings.mode==inference", True),
        ("totals.device_time_s<=1 ms", True), ("totals.bytes>1GB", False), ("fusion.before.kernels==3", True),
        ("fusion.after.bytes<=1MB", False), ("fusion.level==none", True), ("fusion.speedup<=1", True),
        ("fusion.patterns.single.share>=100%", True),
    ],
)  # fmt: skip
def test_what_is_known_is_decided(gate: str, passed: bool) -> None:
    big = {"on": "l4 with launch.eager=0s", "gate": gate}
    assert rooflens.analyze(NET, **big).to_dict()["gates"][0]["passed"] is passed


MYSTERY = """
import torch
@torch.library.custom_op("rooflens_gates::mystery", mutates_args=())
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


def test_what_could_not_be_counted_leaves_gates_open(cli, tmp_path: Path) -> None:
    """The addition is 16 operations; the other op may be any number more."""
    pytest.importorskip("torch")
    (tmp_path / "m.py").write_text(MYSTERY)
    wanted = {
        "totals.flops<=15": False, "totals.flops<=16": None, "totals.flops<16": False, "totals.flops>=16": True,
        "totals.flops>16": None, "totals.flops==16": None, "totals.flops==15": False, "totals.flops!=15": True,
        "totals.macs<=0": None, "totals.intensity_flop_per_byte<=100": None, "totals.device_time_s<=1s": None,
        "totals.bytes<=1GB": True, "coverage.share_counted>=50%": True,
    }  # fmt: skip
    found = rooflens.analyze(f"{tmp_path}/m.py:make", on="l4", gate=list(wanted)).to_dict()
    assert {g["gate"]: g["passed"] for g in found["gates"]} == wanted
    assert "times unknown: 1 op could not be counted" in found["notes"]
    shown = cli("analyze", "m.py:make", "--on", "l4", "--gate", "totals.flops<=16")
    assert shown.returncode == 3
    assert "No time can be given: times unknown: 1 op could not be counted." in " ".join(shown.stdout.split())
    assert "not published" not in shown.stdout
    assert cli("analyze", "m.py:make", "--gate", "totals.flops<=15").returncode == 1


def test_python_options_of_the_wrong_kind_are_our_errors() -> None:
    wrong = (
        {"weight_density": "0.5"}, {"dim": {"N": "x"}}, {"dim": 5}, {"dim": {"N": 2.5}}, {"dim": {"N": -1}}, {"gate": 5},
        {"gate": [5]}, {"batch": 2.0}, {"batch": True}, {"autocast": 1}, {"dtype": 3}, {"dtype": ["fp32"]}, {"input": 5},
        {"plot": 3}, {"output": ""}, {"html": "x.html"}, {"trace_out": "t.json"}, {"dim": {"N": 2**63}},
        {"dim": ["N=1", "N=2"]}, {"strict": "yes"}, {"format": "yaml"}, {"nonsense": 1},
    )  # fmt: skip
    for options in wrong:
        with pytest.raises(RooflensError):
            rooflens.analyze(NET, **options)
    for later in ("html", "trace_out"):
        with pytest.raises(rooflens.NotInThisVersion, match="not in this version"):
            rooflens.analyze(NET, **{later: "x"})
