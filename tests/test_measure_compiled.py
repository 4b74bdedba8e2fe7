"""`rooflens measure --execution compiled`: each unit with the kernels that Inductor generates for it. Which call of a library
takes what is known from oneDNN and MKL; the rest is shares and sums."""

import gc
import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rooflens
from rooflens.compare.grouped import FAILED, FOLDED, KERNEL, SHARE, SHARES, UNKNOWN, UNSEEN, in_kernels
from rooflens.graph.records import Graph
from rooflens.measuring import measure_model
from rooflens.pipeline.run import Prediction, predict
from rooflens.pipeline.settings import make_settings

torch = pytest.importorskip("torch")

from torch._C._autograd import DeviceType  # noqa: E402

from rooflens.benches.compiled import RUN, WARMUPS, matched, plain, read_runs  # noqa: E402
from rooflens.benches.inductor import Compiled  # noqa: E402
from rooflens.benches.inductor_built import Built, Called  # noqa: E402
from rooflens.benches.measurement import CompiledRun, Kernel, KernelTimes, WholeTime  # noqa: E402
from rooflens.benches.profiled import Call, Profiled, _is_kernel, forest  # noqa: E402
from rooflens.benches.sampling import Raw  # noqa: E402
from rooflens.frontends.text import text_graph  # noqa: E402

SCHEMA = Path(__file__).parent.parent / "src/rooflens/report/schemas/measurement-1.json"
CONV_NET = (
    "2x4x12x12 | conv2d 8 k3 p1 bias as a | batchnorm | relu | conv2d 8 k3 p1 | batchnorm | add a | relu | maxpool2d k2 "
    "| flatten | linear 5 bias"
)
MLP = "8x32 | linear 64 bias | gelu | layernorm | rmsnorm | linear 16"
onednn = pytest.mark.skipif(
    not (torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available() and shutil.which("g++")),
    reason="the kernels told here are those of a CPU with oneDNN and MKL, and a C++ compiler",
)


def measured(model: Any, **options: Any) -> dict[str, Any]:
    found = rooflens.measure(model, on="i7-12700k", device="cpu", time="2ms", execution="compiled", **options)
    return found.to_dict()


@pytest.fixture(scope="module")
def conv_net() -> dict[str, Any]:
    return measured(CONV_NET)


@pytest.fixture(scope="module")
def mlp() -> dict[str, Any]:
    return measured(MLP)


