"""The DRAM bandwidth that `rooflens machine` finds against a STREAM triad in C: five interleaved rounds in one run.

    python benchmarks/machine_stream.py [ROUNDS]

Each round runs the C program and the probes of `rooflens machine` on the same cores, with arrays of the same size (each
four times the last cache). Of both the lower quartile of the times counts, which is what the verb takes for a ceiling;
the medians are printed beside. Bar: the medians over the rounds differ by at most 5 %.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from idle import undisturbed

from rooflens.benches.bandwidth import PAST_LAST
from rooflens.benches.host import HostFacts, host_facts, one_cpu_per_core
from rooflens.benches.machine_cpu import Plan, cache_levels, level_ceilings, read_cpu

ROUNDS, REPEATS, BAR = 5, 20, 0.05
PLAN = Plan(seconds=3, per_octave=1.5, sizes=(), one_core_sizes=())
SOURCE = Path(__file__).with_name("stream_triad.c")


def compiled(folder: str) -> Path:
    program = Path(folder) / "stream_triad"
    subprocess.run(["gcc", "-O3", "-march=native", "-fopenmp", str(SOURCE), "-o", str(program)], check=True)
    return program


def triad(program: Path, cpus: tuple[int, ...], array_bytes: int) -> tuple[float, float]:
    """The upper quartile and the median of its rates in GB/s; the first repeat is a warm-up, as in STREAM."""
    places = ",".join(f"{{{c}}}" for c in cpus)
    pinned = {"OMP_NUM_THREADS": str(len(cpus)), "OMP_PLACES": places, "OMP_PROC_BIND": "true"}
    done = subprocess.run(
        [str(program), str(array_bytes // 8), str(REPEATS)],
        env={**os.environ, **pinned}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    rates = [float(line) for line in done.stdout.split()][1:]
    return statistics.quantiles(rates, n=4, method="inclusive")[2], statistics.median(rates)


def ours(cpus: tuple[int, ...], facts: HostFacts) -> tuple[float, float]:
    """The level as the verb reports it, and the median at its largest size; both in GB/s."""
    found = read_cpu(cpus, facts, PLAN, lambda share: None)
    dram = level_ceilings(found.sweep, cpus, facts)[-1].bandwidth_bytes_per_s or 0.0
    largest = max((p for p in found.sweep if p.kernel == "add" and p.threads == len(cpus)), key=lambda p: p.bytes)
    median = largest.samples.median_s
    return dram / 1e9, largest.bytes / median / 1e9 if median else 0.0


def told(name: str, rates: list[float]) -> float:
    middle = statistics.median(rates)
    shown = " ".join(f"{r:.1f}" for r in rates)
    print(f"{name:<28} {middle:8.2f} GB/s   spread {(max(rates) - min(rates)) / 2 / middle:6.1%}   [{shown}]")
    return middle


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    facts = host_facts()
    cpus = one_cpu_per_core(facts)
    last = max((c.bytes or 0 for c in cache_levels(cpus)), default=0)
    array = int(PAST_LAST * last / 3)
    print(
        f"{facts.cpu_model}, {len(cpus)} threads, last cache {last / 2**20:.0f} MiB, arrays of {array / 2**20:.0f} MiB"
    )
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(folder)
        pairs = undisturbed(lambda: (triad(program, cpus, array), ours(cpus, facts)), rounds)
    reference = told("C triad, upper quartile", [c[0] for c, _ in pairs])
    told("C triad, median", [c[1] for c, _ in pairs])
    found = told("rooflens machine, dram", [o[0] for _, o in pairs])
    told("rooflens machine, median", [o[1] for _, o in pairs])
    ratio = found / reference
    print(f"ratio {ratio:.3f}: {'within' if abs(ratio - 1) <= BAR else 'NOT within'} {BAR:.0%}")
    print("ratio of each round " + " ".join(f"{o[0] / c[0]:.3f}" for c, o in pairs))
    return int(abs(ratio - 1) > BAR)


if __name__ == "__main__":
    sys.exit(main())
