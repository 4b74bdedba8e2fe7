"""Fusion alone, of graphs that are counted already: at most 10 us an op at `chain` and `residual`, linear to 100,000 ops;
`tile` within 1 s for MobileNet-V2 and 5 s for a 32-layer 7B Llama. `--profile` shows hot spots."""

import cProfile
import pstats
import sys
import warnings

from speed_costs import graph_of
from timing import interleaved, table, verdict

from rooflens.collector import collector_paused
from rooflens.costs.sheet import CostSheet, cost_sheet
from rooflens.fusion.partition import partition
from rooflens.graph.records import Graph
from rooflens.hardware.load import load_chip

CHIP, ROUNDS, BAR_US = load_chip("h100-sxm"), 7, 10.0


def fused(sheet: CostSheet, level: str) -> object:
    """As the pipeline runs it."""
    with collector_paused():
        return partition(sheet, level, CHIP)


def llama(tokens: int) -> Graph:
    import torch

    from rooflens.frontends.pytorch.compat import prepare_torchvision
    from rooflens.frontends.pytorch.trace import trace_module

    prepare_torchvision()
    import transformers

    with torch.device("meta"):
        module = transformers.LlamaForCausalLM(transformers.LlamaConfig(use_cache=False))
        inputs = {"input_ids": torch.zeros(1, tokens, dtype=torch.int64)}
    return trace_module(module, (), inputs, name="llama", source="config", dtype=torch.bfloat16)


def mobilenet() -> Graph:
    from rooflens.frontends.load import load_model
    from rooflens.frontends.request import Request

    return load_model("mobilenet_v2", Request()).graph


def rows_per_op() -> list[list[str]]:
    graphs = {"1k": graph_of(1_000), "10k": graph_of(10_000), "100k": graph_of(100_000), "Llama 7B": llama(512)}
    sheets = {name: cost_sheet(graph) for name, graph in graphs.items()}
    cases = [
        (f"{n} {level}", lambda s=s, v=level: fused(s, v)) for n, s in sheets.items() for level in ("chain", "residual")
    ]
    times = interleaved(cases, ROUNDS)
    rows = []
    for name, seconds in times.items():
        per_op = seconds / len(graphs[name.rpartition(" ")[0]].ops) * 1e6
        rows.append([f"{name}: per op", f"{per_op:.1f} us", f"{BAR_US:g} us", verdict(per_op, BAR_US)])
    ratio = times["100k residual"] / times["10k residual"]
    return [*rows, ["100k against 10k, residual", f"{ratio:.1f}", "12", verdict(ratio, 12)]]


def rows_of_tile() -> list[list[str]]:
    graphs = {
        "MobileNet-V2": (mobilenet(), 1.0),
        "Llama 7B, 512 tokens": (llama(512), 5.0),
        "Llama 7B, 1 token": (llama(1), 5.0),
    }
    sheets = {name: cost_sheet(graph) for name, (graph, _) in graphs.items()}
    times = interleaved([(n, lambda s=s: fused(s, "tile")) for n, s in sheets.items()], 3)
    return [[f"{n}, tile", f"{t:.2f} s", f"{graphs[n][1]:g} s", verdict(t, graphs[n][1])] for n, t in times.items()]


def main() -> None:
    warnings.simplefilter("ignore")
    if "--profile" in sys.argv:
        sheet = cost_sheet(graph_of(100_000))
        profile = cProfile.Profile()
        profile.runcall(fused, sheet, "residual")
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    table("fusion on h100-sxm", ("measure", "median", "bar", ""), [*rows_per_op(), *rows_of_tile()])


if __name__ == "__main__":
    main()
