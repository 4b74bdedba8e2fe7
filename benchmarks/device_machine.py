"""`rooflens machine --device cuda` on a real device: its copy and bf16 GEMM against the best of a plain sweep, five
interleaved rounds in one run; then every value that it finds, and whether it can be true.

    python benchmarks/device_machine.py [ROUNDS]

Needs torch with CUDA and nothing else (nvidia-ml-py for the clocks, where it is installed). About four minutes. Bar: of
both the verb finds at least 95 % of the sweep's best, as medians over the rounds. Ends with one line a check.
"""

import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from rooflens.benches import machine_cuda
from rooflens.benches.ceilings import Ceilings
from rooflens.benches.chip import chip_of
from rooflens.benches.gpu import clocks_now, device_facts
from rooflens.benches.machine import cuda_ceilings
from rooflens.hardware import this
from rooflens.hardware.lint import lint
from rooflens.hardware.load import load_chip
from rooflens.hardware.write import measured_toml
from rooflens.report.machine import machine_document
from rooflens.report.sections.machine import machine_blocks
from rooflens.resultfile import checked_machine

ROUNDS, BAR, REPEATS = 5, 0.95, 15
PART = machine_cuda.Plan(seconds=6, per_octave=1.5, dtypes=("bf16",), least_rounds=2)
MATRIX = ("bf16", "fp16", "tf32", "int8", "fp8")
SQUARES = (1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
OTHERS = ((4096, 8192, 4096), (8192, 4096, 8192), (8192, 16384, 8192), (16384, 8192, 16384))


def quartile_s(run: Callable[[], Any]) -> float:
    """Of event times around one call each, with nothing else: what a first script on the subject does."""
    for _ in range(3):
        run()
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return statistics.quantiles(times, n=4, method="inclusive")[0]


def plain_copy() -> tuple[float, str]:
    """Read and write counted, from 64 MiB to a quarter of the memory."""
    found = []
    size = 2**26
    while 2 * size < 0.25 * torch.cuda.mem_get_info()[0]:
        a, b = torch.randn(size // 4, device="cuda"), torch.empty(size // 4, device="cuda")
        found.append((2 * size / quartile_s(lambda a=a, b=b: b.copy_(a)), f"{size / 2**20:.0f} MiB"))
        size *= 2
    return max(f for f in found if f[1] not in in_cache())


def in_cache() -> tuple[str, ...]:
    """Copies that the L2 could hold a part of are no copies of memory."""
    l2 = device_facts().l2_bytes or 0
    return tuple(f"{2**i / 2**20:.0f} MiB" for i in range(20, 40) if 2 * 2**i < 4 * l2)


def plain_gemm() -> tuple[float, str]:
    found = []
    for m, k, n in (*((s, s, s) for s in SQUARES), *OTHERS):
        a, b = (torch.randn(s, dtype=torch.bfloat16, device="cuda") for s in ((m, k), (k, n)))
        found.append((2 * m * k * n / quartile_s(lambda a=a, b=b: torch.mm(a, b)), f"{m}x{k}x{n}"))
    return max(found)


def ours() -> dict[str, tuple[float, str]]:
    facts = device_facts()
    found = machine_cuda.read_cuda(facts, PART, lambda share: None)
    clear = [p for p in found.sweep if p.kernel == "copy" and p.bytes >= 4 * (facts.l2_bytes or 0)]
    copy = max(clear, key=lambda p: p.bandwidth_bytes_per_s or 0.0)
    level = machine_cuda.level_ceilings(found.sweep, facts)[-1]
    gemm = max(found.gemm, key=lambda p: p.flop_per_s or 0.0)
    return {
        "copy": (copy.bandwidth_bytes_per_s or 0.0, f"{copy.bytes / 2**20:.0f} MiB in both arrays"),
        "bf16 GEMM": (gemm.flop_per_s or 0.0, f"{gemm.m}x{gemm.k}x{gemm.n}"),
        level.level: (level.bandwidth_bytes_per_s or 0.0, f"{level.kernel}, lower bound {level.lower_bound}"),
    }


def compared(rounds: int) -> list[tuple[str, bool]]:
    plain, mine = [], []
    for number in range(rounds):
        plain.append({"copy": plain_copy(), "bf16 GEMM": plain_gemm()})
        mine.append(ours())
        torch.cuda.empty_cache()
        print(f"round {number + 1}: clocks {clocks_now()}", flush=True)
    verdicts = []
    for what, scale, unit in (("copy", 1e9, "GB/s"), ("bf16 GEMM", 1e12, "TFLOP/s")):
        rates = {name: [r[what][0] / scale for r in side] for name, side in (("plain", plain), ("machine", mine))}
        for (name, found), side in zip(rates.items(), (plain, mine), strict=True):
            middle = statistics.median(found)
            spread = (max(found) - min(found)) / 2 / middle
            shown = " ".join(f"{f:.4g}" for f in found)
            print(
                f"{what:<10} {name:<8} {middle:9.1f} {unit:<8} spread {spread:5.2%}  [{shown}]  best at {side[-1][what][1]}"
            )
        ratio = statistics.median(rates["machine"]) / statistics.median(rates["plain"])
        print(f"{what}: ratio {ratio:.3f}")
        verdicts.append((f"{what} at least {BAR:.0%} of the best of a plain sweep", ratio >= BAR))
    level = next(name for name in mine[-1] if name not in ("copy", "bf16 GEMM"))
    print(
        f"{level} as a level: " + ", ".join(f"{m[level][0] / 1e9:.0f}" for m in mine) + f" GB/s ({mine[-1][level][1]})"
    )
    return verdicts


def whole(*, quick: bool) -> tuple[Ceilings, list[tuple[str, bool]]]:
    start = time.perf_counter()
    found = cuda_ceilings(machine_cuda.QUICK if quick else machine_cuda.FULL, lambda share: None, quick=quick)
    took = time.perf_counter() - start
    limit = 20 if quick else 90
    print(f"{'quick' if quick else 'full'}: {took:.1f} s of probing")
    return found, [(f"{'--quick' if quick else 'full'} takes at most {limit} s", took <= limit)]


def show(found: Ceilings) -> None:
    print(json.dumps(dataclasses.asdict(found.cuda), indent=1))
    for c in found.clocks:
        print(c)
    for level in found.levels:
        print(level)
    for p in found.peaks:
        print(
            f"{p.dtype} {p.unit}: {p.flop_per_s and p.flop_per_s / 1e12} TFLOP/s, spread {p.spread}, {p.how or p.why}"
        )
    print(found.launch)
    for kernel in ("copy", "triad", "read"):
        points = [p for p in found.sweep if p.kernel == kernel]
        print(kernel, " ".join(f"{p.bytes / 2**20:.0f}M:{(p.bandwidth_bytes_per_s or 0) / 1e9:.0f}" for p in points))
    for g in found.gemm:
        print(
            f"{g.dtype} {g.m}x{g.k}x{g.n}: {(g.flop_per_s or 0) / 1e12:.1f} TFLOP/s, {len(g.samples.times_s)} readings"
        )
    print("notes:", *found.notes, sep="\n  ")


def plausible(found: Ceilings) -> list[tuple[str, bool]]:
    peaks = {(p.dtype, p.unit): p.flop_per_s for p in found.peaks}
    levels = {level.level: level for level in found.levels}
    last = found.levels[-1]
    facts = found.cuda
    checks = [
        ("fp32 on the vector unit was measured", peaks.get(("fp32", "vector")) is not None),
        ("bf16 and fp16 have vector peaks (NVRTC)", all(peaks.get((d, "vector")) for d in ("bf16", "fp16"))),
        ("bf16, fp16, tf32, int8, fp8 have matrix peaks", all(peaks.get((d, "matrix")) for d in MATRIX)),
        ("fp64 has both peaks", all(peaks.get(("fp64", u)) for u in ("matrix", "vector"))),
        ("tf32 is faster than fp32 without it", (peaks.get(("tf32", "matrix")) or 0) > 2 * (peaks.get(("fp32", "vector")) or 1e30)),
        ("L2 is faster than memory", (levels["l2"].bandwidth_bytes_per_s or 0) > (last.bandwidth_bytes_per_s or 1e30)),
        ("memory is no lower bound", not last.lower_bound),
        ("a graph launches quicker than Python", (found.launch.graph_s or 1) < (found.launch.eager_s or 0)),
    ]  # fmt: skip
    if facts and facts.clock_hz:
        lanes = facts.multiprocessors * 128 * 2 * facts.clock_hz
        share = (peaks.get(("fp32", "vector")) or 0) / lanes
        print(f"fp32 vector is {share:.1%} of multiprocessors x 128 x 2 x the highest clock")
        checks.append(("fp32 vector is 70 to 101 % of what its lanes can do", 0.7 <= share <= 1.01))
    return checks


def saved(found: Ceilings) -> list[tuple[str, bool]]:
    """The whole way to `--on this`, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROOFLENS_HOME"] = folder
        this.path_of("cuda").write_text(measured_toml(chip_of(found)))
        chip, again = chip_of(found), load_chip("this")
        document = json.loads(json.dumps(machine_document(found, str(Path(folder)))))
        checked_machine("machine.json", document)
        errors = [f for f in lint((again,)) if f.severity == "error"]
        print("lint:", *(f"{f.key}: {f.message}" for f in lint((again,))), sep="\n  ")
        for mine, its in zip(chip.facts, again.facts, strict=True):
            if mine != its:
                print(f"written {mine}\nread    {its}")
        return [
            ("the chip file loads as 'this'", again.facts == chip.facts and again.measured),
            ("lint finds no error in it", not errors),
            ("the document follows its schema and can be drawn", bool(machine_blocks(document))),
        ]


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    facts = device_facts()
    print(f"{facts.name}, torch {torch.__version__}, driver {facts.driver}", flush=True)
    verdicts: list[tuple[str, bool]] = []
    found: list[Ceilings] = []

    def run(quick: bool) -> list[tuple[str, bool]]:
        ceilings, took = whole(quick=quick)
        found.append(ceilings)
        return took

    steps: list[Callable[[], list[tuple[str, bool]]]] = [
        lambda: run(True), lambda: run(False), lambda: (show(found[-1]), plausible(found[-1]))[1],
        lambda: saved(found[-1]), lambda: compared(rounds),
    ]  # fmt: skip
    for step in steps:
        try:
            verdicts += step()
        except Exception:  # a step that breaks is a FAIL with its traceback, and the other steps still run
            traceback.print_exc()
            verdicts.append((f"step {steps.index(step) + 1} of {len(steps)} ran through", False))
        torch.cuda.empty_cache()
    for what, held in verdicts:
        print(f"{'PASS' if held else 'FAIL'}  {what}")
    return int(not all(held for _, held in verdicts))


if __name__ == "__main__":
    sys.exit(main())
