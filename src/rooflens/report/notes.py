"""A Prediction in, the sentences that stand beside its numbers out: what was assumed, and what a reader should know."""

from rooflens.hardware.lint import lint
from rooflens.hardware.records import Hardware
from rooflens.pipeline.run import Prediction
from rooflens.units import show


def assumptions_of(p: Prediction) -> list[str]:
    found = []
    if p.hardware is not None:
        found.append(_times(p.hardware))
        if p.hardware.hypothetical:
            found.append(
                f"{p.hardware.id} is a hypothetical machine: {p.hardware.note or 'its figures are assumptions'}"
            )
    if p.settings.training and p.settings.step != "none":
        found.append(f"{p.settings.step} updates each parameter in one fused kernel, its state in the parameter's type")
    if p.settings.execution == "compiled" and p.hardware is not None:
        found.append("compiled kernels are started one by one, at the cost of an eager launch each")
    return found


def _times(hardware: Hardware) -> str:
    profile, whose = hardware.profile, "measured" if hardware.measured else "published"
    if profile is None:
        return f"compulsory traffic at {whose} peaks: times are floors, not forecasts"
    versions = ", ".join(f"{name} {version}" for name, version in profile.versions)
    return (
        f"device times by what classes of ops reached on {profile.device} on {profile.date[:10]} ({versions}); --uncalibrated "
        "gives floors"
    )


def notes_of(p: Prediction) -> list[str]:
    if p.hardware is None or p.estimate is None:
        return list(p.partition.notes)
    sentence = ridge_sentence(p)
    warnings = [f"{f.key}: {f.message}" for f in lint((p.hardware,)) if f.severity == "warning"]
    notes = [
        *p.partition.notes,
        *_fits(p),
        *([sentence] if sentence else []),
        *warnings,
        *_unknown_rates(p),
        *_fallbacks(p),
        *_never_calibrated(p),
        *_sparse(p),
    ]
    if p.estimate.device_time_s is not None and p.estimate.latency_s is None:
        source = p.hardware.fact(f"launch.{p.settings.execution}")
        notes.append(
            f"latency is unknown: no launch cost for {p.hardware.id} ({source.source if source else 'none given'})"
        )
    return notes


def _fits(p: Prediction) -> list[str]:
    """The weights, and what any one kernel touches, must be in the off-chip memory at once."""
    level = p.hardware.offchip if p.hardware else None
    if p.hardware is None or level is None or level.capacity_bytes is None:
        return []
    heaviest = max((g.cost.bytes for g in p.partition.groups), default=0)
    needed = max(heaviest, p.graph.param_bytes)
    if needed <= level.capacity_bytes:
        return []
    have = show(level.capacity_bytes, "B")
    return [f"does not fit: needs at least {show(needed, 'B')} at once, {p.hardware.id} has {have} of {level.level}"]


def _sparse(p: Prediction) -> list[str]:
    h = p.hardware
    if h is None or p.settings.sparsity == "none" or any(f.key.endswith(".matrix_sparse") and f.value for f in h.facts):
        return []
    return [f"{h.id} has no sparse rate: 2:4 weights save bytes and no time of the matrix unit"]


def _unknown_rates(p: Prediction) -> list[str]:
    """Why a time is null: the rate that it needs is not published."""
    h, e = p.hardware, p.estimate
    assert h is not None and e is not None
    found: dict[str, None] = {}
    if p.sheet.coverage.opaque:
        count = sum(n for _, n, _ in p.sheet.coverage.opaque)
        found[f"times unknown: {count} op{'s' * (count > 1)} could not be counted"] = None
    if h.offchip is None or h.offchip.bandwidth_bytes_per_s is None:
        fact = h.fact(f"memory.{h.offchip.level}.bandwidth") if h.offchip else None
        found[f"times are unknown: no off-chip bandwidth for {h.id} ({fact.source if fact else 'none given'})"] = None
    for ceiling, flops in (part for parts in e.mapping.parts for part in parts):
        if ceiling.flop_per_s is None and flops:
            fact = h.fact(f"peak.{ceiling.dtype}.{ceiling.unit}")
            why = fact.source if fact else "none given"
            found[f"times of {ceiling.dtype} {ceiling.unit} work are unknown on {h.id}: {why}"] = None
    return list(found)


def _fallbacks(p: Prediction) -> list[str]:
    """Work that is priced at another type's rate, because this chip has none for its own."""
    e = p.estimate
    assert e is not None and p.hardware is not None
    pairs = {
        (dtype, unit, c.dtype, c.unit)
        for group, parts in zip(p.partition.groups, e.mapping.parts, strict=True)
        for (unit, dtype, _), (c, _) in zip(group.work, parts, strict=True)
        if c.flop_per_s is not None and (dtype, unit) != (c.dtype, c.unit)
    }
    return [f"{d} {u} work runs at the {cd} {cu} rate of {p.hardware.id}" for d, u, cd, cu in sorted(pairs)]


def _never_calibrated(p: Prediction) -> list[str]:
    if p.hardware is None or p.hardware.profile is None or p.estimate is None:
        return []
    kernels = [g for g in p.estimate.groups if g.confidence is not None]
    floors = [g for g in kernels if g.high_s is None]
    if not floors:
        return []
    return [
        f"{len(floors)} of {len(kernels)} kernels are of classes never calibrated on {p.hardware.id}: their times are floors"
    ]


def ridge_sentence(p: Prediction) -> str | None:
    """What this chip's ridge demands of a layer, for the type and unit that most of the work runs on."""
    e, h = p.estimate, p.hardware
    if e is None or h is None or h.offchip is None:
        return None
    timed = [g for g in e.groups if g.ridge is not None]
    if not timed:
        return None
    main = max(timed, key=lambda g: g.ridge or 0.0)
    below = sum(g.zone == "memory-bound" for g in timed)
    return (
        f"{h.id} balances at {main.ridge:.4g} FLOP/byte for {main.dtype} on its {main.unit} unit: a layer must do that many "
        f"operations for every byte it moves from {h.offchip.level} to keep that unit busy; {below} of {len(timed)} kernels "
        "stay below their ridge"
    )
