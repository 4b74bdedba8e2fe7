"""An analysis document in, what fusion did to it in three sentences that need no knowledge of compilers out."""

from typing import Any

from rooflens.report.blocks import Block, Heading, Paragraph
from rooflens.report.sections.fusion import cut_edges
from rooflens.report.sections.ranking import is_fused
from rooflens.units import show

# The reasons of `fusion/rules.py` by how they begin, the first that fits, for whoever meets them for the first time.
REASON_WORDS = {
    "fork": "another op reads it too, so that it must be written anyway",
    "join order (cycle through the outside": "another kernel must run between the two",
    "join order": "its reader waits for another branch as well",
    "capacity": "what would have to stay on the chip does not fit there",
    "unlisted pair (shape": "the two go over different numbers of elements",
    "unlisted pair (level none": "nothing is fused at this level",
    "unlisted pair": "no rule lets one kernel do both",
    "graph output": "it is a result of the model, which must be written",
    "saved for backward": "the backward pass reads it later",
    "dtype change": "the type changes between them",
    "opaque op": "one of the two is an op whose work is unknown",
}


def verdict(document: dict[str, Any]) -> tuple[Block, ...]:
    sentences = _done(document) if is_fused(document) else _possible(document)
    return Heading(text="Verdict"), Paragraph(text=" ".join(s for s in sentences if s))


def _done(document: dict[str, Any]) -> tuple[str, ...]:
    return _bytes(document), _time(document), _left(document)


def _kernels(count: int) -> str:
    return f"{count:,} kernel" if count == 1 else f"{count:,} kernels"


def _alone(count: int) -> str:
    return f"{_kernels(count)} {'runs by itself' if count == 1 else 'run one by one'}"


def _bytes(document: dict[str, Any]) -> str:
    f, name = document["fusion"], document["model"]["name"]
    before, after = f["before"], f["after"]
    if after["kernels"] == before["kernels"]:
        return f"Nothing of {name} can be fused at level {f['level']}: {_alone(before['kernels'])}."
    fewer = 1 - after["bytes"] / before["bytes"] if before["bytes"] else 0.0
    return (
        f"Fused, {name} runs as {_kernels(after['kernels'])} instead of {before['kernels']:,} and moves "
        f"{show(after['bytes'], 'B')} instead of {show(before['bytes'], 'B')} ({fewer:.1%} less) for {_work(f)}: what "
        "one op makes and the next one reads stays on the chip."
    )


def _work(f: dict[str, Any]) -> str:
    before, after = f["before"]["flops"], f["after"]["flops"]
    return "the same work" if after == before or not before else f"{after / before - 1:.1%} more work, computed again"


def _time(document: dict[str, Any]) -> str:
    f, hardware = document["fusion"], document["hardware"]
    if hardware is None:
        return "No chip was named: add --on h100-sxm (or another id of 'rooflens hardware list') for times."
    saved = [
        f"{show(seconds, 's')} of {what}"
        for seconds, what in ((f["saved_bandwidth_s"], "memory traffic"), (f["saved_launch_s"], "kernel launches"))
        if seconds
    ]
    if not saved or f["speedup"] is None:
        return f"How much time that saves on {hardware['name']} is not known." if f["speedup"] is None else ""
    return f"On {hardware['name']} that saves {' and '.join(saved)}: at best {f['speedup']:.2f}x as fast in all."


def _left(document: dict[str, Any]) -> str:
    edges = cut_edges(document)
    if not edges:
        return "No two kernels that follow each other are left apart."
    dearest, whole = edges[0], sum(e["bytes"] for e in edges)
    return (
        f"Of the {show(whole, 'B')} that still pass between kernels, most goes from {dearest['from']} to {dearest['to']} "
        f"({show(dearest['bytes'], 'B')}): {words_of(dearest['reason'])}."
    )


def words_of(reason: str | None) -> str:
    found = (words for start, words in REASON_WORDS.items() if (reason or "").startswith(start))
    return next(found, reason or "no reason is given")


def _possible(document: dict[str, Any]) -> tuple[str, ...]:
    """Nothing is fused: what the edges carry, and what the levels would gain where a chip says what bytes cost."""
    f, edges = document["fusion"], cut_edges(document)
    first = (
        f"At level none nothing is fused: {_alone(f['before']['kernels'])} and "
        f"{'moves' if f['before']['kernels'] == 1 else 'move'} {show(f['before']['bytes'], 'B')}."
    )
    carried = show(sum(e["bytes"] for e in edges), "B")
    second = f"Of these, {carried} only pass from one kernel to the next: the most that fusing can save."
    return first, second if edges else "", _levels(document)


def _levels(document: dict[str, Any]) -> str:
    found = [
        f"{a['action'].removeprefix('fuse ').strip('()')} {show(a['gain_s'], 's')} ({a['gain_share']:.0%})"
        for a in document["advice"]
        if a["action"].startswith("fuse (")
    ]
    if not found:
        return "Add --fusion chain to see what can be done about it."
    return f"What each level would take off the device time: {', '.join(found)}."
