"""`rooflens measure`: real runs of small networks, and what is said of them."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rooflens
from rooflens.benches import sampling
from rooflens.benches.device import Device, device_of
from rooflens.benches.isolated import Conditions, backward_times, forward_times
from rooflens.benches.measurement import LayerTime
from rooflens.benches.sampling import Budget
from rooflens.compare.standing import Work, standing
from rooflens.hardware.load import load_chip

torch = pytest.importorskip("torch")

from rooflens.frontends.pytorch.calls import record_calls  # noqa: E402
from rooflens.frontends.pytorch.text_net import MAKERS, text_net  # noqa: E402
from rooflens.frontends.text import text_graph  # noqa: E402
from rooflens.frontends.text_layers import LAYERS  # noqa: E402

ROOT = Path(__file__).parent.parent
QUICK = "2ms"
MODEL = """
import os
import signal
import torch
from torch import nn

class Boom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("boom")

class Odd(nn.Module):
    def forward(self, x):
        return Boom.apply(x)

class Stops(nn.Module):
    def forward(self, x):
        raise ValueError("no further")

class Picky(nn.Module):
    def forward(self, x):
        if not x.is_meta:
            raise ValueError("not with values")
        return x + 1

class Ends(nn.Module):
    def forward(self, x):
        if not x.is_meta:
            os.kill(os.getpid(), getattr(signal, os.environ["ENDS_BY"]))
        return x + 1

def ends():
    return around(Ends())

def around(middle):
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), middle, nn.Conv2d(8, 4, 3)), torch.rand(1, 3, 16, 16)

def backward():
    return around(Odd())

def forward():
    return around(Stops())

def values():
    return around(Picky())

def frozen():
    return nn.Sequential(nn.Embedding(20, 8).requires_grad_(False), nn.ReLU()), torch.zeros(2, 5, dtype=torch.long)
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    return file


@pytest.fixture(autouse=True)
def no_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where other processes run, every sample may be a disturbed one: that is another test's matter."""
    monkeypatch.setattr(sampling, "switches", lambda: 0)
    monkeypatch.setattr(sampling, "STOPPED", float("inf"))


def measured(model: Any, **options: Any) -> Any:
    return rooflens.measure(model, **{"on": "i7-12700k", "device": "cpu", "time": QUICK, **options}).to_dict()


def statuses(document: Any, pass_: str) -> dict[str, str]:
    return {r["id"]: r["status"] for r in document["measured"]["ops"] if r["pass"] == pass_}


NET = "2x4x12x12 | conv2d 8 k3 p1 bias as a | batchnorm | relu | add a | maxpool2d k2 | flatten | linear 5 bias"


def test_each_kernel_has_a_time_and_a_place_under_the_roof() -> None:
    d = measured(NET)
    kernels = [op["id"] for op in d["ops"] if not op["view"]]
    assert list(statuses(d, "forward")) == kernels
    assert set(statuses(d, "backward")) == set(kernels)
    for row in d["measured"]["ops"]:
        assert row["status"] == "ok"
        assert row["time_s"] > 0
        assert row["samples_s"]
        assert row["warmups_s"]
    conv = next(r for r in d["measured"]["ops"] if r["id"] == "a" and r["pass"] == "forward")
    # 8 outputs of 4x3x3 products and a bias, at 2x12x12 places
    assert conv["flops"] == 2 * 12 * 12 * 8 * (2 * 4 * 9 + 1)
    assert conv["flop_per_s"] == pytest.approx(conv["flops"] / conv["time_s"])
    assert conv["roof_share"] * conv["distance"] == pytest.approx(1)
    assert conv["roof_share"] == pytest.approx(conv["roofline_time_s"] / conv["time_s"])
    assert conv["kernels"] >= 1
    assert conv["allocations"] >= 1
    assert conv["peak_memory_bytes"] >= 2 * 8 * 12 * 12 * 4  # at least its own output


