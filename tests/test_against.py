"""Our partition against a real compiler's: how far they agree, and that every difference has a name that is true."""

from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import model
from recording import Calls
from torch import nn
from torch.nn import functional

import rooflens
from rooflens.compare.inductor import DIFFERENCES, matches
from rooflens.costs.folding import folded
from rooflens.costs.sheet import cost_sheet
from rooflens.fusion.partition import partition

DOCS = Path(__file__).parents[1] / "docs" / "against.md"
CNNS = ("resnet18", "mobilenet_v2", "densenet121", "efficientnet_b0")
# ConvNeXt's linear layers are matrix products without an epilogue here, as those of transformers are
WITH_GEMMS = ("convnext_tiny", "vit_b_16", "swin_t", "gpt2", "llama")


@pytest.mark.parametrize("name", [*CNNS, *WITH_GEMMS])
def test_agreement_edge_by_edge(name: str) -> None:
    _, compiled = model(name)
    groups = partition(cost_sheet(folded(compiled.graph)), "residual")
    edges = matches(groups, compiled.kernels, compiled.names)
    differing = [e.difference for e in edges if e.difference is not None]
    assert "" not in differing  # every difference falls into a class
    assert len(edges) >= 50
    if name in CNNS:
        assert 1 - len(differing) / len(edges) >= 0.95
    if name in ("resnet18", "mobilenet_v2"):
        assert not differing


def ours_and_theirs(function: Any, *shapes: tuple[int, ...], **parts: nn.Module) -> dict[str, Any]:
    torch.manual_seed(0)
    inputs = tuple(torch.zeros(s) for s in shapes)
    found: dict[str, Any] = rooflens.fuse(Calls(function, **parts).eval(), inputs, against="inductor").to_dict()
    return found["fusion"]["against"]


def differences(against: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(p["from"], p["to"]): p["difference"] for p in against["pairs"] if p["difference"] is not None}


def test_extern_gemm_without_epilogue() -> None:
    found = ours_and_theirs(lambda m, x: m.act(m.fc(x)), (8, 16), fc=nn.Linear(16, 16), act=nn.GELU())
    assert differences(found) == {("fc", "act"): "extern GEMM without epilogue"}
    assert found["left_bytes"] == 2 * 4 * 8 * 16  # written, and read again
    assert [k["ops"] for k in found["kernels"]] == [["fc"], ["act"]]


def test_gone_with_the_gemm() -> None:
    found = differences(
        ours_and_theirs(lambda m, x, y: functional.silu(m.fc(x)) * y, (8, 16), (8, 16), fc=nn.Linear(16, 16))
    )
    assert found == {("fc", "silu"): "extern GEMM without epilogue", ("silu", "mul"): "gone with the GEMM"}


def test_mean_fused_into_its_producers() -> None:
    found = ours_and_theirs(
        lambda m, x, y: m.pool(torch.relu(x + y)), (1, 8, 16, 16), (1, 8, 16, 16), pool=nn.AdaptiveAvgPool2d(1)
    )
    assert differences(found) == {("relu", "pool"): "mean fused into its producers"}


def test_average_pool_as_a_loop() -> None:
    found = ours_and_theirs(
        lambda m, x: torch.relu(m.norm(m.pool(x))), (1, 8, 16, 16), pool=nn.AvgPool2d(2), norm=nn.BatchNorm2d(8)
    )
    assert differences(found) == {("pool", "norm"): "average pool as a loop"}


def test_masks_and_positions() -> None:
    def forward(m: Any, x: Any) -> Any:
        places = torch.arange(x.shape[1]) + 3
        return m.one(places) + x, m.two(places) * x

    found = ours_and_theirs(forward, (2, 6, 8), one=nn.Embedding(20, 8), two=nn.Embedding(20, 8))
    assert set(differences(found).values()) == {"masks and positions"}


def test_computed_again() -> None:
    """The sum is cheap: the last kernel adds once more rather than reading what the first one would have to write."""

    def forward(m: Any, x: Any, y: Any) -> Any:
        s = x + y
        return s + m.fc(m.norm(s))

    found = differences(ours_and_theirs(forward, (8, 16), (8, 16), fc=nn.Linear(16, 16), norm=nn.LayerNorm(16)))
    assert found["add", "add:2"] == "computed again"


