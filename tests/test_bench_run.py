"""Suites as data, and runs of real processes: what is timed, counted, kept, and what becomes of rows that fail."""

import json
import math
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

from rooflens.bench_counts import python_side
from rooflens.bench_roof import roof_work
from rooflens.benches.bench_run import BenchRow, BenchRun
from rooflens.benches.bench_stored import restored, stored
from rooflens.benches.bench_subject import NoGradient, ready, shape_of, subject_of
from rooflens.benches.suite import Case, Suite, read_suite, suite_names, suite_of
from rooflens.benching import Options, bench_pair, bench_run
from rooflens.compare.verdicts import compared
from rooflens.errors import ConfigError, InputError, ModelError
from rooflens.report.saved import read_run

SEED = {
    "Conv2D": "8x64x32x32 | conv2d 128 k3 p1 bias",
    "Conv1D": "8x64x256 | conv1d 128 k3 p1 bias",
    "MaxPool2D": "4x32x16x16 | maxpool2d k2 s2",
    "AvgPool2D": "4x32x16x16 | avgpool2d k2 s2",
}


def taken(suite: Suite, **changed: Any) -> BenchRun:
    quick = replace(suite, **{"time_s": 0.01, "processes": 1, **changed})
    return bench_run(quick, Options(device="cpu", on="i7-12700k"), lambda what, done, of: None)


# suites


def test_the_seed_suite_is_the_four_layers_at_their_shapes() -> None:
    suite = suite_of(("seed",), Path())
    assert {t.name: t.layer for t in suite.cases} == SEED
    assert {p for t in suite.cases for p in t.passes} == {"forward", "backward"}


def test_the_default_suite_spans_the_kernels_of_networks() -> None:
    texts = " ".join(t.source for t in suite_of((), Path()).cases)
    for word in ("k1 ", "k3 ", "k5 ", "k7 ", "g96", "convtranspose2d", "linear", "softmax", "batchnorm", "layernorm",
                 "rmsnorm", "groupnorm", "lstm", "gru", "dropout", "attention", "embedding", "scan"):  # fmt: skip
        assert word in texts, word
    assert {t.optimizer for t in suite_of((), Path()).cases} == {None, "sgd", "adamw"}


def test_every_suite_that_is_shipped_can_be_read() -> None:
    assert set(suite_names()) >= {"default", "seed"}
    assert all(suite_of((name,), Path()).cases for name in suite_names())


FILE = """
name = "mine"
time = "3s"
processes = 7
threshold = "10%"
dtype = "bf16"

[[benchmark]]
layer = "8x64 | linear 32"
passes = ["forward"]
threshold = 0.02
dtype = "fp32"

[[benchmark]]
name = "block"
model = "layers.py:block"
mode = "training"

[[benchmark]]
name = "adam"
layer = "8x64 | linear 32"
optimizer = "adamw"
"""


