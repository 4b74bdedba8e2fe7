"""A measured model and what the pipeline says of it in, Trials out: changes that are really made, and what they gain beside
what was predicted.

What is predicted of a change is the pipeline run again with other settings; what is measured, the whole model run another
way, in turns with the unchanged one. Padding is tried layer by layer.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from rooflens.changes import CHANGES, Baseline, Change, pad_lines
from rooflens.compare.standing import Row
from rooflens.compare.trials import Expected, Trial, verdict
from rooflens.errors import RooflensError
from rooflens.estimate.roofline import are_comparable
from rooflens.graph.records import Graph
from rooflens.loading import load
from rooflens.pipeline.run import Prediction, predict

if TYPE_CHECKING:
    from rooflens.benches.measure import Progress
    from rooflens.benches.padding import Padded
    from rooflens.benches.trial import Way
    from rooflens.frontends.pytorch.calls import Call

LONGER = 5  # times what a layer is run for: the whole, and both sides of it
PADDED = "padded N"
SAME = 1e-3  # of a prediction: rounding, and a copy or two
_NO_ROOFS = "no roofs are known here: run 'rooflens machine' first, or name a chip with --on"


def try_changes(s: Baseline, progress: "Progress", finished: list[Trial]) -> str:
    """What was finished goes into `finished`, whatever ends the run; the name of what did, empty where nothing did."""
    from rooflens.benches.device import switches

    try:
        with switches(s.plan.dtype, s.threads):
            for trial in tried(s, progress):
                finished.append(trial)
    except KeyboardInterrupt as error:
        return type(error).__name__
    return ""


def tried(s: Baseline, progress: "Progress") -> Iterator[Trial]:
    """One after the other, so that an interruption keeps those that are finished."""
    changes = [(change, pass_) for change in CHANGES for pass_ in s.passes]
    layers = list(_paddable(s))
    padded = [(rows, wide, pass_) for rows, wide in layers for pass_ in s.passes]
    total, predicted = len(changes) + len(padded), _predictions(s)
    for done, (change, pass_) in enumerate(changes):
        progress("changes", done, total)
        yield _whole(s, change, pass_, predicted)
    for done, (rows, wide, pass_) in enumerate(padded, len(changes)):
        progress("changes", done, total)
        yield _layer(s, rows, wide, pass_)
    if not layers:
        why = f"every linear and convolution layer without groups has a multiple of {_step(s)} outputs"
        yield Trial(change=PADDED, pass_="forward", status="not here", reason=why)
    progress("changes", total, total)


def _whole(s: Baseline, change: Change, pass_: str, predicted: "Predictions") -> Trial:
    from rooflens.benches.trial import whole_attempt

    why = change.refuses(s) or _not_run(s, pass_)
    if why:
        return Trial(change=change.name, pass_=pass_, items=change.items, status="not here", reason=why)
    base = _base(s)
    found = whole_attempt(
        s.plan.subject,
        base,
        change.way(base),
        training=pass_ == "step",
        device=s.device,
        seconds=LONGER * s.seconds,
        needed_bytes=_needed(s, pass_, change.items),
    )
    status, reason = verdict(found, change.items)
    return Trial(
        change=change.name, pass_=pass_, items=change.items, status=status, reason=reason, before=found.before,
        after=found.after, output_difference=found.output_difference, expected=_expected(s, change, pass_, predicted),
        lines=change.lines(s),
    )  # fmt: skip


def _not_run(s: Baseline, pass_: str) -> str:
    if s.plan.measured.failure is not None:
        return f"the model does not run to its end: {s.plan.measured.failure.reason}"
    bad = next((w for w in s.wholes if w.pass_ == pass_ and w.status != "ok"), None)
    return f"the unchanged model is {bad.status}: {bad.reason}" if bad else ""


def _base(s: Baseline) -> "Way":
    """The way in which the model was measured."""
    from rooflens.benches.trial import Way
    from rooflens.frontends.pytorch.tracker import TORCH_DTYPES

    cast = s.plan.autocast
    return Way(
        dtype=TORCH_DTYPES["fp32" if cast else s.plan.dtype],
        autocast=TORCH_DTYPES[cast] if cast else None,
        channels_last=s.plan.channels_last,
        tf32=s.plan.dtype == "tf32",
        compiled=s.settings.execution == "compiled",
        captured=s.plan.captured and s.device.name == "cuda",
    )


def _needed(s: Baseline, pass_: str, items: int) -> int:
    """Weights of both runs, and their gradients; what else was held, for so many items."""
    own = s.plan.subject.bytes
    peak = max((w.peak_bytes or 0 for w in s.wholes if w.pass_ == pass_), default=0)
    return own * (4 if pass_ == "step" else 2) + max(0, peak - own) * (items + 1)


# what is predicted

Predictions = Callable[[str, tuple[tuple[str, Any], ...], int], Prediction]


def _predictions(s: Baseline) -> Predictions:
    """By pass, changed settings and items; each recorded once. An eager run fuses nothing, whatever was asked to be
    reported, and no run that is measured has an optimizer."""
    plain = replace(s.settings, dtype=s.plan.dtype, optimizer="none", batch=None, input=None, given=())
    if s.settings.execution != "compiled":
        plain = replace(plain, fusion="none", bn="kept")

    @cache
    def predicted(pass_: str, changes: tuple[tuple[str, Any], ...], items: int) -> Prediction:
        settings = replace(plain, mode="training" if pass_ == "step" else "inference", **dict(changes))
        subject = s.plan.subject.larger(items)
        loaded = load(subject.module, subject.kwargs or subject.args, settings)
        return predict(loaded.graph, s.hardware, settings, loaded.dtype)

    return predicted


def _expected(s: Baseline, change: Change, pass_: str, predicted: Predictions) -> Expected:
    if s.hardware is None:
        return Expected(reason=_NO_ROOFS)
    changed = {**change.settings, **({"execution": "graph"} if s.plan.captured else {})}
    try:
        before = predicted(pass_, (), 1)
        after = predicted(pass_, tuple(changed.items()), change.items)
    except RooflensError as error:
        return Expected(reason=str(error))
    found = _compared(before, after)
    if change.blind and abs(found.gain(change.items) or 0.0) < SAME and not found.reason:
        return Expected(reason=f"the prediction knows no difference that {change.name} makes")
    return found


def _compared(before: Prediction, after: Prediction) -> Expected:
    """With the cost of launches where the chip's is known: what runs here pays it."""
    if before.estimate is None or after.estimate is None:
        return Expected(reason=_NO_ROOFS)
    if not are_comparable(before.estimate, after.estimate):
        return Expected(reason="the profile of this chip knows only one of the two: calibrate both types and layouts")
    for of in ("latency_s", "device_time_s"):
        times = getattr(before.estimate, of), getattr(after.estimate, of)
        if None not in times:
            return Expected(before_s=times[0], after_s=times[1], of=of)
    return Expected(reason="a rate that it needs is not known of the chip")


