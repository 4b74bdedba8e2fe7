"""Our counts and another counter's in, the difference between them as named amounts out. Pure: no model is run here.

It starts from our FLOP and ends at the other's total. Each step is a rule of theirs that is not ours, summed over the
ops it applies to, worked out from our own op rows alone; what the rules do not reach is the remainder, shown with the
modules in which it lies.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.compare.peer_rules import PTFLOPS_WHOLE, RULES, Claim, Site, parts
from rooflens.costs.sheet import CostSheet

if TYPE_CHECKING:  # the counters' own side imports torch
    from rooflens.benches.peers import ModuleFact, PeerCount

_TORCH = "torch.nn.modules."


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    rule: str
    ops: int
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A module in which the counter did not count what its rules say."""

    module: str
    theirs: int
    expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """ours + sum of steps + remainder = theirs. `theirs` and `remainder` are None where there is a problem."""

    peer: str
    version: str
    device: str
    flop_per_mac: int
    ours: int
    theirs: int | None = None
    steps: tuple[Step, ...] = ()
    remainder: int | None = None
    gaps: tuple[Gap, ...] = ()
    problem: str = ""


def reconcile(sheet: CostSheet, modules: "tuple[ModuleFact, ...]", count: "PeerCount") -> Reconciliation:
    ours = sum(row.flops for row in sheet.rows)
    known = Reconciliation(
        peer=count.name, version=count.version, device=count.device, flop_per_mac=count.flop_per_mac, ours=ours,
        problem=count.problem,
    )  # fmt: skip
    if count.total is None:
        return known
    found: dict[str, list[int]] = {}
    expected: dict[str, int] = {}
    for site in _sites(sheet, modules, count):
        claims = RULES[count.name](site)
        _explain(site, claims, found)
        expected[site.op.module] = expected.get(site.op.module, 0) + sum(c.amount for c in claims)
    steps = tuple(Step(rule=rule, ops=ops, amount=amount) for rule, (ops, amount) in found.items())
    return Reconciliation(
        peer=count.name, version=count.version, device=count.device, flop_per_mac=count.flop_per_mac, ours=ours,
        theirs=count.total, steps=tuple(sorted(steps, key=lambda s: -abs(s.amount))),
        remainder=count.total - ours - sum(s.amount for s in steps), gaps=_gaps(count, expected),
    )  # fmt: skip


def _sites(sheet: CostSheet, modules: "tuple[ModuleFact, ...]", count: "PeerCount") -> Iterator[Site]:
    facts = {m.path: m for m in modules}
    whole = {path for path, m in facts.items() if _plain(m.class_name) in PTFLOPS_WHOLE}
    seen: dict[str, set[str]] = {}
    for part in count.parts:
        seen.setdefault(part.module, set()).add(part.what)
    tensors = sheet.graph.tensors
    shapes = {op.module: tensors[op.outputs[0]].shape for op in sheet.graph.ops if op.outputs}
    for op, cost in zip(sheet.graph.ops, sheet.rows, strict=True):
        fact = facts.get(op.module)
        if op.view or not op.outputs or not op.inputs or op.pass_ != "forward" or cost.opaque:
            continue
        yield Site(
            op=op,
            cost=cost,
            ins=tuple(tensors[i] for i in op.inputs),
            outs=tuple(tensors[o] for o in op.outputs),
            flop_per_mac=count.flop_per_mac,
            device=count.device,
            class_name=_plain(fact.class_name) if fact else "",
            leaf=fact.leaf if fact else False,
            module_shape=shapes[op.module],
            dim=fact.dim if fact else None,
            hidden=any(op.module.startswith(f"{w}.") for w in whole),
            seen=frozenset(seen.get(op.module, ())),
        )


def _plain(class_name: str) -> str:
    return class_name.rpartition(".")[2] if class_name.startswith(_TORCH) else class_name


def _explain(site: Site, claims: list[Claim], found: dict[str, list[int]]) -> None:
    """Adds this op's differences to the rules that make them."""
    if site.flop_per_mac == 1 and site.cost.macs:
        _add(found, "a multiply-add counted as 1, not 2", -site.cost.macs)
    claimed = {c.part: c for c in claims}
    for part, ours in parts(site).items():
        claim = claimed.pop(part, None)
        if claim is None and ours:
            _add(found, f"{part} not counted", -ours)
        elif claim is not None and claim.amount != ours:
            _add(found, claim.text, claim.amount - ours)
    for claim in claimed.values():
        _add(found, claim.text, claim.amount)


def _add(found: dict[str, list[int]], rule: str, amount: int) -> None:
    entry = found.setdefault(rule, [0, 0])
    entry[0] += 1
    entry[1] += amount


def _gaps(count: "PeerCount", expected: dict[str, int]) -> tuple[Gap, ...]:
    theirs: dict[str, int] = {}
    for part in count.parts:
        theirs[part.module] = theirs.get(part.module, 0) + part.amount
    modules = dict.fromkeys((*expected, *theirs))
    gaps = (Gap(module=m, theirs=theirs.get(m, 0), expected=expected.get(m, 0)) for m in modules)
    return tuple(sorted((g for g in gaps if g.theirs != g.expected), key=lambda g: -abs(g.theirs - g.expected)))
