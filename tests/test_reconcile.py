"""Our counts beside other counters': every difference is a rule worked out from our own op rows, and nothing is left,
neither in the sum nor in any one module."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.nn import functional

from rooflens.benches.peers import PEERS, ModuleFact, Peer, PeerCount, count_with, module_facts
from rooflens.benches.subject import Subject
from rooflens.compare.reconcile import Reconciliation, reconcile
from rooflens.costs.sheet import CostSheet, cost_sheet
from rooflens.frontends.pytorch.load import load_module
from rooflens.frontends.pytorch.zoo import built, load_zoo
from rooflens.frontends.request import Request
from rooflens.report.sections.reconcile import reconcile_blocks, reconcile_document, reconcile_rows


class Case(NamedTuple):
    sheet: CostSheet
    facts: tuple[ModuleFact, ...]
    subject: Subject


def case_of(module: nn.Module, *args: Any) -> Case:
    loaded = load_module(module, (args, {}), Request(), name="net", source="net")
    return Case(cost_sheet(loaded.graph), module_facts(module), Subject(module=module, args=args, kwargs={}))


def bert() -> Case:
    from rooflens.frontends.pytorch.compat import prepare_torchvision

    prepare_torchvision()
    transformers = pytest.importorskip("transformers")
    module = built(lambda: transformers.BertModel(transformers.BertConfig()))
    return case_of(module, torch.zeros((1, 128), dtype=torch.int64, device="meta"))


@cache
def model(name: str) -> Case:
    if name == "bert-base":
        return bert()
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    found = load_zoo(name)
    return case_of(found.module, torch.empty(found.input_shape, device="meta"))


def reconciled(case: Case, peer: Peer) -> Reconciliation:
    if find_spec(peer.package) is None:
        pytest.skip(f"{peer.package} is not installed")
    return reconcile(case.sheet, case.facts, count_with(peer, case.subject))


def assert_explained(found: Reconciliation) -> None:
    assert found.problem == ""
    assert found.theirs is not None
    assert found.ours + sum(s.amount for s in found.steps) == found.theirs
    assert found.remainder == 0
    assert found.gaps == ()


# FLOP by the contract's convention, MACs and multiply-adds with attention, from the requirements
TOTALS = {
    "resnet18": (3_637_806_568, 1_814_073_344),
    "mobilenet_v2": (627_396_456, 300_774_272),
    "vit_b_16": (None, 17_563_828_224),
    # 12 layers of 128 tokens: 4 projections of 768x768, 2 of 768x3072, scores and values 2 x 128 x 768; the pooler
    "bert-base": (None, 12 * 128 * (4 * 768 * 768 + 2 * 768 * 3072 + 2 * 128 * 768) + 768 * 768),
}


@pytest.mark.parametrize("peer", PEERS, ids=lambda p: p.name)
@pytest.mark.parametrize("name", TOTALS)
def test_nothing_is_left_over(name: str, peer: Peer) -> None:
    assert_explained(reconciled(model(name), peer))


@pytest.mark.parametrize("name", TOTALS)
def test_our_totals(name: str) -> None:
    rows = model(name).sheet.rows
    flops, macs = TOTALS[name]
    assert sum(r.macs for r in rows) == macs
    assert flops in (None, sum(r.flops for r in rows))


# What the counters are known to say, so that a silent change of theirs is seen
@pytest.mark.parametrize(
    ("name", "peer", "total"),
    [
        ("resnet18", "FlopCounterMode", 2 * 1_814_073_344),
        ("mobilenet_v2", "FlopCounterMode", 2 * 300_774_272),
        ("vit_b_16", "FlopCounterMode", 2 * 17_563_828_224),
        ("vit_b_16", "thop", 11_286_254_592),
    ],
)
def test_what_they_say(name: str, peer: str, total: int) -> None:
    assert reconciled(model(name), next(p for p in PEERS if p.name == peer)).theirs == total


class Mixed(nn.Module):
    """Kinds of layer that the four models lack, and functions beside modules."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.up = nn.Conv2d(3, 8, 3, padding=1), nn.ConvTranspose2d(8, 4, 4, stride=2, groups=2)
        self.soft, self.norm, self.act = nn.Softmax(1), nn.GroupNorm(2, 4), nn.PReLU()
        self.pool, self.last = nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(functional.relu(self.conv(x)), 2)
        x = self.pool(self.act(self.norm(self.soft(self.up(x)))))
        x = functional.silu(torch.mul(x, x) + x)
        x = functional.softmax(x, -1)
        out: torch.Tensor = self.last(torch.matmul(x, x.transpose(-1, -2)))
        return out