# layers whose outputs leave part of a unit idle


def _paddable(s: Baseline) -> Iterator[tuple[tuple[Row, ...], "Padded"]]:
    """Layers that do the same work together, by the first of them."""
    from rooflens.benches.padding import padded

    equal: dict[str, list[Row]] = {}
    for row in s.rows:
        if row.layer.pass_ == "forward":
            equal.setdefault(row.layer.step.call.key, []).append(row)
    for rows in equal.values():
        wide = padded(rows[0].layer.step.call, s.device.name)
        if wide is not None:
            yield tuple(rows), wide


def _step(s: Baseline) -> int:
    from rooflens.benches.padding import multiple_of
    from rooflens.frontends.pytorch.tracker import TORCH_DTYPES

    return multiple_of(s.device.name, TORCH_DTYPES[s.plan.dtype].itemsize * 8)


def _layer(s: Baseline, rows: tuple[Row, ...], wide: "Padded", pass_: str) -> Trial:
    from rooflens.benches.measure import around_of
    from rooflens.benches.padding import padded_attempt

    first = rows[0]
    call = first.layer.step.call
    if pass_ == "step" and not any(slot.learns for slot in call.slots):
        return Trial(change=PADDED, pass_=pass_, layer=first.id, status="not here", reason="no gradient reaches it")
    found = padded_attempt(
        call,
        wide.call,
        training=pass_ == "step",
        device=s.device,
        around=around_of(s.plan, s.device),
        seconds=2 * s.seconds,
    )
    status, reason = verdict(found)
    return Trial(
        change=PADDED, pass_=pass_, layer=first.id, same=tuple(r.id for r in rows[1:]), status=status, reason=reason,
        before=found.before, after=found.after, expected=_expected_of(s, call, wide.call, pass_),
        lines=tuple(pad_lines(s, first.layer.step.module, wide, len(rows) - 1)),
    )  # fmt: skip


def _expected_of(s: Baseline, before: "Call", after: "Call", pass_: str) -> Expected:
    from rooflens.frontends.pytorch.derivative import forward_graph, training_graph
    from rooflens.frontends.pytorch.tracker import TORCH_DTYPES

    cast = TORCH_DTYPES[s.plan.autocast] if s.plan.autocast else None
    graphs = [(training_graph if pass_ == "step" else forward_graph)(call, cast) for call in (before, after)]
    if None in graphs:
        return Expected(reason="the layer cannot be recorded by itself")
    mode = "training" if pass_ == "step" else "inference"
    alone = replace(s.settings, fusion="none", bn="kept", execution="eager", mode=mode, optimizer="none")
    known: list[Graph] = [g for g in graphs if g is not None]
    return _compared(*(predict(g, s.hardware, alone, s.plan.dtype) for g in known))
