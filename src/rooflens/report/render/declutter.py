"""Places that a text may go to in, the place that covers least out: pixels and boxes, no drawing.

Texts never cover each other; dots are covered only where nothing else is left.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

Box = tuple[float, float, float, float]  # left, bottom, right, top


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a text's anchor may go, the boxes that it would fill, and how unwelcome the place is by itself."""

    x: float
    y: float
    boxes: tuple[Box, ...]
    cost: float = 0.0


@dataclass(slots=True)
class Room:
    """What is on the sheet already: `texts` must not be covered, `dots` better not."""

    bounds: Box
    dots: list[Box]
    texts: list[Box] = field(default_factory=list)

    def settle(self, spots: Iterable[Spot]) -> Spot | None:
        """Takes the cheapest spot; None where each would leave the sheet or cover a text."""
        best = min((s for s in spots if self._possible(s)), key=self._cost, default=None)
        if best is not None:
            self.texts += best.boxes
        return best

    def _possible(self, spot: Spot) -> bool:
        inside = all(_inside(box, self.bounds) for box in spot.boxes)
        return inside and not any(overlap(box, text) for box in spot.boxes for text in self.texts)

    def _cost(self, spot: Spot) -> float:
        return spot.cost + sum(any(overlap(box, dot) for box in spot.boxes) for dot in self.dots)


def overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def centred(x: float, y: float, width: float, height: float) -> Box:
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def along(x: float, y: float, length: float, height: float, angle: float) -> tuple[Box, ...]:
    """A slanted text as a chain of squares, that starts at x, y and goes up by `angle`."""
    steps = max(1, math.ceil(length / height))
    at = ((i + 0.5) * length / steps for i in range(steps))
    return tuple(centred(x + d * math.cos(angle), y + d * math.sin(angle), height, height) for d in at)


def _inside(box: Box, bounds: Box) -> bool:
    return bounds[0] <= box[0] and bounds[1] <= box[1] and box[2] <= bounds[2] and box[3] <= bounds[3]
