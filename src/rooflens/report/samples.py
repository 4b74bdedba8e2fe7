"""Raw samples in, what documents say of them out: the middle, the spread, every reading and every one that was rejected."""

import math
import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooflens.benches.sampling import Samples


def samples_document(s: "Samples | None") -> dict[str, Any]:
    low, high = quartiles(s.times_s) if s else (None, None)
    return {
        "time_s": s.median_s if s else None,
        "low_s": low,
        "high_s": high,
        "spread": s.spread if s else None,
        "samples_s": list(s.times_s) if s else [],
        "warmups_s": list(s.warmups_s) if s else [],
        "rejected": rejected_document(s) if s else [],
        "involuntary_switches": s.switches if s else None,
        "inconclusive": s.inconclusive if s else None,
    }


def rejected_document(s: "Samples") -> list[dict[str, Any]]:
    """NaN and infinity are no numbers in JSON: a reading that was one is told by its reason alone."""
    return [{"reason": why, "time_s": t if math.isfinite(t) else None} for why, t in s.rejected]


def quartiles(values: tuple[float, ...]) -> tuple[float | None, float | None]:
    if not values:
        return None, None
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
