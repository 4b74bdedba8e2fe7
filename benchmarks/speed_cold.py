"""What a user waits for in a fresh process: help within 150 ms and without numpy, layer text within 400 ms, beside a
bare interpreter."""

import subprocess
import sys

from timing import interleaved, table, verdict

ROUNDS = 15
TEXT = "8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2 | flatten | linear 10"
START = "import sys; sys.argv[0] = 'rooflens'; from rooflens.cli import main; main()"
CASES = {
    "python -c pass": (["-c", "pass"], None),
    "rooflens --help": (["-c", START, "--help"], 150.0),
    "rooflens analyze TEXT --on h100-sxm": (["-c", START, "analyze", TEXT, "--on", "h100-sxm"], 400.0),
    "rooflens analyze TEXT --format json": (["-c", START, "analyze", TEXT, "--format", "json"], 400.0),
}


def run(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def imported_by_help() -> set[str]:
    """Packages that help brings in though it should not."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", START, "--help"], check=True, capture_output=True, text=True
    )
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    return names & {"numpy", "torch", "pandas", "matplotlib", "pydantic"}


def main() -> None:
    times = interleaved([(name, lambda a=arguments: run(a)) for name, (arguments, _) in CASES.items()], ROUNDS)
    bare = times["python -c pass"]
    rows = [
        [
            name,
            f"{times[name] * 1e3:.0f} ms",
            f"{times[name] / bare:.1f}",
            f"{bar:g} ms" if bar else "",
            verdict(times[name] * 1e3, bar) if bar else "",
        ]
        for name, (_, bar) in CASES.items()
    ]
    table("fresh processes", ("command", "median", "x bare", "bar", ""), rows)
    heavy = imported_by_help()
    print(f"\n--help imports {', '.join(sorted(heavy)) if heavy else 'none of numpy, torch, pandas, matplotlib'}")


if __name__ == "__main__":
    main()