def test_concat_of_its_own() -> None:
    def forward(m: Any, q: Any, cos: Any, sin: Any) -> Any:
        return m.fc(q * cos + torch.cat((-q[..., 4:], q[..., :4]), -1) * sin)

    found = differences(ours_and_theirs(forward, (2, 6, 8), (6, 8), (6, 8), fc=nn.Linear(8, 8)))
    assert found == {("concat", "mul:2"): "concat of its own"}


def test_product_as_a_loop() -> None:
    def forward(m: Any, x: Any) -> Any:
        q, k, _ = m.qkv(x).reshape(4, 49, 3, 3, 32).permute(2, 0, 3, 1, 4)
        return (q * 0.3).matmul(k.transpose(-2, -1))

    assert differences(ours_and_theirs(forward, (4, 49, 96), qkv=nn.Linear(96, 288))) == {
        ("mul", "matmul"): "product as a loop"
    }


def test_an_attention_that_inductor_knows_is_one_kernel_on_both_sides() -> None:
    def forward(m: Any, x: Any) -> Any:
        q, k, v = m.qkv(x).view(1, 128, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v

    found = ours_and_theirs(forward, (1, 128, 64), qkv=nn.Linear(64, 192))
    (kernel,) = [k["ops"] for k in found["kernels"] if "flash_attention" in k["name"]]
    assert kernel == ["matmul", "mul", "softmax", "matmul:2"]
    assert {(p["from"], p["to"]): (p["ours"], p["theirs"]) for p in found["pairs"]} == {
        ("qkv", "matmul"): ("cut", "cut"),
        ("qkv", "matmul:2"): ("cut", "cut"),
        ("matmul", "mul"): ("fused", "fused"),
        ("mul", "softmax"): ("fused", "fused"),
        ("softmax", "matmul:2"): ("fused", "fused"),
    }


def test_attention_in_parts() -> None:
    """Scores of a bias, so that Inductor does not take it for an attention it knows."""
    found = differences(
        ours_and_theirs(
            lambda m, q, k, v, b: torch.softmax(q @ k + b, -1) @ v, (4, 16, 8), (4, 8, 16), (4, 16, 8), (16, 16)
        )
    )
    assert found["softmax", "matmul:2"] == "attention in parts"
    assert set(found.values()) <= {"attention in parts", "extern GEMM without epilogue"}


def test_norm_after_norm() -> None:
    found = differences(ours_and_theirs(lambda m, x: m.b(m.a(x)), (8, 16), a=nn.LayerNorm(16), b=nn.LayerNorm(16)))
    assert found == {("a", "b"): "norm after norm"}


def test_norm_in_two_kernels() -> None:
    """The norm's output is cut into windows, while its input is written as it is."""

    def forward(m: Any, x: Any, y: Any) -> Any:
        s = m.proj(x) + y.permute(0, 2, 1, 3)
        windows = m.norm(s).view(1, 2, 4, 2, 4, 96).permute(0, 1, 3, 2, 4, 5).reshape(4, 16, 96)
        return s, m.fc(windows)

    parts = {"norm": nn.LayerNorm(96), "fc": nn.Linear(96, 96), "proj": nn.Linear(96, 96)}
    found = differences(ours_and_theirs(forward, (1, 8, 8, 96), (1, 8, 8, 96), **parts))
    assert found == {("add", "norm"): "norm in two kernels"}


def test_each_class_of_difference_has_a_test_and_a_line_in_the_docs() -> None:
    names = {d.name for d in DIFFERENCES}
    tests = {name.removeprefix("test_") for name in globals()}
    assert {name.lower().replace(" ", "_") for name in names} <= tests
    text = DOCS.read_text("utf-8")
    assert [name for name in names if f"**{name}**" not in text] == []


def test_the_report_has_both_sides(cli: Any) -> None:
    done = cli("fuse", "resnet18", "--against", "inductor")
    assert done.returncode == 0, done.stderr
    assert "agree on 55 of 55 edges (100.0%)" in done.stdout
    assert "fusion residual" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("4x16 | linear 8", "--against", "inductor"), "torch module"),
        (("resnet18", "--against", "inductor", "--mode", "training"), "--mode"),
        (("resnet18", "--against", "inductor", "--dtype", "bf16"), "--dtype bf16"),
        (("resnet18", "--against", "tvm"), "use one of inductor"),
    ],
)
def test_what_no_compiler_can_be_asked(cli: Any, args: tuple[str, ...], word: str) -> None:
    done = cli("fuse", *args)
    assert done.returncode == 2
    assert word in done.stderr and len(done.stderr.splitlines()) == 1
