"""The samples of a run and of the same run with one change in, what the change gained out, beside what was predicted.

A gain is the share of the time per item that is saved: 0.5 is twice as quick, -1 takes twice as long.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflens.benches.sampling import Samples
    from rooflens.benches.trial import Attempt

LEAST_NOISE = 0.01  # clocks and placement differ by as much from run to run, however close the samples of one run lie


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the pipeline says of both. `of`: latency_s where the chip's launches are known, else device_time_s. `reason`:
    why there is nothing to say."""

    before_s: float | None = None
    after_s: float | None = None
    of: str | None = None
    reason: str = ""

    def gain(self, items: int) -> float | None:
        return gain(self.before_s, self.after_s, items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One change in one pass. `layer`: the op that was changed, where it is not the whole model; `same` are others that do
    the same work. `items`: how many times the items of the unchanged run the changed one takes."""

    change: str
    pass_: str  # forward | step
    status: str  # ok | not here | failed | no difference
    reason: str = ""
    layer: str = ""
    same: tuple[str, ...] = ()
    items: int = 1
    before: "Samples | None" = None
    after: "Samples | None" = None
    output_difference: float | None = None
    expected: Expected = Expected()
    lines: tuple[str, ...] = ()

    @property
    def before_s(self) -> float | None:
        return self.before.median_s if self.before else None

    @property
    def after_s(self) -> float | None:
        return self.after.median_s if self.after else None

    @property
    def gain(self) -> float | None:
        return gain(self.before_s, self.after_s, self.items)

    @property
    def noise(self) -> float | None:
        return noise(self.before, self.after, self.items)


def gain(before_s: float | None, after_s: float | None, items: int = 1) -> float | None:
    if not before_s or after_s is None:
        return None
    return 1 - after_s / items / before_s


def noise(before: "Samples | None", after: "Samples | None", items: int = 1) -> float | None:
    """How far the gain may be off: the spreads of both sides, none of them lucky."""
    if before is None or after is None:
        return None
    found = gain(before.median_s, after.median_s, items)
    if found is None:
        return None
    return max(LEAST_NOISE, (1 - found) * ((before.spread or 0.0) + (after.spread or 0.0)))


def verdict(found: "Attempt", items: int = 1) -> tuple[str, str]:
    """Status and reason. A difference within the noise is none."""
    if found.status != "ok":
        return found.status, found.reason
    gained, about = gain(_median(found.before), _median(found.after), items), noise(found.before, found.after, items)
    if gained is None or about is None:
        return "failed", "every sample was disturbed: try again when nothing else runs"
    if abs(gained) <= about:
        return "no difference", f"{gained:+.1%} is within the spread of {about:.1%}"
    return "ok", found.reason


def _median(samples: "Samples | None") -> float | None:
    return samples.median_s if samples else None
