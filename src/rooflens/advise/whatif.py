"""A Prediction in, Advice out: each change is tried by running the pipeline again with it, never by a rule of thumb.

Three ways to move a dot: right (fewer bytes per operation), up (use the chip better), roof (a better chip). Gains are in
seconds of device time; only the advice on launches, which the device does not see, is in seconds of latency.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from rooflens.errors import RooflensError
from rooflens.estimate.roofline import are_comparable
from rooflens.fusion.partition import LEVELS, Group, Partition, partition
from rooflens.graph.records import BITS, retyped
from rooflens.hardware.records import Hardware, with_fact
from rooflens.hardware.roofs import floor_time_s
from rooflens.pipeline.run import Prediction, predict, price
from rooflens.units import show

BATCH_STEP = 8
ROUNDING = 1e-9  # sums in another order differ by less than this


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    target: str  # what changes: the model, the run, the chip, or one kind of layer
    move: str  # right | up | roof
    action: str
    why: str
    gain_of: str  # device_time_s | latency_s: what the gain comes off
    gain_s: float
    gain_share: float


def advise(base: Prediction) -> tuple[Advice, ...]:
    """Sorted by gain; empty where the chip's times are unknown."""
    if base.hardware is None or time_of(base) is None:
        return ()
    found = [advice for rule in RULES for advice in rule(base)]
    return tuple(sorted(found, key=lambda a: (-a.gain_s, a.target, a.action)))


def time_of(prediction: Prediction) -> float | None:
    return prediction.estimate.device_time_s if prediction.estimate else None


def _advice(
    base: Prediction, changed: Prediction, target: str, move: str, action: str, why: str, per: float = 1.0
) -> Iterator[Advice]:
    """`per`: how many of the base run's worth of work the changed run does."""
    yield from _gain(time_of(base), _comparable_s(base, changed), target, move, action, why, per)


def _comparable_s(base: Prediction, changed: Prediction) -> float | None:
    """Of a change that no profile knows, as far from its roof as what is known of the base."""
    b, c = base.estimate, changed.estimate
    if b is None or c is None or c.roofline_time_s is None or not b.roofline_time_s or are_comparable(b, c):
        return time_of(changed)
    return c.roofline_time_s * (b.device_time_s or 0.0) / b.roofline_time_s


def _gain(
    before: float | None,
    after: float | None,
    target: str,
    move: str,
    action: str,
    why: str,
    per: float = 1.0,
    of: str = "device_time_s",
) -> Iterator[Advice]:
    if before and after is not None:
        gain = before - after / per
        gain = 0.0 if abs(gain) < ROUNDING * before else gain
        yield Advice(
            target=target, move=move, action=action, why=why, gain_of=of, gain_s=gain, gain_share=gain / before
        )


def _lower_precision(base: Prediction) -> Iterator[Advice]:
    hardware = base.hardware
    assert hardware is not None
    if base.dtype not in BITS:
        return
    for dtype in _narrower(hardware, base.dtype, base.settings.training):
        graph = base.graph if dtype == "tf32" else retyped(base.graph, dtype, dtype)
        settings = replace(base.settings, dtype=dtype)
        why = (
            "the same tensors at fewer bytes"
            if dtype != "tf32"
            else "matrix units take fp32 tensors at reduced precision"
        )
        move = "up" if dtype == "tf32" else "right"
        make = partial(predict, graph, hardware, settings, dtype)
        yield from _try(base, make, "model", move, f"compute in {dtype}", why)


def _try(
    base: Prediction, make: Callable[[], Prediction], target: str, move: str, action: str, why: str
) -> Iterator[Advice]:
    """A change that this chip refuses is no advice."""
    try:
        changed = make()
    except RooflensError:
        return
    yield from _advice(base, changed, target, move, action, why)


def _narrower(hardware: Hardware, dtype: str, training: bool) -> list[str]:
    """tf32 for fp32, then one 16-bit type, then the 8-bit ones, of those that the chip has a rate for. Gradients span
    too many powers of two for int8, so nobody trains in it."""
    have = {p.dtype for p in hardware.peaks if p.flop_per_s is not None}
    found = ["tf32"] if dtype == "fp32" and "tf32" in have else []
    for names in (("bf16", "fp16"), ("fp8",), ("int8",) if not training else ()):
        found += [n for n in names if n in have and BITS[n] < BITS[dtype]][:1]
    return found


