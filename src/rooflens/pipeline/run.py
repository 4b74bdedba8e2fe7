"""The PREDICT stages in order: Graph -> CostSheet -> Partition -> Mapping -> Estimate. The only file that names them all."""

from dataclasses import dataclass, replace

from rooflens.collector import collector_paused
from rooflens.costs.folding import folded
from rooflens.costs.sheet import CostSheet, cost_sheet
from rooflens.costs.weights import STORED_WHOLE, WeightStore
from rooflens.estimate.roofline import Estimate, estimate
from rooflens.fusion.partition import Partition, partition
from rooflens.graph.records import Graph
from rooflens.hardware.records import Hardware
from rooflens.mapping.compulsory import map_compulsory
from rooflens.pipeline.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Everything up to the estimate; estimates are None where no chip was named. `graph` is the model as it was given,
    `sheet.graph` what is left of it where batchnorms are folded. `alone` is what each op would take by itself."""

    graph: Graph
    sheet: CostSheet
    partition: Partition
    dtype: str
    settings: Settings
    hardware: Hardware | None = None
    estimate: Estimate | None = None
    alone: Estimate | None = None


def weight_store(settings: Settings) -> WeightStore:
    if settings.sparsity == "none" and settings.weight_density == 1.0:
        return STORED_WHOLE
    return WeightStore(density=settings.weight_density, sparsity=settings.sparsity)


def predict(graph: Graph, hardware: Hardware | None, settings: Settings, dtype: str) -> Prediction:
    """`dtype` is the resolved one; the graph already stores its tensors in it."""
    if settings.uncalibrated and hardware is not None:
        hardware = replace(hardware, profile=None)
    with collector_paused():
        counted = folded(graph) if settings.bn == "folded" else graph
        sheet = cost_sheet(counted, tf32=dtype == "tf32", weights=weight_store(settings))
        found = price(partition(sheet, settings.fusion, hardware, settings.execution), hardware, settings, dtype)
        alone = found if settings.fusion == "none" else price(partition(sheet, "none"), hardware, settings, dtype)
        return replace(found, graph=graph, alone=alone.estimate)


def price(groups: Partition, hardware: Hardware | None, settings: Settings, dtype: str) -> Prediction:
    """The stages after fusion, for a partition that is already there."""
    found = None
    if hardware is not None:
        mapping = map_compulsory(groups, hardware, dtype, sparse=settings.sparsity == "2:4")
        found = estimate(mapping, settings.execution, settings.layout)
    return Prediction(
        graph=groups.sheet.graph,
        sheet=groups.sheet,
        partition=groups,
        dtype=dtype,
        settings=settings,
        hardware=hardware,
        estimate=found,
        alone=found if groups.level == "none" else None,
    )
