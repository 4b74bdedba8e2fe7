"""The text of `go test -bench -benchmem` in, also as `-json` writes it, rows and machine out.

The format is that of golang.org/design/14313-benchmark-format: configuration lines `key: value`, and result lines of a name, a
count of iterations, and pairs of value and unit.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from rooflens.benches.bench_run import FAILED, NOT_RUN, OK, Allocated, BenchMachine
from rooflens.benches.imports.found import LONGEST_S, Content, Found, FoundRow, benchmark_of, fingerprint_of
from rooflens.errors import FormatError

TOOL = "go test"
_CONFIG = re.compile(r"([a-z][^\sA-Z:]*):(?:[ \t]+(.*))?$")
_RESULT = re.compile(r"(Benchmark\S*)\s+(\d+)\s+(\S.*)")
_LOST = re.compile(r"\s*--- (FAIL|SKIP): (Benchmark\S*)")
_PROCS = re.compile(r"-(\d+)$")
_KNOWN = ("ns/op", "B/op", "allocs/op", "MB/s")
_EVENT = re.compile(r'\s*\{.*"Action"\s*:')
_MOST_NAMED = 5


@dataclass(slots=True)
class _Readings:
    """Of one name in one package: a value a result line."""

    values: dict[str, list[float]] = field(default_factory=dict)
    status: str = OK
    reason: str = ""


def is_go(content: Content) -> bool:
    lines = content.text.splitlines()[:2000]
    if lines and _EVENT.match(lines[0]):
        return any('"Action"' in line for line in lines)
    return any(_RESULT.match(line) or _LOST.match(line) for line in lines)


def read_go(content: Content) -> Found:
    config: dict[str, str] = {}
    found: dict[tuple[str, str], _Readings] = {}
    _read(content, config, found)
    measured = tuple(name for (_, name), readings in found.items() if readings.values)
    names = measured or tuple(name for _, name in found)  # one that was skipped or failed is named without its threads
    threads = _threads(names)
    packages = tuple(dict.fromkeys(package for package, _ in found if package))
    rows = tuple(_row(key, readings, threads, len(packages) > 1) for key, readings in found.items())
    return Found(
        tool=TOOL,
        suite=packages[0] if len(packages) == 1 else TOOL,
        date=content.modified,
        machine=_machine(config, threads),
        rows=rows,
        settings=(("pkg", ", ".join(packages) or None),),
        notes=tuple(_notes(content.path, found, names, threads)),
    )


def _read(content: Content, config: dict[str, str], found: dict[tuple[str, str], _Readings]) -> None:
    lost: _Readings | None = None
    for number, line in enumerate(_lines(content.text), 1):
        result, gone = _RESULT.match(line), _LOST.match(line)
        key = _CONFIG.match(line)
        if result:
            lost = None
            readings = found.setdefault((config.get("pkg", ""), result.group(1)), _Readings())
            _add(readings, result.group(3).split(), f"{content.path}: line {number}")
        elif gone:
            lost = found.setdefault((config.get("pkg", ""), gone.group(2)), _Readings())
            lost.status = FAILED if gone.group(1) == "FAIL" else NOT_RUN
        elif lost is not None and line[:1].isspace() and line.strip():
            lost.reason = lost.reason or line.strip()[:500]
        elif key:
            config[key.group(1)] = (key.group(2) or "").strip()


def _lines(text: str) -> Iterator[str]:
    """Of `-json`, what the events print; a line may come in several of them."""
    if not _EVENT.match(text[:2000]):
        yield from text.splitlines()
        return
    printed = []
    for line in text.splitlines():
        try:
            event = json.loads(line) if line.lstrip().startswith("{") else {}
        except (ValueError, RecursionError):
            continue
        output = event.get("Output") if isinstance(event, dict) else None
        printed.append(output if isinstance(output, str) else "")
    yield from "".join(printed).splitlines()


def _add(readings: _Readings, pairs: list[str], where: str) -> None:
    for value, unit in zip(pairs[::2], pairs[1::2], strict=False):
        try:
            number = float(value)
        except ValueError:
            raise FormatError(f"{where}: '{value[:40]}' is no number of {unit[:40]}: run the benchmark again") from None
        if not math.isfinite(number) or (unit in _KNOWN and not 0 <= number <= LONGEST_S * 1e9):
            raise FormatError(f"{where}: {value[:40]} {unit[:40]} is no measurement: run the benchmark again")
        readings.values.setdefault(unit, []).append(number)
    if len(pairs) % 2 or not any(unit == "ns/op" for unit in pairs[1::2]):
        raise FormatError(f"{where}: a result without ns/op: is the file cut off?")


def _threads(names: tuple[str, ...]) -> int | None:
    """GOMAXPROCS stands at the end of every name, unless it is 1; where names differ in it, it is no fact of the run."""
    ends = {m.group(1) if (m := _PROCS.search(name)) else "" for name in names}
    return int(ends.pop()) if len(ends) == 1 and "" not in ends else None


def _row(key: tuple[str, str], readings: _Readings, threads: int | None, several: bool) -> FoundRow:
    package, name = key
    plain = _PROCS.sub("", name) if threads is not None else name
    short = plain.removeprefix("Benchmark").lstrip("_") or plain
    samples = tuple(v / 1e9 for v in readings.values.get("ns/op", ()))
    status = OK if samples else readings.status
    return FoundRow(
        benchmark=benchmark_of(
            f"{package}.{short}" if several and package else short, f"{package}.{plain}".lstrip(".")
        ),
        processes=(samples,) if samples else (),
        status=status,
        reason="" if samples else readings.reason or ("failed" if status == FAILED else "skipped"),
        allocated=Allocated(framework_count=_middle(readings, "allocs/op"), framework_bytes=_middle(readings, "B/op")),
        bytes=_moved(readings),
    )


def _middle(readings: _Readings, unit: str) -> int | None:
    values = readings.values.get(unit)
    return round(median(values)) if values else None


def _moved(readings: _Readings) -> int | None:
    """What `b.SetBytes` said, as well as the rounded rate tells it."""
    rates, times = readings.values.get("MB/s"), readings.values.get("ns/op")
    if not rates or not times or len(rates) != len(times):
        return None
    return round(median(r * 1e6 * t * 1e-9 for r, t in zip(rates, times, strict=True)))


def _machine(config: dict[str, str], threads: int | None) -> BenchMachine:
    system, arch, cpu = (config.get(k, "") for k in ("goos", "goarch", "cpu"))
    return BenchMachine(
        fingerprint=fingerprint_of((TOOL, system, arch, cpu)),
        name=cpu or arch or "unknown",
        device="cpu",
        device_name=cpu or arch or "unknown",
        threads=threads,
        system=" ".join(filter(None, (system, arch))),
    )


def _notes(
    path: str, found: dict[tuple[str, str], _Readings], names: tuple[str, ...], threads: int | None
) -> Iterator[str]:
    others = list(dict.fromkeys(u for r in found.values() for u in r.values if u not in _KNOWN))
    if others:
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        yield f"{path}: not kept: {', '.join(others[:_MOST_NAMED])}{more}"
    if threads is None and any(map(_PROCS.search, names)):
        yield f"{path}: names end in different numbers of threads, and keep them"
