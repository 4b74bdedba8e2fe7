"""Every row of OPS carries an example worked out by hand; what the cost sheet says of it must be the same."""

import pytest

from rooflens.costs.sheet import CostSheet, cost_sheet
from rooflens.graph.build import GraphBuilder
from rooflens.ops.spec import OpSpec
from rooflens.ops.table import OPS, gather, is_view_kind


def _sheet(spec: OpSpec) -> CostSheet:
    builder, example = GraphBuilder(), spec.example
    reads = [builder.tensor(s, "fp32", "input") for s in example.inputs]
    reads += [builder.tensor(s, "fp32", "param") for s in example.params]
    writes = tuple(builder.tensor(s, "fp32") for s in example.outputs)
    builder.op(spec.kind, tuple(reads), writes, label=spec.kind, attrs=example.attrs, view=is_view_kind(spec.kind))
    return cost_sheet(builder.build("example", "test", (), ()))


@pytest.mark.parametrize("kind", sorted(OPS))
def test_the_worked_example_holds(kind: str) -> None:
    spec = OPS[kind]
    (row,) = _sheet(spec).rows
    example = spec.example
    assert (row.macs, row.flops, row.bytes) == (example.macs, example.flops, example.bytes)
    assert not row.opaque


@pytest.mark.parametrize("kind", sorted(OPS))
def test_backward_rules_name_kinds_that_exist(kind: str) -> None:
    assert {rule.kind for rule in OPS[kind].backward} <= set(OPS)


def test_registering_a_kind_twice_is_refused() -> None:
    row = next(iter(OPS.values()))
    with pytest.raises(Exception, match=f"'{row.kind}' is registered twice"):
        gather((row,), (row,))