def groups(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {g["id"]: g for g in document["measured"]["groups"]}


def kernels(document: dict[str, Any]) -> list[dict[str, Any]]:
    return document["measured"]["compiled"]["kernels"]


@onednn
def test_a_convolution_is_one_call_with_what_follows_it(conv_net: dict[str, Any]) -> None:
    """The second one's batchnorm is folded into it; the add and the relu behind it are oneDNN's post-ops. The first one has
    two readers: its batchnorm and relu are a loop."""
    found = groups(conv_net)
    assert {i: g["ops"] for i, g in found.items()} == {
        "a": ["a"],
        "batchnorm1": ["batchnorm1", "relu1"],
        "conv1": ["conv1", "batchnorm2", "add1", "relu2"],
        "maxpool1": ["maxpool1"],
        "linear1": ["linear1"],
    }
    assert {g["how"] for g in found.values()} == {KERNEL}
    assert found["a"]["kernel"] == "mkldnn::_convolution_pointwise"
    assert found["conv1"]["kernel"] == "mkldnn::_convolution_pointwise_"  # in place of what it adds to
    assert found["linear1"]["kernel"] == "mkl::_mkl_linear"
    assert found["batchnorm1"]["kernel"].startswith("cpp_fused__native_batch_norm")
    assert "max_pool2d" in found["maxpool1"]["kernel"]


@onednn
def test_kernels_of_no_unit_are_named(conv_net: dict[str, Any]) -> None:
    """oneDNN's convolutions are channels-last: what goes in and what the linear layer reads is copied."""
    alone = [k for k in kernels(conv_net) if not k["groups"]]
    assert {k["what"] for k in alone} == {"layout copy"}
    assert len(alone) >= 2
    assert all(k["time_s"] > 0 for k in alone)


@onednn
def test_units_have_samples_and_stand_under_their_roof(conv_net: dict[str, Any]) -> None:
    runs = conv_net["measured"]["compiled"]["runs"]
    predicted = {g["id"]: g for g in conv_net["groups"]}
    times = {k["name"]: k["time_s"] for k in kernels(conv_net)}
    assert runs >= 5
    for unit in groups(conv_net).values():
        assert unit["time_s"] == times[unit["kernel"]]
        assert len(unit["samples_s"]) + len(unit["rejected"]) == runs
        assert unit["warmups_s"]
        assert unit["bytes"] == predicted[unit["id"]]["bytes"]
        assert unit["flops"] == predicted[unit["id"]]["flops"]
        assert unit["roof_share"] == pytest.approx(predicted[unit["id"]]["roofline_time_s"] / unit["time_s"])
        assert unit["limited_by"] in ("memory", "compute")
        assert unit["members_s"] > 0
    # read and written once: 2x4x12x12 in, 8x4x3x3 weights, 8 biases, 2x8x12x12 out, 4 bytes each
    assert groups(conv_net)["a"]["bytes"] == 4 * (2 * 4 * 144 + 8 * 4 * 9 + 8 + 2 * 8 * 144)


@onednn
def test_the_compiled_whole_is_its_kernels_and_the_gap(conv_net: dict[str, Any]) -> None:
    whole = {w["execution"]: w for w in conv_net["measured"]["whole"]}
    assert list(whole) == ["eager", "compiled"]
    compiled = whole["compiled"]
    assert compiled["kernels_s"] + compiled["gap_s"] == pytest.approx(compiled["time_s"])
    runs = zip(*(k["samples_s"] for k in kernels(conv_net)), strict=True)
    sums = sorted(sum(run) for run in runs)
    assert sums[0] <= compiled["kernels_s"] <= sums[-1]
    assert whole["eager"]["kernels_s"] is None
    assert whole["eager"]["layers_alone_s"] > 0


@onednn
def test_a_kernel_of_several_units_is_shared_by_bytes(mlp: dict[str, Any]) -> None:
    """Both norms and the gelu before them are one loop nest. Of its bytes the gelu has 2x8x64 numbers, the layernorm those
    and two vectors of 64, the rmsnorm those and one."""
    found = groups(mlp)
    loops = next(k for k in kernels(mlp) if "layernorm" in k["what"])
    assert loops["groups"] == ["linear1", "layernorm1", "rmsnorm1"]
    assert found["layernorm1"]["how"] == found["rmsnorm1"]["how"] == SHARE
    assert found["linear1"]["how"] == SHARES
    assert found["linear1"]["kernel"].split(", ") == ["mkl::_mkl_linear", loops["name"]]
    assert found["linear2"]["how"] == KERNEL
    gelu, layer, rms = 2 * 8 * 64, 2 * 8 * 64 + 2 * 64, 2 * 8 * 64 + 64
    part = layer / (gelu + layer + rms)
    assert found["layernorm1"]["samples_s"] == pytest.approx([t * part for t in loops["samples_s"]])


@onednn
def test_calls_of_one_name_are_told_apart_by_their_turn(mlp: dict[str, Any]) -> None:
    calls = [k for k in kernels(mlp) if k["name"] == "mkl::_mkl_linear"]
    assert [k["groups"] for k in calls] == [["linear1"], ["linear2"]]
    assert groups(mlp)["linear2"]["samples_s"] == calls[1]["samples_s"]


@onednn
def test_the_document_is_as_published_and_is_drawn(conv_net: dict[str, Any], tmp_path: Path, cli: Any) -> None:
    jsonschema.validate(conv_net, json.loads(SCHEMA.read_text()))
    file = tmp_path / "m.json"
    file.write_text(json.dumps(conv_net))
    done = cli("report", str(file), env={"COLUMNS": "100"})
    assert done.returncode == 0, done.stderr
    assert "Fused units as Inductor" in done.stdout
    assert "mkldnn::_convolution_pointwise_" in done.stdout
    assert "cpp_fused…relu_2" in done.stdout
    assert "Kernels of no unit" in done.stdout
    assert "the forward pass, compiled" in done.stdout
    csv = cli("report", str(file), "--format", "csv").stdout
    assert len(csv.splitlines()) == 1 + len(conv_net["measured"]["ops"])


@onednn
def test_an_interruption_while_compiling_leaves_units_without_a_time() -> None:
    def stop(what: str, done: int, of: int) -> None:
        raise KeyboardInterrupt

    settings = make_settings(execution="compiled")
    found = measure_model(MLP, None, None, settings, device="cpu", seconds=0.001, backward=True, progress=stop)
    assert found.measured.stopped_by == "KeyboardInterrupt"
    assert {(g.how, g.time_s) for g in found.measured.groups} == {(FAILED, None)}


@onednn
def test_only_the_forward_pass_is_compiled_and_that_is_said(mlp: dict[str, Any]) -> None:
    assert {r["pass"] for r in mlp["measured"]["ops"]} == {"forward"}
    assert any("only the forward pass is compiled" in n for n in mlp["measured"]["notes"])


@onednn
def test_one_call_for_a_whole_module_is_shared_by_all_of_it() -> None:
    """torch has its encoder layer as one function, which it takes where no gradient is asked for."""
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    d = measured(layer, inputs=torch.rand(2, 16, 32))
    (call,) = [k for k in kernels(d) if k["groups"]]
    assert call["name"] == "aten::_transformer_encoder_layer_fwd"
    assert call["groups"] == list(groups(d))
    assert {g["how"] for g in groups(d).values()} == {SHARE}
    assert sum(g["time_s"] for g in groups(d).values()) == pytest.approx(call["time_s"])


@onednn
def test_nothing_of_a_compiled_model_stays_in_memory() -> None:
    """Its weights are constants of generated code."""
    net = torch.nn.Linear(331, 337)
    measured(net, inputs=torch.rand(2, 331))
    gc.collect()
    kept = [t for t in gc.get_objects() if type(t) in (torch.Tensor, torch.nn.Parameter) and t.numel() == 331 * 337]
    assert [t for t in kept if t is not net.weight and not t.is_meta] == []


@onednn
def test_torch_is_left_as_it_was() -> None:
    from torch._inductor import config
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.scheduler import Scheduler

    def state() -> tuple[Any, ...]:
        place: Any = CppScheduling
        return (
            Scheduler.codegen, Scheduler.codegen_extern_call, place.define_kernel, place.MAX_FUSED_KERNEL_ARGS_NUM,
            config.cpp.enable_kernel_profile, config.freezing,
        )  # fmt: skip

    kept = state()
    measured("3x4 | relu")
    assert state() == kept


def test_without_a_compiler_one_line(cli: Any) -> None:
    done = cli(
        "measure", "1x4 | linear 4", "--execution", "compiled", "--device", "cpu", env={"CXX": "/nowhere/to/be/found"}
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "C++ compiler" in done.stderr


def test_training_is_not_compiled() -> None:
    with pytest.raises(rooflens.RooflensError, match="not in this version"):
        measured("1x4 | linear 4", mode="training")


# in eager mode


def test_backward_passes_are_no_members() -> None:
    """They bear the names of their layers."""
    d = rooflens.measure(MLP, on="i7-12700k", device="cpu", time="2ms", fusion="chain").to_dict()
    times = {r["id"]: r["time_s"] for r in d["measured"]["ops"] if r["pass"] == "forward"}
    unit = next(g for g in d["measured"]["groups"] if len(g["ops"]) > 1)
    assert unit["time_s"] == unit["members_s"] == pytest.approx(sum(times[i] for i in unit["ops"]))
    assert unit["how"] == "sum of its members"
    assert d["measured"]["compiled"] is None


# names and turns


def test_events_bear_the_number_of_their_graph() -> None:
    assert plain("graph_12_cpp_fused_relu_0") == "cpp_fused_relu_0"
    assert plain("aten::mm") == "aten::mm"


def test_equal_names_match_in_turn_and_what_is_between_is_left() -> None:
    names = ["cpp_0", "aten::mm", "cpp_1", "aten::mm"]
    assert matched(names, names) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert matched(names, ["aten::copy_", *names]) == {0: 1, 1: 2, 2: 3, 3: 4}
    assert matched(names, ["cpp_0", "aten::mm", "aten::mm"]) == {0: 0, 1: 1, 3: 2}


def test_a_call_under_another_name_is_known_by_its_neighbours() -> None:
    assert matched(["cpp_0", "aten::bias_addmm", "cpp_1"], ["cpp_0", "aten::addmm", "cpp_1"]) == {0: 0, 1: 1, 2: 2}
    assert matched(["cpp_0", "cpp_1"], ["cpp_0", "aten::addmm"]) == {0: 0}  # but not a kernel of the compiler's own


# what the profiler shows, as it never was

SOUND = Raw(time_s=1.0)


def shown(*names: str) -> Call:
    """A run in which each call takes as many seconds as its turn is, a library's with one of its own inside."""
    root = Call(RUN, 1, 0, 100 * 10**9, -1, inside=[Call("## Call CompiledFxGraph None ##", 1, 0, 99 * 10**9, -1)])
    for turn, name in enumerate(names, 1):
        inner = [Call("aten::mm", 1, 0, 10**9, -1, 0.5 * turn, 1)] if "::" in name else []
        call = Call(name, 1, turn * 10**10, turn * 10**10 + turn * 10**9, -1, 0.5 * turn * (not inner), 1, inner)
        root.inside[0].inside.append(call)
    return root


def read(device: str, *runs: Call, last: Raw = SOUND) -> CompiledRun:
    graph = text_graph("8x8 | linear 8 | relu")
    compiled = Compiled(
        compiler="test", graph=graph, kernels=(frozenset({0}), frozenset({1})), names=("mm", "loops: relu")
    )
    calls = (
        Called(name="aten::addmm", kernels=frozenset({0})),
        Called(name="triton_poi_fused_relu_0", kernels=frozenset({1})),
    )
    found = run(graph, [{0}, {1}], [], [])
    raw = (*[SOUND] * (WARMUPS + len(runs) - 1), last)
    warm = [shown("aten::addmm", "triton_poi_fused_relu_0")] * WARMUPS
    seen = Profiled(roots=(*warm, *runs), memory=(), device=device)
    return read_runs(found, Built(compiled=compiled, calls=calls, compile_s=0.0), seen, raw)


def test_a_call_takes_its_own_time_and_on_a_gpu_that_of_what_it_launched() -> None:
    one = shown("aten::addmm", "triton_poi_fused_relu_0")
    assert read("cpu", one).runs[0].times_s == (1.0, 2.0)
    assert read("cuda", one).runs[0].times_s == (0.5, 1.0)
    assert len(read("cpu", one).warmups) == WARMUPS


def test_a_run_in_which_the_process_was_stopped_does_not_count() -> None:
    one = shown("aten::addmm", "triton_poi_fused_relu_0")
    found = read("cpu", one, one, one, last=Raw(time_s=5.0, wall_s=5.0, cpu_s=0.1))
    assert [r.rejected for r in found.runs] == ["", "", "the process was stopped"]


def test_what_nobody_scheduled_has_a_row_of_its_own() -> None:
    plainly = shown("aten::addmm", "triton_poi_fused_relu_0")
    found = read("cpu", plainly, shown("aten::empty", "aten::addmm", "aten::copy_", "triton_poi_fused_relu_0"))
    assert [k.name for k in found.kernels] == ["aten::addmm", "triton_poi_fused_relu_0", "aten::copy_"]
    assert [r.times_s for r in found.runs] == [(1.0, 2.0, 0.0), (2.0, 4.0, 3.0)]
    assert found.kernels[2].numbers == frozenset()
    assert found.kernels[1].what == "loops: relu"


class _Event:
    """As kineto has it."""

    def __init__(self, name: str, device: Any, start: int, length: int, own: int, linked: int) -> None:
        self.fields = (name, device, start, length, own, linked)

    name = property(lambda e: lambda: e.fields[0])
    device_type = property(lambda e: lambda: e.fields[1])
    start_ns = property(lambda e: lambda: e.fields[2])
    duration_ns = property(lambda e: lambda: e.fields[3])
    correlation_id = property(lambda e: lambda: e.fields[4])
    linked_correlation_id = property(lambda e: lambda: e.fields[5])
    start_thread_id = property(lambda e: lambda: 1)
    sequence_nr = property(lambda e: lambda: -1)


def test_a_call_of_cuda_with_the_number_of_an_op_counts_nothing_twice() -> None:
    """CUDA and torch both number from one: the launch here has the number of the op that it stands in."""
    host, gpu = DeviceType.CPU, DeviceType.CUDA
    events = [
        _Event("aten::mm", host, 0, 100, 7, 0),
        _Event("cudaLaunchKernel", host, 10, 20, 7, 7),
        _Event("gemm", gpu, 50, 30, 7, 7),
    ]
    (call,) = forest(events[:2], {7: [events[2]]})
    assert sum(c.device_s for c in call.walk()) == pytest.approx(30e-9)
    assert sum(c.launches for c in call.walk()) == 1


# shares, of runs that never were


def run(graph: Graph, made_of: list[set[int]], calls: list[set[int]], times: list[list[float | None]]) -> CompiledRun:
    return CompiledRun(
        compiler="test", frozen=True, compile_s=0.0, graph=graph, made_of=tuple(map(frozenset, made_of)),
        whole=WholeTime(pass_="forward", status="ok"),
        kernels=tuple(Kernel(name=f"k{n}", numbers=frozenset(own), what="") for n, own in enumerate(calls)),
        runs=tuple(KernelTimes(times_s=tuple(row)) for row in times),
    )  # fmt: skip


def prediction(text: str) -> Prediction:
    return predict(text_graph(text), None, make_settings(), "fp32")


def told(p: Prediction, found: CompiledRun) -> list[tuple[str, str, float | None]]:
    return [(g.id, g.how, g.time_s) for g in in_kernels(p, dict(enumerate(found.made_of)), found, (), "cpu")[0]]


TWO = "8 | relu | sigmoid"  # 8 numbers in and 8 out, each: equal bytes


def test_two_kernels_in_one_function_share_its_time() -> None:
    p = prediction(TWO)
    found = run(p.graph, [{0}, {1}], [{0, 1}], [[2.0], [4.0], [6.0]])
    assert told(p, found) == [("relu1", SHARE, 2.0), ("sigmoid1", SHARE, 2.0)]


def test_an_op_that_is_computed_twice_counts_in_each_with_half() -> None:
    """The second kernel computes the sigmoid, and the relu once more: two thirds and one third of its time."""
    p = prediction(TWO)
    found = run(p.graph, [{0, 1}, {1}], [{0}, {1}], [[1.0, 3.0]])
    assert told(p, found) == [("relu1", SHARES, 2.0), ("sigmoid1", SHARE, 2.0)]


def test_units_without_a_kernel_say_why() -> None:
    p = prediction(TWO)
    assert told(p, run(p.graph, [{0}, set()], [{0}], [[1.0]]))[1] == ("sigmoid1", FOLDED, None)
    unknown = run(p.graph, [{0}], [{0}], [[1.0]])  # one op, where we have two
    assert told(p, unknown)[1] == ("sigmoid1", UNKNOWN, None)
    unseen = run(p.graph, [{0}, {1}], [{0}, {1}], [[1.0, None]])
    assert told(p, unseen) == [("relu1", KERNEL, 1.0), ("sigmoid1", UNSEEN, None)]


def test_a_run_that_was_disturbed_is_rejected_in_every_unit() -> None:
    p = prediction(TWO)
    sound, stopped = (
        KernelTimes(times_s=(1.0, 2.0)),
        KernelTimes(times_s=(9.0, 9.0), rejected="the process was stopped"),
    )
    found = run(p.graph, [{0}, {1}], [{0}, {1}], [])
    found = CompiledRun(**{**{f: getattr(found, f) for f in found.__slots__}, "runs": (sound, stopped, sound)})
    rows = in_kernels(p, dict(enumerate(found.made_of)), found, (), "cpu")[0]
    assert [r.time_s for r in rows] == [1.0, 2.0]
    assert [r.samples.rejected for r in rows if r.samples] == [(("the process was stopped", 9.0),)] * 2


def test_a_model_that_compiles_and_does_not_run_has_no_times() -> None:
    p = prediction(TWO)
    found = CompiledRun(
        compiler="test", frozen=True, compile_s=0.0, graph=p.graph, made_of=(frozenset({0}), frozenset({0})),
        whole=WholeTime(pass_="forward", status="oom", reason="no memory"),
    )  # fmt: skip
    assert [how for _, how, _ in told(p, found)] == [FAILED, FAILED]


def test_a_call_of_the_driver_outside_all_ops_counts_nothing_either() -> None:
    """It is linked to nothing, and may have the number of an op all the same."""
    host, gpu = DeviceType.CPU, DeviceType.CUDA
    events = [
        _Event("rooflens compiled run", host, 0, 200, 3, 0),
        _Event("aten::mm", host, 0, 100, 7, 0),
        _Event("cuLaunchKernelEx", host, 120, 20, 7, 0),
        _Event("gemm", gpu, 50, 30, 1, 7),
    ]
    (run,) = forest(events[:3], {7: [events[3]]})
    assert sum(c.device_s for c in run.walk()) == pytest.approx(30e-9)


def test_labels_of_ours_are_no_kernels_on_a_device() -> None:
    assert not _is_kernel("rooflens compiled run")
    assert not _is_kernel("[memory]")
    assert _is_kernel("sm80_xmma_gemm_f32f32")