def test_the_document_is_as_published_and_draws_again(tmp_path: Path, cli) -> None:
    d = measured(NET)
    schema = json.loads((ROOT / "src/rooflens/report/schemas/measurement-1.json").read_text())
    jsonschema.validate(d, schema)
    assert d["schema"] == "rooflens.measurement/1"
    file = tmp_path / "m.json"
    file.write_text(json.dumps(d))
    done = cli("report", str(file), "--plot", "m.svg")
    assert done.returncode == 0, done.stderr
    assert "measured" in done.stdout
    assert (tmp_path / "m.svg").read_text().startswith("<?xml")
    assert done.stdout == cli("report", str(file)).stdout


def test_the_whole_is_its_layers_and_the_gap() -> None:
    d = measured(NET)
    for whole in d["measured"]["whole"]:
        assert whole["layers_in_situ_s"] + whole["gap_s"] == pytest.approx(whole["time_s"])
        assert whole["peak_memory_bytes"] > d["model"]["param_bytes"]
    assert [w["pass"] for w in d["measured"]["whole"]] == ["forward", "step"]


def test_a_fused_group_is_the_sum_of_its_members_in_eager() -> None:
    d = measured(NET, fusion="chain", mode="inference")
    times = {r["id"]: r["time_s"] for r in d["measured"]["ops"]}
    group = next(g for g in d["measured"]["groups"] if len(g["ops"]) > 1)
    assert group["time_s"] == pytest.approx(sum(times[i] for i in group["ops"]))
    assert group["how"] == "sum of its members"


def test_inference_asked_for_has_no_backward() -> None:
    assert not statuses(measured(NET, mode="inference"), "backward")


def test_what_raises_in_backward_fails_alone(model: Path, cli) -> None:
    done = cli(
        "measure", f"{model}:backward", "--on", "i7-12700k", "--device", "cpu", "--time", QUICK, "--format", "json"
    )
    assert done.returncode == 3, done.stderr
    d = json.loads(done.stdout)
    assert statuses(d, "forward") == {"0": "ok", "1": "ok", "2.mul": "ok", "3": "ok"}
    assert statuses(d, "backward") == {"0": "ok", "1": "ok", "2.mul": "failed", "3": "ok"}
    assert "boom" in next(r["reason"] for r in d["measured"]["ops"] if r["status"] == "failed")


def test_what_raises_in_forward_fails_and_what_ran_before_is_kept(model: Path, cli) -> None:
    done = cli(
        "measure", f"{model}:forward", "--on", "i7-12700k", "--device", "cpu", "--time", QUICK, "--format", "json"
    )
    assert done.returncode == 3, done.stderr
    d = json.loads(done.stdout)
    assert statuses(d, "forward") == {"0": "ok", "1": "ok", "2": "failed"}


def test_what_raises_on_real_values_alone_fails_too(model: Path) -> None:
    d = measured(f"{model}:values")
    assert statuses(d, "forward") == {"0": "ok", "1": "ok", "2.add": "failed", "3": "ok"}