SMALL: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mixed": (Mixed, (2, 3, 32, 32)),
    "linear alone": (lambda: nn.Linear(8, 16), (3, 8)),
    "lstm": (lambda: nn.LSTM(8, 16, 2, batch_first=True), (2, 5, 8)),
    "gru": (lambda: nn.Sequential(nn.Identity(), nn.GRU(8, 16, batch_first=True)), (2, 5, 8)),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2),
        (2, 10, 64),
    ),
}


@pytest.mark.parametrize("peer", PEERS, ids=lambda p: p.name)
@pytest.mark.parametrize("name", SMALL)
def test_small_nets_of_other_kinds(name: str, peer: Peer) -> None:
    make, shape = SMALL[name]
    assert_explained(reconciled(case_of(make(), torch.zeros(shape)), peer))


def test_a_module_is_left_as_it_was() -> None:
    """thop leaves buffers behind, ptflops methods and torchinfo hooks: in the copies that they are given."""
    net, x = Mixed(), torch.zeros((1, 3, 32, 32))
    before = {path: (set(vars(m)), set(m._buffers)) for path, m in net.named_modules()}
    weight = net.conv.weight
    for peer in PEERS:
        count_with(peer, Subject(module=net, args=(x,), kwargs={}))
    assert {path: (set(vars(m)), set(m._buffers)) for path, m in net.named_modules()} == before
    assert net.conv.weight is weight
    assert net.training
    assert not net.conv._forward_hooks


def test_a_difference_without_a_rule_is_unexplained_and_has_a_place() -> None:
    case = case_of(nn.Sequential(nn.Linear(8, 16)), torch.zeros(3, 8))
    count = count_with(PEERS[0], case.subject)
    assert count.total is not None
    parts = tuple(replace(p, amount=p.amount + 7) for p in count.parts)
    changed = PeerCount(name=count.name, version="", flop_per_mac=2, total=count.total + 7, parts=parts, device="meta")
    found = reconcile(case.sheet, case.facts, changed)
    assert found.remainder == 7
    assert [g.module for g in found.gaps] == ["0"]


def broken(subject: Subject) -> tuple[int, dict[tuple[str, str], list[int]]]:
    print("noise")
    raise ValueError("no such\nlayer")


def test_a_counter_that_is_missing_or_fails_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    case = case_of(nn.Linear(8, 16), torch.zeros(3, 8))
    missing = Peer(name="thop", package="no-such-counter", flop_per_mac=1, devices=("meta",), run=broken)
    failing = Peer(name="thop", package="torch", flop_per_mac=1, devices=("meta", "cpu"), run=broken)
    found = tuple(reconcile(case.sheet, case.facts, count_with(p, case.subject)) for p in (missing, failing))
    assert found[0].problem == "not installed: pip install 'rooflens[dev]'"
    assert found[1].problem == "could not run: ValueError: no such layer"
    assert capsys.readouterr().out == ""
    document = reconcile_document(case.sheet, found)
    assert [row["line"] for row in reconcile_rows(document)] == ["problem", "problem"]
    assert any("not installed" in str(block) for block in reconcile_blocks(document))


NET = """
import torch
def make():
    return torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()), {"input": torch.zeros(2, 8)}
"""


def test_one_document_and_nothing_else(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "net.py").write_text(NET)
    done = cli("reconcile", "net.py:make", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == "rooflens.reconcile/1"
    assert document["ours"] == {"macs": 64, "alu": 16, "special": 0, "flops": 144}
    assert [p["name"] for p in document["peers"]] == [p.name for p in PEERS]
    for peer in document["peers"]:
        if peer["problem"] is None:
            assert 144 + sum(s["amount"] for s in peer["steps"]) + peer["unexplained"] == peer["total"]


@pytest.mark.parametrize("text", ["1x3x8x8 | relu", "net.toml", "net.pt2", ""])
def test_a_model_without_a_torch_module_is_refused(cli: Any, text: str) -> None:
    done = cli("reconcile", text)
    assert (done.returncode, done.stdout) == (2, "")
    assert "other counters need a torch module" in done.stderr
    assert len(done.stderr.splitlines()) == 1
