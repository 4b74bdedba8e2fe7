"""Costs and estimate of graphs that are there already: under 20 us an op; 100,000 ops within 5 s and 1 GB after the
graph was made, in at most 12 times what 10,000 take. `--profile` shows hot spots."""

import cProfile
import pstats
import resource
import sys
import time

from timing import interleaved, table, verdict

from rooflens.frontends.load import load_model
from rooflens.frontends.request import Request
from rooflens.graph.records import Graph
from rooflens.hardware.load import load_chip
from rooflens.hardware.records import Hardware
from rooflens.pipeline.run import predict
from rooflens.pipeline.settings import make_settings

CHIP, CALIBRATED, ROUNDS = load_chip("h100-sxm"), load_chip("h200-sxm"), 7
BLOCK = "conv2d 64 k3 p1 bias | batchnorm | relu | conv2d 64 k1 | silu"


def graph_of(ops: int) -> Graph:
    """Blocks of five ops, one after the other."""
    text = f"1x64x16x16 | {' | '.join([BLOCK] * (ops // 5))}"
    return load_model(text, Request()).graph


def price(graph: Graph, chip: Hardware = CHIP) -> object:
    return predict(graph, chip, make_settings(), "fp32")


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    start = time.perf_counter()
    small, medium, large = graph_of(1_000), graph_of(10_000), graph_of(100_000)
    building = time.perf_counter() - start
    cases = [("1k", lambda: price(small)), ("10k", lambda: price(medium)), ("100k", lambda: price(large))]
    cases.append(("10k, with a profile", lambda: price(medium, CALIBRATED)))
    if "--profile" in sys.argv:
        profile = cProfile.Profile()
        profile.runcall(price, large)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    before = peak_bytes()
    times = interleaved(cases, ROUNDS)
    graphs = {"1k": small, "10k": medium, "100k": large, "10k, with a profile": medium}
    per_op = {name: times[name] / len(g.ops) * 1e6 for name, g in graphs.items()}
    ratio = times["100k"] / times["10k"]
    rows = [[f"{n} ops: per op", f"{per_op[n]:.1f} us", "20 us", verdict(per_op[n], 20)] for n in times]
    rows += [
        ["100k ops: all", f"{times['100k']:.2f} s", "5 s", verdict(times["100k"], 5)],
        ["100k against 10k", f"{ratio:.1f}", "12", verdict(ratio, 12)],
        ["peak RSS, graphs included", f"{peak_bytes() / 1e9:.2f} GB", "1 GB", verdict(peak_bytes(), 1e9)],
        ["  of which before costs", f"{before / 1e9:.2f} GB", "", ""],
    ]
    table("costs and estimate, forward, on h100-sxm", ("measure", "median", "bar", ""), rows)
    print(f"\nlayer text to graph: {building / 111_000 * 1e6:.1f} us an op (not part of the bar)")


if __name__ == "__main__":
    main()