def test_a_file_says_what_is_run(tmp_path: Path) -> None:
    (tmp_path / "bench.toml").write_text(FILE)
    suite = read_suite(tmp_path / "bench.toml")
    assert (suite.name, suite.time_s, suite.processes, suite.threshold) == ("mine", 3.0, 7, 0.1)
    linear, block, adam = suite.cases
    assert linear == Case(name="linear 32", layer="8x64 | linear 32", passes=("forward",), threshold=0.02, dtype="fp32")
    assert block == Case(name="block", model="layers.py:block", training=True, dtype="bf16")
    assert (adam.passes, adam.optimizer) == (("step",), "adamw")
    assert suite_of((), tmp_path) == suite


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "benchmark"),
        ('tine = "3s"\n[[benchmark]]\nlayer = "8 | relu"', "unknown field 'tine'"),
        ('time = "3"\nprocesses = 0\n[[benchmark]]\nlayer = "8 | relu"', "processes"),
        ('time = "-3s"\n[[benchmark]]\nlayer = "8 | relu"', "time"),
        ('time = "3 kg"\n[[benchmark]]\nlayer = "8 | relu"', "time"),
        ("threshold = true\n[[benchmark]]\nlayer = '8 | relu'", "threshold"),
        ('[[benchmark]]\nlayer = "8 | relo"', "benchmark[0]: layer"),
        ('[[benchmark]]\nlayer = "8 | relu"\nmodel = "a.py:f"', "one of the two"),
        ("[[benchmark]]\nlayer = 1", "benchmark[0]: layer"),
        ('[[benchmark]]\nlayer = "8 | relu"\npasses = ["sideways"]', "passes"),
        ('[[benchmark]]\nlayer = "8 | relu"\ndtype = "fp7"', "dtype"),
        ('[[benchmark]]\nlayer = "8 | relu"\noptimizer = "lion"', "optimizer"),
        ('[[benchmark]]\nmodel = "lay ers"', "model"),
        ('[[benchmark]]\nlayer = "8 | relu"\n[[benchmark]]\nlayer = "9 | relu"', "two benchmarks are named 'relu'"),
        ('benchmark = ["relu"]', "benchmark[0]"),
    ],
)
def test_faults_of_a_file_are_named_by_field(tmp_path: Path, text: str, field: str) -> None:
    (tmp_path / "bench.toml").write_text(text)
    with pytest.raises(ConfigError) as fault:
        suite_of(("bench.toml",), tmp_path)
    assert field in str(fault.value)
    assert "bench.toml" in str(fault.value)


def test_texts_models_and_suites_can_be_asked_for_together() -> None:
    suite = suite_of(("8x64 | linear 32 | relu", "layers.py:block", "resnet18"), Path())
    assert [t.name for t in suite.cases] == ["linear 32 | relu", "block", "resnet18"]


@pytest.mark.parametrize("text", ["defualt", "a b", "", "8x64", "llama-3-8b"])
def test_what_is_no_benchmark_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match="default seed"):
        suite_of((text,), Path())


def test_only_some_of_them() -> None:
    suite = suite_of(("seed",), Path())
    assert [k for t in suite.only(("*Pool*",)).cases for k in t.keys] == [
        f"{n}/{p}" for n in ("MaxPool2D", "AvgPool2D") for p in ("forward", "backward")
    ]
    assert [k for t in suite.only(("*/backward",)).cases for k in t.keys] == [f"{n}/backward" for n in SEED]
    with pytest.raises(InputError, match="Conv2D"):
        suite.only(("Conv2d",))


# what is run


def layer(text: str, **more: Any) -> Case:
    return Case(name="x", layer=text, **more)


def test_shapes_tell_inputs_outputs_and_parameters() -> None:
    made, _ = subject_of(layer(SEED["Conv2D"]), Path())
    found = ready(layer(SEED["Conv2D"]), "forward", made, "fp32", "cpu")
    assert shape_of(found.subject, found.outputs()) == (
        "fp32[8,64,32,32] -> fp32[8,128,32,32]; parameters fp32[128,64,3,3] fp32[128]"
    )


def test_backward_gives_gradients_to_inputs_and_parameters() -> None:
    """Of y = w x + b with gradients of one at the outputs: dx = sum of rows of w, dw = sum of x over the batch, db = batch."""
    test = layer("4x3 | linear 2 bias")
    made, _ = subject_of(test, Path())
    found = ready(test, "backward", made, "fp32", "cpu")
    weight, bias = found.subject.module.parameters()
    (x,) = found.subject.inputs
    dw, db, dx = found.run()
    torch.testing.assert_close(dx, weight.sum(0).expand(4, 3))
    torch.testing.assert_close(dw, x.sum(0).expand(2, 3))
    torch.testing.assert_close(db, torch.full_like(bias, 4.0))


def test_a_step_of_an_optimizer_moves_every_parameter() -> None:
    test = layer("4x3 | linear 2 bias", optimizer="sgd", passes=("step",))
    made, _ = subject_of(test, Path())
    found = ready(test, "step", made, "fp32", "cpu")
    before = [p.detach().clone() for p in found.subject.module.parameters()]
    found.run()
    assert all((a - b).abs().min() > 0 for a, b in zip(before, found.subject.module.parameters(), strict=True))


