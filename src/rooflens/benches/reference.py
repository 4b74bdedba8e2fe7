"""A device in, fixed pieces of work out that tell what state the machine is in: what they take around a row, against what
they take at other times, is the machine's doing and not the row's.

Three, because a machine is not just quick or slow. A clock that drops slows products; a neighbour that streams slows sums
through memory; cores that were moved apart (a guest's, by its host, and nobody is told) slow whatever they do together, a
small LSTM to half its speed while a large product runs as before. Each is more of its kind than any layer. A GPU
has the first two: its rows stand in graphs, and how its host starts small kernels says nothing of them.
"""

from collections.abc import Callable, Sequence
from statistics import quantiles

import torch

from rooflens.benches.device import Device
from rooflens.benches.replay import spread
from rooflens.benches.sampling import collector_off

SAMPLES = 12
_SIDE = {"cpu": 256, "cuda": 2048}  # of a square product
_LONG = {"cpu": 1 << 20, "cuda": 1 << 25}  # numbers of the sum that goes through memory
_SHORT = 1 << 17  # of what cores hand each other

Seconds = tuple[float, ...]  # one of each part


class Reference:
    """Made once a process, warm from then on."""

    def __init__(self, device: Device) -> None:
        self.device = device
        cores = (_together(),) if device.name == "cpu" else ()
        self.parts = (_product(device.name), _sum(device.name), *cores)
        self.seconds()

    def seconds(self) -> Seconds:
        """The lower quartile of a few runs: what is left of interruptions says nothing of the state."""
        with collector_off(), torch.inference_mode():
            return tuple(quantiles([self.device.once_s(p) for _ in range(SAMPLES)], n=4)[0] for p in self.parts)


def drift(looks: Sequence[Seconds]) -> float:
    """By what factor the piece that changed most did; of many looks the outermost sixths are moments, and no state."""
    changes: list[float] = [_ratio(sorted(part)) for part in zip(*looks, strict=True)]
    return max(changes)


def _ratio(ordered: list[float]) -> float:
    aside = len(ordered) // 6
    return ordered[-1 - aside] / ordered[aside]


def _numbers(count: int, device: str) -> torch.Tensor:
    return spread(count, 0.5, 1.5, torch.float32, device)


def _product(device: str) -> Callable[[], object]:
    side = _SIDE[device]
    a, b = (_numbers(side * side, device).reshape(side, side) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _sum(device: str) -> Callable[[], object]:
    x = _numbers(_LONG[device], device)
    out = torch.empty_like(x)
    return lambda: torch.add(x, 1.0, out=out)


def _together() -> Callable[[], object]:
    """Each core reads backward what another one has just written forward."""
    x = _numbers(_SHORT, "cpu")
    out = torch.empty_like(x)

    def run() -> object:
        for _ in range(2):
            torch.add(x.flip(0), 1.0, out=out)
            torch.add(out.flip(0), 1.0, out=x)
        return out

    return run
