"""A partition, and what its layers or a compiler's kernels took, in; the time of each of its units out.

In eager mode nothing runs a unit as one: its time is the sum of its layers. Compiled, it is that of the kernels that compute
it. A kernel that computes ops of several units is shared out by the bytes of those ops, each as if it ran by itself; an op
that several kernels compute counts in each with its part.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rooflens.compare.standing import GroupRow, KernelRow, Row, standing, work_of_group
from rooflens.fusion.edges import groups_of
from rooflens.pipeline.run import Prediction

if TYPE_CHECKING:
    from rooflens.benches.measurement import CompiledRun
    from rooflens.benches.sampling import Samples

SUM = "sum of its members"
KERNEL, KERNELS = "kernel", "kernels"
SHARE, SHARES = "share of a kernel, by bytes", "share of kernels, by bytes"
FOLDED = "no kernel: the compiler folded it away, or needs none"
UNKNOWN = "no kernel: its ops were not found in what was compiled"
UNSEEN = "no time: a kernel of it was not seen when it ran"
FAILED = "no time: the compiled model did not run"

Shares = dict[int, float]  # of kernels, by their place


def in_eager(p: Prediction, rows: Iterable[Row], device: str) -> tuple[GroupRow, ...]:
    alone = _alone(rows)
    if p.settings.execution == "compiled":  # the run ended before there was a compiled model
        return tuple(_row(p, n, device, FAILED, (), alone, None) for n in _units(p))
    return tuple(_row(p, n, device, SUM, (), alone, _members(p, n, alone)) for n in _units(p))


def in_kernels(
    p: Prediction, made_of: Mapping[int, frozenset[int]], run: "CompiledRun", rows: Iterable[Row], device: str
) -> tuple[tuple[GroupRow, ...], tuple[KernelRow, ...]]:
    """`made_of`: by place of an op, the numbers of the kernels that compute it; without an entry it is not known."""
    alone = _alone(rows)
    shares = _shares(p, made_of, run)
    groups = tuple(_compiled_row(p, n, device, made_of, shares.get(n, {}), run, alone) for n in _units(p))
    return groups, tuple(_kernel(p, place, shares, run) for place in range(len(run.kernels)))


def _units(p: Prediction) -> list[int]:
    """Those that run something."""
    ops = p.partition.sheet.graph.ops
    return [n for n, g in enumerate(p.partition.groups) if any(not ops[i].view for i in g.ops)]


# which kernels


def _shares(p: Prediction, made_of: Mapping[int, frozenset[int]], run: "CompiledRun") -> dict[int, Shares]:
    """By number of the unit."""
    calls = {number: place for place, kernel in enumerate(run.kernels) for number in kernel.numbers}
    of, weights = groups_of(p.partition), dict[int, dict[int, float]]()
    for op, numbers in made_of.items():
        where = {calls[n] for n in numbers if n in calls}
        for place in where:
            units = weights.setdefault(place, {})
            units[of[op]] = units.get(of[op], 0.0) + p.sheet.rows[op].bytes / len(where)
    found: dict[int, Shares] = {}
    for place, units in sorted(weights.items()):
        total = sum(units.values())
        for unit, weight in units.items():
            found.setdefault(unit, {})[place] = weight / total if total else 1 / len(units)
    return found


def _how(
    p: Prediction, number: int, made_of: Mapping[int, frozenset[int]], shares: Shares, run: "CompiledRun", seen: bool
) -> str:
    if run.whole.status != "ok":
        return FAILED
    if not shares:
        ops = p.partition.sheet.graph.ops
        mine = [i for i in p.partition.groups[number].ops if not ops[i].view]
        return FOLDED if all(i in made_of for i in mine) else UNKNOWN
    if not seen:
        return UNSEEN
    if all(share == 1 for share in shares.values()):
        return KERNEL if len(shares) == 1 else KERNELS
    return SHARE if len(shares) == 1 else SHARES


def _compiled_row(
    p: Prediction,
    number: int,
    device: str,
    made_of: Mapping[int, frozenset[int]],
    shares: Shares,
    run: "CompiledRun",
    alone: dict[str, Row],
) -> GroupRow:
    samples = run.samples_of(shares)
    how = _how(p, number, made_of, shares, run, samples is not None)
    names = tuple(run.kernels[place].name for place in sorted(shares))
    return _row(p, number, device, how, names, alone, samples.median_s if samples else None, samples)


def _kernel(p: Prediction, place: int, shares: dict[int, Shares], run: "CompiledRun") -> KernelRow:
    kernel = run.kernels[place]
    return KernelRow(
        name=kernel.name,
        what=kernel.what,
        groups=tuple(_id(p, number) for number in sorted(shares) if place in shares[number]),
        samples=run.samples_of({place: 1.0}),
    )


# what it takes


def _alone(rows: Iterable[Row]) -> dict[str, Row]:
    """By each op that it stands for. Backward passes bear the names of the ops that they belong to, and are no members."""
    return {op: row for row in rows if row.layer.pass_ == "forward" for op in row.ids}


def _members(p: Prediction, number: int, alone: dict[str, Row]) -> float | None:
    """None where one of them has no time, or does more than belongs to the unit."""
    ids = _ids(p, number)
    rows = {id(alone[i]): alone[i] for i in ids if i in alone}.values()
    times = [r.layer.alone.samples.median_s if r.layer.alone.samples else None for r in rows]
    whole = all(i in alone for i in ids) and all(set(r.ids) <= set(ids) for r in rows)
    return sum(t for t in times if t is not None) if whole and all(t is not None for t in times) else None


def _row(
    p: Prediction,
    number: int,
    device: str,
    how: str,
    kernels: tuple[str, ...],
    alone: dict[str, Row],
    time_s: float | None,
    samples: "Samples | None" = None,
) -> GroupRow:
    work = work_of_group(p, number, device)
    return GroupRow(
        id=_id(p, number),
        ids=_ids(p, number),
        how=how,
        kernels=kernels,
        time_s=time_s,
        samples=samples,
        members_s=_members(p, number, alone),
        work=work,
        standing=standing(time_s, work, p.hardware) if time_s else None,
    )


def _id(p: Prediction, number: int) -> str:
    return p.graph.ops[p.partition.groups[number].ops[0]].id


def _ids(p: Prediction, number: int) -> tuple[str, ...]:
    return tuple(p.graph.ops[i].id for i in p.partition.groups[number].ops if not p.graph.ops[i].view)
