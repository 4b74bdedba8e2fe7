"""What was analysed, what could not be counted (first of all), and the verdict in three sentences."""

from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Table
from rooflens.report.sections.ranking import is_fused, ranked, units_of
from rooflens.units import show

ZONE_WORDS = {
    "memory-bound": "it waits for memory",
    "compute-bound": "it keeps the arithmetic units busy",
    "ridge": "memory and arithmetic are in balance",
}
_LIMITS = {"compute-bound": "compute", "memory-bound": "memory"}


def title(document: dict[str, Any]) -> tuple[Block, ...]:
    s, hardware = document["settings"], document["hardware"]
    chip = f" on {hardware['name']}" if hardware else ""
    batch = f", batch {s['batch']}" if s["batch"] is not None else ""
    facts = f"{s['dtype']}{batch}, {s['mode']}" + (f" with {s['optimizer']}" if s["mode"] == "training" else "")
    return (Heading(text=f"{document['model']['name']}{chip} ({facts}, {s['execution']}, fusion {s['fusion']})"),)


def opaque(document: dict[str, Any]) -> tuple[Block, ...]:
    c = document["coverage"]
    if not c["opaque"]:
        return ()
    named = ", ".join(f"{o['count']} x {o['kind']} (such as {o['example']})" for o in c["opaque"])
    text = (
        f"Not counted: {named}. Their work is unknown, so every total below is a lower bound; "
        f"{c['share_counted']:.1%} of the ops are counted."
    )
    return (Paragraph(text=text, tone="warning"),)


def totals(document: dict[str, Any]) -> tuple[Block, ...]:
    t, m = document["totals"], document["model"]
    rows = [
        ("kernels (ops)", f"{t['kernels']:,} ({t['ops']:,})"),
        ("parameters", f"{m['params']:,} ({show(m['param_bytes'], 'B')})"),
        ("work", f"{show(t['flops'], 'FLOP')} ({show(t['macs'], 'MAC')})"),
        ("bytes moved", f"{show(t['bytes'], 'B')} (in {show(t['input_bytes'], 'B')}, out {show(t['output_bytes'], 'B')}, "
                        f"weights {show(t['param_bytes'], 'B')})"),
        ("intensity", f"{_number(t['intensity_flop_per_byte'])} FLOP/byte"),
    ]  # fmt: skip
    if is_fused(document):
        before = document["fusion"]["before"]
        rows.insert(1, ("unfused", f"{before['kernels']:,} kernels that move {show(before['bytes'], 'B')}"))
    if document["hardware"]:
        rows += [
            (
                "device time",
                _about(document, t["device_time_s"]) + _between(t),
            ),
            (
                "latency",
                f"{_about(document, t['latency_s'])} with launches" if t["latency_s"] is not None else "unknown",
            ),
            ("throughput", f"at most {show(t['throughput_per_s'], '')}/s" if t["throughput_per_s"] else "unknown"),
        ]
    columns = (Column(name="total"), Column(name=""))
    return (Table(columns=columns, rows=tuple(rows)),)


def _about(document: dict[str, Any], time_s: float | None) -> str:
    """A time that rests on measurements is a forecast, another one a floor."""
    if time_s is None:
        return "unknown"
    return f"{'about' if document['hardware']['calibrated'] else 'at least'} {show(time_s, 's')}"


def _between(totals: dict[str, Any]) -> str:
    low, high = totals["device_time_low_s"], totals["device_time_high_s"]
    if low is None or high is None:
        return ""
    return f" ({show(low, 's', 3)} to {show(high, 's', 3)}, {totals['confidence']} confidence)"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def verdict(document: dict[str, Any]) -> tuple[Block, ...]:
    """Three sentences for a newcomer: where the time goes, what is heaviest, what to do first."""
    if document["hardware"] is None:
        return (
            Paragraph(
                text="No chip was named, so only counts are given: add --on h100-sxm (or another id of "
                "'rooflens hardware list') for times and zones."
            ),
        )
    if document["totals"]["device_time_s"] is None:
        why = " ".join(f"{n}." for n in document["notes"] if "unknown" in n)
        return (Paragraph(text=f"No time can be given: {why or 'a rate of this chip is not published.'}"),)
    sentences = [_where(document), _heaviest(document), _first_step(document)]
    return (Heading(text="Verdict"), Paragraph(text=" ".join(s for s in sentences if s)))


def _where(document: dict[str, Any]) -> str:
    t, name = document["totals"], document["hardware"]["name"]
    if t["launch_bound"]:
        return (
            f"Most of the time {name} would wait for the host: its work takes {show(t['device_time_s'], 's')}, starting "
            f"{t['kernels']} kernels one by one stretches that to {show(t['latency_s'], 's')}."
        )
    spent = _by_bound(document)
    what = "units" if is_fused(document) else "layers"
    parts = " and ".join(f"{_share(share)} in {what} limited by {bound}" for bound, share in spent)
    return f"{name} needs {_about(document, t['device_time_s'])}: {parts}."


def _share(value: float) -> str:
    """What is something is not called nothing."""
    return "under 1%" if 0 < value < 0.01 else f"{value:.0%}"


def _by_bound(document: dict[str, Any]) -> list[tuple[str, float]]:
    spent: dict[str, float] = {}
    for row in units_of(document):
        if row["share"]:
            bound = _LIMITS.get(row["zone"], "both alike")
            spent[bound] = spent.get(bound, 0.0) + row["share"]
    return sorted(spent.items(), key=lambda item: -item[1])[:2]


def _heaviest(document: dict[str, Any]) -> str:
    rows = ranked(document)
    if not rows or rows[0][1]["intensity_flop_per_byte"] is None:
        return ""
    row, what = rows[0][1], "unit" if is_fused(document) else "layer"
    ridge = f", the chip balances at {row['ridge_flop_per_byte']:.3g}" if row["ridge_flop_per_byte"] else ""
    return (
        f"The heaviest {what} is {row['label']} ({_share(row['share'] or 0.0)}): it does {row['intensity_flop_per_byte']:.3g} "
        f"operations per byte{ridge}, so {ZONE_WORDS.get(row['zone'], 'its zone is unknown')}."
    )


def _first_step(document: dict[str, Any]) -> str:
    useful = [
        a for a in document["advice"] if a["move"] != "roof" and a["gain_s"] > 0 and not a["target"].startswith("kind")
    ]
    if not useful:
        return "No change that is tried here makes it quicker on this chip."
    a = useful[0]
    return f"The change that gains most is to {_verb(a)}: {show(a['gain_s'], 's')} less ({_share(a['gain_share'])})."


def _verb(advice: dict[str, Any]) -> str:
    return f"run a {advice['action']}" if advice["action"].startswith("batch") else str(advice["action"])
