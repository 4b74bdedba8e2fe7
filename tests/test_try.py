"""`measure --try`: changes that are really made to small networks, what they gain, and what is said of them."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rooflens
from rooflens.benches.rounds import Pace
from rooflens.benches.sampling import Samples
from rooflens.compare.trials import LEAST_NOISE, Expected, gain, noise, verdict
from rooflens.report.blocks import Code
from rooflens.report.render import markdown, terminal
from rooflens.report.sections import tried as sections

torch = pytest.importorskip("torch")

from rooflens import changes, trying  # noqa: E402
from rooflens.benches import trial  # noqa: E402
from rooflens.benches.padding import padded  # noqa: E402
from rooflens.benches.subject import Subject  # noqa: E402
from rooflens.benches.trial import Attempt, output_difference  # noqa: E402
from rooflens.frontends.pytorch.calls import record_calls  # noqa: E402
from rooflens.frontends.pytorch.text_net import text_net  # noqa: E402

ROOT = Path(__file__).parent.parent
CHIP = "xeon-8480plus"  # has bf16
NET = "2x3x8x8 | conv2d 9 k3 p1 bias | relu | flatten | linear 16 bias"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes seconds: only the tests that are about it do."""
    monkeypatch.setattr(trying, "CHANGES", tuple(c for c in changes.CHANGES if c.name != "torch.compile"))


def tried(model: Any, inputs: Any = None, **options: Any) -> dict[tuple[str, str], Any]:
    plain = {"on": CHIP, "device": "cpu", "time": "0.5ms", "mode": "inference"}
    d = rooflens.measure(model, inputs, try_=True, **{**plain, **options}).to_dict()
    return {(r["change"], r["pass"]): r for r in d["measured"]["tried"]}


def samples(*times: float) -> Samples:
    return Samples(times_s=times)


# what a gain is


def test_a_gain_is_the_share_of_the_time_per_item_that_is_saved() -> None:
    assert gain(2.0, 1.0) == 0.5
    assert gain(1.0, 2.0) == -1.0
    assert gain(1.0, 2.0, 8) == 0.75  # eight items in 2 s are one in 0.25 s
    assert gain(None, 1.0) is None
    assert Expected(before_s=4.0, after_s=8.0).gain(8) == 0.75


def test_a_difference_within_the_spread_is_none() -> None:
    wide = samples(8.0, 9.0, 10.0, 11.0, 12.0)  # quartiles 9 and 11: a spread of 10 % of 10
    near, far = samples(9.0, 9.0, 9.0), samples(5.0, 5.0, 5.0)
    assert noise(wide, near) == pytest.approx(0.9 * 0.1)
    assert verdict(Attempt(status="ok", before=wide, after=samples(9.2, 9.2, 9.2)))[0] == "no difference"
    assert verdict(Attempt(status="ok", before=wide, after=far)) == ("ok", "")
    assert noise(near, near) == LEAST_NOISE
    assert verdict(Attempt(status="ok", before=near, after=near))[0] == "no difference"


def test_nothing_that_counts_is_no_gain() -> None:
    status, why = verdict(Attempt(status="ok", before=samples(), after=samples(1.0)))
    assert status == "failed"
    assert "disturbed" in why


def test_outputs_are_compared_to_the_largest_value() -> None:
    a, b = torch.tensor([1.0, -2.0]), torch.tensor([1.0, -2.02])
    assert output_difference([a], [b]) == pytest.approx(0.01)
    assert output_difference([a, b], [a, b]) == 0.0
    assert output_difference([a], [torch.tensor([1.0, float("inf")])]) is None
    assert output_difference([], []) is None


# what is run


def test_rounds_take_turns_and_are_five_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(trial, "SMALL_S", 0.0)  # no run before each sample to warm caches up
    pair = trial.Pair(before=lambda: order.append("b"), after=lambda: order.append("a"))
    monkeypatch.setattr(trial, "Budget", lambda warmups: trial_budget(warmups))
    before, after = trial._in_turns(pair, trial.Device(name="cpu"), 0.0, False)
    assert len(before.times_s) + len(before.rejected) == len(after.times_s) + len(after.rejected) == trial.ROUNDS == 5
    assert "".join(order)[-10:] == "ba" * 5
    assert Pace(seconds=0.0).least < trial.ROUNDS


def trial_budget(warmups: int) -> Any:
    from rooflens.benches.sampling import Budget

    return Budget(warmups=warmups, sample_s=0.0)  # one run a sample


def test_a_graph_keeps_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    import gc
    import weakref
    from contextlib import nullcontext

    from rooflens.benches.device import capture

    class Graph:
        def replay(self) -> None:
            pass

    for name, made in {
        "CUDAGraph": Graph, "graph": lambda g, stream: nullcontext(), "synchronize": lambda: None,
        "current_stream": lambda: None,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, made)
    weights = torch.nn.Linear(2, 2)
    alive = weakref.ref(weights)
    again = capture(lambda model=weights: model)
    del weights
    gc.collect()
    again()
    assert alive() is not None