def test_no_gradient_is_not_zero_time(model: Path, cli) -> None:
    done = cli(
        "measure", f"{model}:frozen", "--on", "i7-12700k", "--device", "cpu", "--time", QUICK, "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    d = json.loads(done.stdout)
    assert set(statuses(d, "backward").values()) == {"n/a (no gradient)"}
    assert all(r["time_s"] is None for r in d["measured"]["ops"] if r["pass"] == "backward")


class _Small(Device):
    """A device with 1 MB of memory left."""

    def free_bytes(self) -> int | None:
        return 1_000_000


def steps(text: str, training: bool = False) -> Any:
    module, inputs = text_net(text, torch.float32)
    return record_calls(module, (), inputs, name="n", source="n", training=training).steps


def conditions(device: Device) -> Conditions:
    from contextlib import nullcontext

    return Conditions(device=device, budget=Budget(total_s=0.001), around=nullcontext)


def test_a_layer_that_needs_more_memory_than_there_is_is_oom_and_the_rest_goes_on() -> None:
    found = list(
        forward_times(steps("1x64 | linear 8 | linear 100000 | linear 2"), False, conditions(_Small(name="cpu")))
    )
    # 8 x 100000 weights are 3.2 MB, and so are 100000 x 2 and more
    assert [t.status for t in found] == ["ok", "oom", "ok"] or [t.status for t in found] == ["ok", "oom", "oom"]
    assert "are free" in found[1].reason


def test_huge_layers_are_never_allocated() -> None:
    d = measured("1x1000 | linear 10000000000000 | relu", mode="inference")  # outputs of 40 TB
    assert statuses(d, "forward") == {"linear1": "oom", "relu1": "oom"}


def test_equal_calls_run_once() -> None:
    found = list(forward_times(steps("2x16 | linear 16 x4")[1:], False, conditions(device_of("cpu"))))
    assert [t.first for t in found] == [None, 0, 0]
    assert len({id(t.samples) for t in found}) == 1


def test_an_interruption_keeps_what_is_finished() -> None:
    from rooflens.measuring import measure_model
    from rooflens.pipeline.settings import make_settings

    def stop(what: str, done: int, of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    found = measure_model(NET, None, None, make_settings(), device="cpu", seconds=0.001, backward=True, progress=stop)
    assert found.measured.stopped_by == "KeyboardInterrupt"
    assert len(found.measured.rows) == 2


@pytest.mark.parametrize(("by", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_what_is_finished_is_saved_when_a_signal_ends_the_run(model: Path, cli, by: str, status: int) -> None:
    """The signal comes while the whole model runs, after its layers have been timed."""
    where = ("--on", "i7-12700k", "--device", "cpu", "--time", QUICK)
    done = cli("measure", f"{model}:ends", *where, "--format", "json", "-o", "m.json", env={"ENDS_BY": by})
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    d = json.loads((model.parent / "m.json").read_text())
    assert statuses(d, "forward") == {"0": "ok", "1": "ok", "2.add": "ok", "3": "ok"}
    assert d["measured"]["stopped_by"]


def test_no_cuda_is_one_line(cli) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    done = cli("measure", "1x4 | linear 4", "--device", "cuda")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "CUDA" in done.stderr


@pytest.mark.parametrize("wrong", [{"dtype": "int8"}, {"dtype": "tf32"}, {"time": "-1s"}, {"time": 0}])
def test_what_cannot_be_measured_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(rooflens.InputError):
        measured("1x4 | linear 4", **wrong)


# what a time means


def work(**changes: Any) -> Work:
    plain = {
        "flops": 1000, "bytes": 100, "unit": "vector", "dtype": "fp32", "moved_s": 1.0, "roof_s": 1.0,
        "predicted_s": 1.0, "launch_s": None, "winograd": False,
    }  # fmt: skip
    return Work(**{**plain, **changes})


def test_distance_limit_and_move() -> None:
    far = standing(4.0, work(), load_chip("i7-12700k"))
    assert (far.roof_share, far.distance, far.limited_by, far.move) == (0.25, 4.0, "memory", "up")
    near = standing(1.25, work(), load_chip("i7-12700k"))
    assert (near.limited_by, near.move) == ("memory", "right")
    dense = standing(1.25, work(moved_s=0.1), load_chip("i7-12700k"))
    assert (dense.limited_by, dense.move) == ("compute", "roof")
    tiny = standing(1.5, work(launch_s=1.0, roof_s=0.01, moved_s=0.01), load_chip("i7-12700k"))
    assert (tiny.limited_by, tiny.move) == ("launch", "up")


def test_above_the_roof_is_kept_and_explained() -> None:
    chip = load_chip("i7-12700k")
    cached = standing(0.5, work(), chip)
    assert cached.roof_share == 2.0  # never clipped
    assert "cache" in cached.above_roof[0]
    assert "l1" in cached.above_roof[0]
    quick = standing(0.5, work(moved_s=0.1, winograd=True), chip)
    assert any("Winograd" in why for why in quick.above_roof)
    assert any("precision" in why for why in quick.above_roof)
    assert standing(2.0, work(), chip).above_roof == ()


# layer text that runs


TEXTS = (
    "2x4x10 | conv1d 8 k3 s2 p1 bias | convtranspose1d 4 k3 | maxpool1d k2 | avgpool1d k2",
    "2x4x10x10 | conv2d 8 k1x3 g2 d2 | convtranspose2d 8 k3 s2 p1 bias | avgpool2d k3 s2 p1 | avgpool 3",
    "2x4x5x5x5 | conv3d 4 k3 bias | convtranspose3d 4 k1 | groupnorm g2",
    "2x4x3x3 | conv2d 4 k1 bias as a | relu | relu6 x2 | gelu | silu | sigmoid | tanh | hardswish | mul a | concat a input",
    "2x3 | embedding 10 8 | layernorm | rmsnorm | softmax | dropout | lstm 6 | gru 5 | scan 3",
    "2x4x5x4 | linear 4 bias | attention causal context=7 kvheads=2 | linear 3",
)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_layer_text_runs_as_the_ops_it_is_counted_as(text: str, training: bool) -> None:
    module, inputs = text_net(text, torch.float32)
    recorded = record_calls(module, (), inputs, name="n", source="n", training=training)
    counted = [op for op in text_graph(text, training=training).ops if op.pass_ == "forward"]
    assert [(op.module, op.kind) for op in recorded.graph.ops] == [(op.module, op.kind) for op in counted]
    assert [recorded.graph.tensors[op.outputs[0]].shape for op in recorded.graph.ops][-1] == (
        text_graph(text, training=training).tensors[text_graph(text, training=training).outputs[0]].shape
    )


@pytest.mark.parametrize("text", TEXTS)
def test_every_layer_runs_forward_and_backward(text: str) -> None:
    plain, where = steps(text, training=True), conditions(device_of("cpu"))
    assert {t.status for t in forward_times(plain, True, where)} == {"ok"}
    assert {t.status for t in backward_times(plain, where)} <= {"ok", "n/a (no gradient)"}


def test_every_layer_of_the_grammar_can_be_run() -> None:
    assert set(MAKERS) == set(LAYERS)


def test_in_situ_finds_every_layer() -> None:
    found = rooflens.measure(NET, on="i7-12700k", device="cpu", time=QUICK).measured
    assert found is not None
    rows: list[LayerTime] = [r.layer for r in found.rows]
    assert all(row.in_situ for row in rows)


def test_a_file_of_layers_is_measured_too(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text('input = "2x4x8x8"\nlayers = ["conv2d 8 k3 p1 bias", "relu"]\n')
    assert statuses(measured(str(file)), "forward") == {"conv1": "ok", "relu1": "ok"}
    file.write_text('dtype = "int8"\ninput = "2x4"\nlayers = ["linear 8"]\n')
    with pytest.raises(rooflens.InputError, match="int8"):
        measured(str(file))


def test_an_input_that_does_not_fit_is_oom_everywhere() -> None:
    d = measured("4000x6400x320x320 | relu", mode="inference")  # 10 TB
    assert statuses(d, "forward") == {"relu1": "oom"}
    assert [w["status"] for w in d["measured"]["whole"]] == ["oom"]


def test_a_verdict_of_layers_that_reach_their_roof() -> None:
    from rooflens.report.sections.measured import verdict

    d = measured("2x16 | linear 16", mode="inference")
    for row in d["measured"]["ops"]:
        row |= {"roofline_time_s": 2 * row["time_s"], "roof_share": 2.0, "distance": 0.5}
    assert "No layer takes longer" in verdict(d)[1].text
    assert "rooflens machine" in verdict({**d, "hardware": None})[1].text


def test_a_disturbed_measurement_says_so_first() -> None:
    from rooflens.report.sections.measured import problems

    d = measured("2x16 | linear 16 | relu", mode="inference")
    assert problems(d) == ()
    for row in d["measured"]["ops"]:
        row["inconclusive"] = True
    assert "inconclusive" in problems(d)[0].text
