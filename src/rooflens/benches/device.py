"""A device's name in; how to time on it, and how much memory it has left, out. A CPU's clock is the host's; a GPU has its
own, and the host's time says nothing about it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from rooflens.benches.host import host_facts
from rooflens.benches.sampling import Budget, Raw, Samples, collector_off, judged, repeats, sampled, taken, timed
from rooflens.errors import InputError
from rooflens.units import show

SPARE = 0.9  # of what is free: the framework needs some for itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One sample at a time, for runs that take turns. `warmups_s` are the first runs."""

    sample: Callable[[], Raw]
    warmups_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    name: str

    def lacks(self, needed_bytes: int) -> str:
        """Why so many bytes cannot be had; empty where they can. Asked first: a system that promises more memory than it
        has ends the process that believes it."""
        free = self.free_bytes()
        if free is None or needed_bytes <= SPARE * free:
            return ""
        return f"needs {show(needed_bytes, 'B')}, {show(free, 'B')} are free"

    def free_bytes(self) -> int | None:
        if self.name == "cuda":
            return int(torch.cuda.mem_get_info()[0])
        return host_facts().memory_available_bytes

    def sampled(self, run: Callable[[], Any], budget: Budget, captured: bool = True) -> Samples:
        """`captured`: on a GPU within a CUDA graph, where the host's launches take no time."""
        return _device_time(run, budget, captured) if self.name == "cuda" else sampled(run, budget)

    def reading(self, run: Callable[[], Any], budget: Budget, captured: bool = True) -> Reading:
        """The run, warm, told how often it fills a sample."""
        if self.name == "cuda":
            return _device_reading(run, budget, captured)
        warm = tuple(timed(run, 1).time_s for _ in range(1 + budget.warmups))
        times = repeats(min(warm[1:] or warm), budget)
        return Reading(sample=lambda: timed(run, times), warmups_s=warm)

    def once_s(self, run: Callable[[], Any]) -> float:
        return (_between(run, 1) if self.name == "cuda" else timed(run, 1)).time_s

    @contextmanager
    def working(self) -> Iterator[None]:
        """On a GPU a stream of its own: graphs are captured from no other, and what autograd runs stays on the stream that
        its forward pass ran on."""
        if self.name == "cpu":
            yield
            return
        with torch.cuda.stream(torch.cuda.Stream()):
            yield
            torch.cuda.synchronize()

    def wait(self) -> None:
        """Until everything that was started is done."""
        if self.name == "cuda":
            torch.cuda.synchronize()

    def release(self) -> None:
        if self.name == "cuda":
            torch.cuda.empty_cache()


def device_of(name: str | None) -> Device:
    """`cpu`, `cuda`, or None for the best that is here."""
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name not in ("cpu", "cuda"):
        raise InputError(f"--device {name}: use one of cpu cuda")
    if name == "cuda" and not torch.cuda.is_available():
        why = "this torch is built without CUDA" if torch.version.cuda is None else "torch finds no CUDA device here"
        raise InputError(f"--device cuda: {why}: use --device cpu, or run where there is an NVIDIA GPU and its torch")
    return Device(name=name)


def _device_time(run: Callable[[], Any], budget: Budget, captured: bool) -> Samples:
    """Time between two events on the device. Runs stand in a CUDA graph where they can, so that short kernels follow each
    other as closely as the device can start them."""
    with collector_off():
        found = _device_reading(run, budget, captured)
        raw = tuple(taken(found.sample, budget))
    torch.cuda.synchronize()
    return judged(raw, found.warmups_s)


def _device_reading(run: Callable[[], Any], budget: Budget, captured: bool) -> Reading:
    warm = tuple(_between(run, 1).time_s for _ in range(1 + budget.warmups))
    times = repeats(min(warm), budget)
    inside = min(times, 100)
    again = _captured(run, inside) if captured else None
    if again is None:
        return Reading(sample=lambda: _between(run, times), warmups_s=warm)
    _between(again, 1)
    rounds = max(1, times // inside)
    return Reading(sample=lambda: _shared(_between(again, rounds), inside), warmups_s=warm)


def _shared(raw: Raw, times: int) -> Raw:
    return Raw(time_s=raw.time_s / times, switches=raw.switches)


def _captured(run: Callable[[], Any], times: int) -> Callable[[], Any] | None:
    """None where the call waits for the host, which a graph cannot hold."""
    try:
        return capture(run, times)
    except (RuntimeError, torch.AcceleratorError):
        return None


def capture(run: Callable[[], Any], times: int = 1) -> Callable[[], Any]:
    """So many runs in one CUDA graph. Within `working`: a graph is captured from the stream that is in use."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    try:
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            for _ in range(times):
                run()
    except Exception:  # whatever it was goes on to the caller, once the device has left the capture
        torch.cuda.synchronize()
        raise

    def replay(kept: Callable[[], Any] = run) -> None:
        """A graph reads what the run closes over, and does not keep it alive."""
        graph.replay()

    return replay


def _between(run: Callable[[], Any], times: int) -> Raw:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return Raw(time_s=start.elapsed_time(end) * 1e-3 / times)


@contextmanager
def switches(dtype: str, threads: int) -> Iterator[tuple[tuple[str, Any], ...]]:
    """torch's own switches for a run in that type, told and put back. fp32 means no TF32 anywhere."""
    backends = torch.backends
    kept = (
        backends.cuda.matmul.allow_tf32,
        backends.cudnn.allow_tf32,
        backends.cudnn.benchmark,
        torch.get_num_threads(),
    )
    tf32 = dtype == "tf32"
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = tf32
    backends.cudnn.benchmark = True
    torch.set_num_threads(threads)
    try:
        yield (
            ("threads", threads), ("cuda.matmul.allow_tf32", tf32), ("cudnn.allow_tf32", tf32), ("cudnn.benchmark", True),
            ("mkldnn.enabled", bool(backends.mkldnn.enabled)),
        )  # fmt: skip
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32, backends.cudnn.benchmark = kept[:3]
        torch.set_num_threads(kept[3])