def test_a_larger_batch_repeats_what_has_the_batch_first() -> None:
    x, scale = torch.zeros(2, 3, device="meta"), torch.zeros(3)
    found = Subject(module=torch.nn.ReLU(), args=(x, [x], scale), kwargs={"y": x}).larger(8)
    assert [t.shape[0] for t in found.inputs] == [16, 16, 3, 16]
    assert found.larger(1) is found


def calls(text: str) -> list[Any]:
    module, inputs = text_net(text, torch.float32)
    return [s.call for s in record_calls(module, (), inputs, name="n", source="n").steps]


def test_padding_rounds_the_outputs_up() -> None:
    conv, linear = calls("2x3x8x8 | conv2d 9 k3 bias | flatten | linear 33")
    wide = padded(conv, "cpu")
    assert wide is not None
    assert (wide.width, wide.wide) == (9, 16)
    assert [s.shape for s in wide.call.slots] == [(2, 3, 8, 8), (16, 3, 3, 3), (16,)]
    assert wide.call.slots[1].stride == (27, 9, 3, 1)
    on_gpu = padded(linear, "cuda")
    assert on_gpu is not None
    assert on_gpu.wide == 40  # the next multiple of 8
    assert [padded(c, "cpu") for c in calls("1x4x8x8 | conv2d 6 k3 g2 | conv2d 32 k1 | relu")] == [None, None, None]


def test_channels_last_weights_stay_so() -> None:
    conv = torch.nn.Conv2d(3, 9, 3, device="meta")
    call = record_calls(conv, (torch.zeros(1, 3, 8, 8, device="meta"),), {}, name="n", source="n", channels_last=True)
    wide = padded(call.steps[0].call, "cpu")
    assert wide is not None
    assert wide.call.slots[1].stride == (27, 1, 9, 3)  # 3 channels next to each other


# the whole of it


def test_every_change_is_measured_and_predicted_or_says_why_not() -> None:
    rows = tried(NET)
    assert {name for name, _ in rows} == {c.name for c in trying.CHANGES} | {"padded N"}
    for row in rows.values():
        ran = row["status"] in ("ok", "no difference")
        assert ran == (row["measured_gain"] is not None)
        assert row["status"] in ("ok", "no difference") or row["reason"]
        if ran:
            assert row["predicted_gain"] is not None or row["predicted_reason"]
            assert row["measured_gain"] == pytest.approx(1 - row["after_s"] / row["items"] / row["before_s"])
            for side in ("before", "after"):
                assert len(row[side]["samples_s"]) + len(row[side]["rejected"]) >= 5
                assert row[side]["warmups_s"]
            assert row["lines"]
    assert [rows[n, "forward"]["status"] for n in ("TF32", "CUDA graph")] == ["not here"] * 2
    assert rows["padded N", "forward"]["layer"] == "conv1"  # 9 outputs; 16 are whole
    assert rows["larger batch", "forward"]["items"] == 8
    assert 0 < rows["bf16", "forward"]["output_difference"] < 0.05  # bf16 keeps 8 bits
    assert rows["larger batch", "forward"]["output_difference"] is None


def test_predicted_gains_follow_from_bytes() -> None:
    rows = tried("1x64 | linear 32")
    # weights 64x32, one row in and one out, all memory-bound: half the bytes, half the time
    assert rows["bf16", "forward"]["predicted_gain"] == pytest.approx(0.5)
    one, eight = 64 + 64 * 32 + 32, 8 * 64 + 64 * 32 + 8 * 32
    assert rows["larger batch", "forward"]["predicted_gain"] == pytest.approx(1 - eight / 8 / one)
    assert rows["larger batch", "forward"]["predicted_of"] == "device_time_s"
    assert rows["channels-last", "forward"]["status"] == "not here"
    assert "multiple of 16" in rows["padded N", "forward"]["reason"]


def test_a_change_that_the_prediction_does_not_see_says_so() -> None:
    row = tried("1x3x8x8 | conv2d 16 k3")["channels-last", "forward"]
    assert row["predicted_gain"] is None
    assert "no difference" in row["predicted_reason"]
    alone = tried("1x3x8x8 | relu", on=None)["channels-last", "forward"]
    assert "rooflens machine" in alone["predicted_reason"]