def _compressed_weights(base: Prediction) -> Iterator[Advice]:
    if base.settings.weight_density < 1 or base.settings.sparsity != "none" or base.settings.training:
        return
    half = replace(base.settings, weight_density=0.5)
    why = "weights stored at half their size and expanded on chip"
    yield from _try(
        base,
        lambda: predict(base.graph, base.hardware, half, base.dtype),
        "model",
        "right",
        "compress weights to 50 %",
        why,
    )
    assert base.hardware is not None
    if base.hardware.value(f"peak.{base.dtype}.matrix_sparse"):
        sparse = replace(base.settings, sparsity="2:4")
        why = "two of four weights kept: half the weight bytes and the sparse matrix rate"
        yield from _try(
            base,
            lambda: predict(base.graph, base.hardware, sparse, base.dtype),
            "model",
            "right",
            "prune weights 2:4",
            why,
        )


def _larger_batch(base: Prediction) -> Iterator[Advice]:
    """Activations and work grow with the batch, weights are read once for all of it."""
    if base.settings.training or not base.sheet.rows:
        return
    changed = price(_scaled(base.partition, BATCH_STEP), base.hardware, base.settings, base.dtype)
    why = "weights are read once for the whole batch: gain per sample, the batch itself takes longer"
    yield from _advice(base, changed, "run", "right", f"batch {BATCH_STEP} times larger", why, per=float(BATCH_STEP))


def _scaled(groups: Partition, by: int) -> Partition:
    def scale(group: Group) -> Group:
        r = group.cost
        cost = r._replace(
            macs=r.macs * by,
            alu=r.alu * by,
            special=r.special * by,
            input_bytes=r.input_bytes * by,
            output_bytes=r.output_bytes * by,
        )
        work = tuple((unit, dtype, flops * by) for unit, dtype, flops in group.work)
        return replace(group, cost=cost, work=work)

    return replace(groups, groups=tuple(scale(g) for g in groups.groups))


def _fusion(base: Prediction) -> Iterator[Advice]:
    """Every level beyond the one in force that keeps more on the chip than the level before it."""
    e, level, least = base.estimate, base.partition.level, _bytes(base.partition)
    for further in LEVELS[LEVELS.index(level) + 1 :]:
        groups = partition(base.sheet, further, base.hardware, base.settings.execution)
        if groups.level != further:  # the chip does not say what fits
            continue
        if _bytes(groups) >= least:
            continue
        least = _bytes(groups)
        changed = price(groups, base.hardware, base.settings, base.dtype)
        saved = _bytes(base.partition) - least
        kernels = len(base.partition.groups) - len(groups.groups)
        less = f"{show(saved, 'B')} less to move and {kernels} units fewer to start"
        why = f"{less}{_also(base, changed)}; see 'rooflens fuse --fusion {further}'"
        if e is not None:
            yield from _advice(base, changed, "model", "right", f"fuse ({further})", why)


def _also(base: Prediction, changed: Prediction) -> str:
    """What the device's time does not tell: work that tiles do again, and launches that nobody waits for any more."""
    before, after = base.estimate, changed.estimate
    again = sum(g.extra_macs for g in changed.partition.groups) - sum(g.extra_macs for g in base.partition.groups)
    told = f", {show(again, 'MAC')} computed again where tiles overlap" if again else ""
    if before and after and before.latency_s is not None and after.latency_s is not None:
        told += f"; latency {show(before.latency_s - after.latency_s, 's', 3)} less"
    return told


def _bytes(groups: Partition) -> int:
    return sum(g.cost.bytes for g in groups.groups)


def _graph_launch(base: Prediction) -> Iterator[Advice]:
    if base.settings.execution != "eager" or base.estimate is None or base.estimate.latency_s is None:
        return
    settings = replace(base.settings, execution="graph")
    changed = price(base.partition, base.hardware, settings, base.dtype)
    why = "all kernels start at once (a CUDA graph on NVIDIA): gain in latency, the device works as before"
    after = changed.estimate.latency_s if changed.estimate else None
    yield from _gain(
        base.estimate.latency_s, after, "run", "up", "launch through a recorded graph", why, of="latency_s"
    )


