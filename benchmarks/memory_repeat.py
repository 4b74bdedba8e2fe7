"""1,000 analyses in one process: what memory grows by after the first 100, at most 5 %. `--trace` names what grows."""

import gc
import sys
import tracemalloc
import warnings
from pathlib import Path

import torch
from timing import table, verdict
from torch import nn

import rooflens

RUNS, FIRST, BAR = 1_000, 100, 0.05


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def network() -> nn.Module:
    with torch.device("meta"):
        layers = [
            layer
            for width in (16, 32, 64, 128)
            for layer in (nn.LazyConv2d(width, 3, padding=1), nn.LazyBatchNorm2d(), nn.ReLU())
        ]
        net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(10))
        net(torch.empty(2, 3, 64, 64))
    return net


def once(net: nn.Module, inputs: torch.Tensor, place: int) -> None:
    """Forward, training, and layer text in turn, each to the last field."""
    if place % 3 == 0:
        rooflens.analyze(net, inputs, on="h100-sxm").to_dict()
    elif place % 3 == 1:
        rooflens.analyze(net, inputs, on="h100-sxm", mode="training").to_dict()
    else:
        rooflens.analyze("8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2", on="l4").to_dict()


def main() -> None:
    warnings.simplefilter("ignore")
    net, inputs = network(), torch.empty((1, 3, 64, 64), device="meta")
    marks: dict[int, int] = {}
    for place in range(RUNS):
        if place == FIRST and "--trace" in sys.argv:
            tracemalloc.start(10)
            before = tracemalloc.take_snapshot()
        if place == FIRST or place % 300 == 0:
            marks[place] = resident_bytes()
        once(net, inputs, place)
    marks[RUNS] = resident_bytes()
    growth = marks[RUNS] / marks[FIRST] - 1
    rows = [[f"after {n}", f"{size / 1e6:.1f} MB", ""] for n, size in marks.items()]
    rows.append([f"growth after the first {FIRST}", f"{growth:+.2%}", verdict(max(growth, 0.0), BAR)])
    table("resident memory", ("analyses", "size", f"bar {BAR:.0%}"), rows)
    if "--trace" in sys.argv:
        for line in tracemalloc.take_snapshot().compare_to(before, "traceback")[:8]:
            print(line, *line.traceback.format(), sep="\n")


if __name__ == "__main__":
    main()