def test_training_tries_the_step_too_and_reports_as_published(tmp_path: Path, cli) -> None:
    found = rooflens.measure(
        "2x8 | linear 5 bias | relu", on=CHIP, device="cpu", time="0.5ms", mode="training", try_=True
    )
    d = found.to_dict()
    steps = [r for r in d["measured"]["tried"] if r["pass"] == "step"]
    assert {r["status"] for r in steps if r["change"] in ("bf16", "autocast bf16", "larger batch")} <= {
        "ok",
        "no difference",
    }
    assert next(r for r in steps if r["change"] == "bf16")["predicted_gain"] == pytest.approx(0.5)
    assert [r["layer"] for r in steps if r["change"] == "padded N"] == ["linear1"]
    schema = json.loads((ROOT / "src/rooflens/report/schemas/measurement-1.json").read_text())
    jsonschema.validate(d, schema)
    file = tmp_path / "m.json"
    file.write_text(json.dumps(d))
    again = cli("report", str(file))
    assert again.returncode == 0, again.stderr
    assert "Changes that were tried" in again.stdout
    assert "TF32: not here: only NVIDIA GPUs have TF32." in again.stdout


def test_what_was_not_asked_for_is_not_tried() -> None:
    d = rooflens.measure("1x4 | relu", device="cpu", time="0.5ms").to_dict()
    assert d["measured"]["tried"] == []


def test_bf16_is_no_change_of_bf16() -> None:
    rows = tried("1x4 | linear 16", dtype="bf16")
    for name in ("bf16", "autocast bf16"):
        assert (rows[name, "forward"]["status"], rows[name, "forward"]["reason"]) == (
            "not here",
            "it runs in bf16, not in fp32",
        )


class Stubborn(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 16)

    def forward(self, x: Any) -> Any:
        if not x.is_meta and x.dtype != torch.float32:
            raise ValueError("fp32 or nothing")
        return self.layer(x)


def test_a_change_that_fails_is_told_and_the_rest_goes_on() -> None:
    model = Stubborn()
    kept = {k: v.clone() for k, v in model.state_dict().items()}
    rows = tried(model, torch.zeros(2, 4))
    assert rows["bf16", "forward"]["status"] == "failed"
    assert "fp32 or nothing" in rows["bf16", "forward"]["reason"]
    assert rows["larger batch", "forward"]["status"] in ("ok", "no difference")
    assert model.training
    assert all(torch.equal(v, kept[k]) for k, v in model.state_dict().items())


def test_an_interruption_keeps_the_changes_that_are_finished() -> None:
    from rooflens.measuring import measure_model
    from rooflens.pipeline.settings import make_settings

    def stop(what: str, done: int, of: int) -> None:
        if what == "changes" and done == 2:
            raise KeyboardInterrupt

    found = measure_model(
        "1x4 | linear 16", None, None, make_settings(), device="cpu", seconds=0.0005, backward=False, progress=stop,
        try_=True,
    )  # fmt: skip
    assert found.measured.stopped_by == "KeyboardInterrupt"
    assert [t.change for t in found.measured.tried] == ["channels-last", "bf16"]


def row(**changes: Any) -> dict[str, Any]:
    plain = {
        "change": "bf16", "pass": "forward", "layer": None, "same": [], "status": "ok", "reason": None, "measured_gain": 0.5,
        "noise": 0.01, "predicted_gain": 0.25, "predicted_reason": None, "output_difference": 0.004, "inconclusive": False,
        "lines": ["model = model.to(torch.bfloat16)"],
    }  # fmt: skip
    return {**plain, **changes}


def shown(*rows: Any) -> str:
    document = {"measured": {"tried": list(rows)}}
    return terminal.render((*sections.changes(document), *sections.lines(document)), width=100)


def test_gains_stand_side_by_side_and_what_gained_is_pasted() -> None:
    text = shown(row(), row(change="slow", measured_gain=-9.0, noise=0.5, lines=["never"]))
    cells = [line.split() for line in text.splitlines()]
    assert ["bf16", "fwd", "+25.0%", "+50.0%", "1.0%", "4.0e-03", "gains"] in cells
    assert "10x as long  0.5x" in text
    assert "    model = model.to(torch.bfloat16)\n" in text
    assert "never" not in text


def test_reasons_are_told_once_and_of_their_passes() -> None:
    gone = {"status": "not here", "reason": "no GPU", "measured_gain": None, "noise": None}
    text = shown(row(**gone), row(change="TF32", **gone), row(change="TF32", **{"pass": "step"}))
    assert "bf16, TF32 (fwd): not here: no GPU." in text
    assert shown() == "\n"


# torch.compile


def only_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "CHANGES", tuple(c for c in changes.CHANGES if c.name == "torch.compile"))


def test_no_compiler_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import exc

    def broken(module: Any, **options: Any) -> Any:
        raise exc.InvalidCxxCompiler

    only_compile(monkeypatch)
    monkeypatch.setattr(torch, "compile", broken)
    row = tried("1x4 | relu")["torch.compile", "forward"]
    assert row["status"] == "not here"
    assert "compiler" in row["reason"]