def test_indices_reach_over_the_whole_table() -> None:
    made, _ = subject_of(layer("8x128 | embedding 1000 16"), Path())
    (given,) = made.inputs
    assert given.min() < 10
    assert 990 < given.max() < 1000
    assert given.unique().numel() > 800


def test_nothing_to_differentiate_is_said() -> None:
    class Index(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    from rooflens.benches.subject import Subject

    made = Subject(module=Index(), args=(torch.zeros(3, dtype=torch.int64),), kwargs={})
    with pytest.raises(NoGradient):
        ready(layer("3 | relu"), "backward", made, "fp32", "cpu")


def test_work_of_a_convolution_and_of_its_backward() -> None:
    """Per output element 64 x 9 multiply-adds and a bias; backward is a product for the input's gradient and one for the
    weight's, and a sum for the bias, which reads its gradient once."""
    test = layer(SEED["Conv2D"])
    made, dtype = subject_of(test, Path())
    outputs, macs = 8 * 128 * 32 * 32, 8 * 128 * 32 * 32 * 64 * 9
    forward = roof_work(test, "forward", made, dtype, "cpu", None)
    backward = roof_work(test, "backward", made, dtype, "cpu", None)
    assert forward is not None
    assert backward is not None
    assert forward.flops == 2 * macs + outputs
    assert forward.bytes == 4 * (8 * 64 * 32 * 32 + 128 * 64 * 9 + 128 + outputs)
    assert backward.flops is not None
    assert 4 * macs <= backward.flops <= 4 * macs + outputs


def test_the_roof_is_the_slower_of_work_and_bytes() -> None:
    """i7-12700k in the catalogue: its fp32 peak and its DRAM bandwidth."""
    from rooflens.hardware.load import load_chip

    chip = load_chip("i7-12700k")
    test = layer("4x32x16x16 | maxpool2d k2 s2")
    made, dtype = subject_of(test, Path())
    found = roof_work(test, "forward", made, dtype, "cpu", "i7-12700k")
    assert found is not None
    assert chip.offchip is not None
    assert found.roof_s == pytest.approx(4 * 32 * 4 * (256 + 64) / (chip.offchip.bandwidth_bytes_per_s or math.nan))


def test_blocks_of_python_are_those_that_a_run_leaves() -> None:
    blocks, most = python_side(lambda: [object() for _ in range(1000)])
    assert 1000 <= blocks <= 1100
    assert 1000 * sys.getsizeof(object()) <= most < 10 * 1000 * sys.getsizeof(object())


# whole runs

MODELS = """
import torch
from torch import nn
import siblings

class Index(nn.Module):
    def forward(self, x):
        return x + 1

class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("no luck")

class Dies(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
    def forward(self, x):
        if not x.is_meta:
            import os, signal
            os.kill(os.getpid(), signal.SIGSEGV)
        return x * self.w

def good():
    print("printed by the user's code")
    return nn.Linear(3, 4), torch.ones(2, 3)

def index():
    return Index(), torch.zeros(3, dtype=torch.int64)

def raises():
    return Raises(), torch.ones(3)

def dies():
    return Dies(), torch.ones(3)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "layers.py").write_text(MODELS)
    (tmp_path / "siblings.py").write_text("x = 1\n")
    return tmp_path


def by_key(run: BenchRun) -> dict[str, BenchRow]:
    return {r.benchmark.key: r for r in run.rows}


def test_a_run_goes_on_behind_rows_that_fail_and_die(project: Path) -> None:
    names = ("index", "raises", "dies", "good")
    suite = suite_of(tuple(f"layers.py:{n}" for n in names), project)
    found = by_key(taken(suite, processes=2, time_s=0.02))
    assert [found[f"{n}/forward"].status for n in names] == ["ok", "failed", "failed", "ok"]
    assert found["index/backward"].status == "n/a"
    assert "no gradient" in found["index/backward"].reason
    assert "no luck" in found["raises/forward"].reason
    assert f"signal {int(signal.SIGSEGV)}" in found["dies/forward"].reason
    assert [p.process for p in found["good/backward"].processes][:2] == [0, 1]


def test_a_row_has_all_that_is_promised() -> None:
    (row,) = taken(suite_of(("64x64 | linear 64 bias",), Path()).only(("*/forward",)), processes=2).rows
    assert row.status == "ok"
    assert len(row.times_s) >= 2  # a machine that is disturbed is asked again
    assert all(len(p.references_s) == 3 and min(p.references_s) > 0 for p in row.processes)
    assert all(p.drift and p.drift >= 1 for p in row.processes)
    assert all(len(p.samples.times_s) + len(p.samples.rejected) >= 5 for p in row.processes)
    assert row.allocated.framework_count == 1  # its output
    assert row.allocated.framework_bytes == 64 * 64 * 4
    assert row.allocated.python_count is not None
    assert row.allocated.python_bytes is not None
    assert row.kernels == 1
    # input, weight, bias and output: what is held while it runs
    assert row.peak_bytes == 4 * (64 * 64 * 3 + 64)
    assert row.flops == 2 * 64**3 + 64 * 64
    assert row.bytes == 4 * (3 * 64 * 64 + 64)
    assert row.roof_s
    assert row.benchmark.code_hash
    assert row.benchmark.shape == "fp32[64,64] -> fp32[64,64]; parameters fp32[64,64] fp32[64]"


def test_peak_memory_of_backward_holds_what_forward_saved() -> None:
    """A GELU keeps its input; with its output, the gradient given and the gradient made there are four tensors."""
    rows = by_key(taken(suite_of(("256x1024 | gelu",), Path())))
    size = 256 * 1024 * 4
    assert rows["gelu/forward"].peak_bytes == 2 * size
    assert rows["gelu/backward"].peak_bytes == 4 * size


def test_an_optimizers_state_is_held() -> None:
    """AdamW: parameters, gradients, two moments; a step count of each parameter, and the layer's input beside."""
    test = layer("1x64 | linear 256", optimizer="adamw", passes=("step",))
    suite = Suite(name="s", cases=(test,), folder=Path())
    (row,) = taken(suite).rows
    weight = 64 * 256 * 4
    assert row.peak_bytes is not None
    assert 4 * weight <= row.peak_bytes <= 6.1 * weight


def test_more_memory_than_there_is_is_no_attempt() -> None:
    (row,) = taken(suite_of(("1000000x1000000 | relu",), Path()).only(("*/forward",))).rows
    assert row.status == "oom"
    assert "needs" in row.reason


def test_a_run_is_restored_as_it_was(project: Path) -> None:
    found = taken(suite_of(("layers.py:good", "8x8 | relu"), project))
    again = restored(json.loads(json.dumps(stored(found))))
    assert again == found
    assert again.id == found.id


def test_the_code_of_a_benchmark_is_told_apart(project: Path) -> None:
    first = by_key(taken(suite_of(("layers.py:good",), project)))["good/forward"].benchmark
    (project / "layers.py").write_text(MODELS + "\n# changed\n")
    second = by_key(taken(suite_of(("layers.py:good",), project)))["good/forward"].benchmark
    assert first.code_hash != second.code_hash
    assert first.shape == second.shape


def test_the_machine_is_known_by_what_stays() -> None:
    suite = suite_of(("8x8 | relu",), Path()).only(("*/forward",))
    first, second = taken(suite), taken(suite)
    assert first.machine == second.machine
    assert dict(first.versions)["torch"] == torch.__version__


# the command line


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", "-C", str(folder), *names, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "-q")
    (project / "bench.toml").write_text('name = "mine"\n[[benchmark]]\nname = "layer"\nmodel = "layers.py:good"\n')
    (project / ".gitignore").write_text(".rooflens/\n__pycache__/\nrooflens-home/\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "one")
    return project


def test_runs_are_kept_with_their_commit(repository: Path, cli: Any) -> None:
    note = repository / "note.md"
    note.write_text("Nested loops became one product.\n")
    quick = ("--on", "i7-12700k", "--device", "cpu", "--time", "20ms", "--processes", "2")
    done = cli("bench", "run", *quick, "--note", "note.md", "--baseline", "before", "--format", "json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["schema"], document["kind"], document["suite"]) == ("rooflens.bench/1", "run", "mine")
    assert document["revision"]["commit"] == git(repository, "rev-parse", "HEAD").strip()
    assert document["revision"]["dirty"] is True  # the note is not committed
    assert document["note"] == "Nested loops became one product.\n"
    assert "printed by the user's code" not in done.stdout
    listed = cli("bench", "baseline", "list", "--format", "json")
    assert document["id"] in listed.stdout


def test_a_saved_run_is_read_again(tmp_path: Path, cli: Any) -> None:
    done = cli("bench", "run", "8x8 | relu", "--on", "i7-12700k", "--device", "cpu", "--time", "10ms", "--processes", "1",
               "--format", "json", "-o", "run.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    read = read_run(str(tmp_path / "run.json"))
    assert read.id == json.loads((tmp_path / "run.json").read_text())["id"]
    same = cli("bench", "compare", "run.json", "run.json", "--format", "json")
    assert same.returncode == 0, same.stderr
    assert {r["verdict"] for r in json.loads(same.stdout)["rows"]} == {"inconclusive"}  # one process


def test_two_revisions_are_measured_in_turns(repository: Path, cli: Any) -> None:
    """The second one does its work many times over."""
    slow = MODELS.replace("return nn.Linear(3, 4), torch.ones(2, 3)", "return Often(), torch.ones(2, 3)")
    slow += "\nclass Often(nn.Linear):\n    def __init__(self):\n        super().__init__(3, 4)\n"
    slow += (
        "    def forward(self, x):\n        for _ in range(20):\n            y = super().forward(x)\n        return y\n"
    )
    (repository / "layers.py").write_text(slow)
    git(repository, "commit", "-qam", "two")
    quick = ("--on", "i7-12700k", "--device", "cpu", "--time", "50ms", "--only", "*/forward")
    done = cli("bench", "compare", "--checkout", "HEAD~1", "HEAD", *quick, "--format", "json")
    document = json.loads(done.stdout)
    assert document["method"] == "interleaved"
    assert [r["key"] for r in document["rows"]] == ["layer/forward"]
    # a machine that is busy with other work gives no verdict, and says so
    assert (done.returncode, document["rows"][0]["verdict"]) in ((1, "slower"), (0, "inconclusive")), done.stderr
    assert document["rows"][0]["ratio"] > 3
    assert document["base"]["revision"]["commit"] == git(repository, "rev-parse", "HEAD~1").strip()
    assert git(repository, "worktree", "list").count("\n") == 1
    again = cli("bench", "compare", "previous", "latest", "--format", "json")
    assert json.loads(again.stdout)["rows"] == document["rows"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("run", "--processes", "0"), "--processes 0"),
        (("run", "--time", "0s"), "--time 0s"),
        (("run", "nothing.toml"), "nothing.toml"),
        (("run", "--note", "nowhere.md"), "--note nowhere.md"),
        (("run", "--baseline", "la test"), "la test"),
        (("run", "seed", "--only", "Conv9D"), "Conv9D"),
        (("compare", "a", "b", "c"), "3 runs"),
        (("compare", "--time", "1s"), "--checkout"),
        (("compare", "--threshold", "-1"), "--threshold"),
        (("compare", "nowhere.json", "nowhere.json"), "nowhere.json"),
        (("compare", "--checkout", "HEAD~99", "HEAD"), "HEAD~99"),
    ],
)
def test_bad_usage_is_one_line(repository: Path, cli: Any, words: tuple[str, ...], what: str) -> None:
    done = cli("bench", *words, "--on", "i7-12700k", "--device", "cpu") if words[0] == "run" else cli("bench", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert what in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_was_finished(tmp_path: Path, how: signal.Signals) -> None:
    words = ["bench", "run", "seed", "--on", "i7-12700k", "--device", "cpu", "--time", "20s", "--processes", "1",
             "--only", "*Pool*/forward"]  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-c", "from rooflens.cli import main; main()", *words],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip
    time.sleep(8)  # the first process is up, and at its first row, which takes 20 s
    child.send_signal(how)
    _, told = child.communicate(timeout=60)
    assert child.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[how]
    assert "Traceback" not in told


KILLS = 20 if os.environ.get("ROOFLENS_SOAK") else 4


def test_killed_runs_leave_no_half_of_one(tmp_path: Path) -> None:
    """Killed at random moments, from before torch is up to after the run was kept: what was acknowledged is whole, and
    nothing else is there."""
    import random

    from rooflens.store.store import open_store

    draw = random.Random(5)
    words = ["bench", "run", "8x8 | relu", "--on", "i7-12700k", "--device", "cpu", "--time", "5ms", "--processes", "1"]
    acknowledged: set[str] = set()
    for turn in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-c", "from rooflens.cli import main; main()", *words],
            cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
        )  # fmt: skip
        if turn:
            time.sleep(draw.uniform(0, 8))
            child.kill()
        _, told = child.communicate(timeout=120)
        acknowledged |= {line.split()[4] for line in told.splitlines() if "kept as run" in line}
    with open_store(tmp_path / ".rooflens/bench.db", write=False) as opened:
        kept = {run.id: run for run in opened.runs()}
    assert acknowledged
    assert acknowledged <= kept.keys()
    assert all(len(run.rows) == 2 and all(r.status == "ok" for r in run.rows) for run in kept.values())


# from Python


def test_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import rooflens

    monkeypatch.chdir(tmp_path)
    options = {"time": "10ms", "processes": 1, "device": "cpu", "on": "i7-12700k", "only": "*/forward"}
    first = rooflens.bench("8x8 | relu", store=True, **options)
    second = rooflens.bench(["8x8 | relu", "8x8 | gelu"], note="words", **options)
    assert [r.benchmark.key for r in second.rows] == ["relu/forward", "gelu/forward"]
    assert json.loads(second.to_json())["note"] == "words"
    assert "relu/forward" in str(first)
    assert "<!DOCTYPE html>" in first.to_html()
    found = second.compare(first).to_dict()
    assert [r["verdict"] for r in found["rows"]] == ["inconclusive"]
    assert found["added"] == ["gelu/forward"]
    assert (tmp_path / ".rooflens/bench.db").is_file()


def test_a_module_object_cannot_be_handed_to_processes() -> None:
    import rooflens

    with pytest.raises(ModelError, match=r"file\.py:function"):
        rooflens.bench(torch.nn.Linear(2, 2))


def test_two_suites_take_turns_and_rows_of_one_side_alone_run_too() -> None:
    """One side has a row that the other lacks, and one that fails there."""
    relu, gelu = layer("8x8 | relu"), replace(layer("8x8 | gelu"), name="y")
    fails = replace(gelu, layer=None, model="nowhere.py:f")
    base = Suite(name="s", cases=(relu, gelu), folder=Path(), time_s=0.02, processes=2)
    new = replace(base, cases=(fails, replace(relu, passes=("forward",))))
    a, b = bench_pair(base, new, Options(device="cpu"), lambda what, done, of: None)
    assert a.session == b.session is not None
    assert {r.benchmark.key: r.status for r in a.rows} == dict.fromkeys(
        ("x/forward", "x/backward", "y/forward", "y/backward"), "ok"
    )
    assert {r.benchmark.key: r.status for r in b.rows} == {
        "y/forward": "failed", "y/backward": "failed", "x/forward": "ok",
    }  # fmt: skip
    found = compared(a, b)
    assert found.method == "interleaved"
    assert found.removed == ("x/backward",)
    assert [v.verdict for v in found.verdicts] == ["not comparable", "not comparable", "inconclusive"]


def test_a_file_that_is_not_there_is_told_before_anything_runs(tmp_path: Path, cli: Any) -> None:
    done = cli("bench", "run", "nowhere.py:block", "--on", "i7-12700k", "--device", "cpu")
    assert done.returncode == 2
    assert done.stderr.startswith("rooflens: E_FILE: nowhere.py")
    assert len(done.stderr.splitlines()) == 1
