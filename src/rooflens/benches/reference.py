"""A device in, a fixed piece of work out that tells how quick the machine is at the moment: what it takes around a row, and
took around the same row in another run, is the machine's part of the difference.

Half of it is multiply-adds and half of it memory traffic, so that a slower clock and a busier memory both show.
"""

from collections.abc import Callable
from statistics import median

import torch

from rooflens.benches.device import Device
from rooflens.benches.replay import spread
from rooflens.benches.sampling import collector_off

SIDE = {"cpu": 256, "cuda": 2048}  # of a square product
NUMBERS = {"cpu": 1 << 20, "cuda": 1 << 25}  # of the sum that goes through memory
SAMPLES = 12


class Reference:
    """Made once a process, warm from then on."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.run = _work(device.name)
        self.samples_s()

    def samples_s(self) -> tuple[float, ...]:
        with collector_off(), torch.inference_mode():
            return tuple(self.device.once_s(self.run) for _ in range(SAMPLES))


def reference_s(before: tuple[float, ...], after: tuple[float, ...]) -> float:
    return median((*before, *after))


def _work(device: str) -> Callable[[], object]:
    side, count = SIDE[device], NUMBERS[device]
    a, b = (spread(side * side, 0.5, 1.5, torch.float32, device).reshape(side, side) for _ in range(2))
    out, x, y = torch.empty_like(a), *(spread(count, 0.5, 1.5, torch.float32, device) for _ in range(2))

    def run() -> object:
        torch.mm(a, b, out=out)
        return torch.add(x, 1.0, out=y)

    return run