def test_what_is_compiled_runs_and_is_predicted_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    only_compile(monkeypatch)
    monkeypatch.setattr(torch, "compile", lambda module, **options: module)
    row = tried("1x8x16x16 | relu | relu")["torch.compile", "forward"]
    assert row["status"] in ("ok", "no difference")
    # two passes over the same bytes become one
    assert row["predicted_gain"] == pytest.approx(0.5)
    assert row["output_difference"] == 0.0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_everything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "CHANGES", changes.CHANGES)
    net = "8x64x56x56 | conv2d 100 k3 p1 bias | batchnorm | relu | conv2d 64 k1 | dropout | flatten | linear 33"
    rows = tried(net, device="cuda", on="h200-sxm", mode="training", time="20ms")
    ran = {key: row["status"] for key, row in rows.items()}
    assert set(ran.values()) <= {"ok", "no difference"}, {k: rows[k]["reason"] for k in ran}
    assert {p for _, p in ran} == {"forward", "step"}
    assert rows["torch.compile", "forward"]["after"]["warmups_s"][0] > rows["torch.compile", "forward"]["after_s"]
    assert rows["TF32", "forward"]["output_difference"] > 0


# what is pasted


def pasted(name: str, model: Any, inputs: Any, **more: Any) -> dict[str, Any]:
    """What is there after the lines of a change have run."""
    given = inputs if isinstance(inputs, tuple) else (inputs,) if torch.is_tensor(inputs) else ()
    kwargs = inputs if isinstance(inputs, dict) else {}
    recording = record_calls(model, given, kwargs, name="n", source="n")
    from rooflens.benches.device import device_of
    from rooflens.benches.measure import Plan
    from rooflens.pipeline.settings import make_settings

    plan = Plan(
        subject=Subject(module=model, args=given, kwargs=kwargs), forward=recording, trained=None, training=False,
        dtype="fp32",
    )  # fmt: skip
    s = changes.Baseline(
        plan=plan, device=device_of("cpu"), settings=make_settings(), hardware=None, wholes=(), rows=(), seconds=0.1,
        threads=1,
    )  # fmt: skip
    if name == "padded N":
        call = next(step for step in recording.steps if padded(step.call, "cpu"))
        lines = tuple(changes.pad_lines(s, call.module, padded(call.call, "cpu"), 0))
    else:
        lines = next(c for c in changes.CHANGES if c.name == name).lines(s)
    names = {"model": model, "inputs": inputs, "torch": torch, **more}
    exec("\n".join(lines), names)
    return names


class Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)

    def forward(self, a: Any, b: Any = None) -> Any:
        return self.conv(a if b is None else a + b)


@pytest.mark.parametrize("kind", ["one", "many", "named"])
def test_lines_do_what_they_say(kind: str) -> None:
    x = torch.rand(2, 3, 8, 8)
    inputs = {"one": x, "many": (x, x), "named": {"a": x}}[kind]

    def first(found: dict[str, Any]) -> Any:
        got = found["inputs"]
        return got if torch.is_tensor(got) else next(iter(got.values() if isinstance(got, dict) else got))

    found = pasted("bf16", Two(), inputs)
    assert first(found).dtype == next(found["model"].parameters()).dtype == torch.bfloat16
    assert first(pasted("channels-last", Two(), inputs)).is_contiguous(memory_format=torch.channels_last)
    assert pasted("autocast bf16", Two(), inputs)["outputs"].dtype == torch.bfloat16
    data = torch.utils.data.TensorDataset(torch.zeros(32))
    assert pasted("larger batch", Two(), inputs, dataset=data)["loader"].batch_size == 16


@pytest.mark.parametrize("layer", [torch.nn.Linear(8, 5), torch.nn.Conv2d(3, 9, 3, padding=1, bias=False)])
def test_a_padded_layer_gives_the_same_outputs_first(layer: Any) -> None:
    x = torch.rand(2, 3, 8, 8)
    model = torch.nn.Sequential(layer)
    expected = model(x)
    found = pasted("padded N", model, x)["model"](x)
    axis, width = (3, 5) if isinstance(layer, torch.nn.Linear) else (1, 9)
    assert found.shape[axis] == 16
    assert torch.allclose(found.narrow(axis, 0, width), expected, atol=1e-6)
    assert not found.narrow(axis, width, 16 - width).any()


def test_code_is_neither_wrapped_nor_cut() -> None:
    long = "x = " + " + ".join("yyyyyyyy" for _ in range(20))
    block = (Code(lines=(long, "    indented")),)
    assert terminal.render(block, width=40) == f"    {long}\n        indented\n"
    assert markdown.render(block) == f"```python\n{long}\n    indented\n```\n"
