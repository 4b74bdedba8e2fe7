"""Trials in, the `tried` part of a measurement document out, raw samples and all."""

from typing import Any

from rooflens.compare.trials import Trial
from rooflens.report.samples import samples_document


def tried_document(t: Trial) -> dict[str, Any]:
    e = t.expected
    return {
        "change": t.change,
        "pass": t.pass_,
        "layer": t.layer or None,
        "same": list(t.same),
        "items": t.items,
        "status": t.status,
        "reason": t.reason or None,
        "before_s": t.before_s,
        "after_s": t.after_s,
        "measured_gain": t.gain,
        "noise": t.noise,
        "predicted_gain": e.gain(t.items),
        "predicted_before_s": e.before_s,
        "predicted_after_s": e.after_s,
        "predicted_of": e.of,
        "predicted_reason": e.reason or None,
        "output_difference": t.output_difference,
        "inconclusive": None if t.before is None or t.after is None else t.before.inconclusive or t.after.inconclusive,
        "lines": list(t.lines),
        "before": samples_document(t.before),
        "after": samples_document(t.after),
    }
