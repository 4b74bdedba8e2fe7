"""The GEMM peaks that `rooflens machine` finds against a plain sweep of torch and NumPy: five interleaved rounds in a run.

    python benchmarks/machine_gemm.py [ROUNDS]

Each round sweeps sizes with nothing but a loop and a clock, all threads, and then runs the probes of the verb. Of both the
lower quartile of the times at the best size counts. Bar: of each dtype the verb finds at least 95 % of the best.
"""

import dataclasses
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from idle import undisturbed

from rooflens.benches.host import host_facts, one_cpu_per_core
from rooflens.benches.machine_cpu import Plan, peak_ceilings, read_cpu

ROUNDS, BAR, BUDGET_S = 5, 0.95, 0.05
DTYPES = ("fp32", "fp64", "bf16", "int8")
SIZES = (256, 512, 1024, 1536, 2048, 3072)
TORCH = {"fp32": torch.float32, "fp64": torch.float64, "bf16": torch.bfloat16}
PLAN = Plan(
    seconds=2.5,
    per_octave=0.1,
    dtypes=DTYPES,
    sizes=(256, 512, 1024, 2048),
    product_s=0.05,
    most_bytes=2**20,
    least_rounds=2,
)


def plain(dtype: str) -> tuple[float, str]:
    """The best rate at any size of either library."""
    return max((_rate(run, n), f"{library} {n}") for n in SIZES for library, run in _runs(dtype, n))


def _runs(dtype: str, n: int) -> list[tuple[str, Callable[[], Any]]]:
    if dtype == "int8":
        p, q = (torch.randint(-128, 128, (n, n), dtype=torch.int8) for _ in range(2))
        return [("torch", lambda: torch._int_mm(p, q))]
    a, b = (torch.randn(n, n).to(TORCH[dtype]) for _ in range(2))
    found: list[tuple[str, Callable[[], Any]]] = [("torch", lambda: torch.mm(a, b))]
    if dtype in ("fp32", "fp64"):
        x, y = a.numpy(), b.numpy()
        found.append(("numpy", lambda: np.matmul(x, y)))
    return found


def _rate(run: Callable[[], Any], n: int) -> float:
    """In FLOP/s. At least five runs, then until the budget of this size is spent."""
    run()
    times: list[float] = []
    while len(times) < 5 or (sum(times) < BUDGET_S and len(times) < 50):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
        if sum(times) > 4 * BUDGET_S and len(times) >= 2:
            break
    return 2 * n**3 / statistics.quantiles(times, n=4, method="inclusive")[0]


def ours(dtype: str) -> tuple[float, str]:
    facts = host_facts()
    plan = dataclasses.replace(PLAN, dtypes=(dtype,))
    found = read_cpu(one_cpu_per_core(facts), facts, plan, lambda share: None)
    peaks = peak_ceilings(found.gemm, facts.isa)
    return next(((p.flop_per_s, p.how) for p in peaks if p.flop_per_s is not None), (0.0, "nothing"))


def told(dtype: str, rounds: int) -> bool:
    pairs = undisturbed(lambda: (plain(dtype), ours(dtype)), rounds)
    swept, found = ([r[0] / 1e9 for r in side] for side in zip(*pairs, strict=True))
    ratio = statistics.median(found) / statistics.median(swept)
    print(f"{dtype}: ratio {ratio:.3f} {'reaches' if ratio >= BAR else 'DOES NOT REACH'} {BAR:.0%}")
    for name, rates, how in (("plain sweep", swept, pairs[-1][0][1]), ("machine", found, pairs[-1][1][1])):
        middle = statistics.median(rates)
        shown = " ".join(f"{r:.0f}" for r in rates)
        print(
            f"  {name:<12} {middle:8.1f} GFLOP/s  spread {(max(rates) - min(rates)) / 2 / middle:5.1%}  [{shown}]  {how}",
            flush=True,
        )
    return ratio >= BAR


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    facts = host_facts()
    torch.set_num_threads(facts.threads)
    print(f"{facts.cpu_model}, {facts.threads} threads, torch {torch.__version__}, numpy {np.__version__}", flush=True)
    held = [told(dtype, rounds) for dtype in DTYPES]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