def _roofs(base: Prediction) -> Iterator[Advice]:
    hardware = base.hardware
    assert hardware is not None
    level = hardware.offchip
    if level is not None and level.bandwidth_bytes_per_s:
        faster = _doubled(hardware, f"memory.{level.level}.bandwidth")
        yield from _chip(
            base,
            faster,
            "twice the memory bandwidth",
            f"{level.level} at {show(2 * level.bandwidth_bytes_per_s, 'B/s')}",
        )
    peaks = [f.key for f in hardware.facts if f.key.startswith("peak.") and f.value is not None]
    yield from _chip(base, _doubled(hardware, *peaks), "twice the clock", "every compute peak doubled, memory as it is")
    yield from _chip(
        base,
        _doubled(hardware, *peaks),
        f"twice the {hardware.unit_name}s",
        "every compute peak doubled, memory as it is",
    )


def _doubled(hardware: Hardware, *keys: str) -> Hardware:
    for key in keys:
        hardware = with_fact(hardware, key, 2 * (hardware.value(key) or 0.0), "what-if: doubled")
    return hardware


def _chip(base: Prediction, hardware: Hardware, action: str, why: str) -> Iterator[Advice]:
    yield from _try(
        base, lambda: price(base.partition, hardware, base.settings, base.dtype), "chip", "roof", action, why
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KindGain:
    """One kind of layer: its share of the time that the ops take one by one, what accelerating it alone, its memory as
    it is, would gain, and what it no longer costs once it is fused into its neighbours."""

    kind: str
    count: int
    time_s: float
    share: float
    gain_s: float
    fused_gain_s: float
    bound: str


def kind_gains(base: Prediction) -> tuple[KindGain, ...]:
    """Heaviest first. Free arithmetic leaves the time of the bytes, which is why a ReLU alone is not worth it."""
    e, hardware = base.alone, base.hardware
    if e is None or hardware is None or not e.device_time_s:
        return ()
    bandwidth = hardware.offchip.bandwidth_bytes_per_s if hardware.offchip else None
    gone = _gone_when_fused(base)
    spent: dict[str, list[float]] = {}
    for place, (op, row, time) in enumerate(zip(base.graph.ops, base.sheet.rows, e.groups, strict=True)):
        if not op.view and time.device_time_s is not None:
            floor = floor_time_s(0, row.bytes, None, bandwidth) or 0.0
            reached = time.device_time_s / time.roofline_time_s if time.roofline_time_s else 1.0
            left = min(floor * reached, time.device_time_s)  # as far from the roof as it was
            entry = spent.setdefault(op.kind, [0.0, 0.0, 0.0, 0.0])
            entry[0] += 1
            entry[1] += time.device_time_s
            entry[2] += time.device_time_s - left
            entry[3] += gone.get(place, 0.0)
    total = e.device_time_s
    rows = (
        KindGain(
            kind=k,
            count=int(n),
            time_s=t,
            share=t / total,
            gain_s=g,
            fused_gain_s=f,
            bound="compute" if g > t / 2 else "memory",
        )
        for k, (n, t, g, f) in spent.items()
    )
    return tuple(sorted(rows, key=lambda r: (-r.time_s, r.kind)))


def _gone_when_fused(base: Prediction) -> dict[int, float]:
    """By place: what a group gains over its members one by one, shared out among all members but the heaviest, by
    their own times. At level `none` the groups of the next level are asked."""
    fused = base
    if base.partition.level == "none":
        fused = price(partition(base.sheet, "chain"), base.hardware, base.settings, base.dtype)
    assert fused.estimate is not None and base.alone is not None
    found: dict[int, float] = {}
    for group, time in zip(fused.partition.groups, fused.estimate.groups, strict=True):
        times = {place: base.alone.groups[place].device_time_s or 0.0 for place in group.ops}
        rest = sum(times.values()) - max(times.values())
        if rest and time.device_time_s is not None:
            heaviest = max(times, key=lambda place: times[place])
            gain = sum(times.values()) - time.device_time_s
            found.update({place: gain * t / rest for place, t in times.items() if place != heaviest})
    return found


def _kinds_alone(base: Prediction) -> Iterator[Advice]:
    before = base.alone.device_time_s if base.alone else None
    for row in kind_gains(base):
        why = f"{row.count} in all, {row.share:.1%} of device time one by one, limited by {row.bound}"
        if row.fused_gain_s > ROUNDING * row.time_s:
            why += f"; fused into its neighbours it gains {show(row.fused_gain_s, 's', 3)}"
        after = None if before is None else before - row.gain_s
        yield from _gain(before, after, f"kind {row.kind}", "up", f"accelerate {row.kind} alone", why)


RULES = (_lower_precision, _compressed_weights, _larger_batch, _fusion, _graph_launch, _roofs, _kinds_alone)
