"""What Inductor fuses, read from its schedule: counts that follow from counting modules, and small nets whose kernels are
known by reason."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiling import model, vision_model  # noqa: E402
from recording import Calls  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from rooflens.benches.inductor import Compiled, compile_with_inductor  # noqa: E402
from rooflens.benches.inductor_kernels import Lowered, Store, Value, computed  # noqa: E402
from rooflens.errors import ModelError  # noqa: E402
from rooflens.frontends.pytorch.trace import trace_module  # noqa: E402

CONV, LINEAR, FLASH = "mkldnn._convolution", "mkl._mkl_linear", "aten._scaled_dot_product_flash"


def compiled(function: Any, *args: Any, **parts: nn.Module) -> Compiled:
    torch.manual_seed(0)
    return compile_with_inductor(Calls(function, **parts), args, {}, "net")


def kernels(result: Compiled) -> dict[str, frozenset[int]]:
    return {op.id: own for op, own in zip(result.graph.ops, result.kernels, strict=True) if not op.view}


def named(result: Compiled, own: frozenset[int]) -> list[str]:
    return [result.names[k] for k in sorted(own)]


def calls(result: Compiled, kind: str) -> list[list[str]]:
    """Of each op of the kind, the kernels that are calls of a library."""
    pairs = zip(result.graph.ops, result.kernels, strict=True)
    return [[n for n in named(result, own) if not n.startswith("loops")] for op, own in pairs if op.kind == kind]


def test_resnet18_one_call_a_convolution_and_the_blocks_end_in_those_with_the_add() -> None:
    module, result = model("resnet18")
    convs = sum(isinstance(m, nn.Conv2d) for m in module.modules())
    blocks = sum(type(m).__name__ == "BasicBlock" for m in module.modules())
    count = Counter(result.names)
    with_add = count["mkldnn._convolution_pointwise_.binary+add+relu"]
    assert (convs, blocks) == (20, 8)
    assert with_add == blocks
    assert sum(n for name, n in count.items() if name.startswith(CONV)) == convs
    assert count[f"{LINEAR}.default"] == count["loops: maxpool"] == count["loops: adaptive_avgpool"] == 1
    own = kernels(result)
    assert own["layer1.0.conv1"] == own["layer1.0.bn1"] == own["layer1.0.relu"]
    assert own["layer1.0.conv2"] == own["layer1.0.bn2"] == own["layer1.0.add"] == own["layer1.0.relu:2"]
    assert all(len(k) == 1 for k in own.values())


def test_resnet18_of_two_convolutions_before_an_add_one_takes_it() -> None:
    own = kernels(model("resnet18")[1])
    for block in ("layer2.0", "layer3.0", "layer4.0"):
        producers = [own[f"{block}.conv2"], own[f"{block}.downsample.0"]]
        assert own[f"{block}.add"] in producers
        assert producers[0] != producers[1]
        assert own[f"{block}.bn2"] == producers[0]
        assert own[f"{block}.downsample.1"] == producers[1]


def test_mobilenet_v2_a_call_for_each_convolution_the_residual_ones_with_the_add() -> None:
    module, result = model("mobilenet_v2")
    convs = sum(isinstance(m, nn.Conv2d) for m in module.modules())
    residual = sum(bool(getattr(m, "use_res_connect", False)) for m in module.modules())
    count = Counter(result.names)
    assert (convs, residual) == (52, 10)
    assert count["mkldnn._convolution_pointwise_.binary+add"] == residual
    assert count["mkldnn._convolution_pointwise.default+hardtanh"] == sum(
        isinstance(m, nn.ReLU6) for m in module.modules()
    )
    assert sum(n for name, n in count.items() if name.startswith(CONV)) == convs
    assert count[f"{LINEAR}.default"] == 1


VISION = ("densenet", "efficientnet_b0", "convnext_tiny", "vit_b_16", "swin")


@pytest.mark.parametrize("name", [*VISION, "gpt2", "llama"])
def test_every_layer_is_found_in_the_calls_that_compute_it(name: str) -> None:
    """Convolutions, linear layers and attention have one call each, no two of a kind the same."""
    _, result = model(name)
    for kinds, call in ((("conv",), CONV), (("linear", "addmm"), LINEAR), (("attention",), FLASH)):
        found = [names for kind in kinds for names in calls(result, kind)]
        assert all(len(names) == 1 and names[0].startswith(call) for names in found)
        assert len(found) == sum(n.startswith(call) for n in result.names)
    assert all(not own for op, own in zip(result.graph.ops, result.kernels, strict=True) if op.view)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", *VISION])
def test_ops_have_the_ids_that_a_recording_gives_them(name: str) -> None:
    _, result = model(name)
    module, args = vision_model(name)
    graph = trace_module(module, args, {}, name=name, source="zoo")
    assert [(op.id, op.kind) for op in result.graph.ops] == [(op.id, op.kind) for op in graph.ops]
    assert result.graph.params == graph.params


def test_densenet_norms_before_a_convolution_are_loops_and_those_behind_one_are_folded() -> None:
    own = kernels(model("densenet")[1])
    layer = "features.denseblock2.denselayer3"
    assert own[f"{layer}.norm1"] == own[f"{layer}.relu1"]
    assert not own[f"{layer}.norm1"] & own[f"{layer}.conv1"]
    assert own[f"{layer}.conv1"] == own[f"{layer}.norm2"] == own[f"{layer}.relu2"]
    assert not own["features.denseblock2.denselayer1.concat"]  # of one tensor
    assert len(own[f"{layer}.concat"]) > 1


def test_llama_norms_are_one_kernel_and_gates_join_their_product() -> None:
    own = kernels(model("llama")[1])
    norm = "model.layers.0.post_attention_layernorm"
    assert len({own[f"{norm}.{part}"] for part in ("pow", "mean", "add", "rsqrt", "mul", "mul:2")}) == 1
    assert own["model.layers.0.add"] >= own[f"{norm}.pow"]  # computed again where the next add needs it
    mlp = "model.layers.0.mlp"
    assert own[f"{mlp}.act_fn.silu"] == own[f"{mlp}.mul"]
    assert not own[f"{mlp}.gate_proj"] & own[f"{mlp}.mul"]


# small nets, known by reason


def test_convolution_norm_and_activation_are_one_call() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    result = compile_with_inductor(net, (torch.randn(1, 3, 8, 8),), {}, "net")
    own = kernels(result)
    assert own["0"] == own["1"] == own["2"]
    assert named(result, own["0"]) == ["mkldnn._convolution_pointwise.default+relu"]


def test_a_linear_layer_is_a_call_apart_from_the_loop_of_its_activation() -> None:
    result = compiled(lambda m, x: functional.gelu(m.fc(x)), torch.randn(4, 32), fc=nn.Linear(32, 32))
    own = kernels(result)
    assert named(result, own["fc"]) == [f"{LINEAR}.default"]
    assert named(result, own["gelu"]) == ["loops: gelu"]


def test_a_residual_add_and_the_norm_behind_it_are_one_kernel() -> None:
    result = compiled(lambda m, x, y: m.norm(x + y), torch.randn(4, 64), torch.randn(4, 64), norm=nn.LayerNorm(64))
    own = kernels(result)
    assert len(own["norm"]) == 1
    assert own["add"] == own["norm"]


def test_a_pointwise_chain_is_one_kernel() -> None:
    result = compiled(lambda m, x: torch.relu(torch.sigmoid(x) * 2 + 1).tanh(), torch.randn(64, 64))
    assert len(result.names) == 1
    assert set(kernels(result).values()) == {frozenset({0})}


def test_what_two_kernels_compute_is_in_both() -> None:
    result = compiled(lambda m, x: ((x + 1).sum(0), (x + 1).sum(1)), torch.randn(64, 48))
    shared = compiled(lambda m, x: (lambda y: (y.sum(0), y.sum(1)))(x + 1), torch.randn(64, 48))
    own = kernels(shared)
    assert own["add"] == own["sum"] | own["sum:2"]
    assert len(own["sum"] | own["sum:2"]) == 2
    assert len(result.names) == len(shared.names)


def test_positions_that_are_stored_are_folded_and_the_sum_is_not() -> None:
    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(10, 16), nn.Embedding(8, 16)
            self.register_buffer("ids", torch.arange(8))

        def forward(self, tokens: Any) -> Any:
            return self.words(tokens) + self.places(self.ids)

    own = kernels(compile_with_inductor(Embedded(), (torch.zeros(8, dtype=torch.int64),), {}, "net"))
    assert own["places"] == frozenset()
    assert own["words"] == own["add"] != frozenset()


def test_positions_that_are_counted_are_computed_where_they_are_read() -> None:
    result = compiled(lambda m, x: x + torch.arange(16) * 2, torch.randn(4, 16))
    own = kernels(result)
    assert own["mul"] == own["add"] == frozenset({0})


def test_a_copy_that_is_not_needed_has_no_kernel_and_one_that_is_has_one() -> None:
    result = compiled(lambda m, x: functional.pad(torch.relu(x), (0, 0)).t().contiguous(), torch.randn(8, 16))
    own = kernels(result)
    assert own["pad"] == frozenset()
    assert own["copy"] == own["relu"] == frozenset({0})


def test_a_concatenation_is_where_its_parts_are_written() -> None:
    result = compiled(lambda m, x: torch.cat([m.a(x), m.a(x).sigmoid()]), torch.randn(4, 32), a=nn.Linear(32, 32))
    own = kernels(result)
    assert own["sigmoid"] & own["concat"]
    assert not any(n.startswith(LINEAR) for n in named(result, own["concat"]))


def test_a_module_that_is_called_twice_keeps_its_name() -> None:
    result = compiled(lambda m, x: m.act(m.fc(m.act(x))), torch.randn(2, 8), act=nn.ReLU(), fc=nn.Linear(8, 8))
    assert [op.id for op in result.graph.ops] == ["act", "fc", "act:2"]


def test_attention_of_torch_is_told_apart() -> None:
    attention = nn.MultiheadAttention(32, 4, batch_first=True)
    function = lambda m, x: m.mha(x, x, x, need_weights=False)[0]  # noqa: E731
    result = compiled(function, torch.randn(1, 8, 32), mha=attention)
    traced = trace_module(Calls(function, mha=attention), (torch.randn(1, 8, 32),), {}, name="net", source="test")
    assert [op.id for op in result.graph.ops] == [op.id for op in traced.ops]
    assert [n[0].split(".")[1] for n in calls(result, "linear")] == ["_mkl_linear", "_mkl_linear"]
    assert [n[0].startswith(FLASH) for n in calls(result, "attention")] == [True]
    own = kernels(result)
    assert not own["mha.linear"] & own["mha.linear:2"]


# the machine and the user's objects


def test_nothing_is_left_behind() -> None:
    from torch._inductor import config
    from torch._inductor.graph import GraphLowering

    kept = GraphLowering.compile_to_module, config.freezing, config.fx_graph_cache
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout()).train()
    compile_with_inductor(net, (torch.randn(2, 4),), {}, "net")
    assert (GraphLowering.compile_to_module, config.freezing, config.fx_graph_cache) == kept
    assert net.training
    children = Path("/proc/thread-self/children")  # where there is such a list
    assert not children.exists() or not children.read_text()


def test_the_same_again_and_often() -> None:
    """More nets of one class than torch compiles before it gives up on a class."""
    results = [
        compile_with_inductor(nn.Sequential(nn.Linear(n, 4), nn.GELU()), (torch.randn(2, n),), {}, "net")
        for n in (4, 4, *range(5, 14))
    ]
    assert results[0] == results[1]
    assert {r.names for r in results} == {results[0].names}


def test_a_model_of_two_graphs_is_refused_in_one_line() -> None:
    def broken(m: Any, x: Any) -> Any:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(ModelError, match="no single graph") as told:
        compiled(broken, torch.randn(2))
    assert "\n" not in str(told.value)


def test_a_model_that_computes_nothing_has_no_kernels() -> None:
    assert compiled(lambda m, x: x, torch.randn(2)).names == ()


# reading names


def value(name: str, *inputs: str, role: str = "result") -> Value:
    return Value(name=name, role=role, inputs=inputs, source=name)


def store(value: str, reads: str, writes: str, kernel: int | None, call: bool = False) -> Store:
    return Store(value=value, reads=frozenset(reads.split()), writes=frozenset({writes}), kernel=kernel, call=call)


def what(values: list[Value], *stores: Store) -> list[set[str]]:
    count = 1 + max(s.kernel for s in stores if s.kernel is not None)
    return [set(k) for k in computed(Lowered(values=tuple(values), stores=stores, names=("",) * count))]


X = value("x", role="input")


def test_loops_compute_back_to_what_they_read() -> None:
    values = [X, value("a", "x"), value("b", "a"), value("c", "b"), value("d", "c")]
    assert what(values, store("b", "x", "buf0", 0), store("d", "buf0", "buf1", 1)) == [{"a", "b"}, {"c", "d"}]


def test_what_a_store_does_not_read_it_computes_again() -> None:
    values = [X, value("a", "x"), value("b", "a"), value("c", "a")]
    assert what(values, store("b", "x", "buf0", 0), store("c", "x", "buf1", 1)) == [{"a", "b"}, {"a", "c"}]


def test_an_input_that_is_laid_out_for_a_call_is_no_work_of_the_call() -> None:
    values = [X, value("conv", "x")]
    stores = store("conv", "x", "buf0", 0), store("conv", "buf0", "buf1", 1, call=True)
    assert what(values, *stores) == [set(), {"conv"}]


def test_inputs_that_are_computed_for_a_call_keep_their_own_names() -> None:
    values = [X, value("y", role="input"), value("q", "x"), value("k", "y"), value("attention", "q", "k")]
    stores = (
        store("attention", "x", "buf0", 0),
        store("attention", "y", "buf1", 1),
        store("attention", "buf0 buf1", "buf2", 2, call=True),
    )
    assert what(values, *stores) == [{"q"}, {"k"}, {"attention"}]


def test_a_second_stage_computes_what_it_needs_again() -> None:
    values = [X, value("a", "x"), value("variance", "a")]
    stores = (
        store("variance", "x", "buf0", 0),
        store("variance", "buf0", "buf1", 1),
        store("variance", "x buf1", "b", 2),
    )
    assert what(values, *stores) == [{"a", "variance"}, {"variance"}, {"a", "variance"}]


def test_shapes_count_where_a_store_ends_with_them() -> None:
    values = [X, value("a", "x"), value("t", "a", role="shape"), value("b", "t")]
    assert what(values, store("a", "x", "buf0", 0), store("t", "buf0", "buf1", 1)) == [{"a"}, {"t"}]
    assert what(values, store("b", "x", "buf0", 0)) == [{"a", "b"}]
