"""A measurement document in, Blocks out: what was measured on what, where each layer stands under its roof, what the whole
run takes beyond its layers, what failed, and what lies above its roof."""

from dataclasses import replace
from typing import Any

from rooflens.report.blocks import Arrow, Block, Column, Dot, Heading, Paragraph, Roofline, Table
from rooflens.report.sections.chart import roofline_of
from rooflens.units import show

SHOWN = 30
WIDE_GAP = 0.3  # of the whole, from which on what happens between the layers is said first
_PASS = {"forward": "fwd", "backward": "bwd"}
_MOVES = {
    "up": "up: closer to its roof, by a better kernel, layout or fewer launches",
    "right": "right: fewer bytes per operation, by fusing or a narrower type",
    "roof": "roof: it is close to what this machine can do",
}
Document = dict[str, Any]
Row = dict[str, Any]


def title(d: Document) -> tuple[Block, ...]:
    m, s = d["measured"], d["settings"]
    batch = f", batch {s['batch']}" if s["batch"] is not None else ""
    return (Heading(text=f"{d['model']['name']} measured on {m['device_name']} ({s['dtype']}{batch}, {s['mode']})"),)


def problems(d: Document) -> tuple[Block, ...]:
    """What failed comes first: it is missing from every sum below."""
    bad = [r for r in d["measured"]["ops"] if r["status"] in ("failed", "oom")]
    lines = [f"{r['id']} ({r['pass']}): {r['status']}: {r['reason']}" for r in bad]
    lines += [f"whole {w['pass']}: {w['status']}: {w['reason']}" for w in d["measured"]["whole"] if w["reason"]]
    if _is_busy(d):
        m = d["measured"]
        lines.insert(
            0, f"most layers are inconclusive, because other processes ran meanwhile (load {m['load_before']} before, "
            f"{m['load_after']} after): measure again when nothing else runs",
        )  # fmt: skip
    if d["measured"]["stopped_by"]:
        lines.insert(0, "the run was interrupted: what follows was finished before")
    return tuple(Paragraph(text=line, tone="warning") for line in lines)


def _is_busy(d: Document) -> bool:
    """Whether more is disturbed than not."""
    rows = measured_rows(d)
    return bool(rows) and sum(bool(r["inconclusive"]) for r in rows) > len(rows) / 2


def verdict(d: Document) -> tuple[Block, ...]:
    rows = measured_rows(d)
    if not rows:
        return (Paragraph(text="Nothing was measured.", tone="warning"),)
    sentences = [_total(d), _worst(d), _which_way(rows)]
    return Heading(text="Verdict"), Paragraph(text=" ".join(s for s in sentences if s))


def measured_rows(d: Document) -> list[Row]:
    """Slowest first."""
    return sorted((r for r in d["measured"]["ops"] if r["time_s"] is not None), key=lambda r: -r["time_s"])


def _total(d: Document) -> str:
    done = [w for w in d["measured"]["whole"] if w["time_s"] is not None]
    if not done:
        return ""
    told = " and ".join(f"{show(w['time_s'], 's', 3)} for {_named(w)}" for w in done)
    widest = max(done, key=lambda w: w["gap_share"] or 0.0)
    waits = ""
    if (widest["gap_share"] or 0.0) > WIDE_GAP:
        why = "the GPU waits for launches there" if d["measured"]["device"] == "cuda" else "Python and the framework"
        waits = f", and {widest['gap_share']:.0%} of {_named(widest)} pass between the layers: {why}"
    return f"The whole takes {told}{waits}."


_WHOLE = {"forward": "the forward pass", "step": "forward and backward together"}


def _named(w: Row) -> str:
    return _WHOLE[w["pass"]] + (", compiled" if w["execution"] == "compiled" else "")


def _wasted(row: Row) -> float:
    """By it and its equals."""
    if row["roofline_time_s"] is None:
        return 0.0
    return max(0.0, float(row["together_s"] * (1 - row["roofline_time_s"] / row["time_s"])))


def _worst(d: Document) -> str:
    name, row = max(shown_rows(d), key=lambda item: _wasted(item[1]))
    if d["hardware"] is None:
        return "No roof is known to hold the layers against: run 'rooflens machine' first, or name a chip with --on."
    if not _wasted(row):
        return "No layer takes longer than its roof allows."
    return (
        f"Most is to be had from {name} ({row['pass']}): it takes {show(row['time_s'], 's', 3)}, {row['distance']:.3g} "
        f"times what its roof allows, limited by {row['limited_by']}."
    )


def _which_way(rows: list[Row]) -> str:
    spent: dict[str, float] = {}
    for row in rows:
        if row["move"]:
            spent[row["move"]] = spent.get(row["move"], 0.0) + row["time_s"]
    if not spent:
        return ""
    move = max(sorted(spent), key=lambda k: spent[k])
    share = spent[move] / sum(spent.values())
    return f"{share:.0%} of the layers' time should move {_MOVES[move]}."


def shown_rows(d: Document) -> list[tuple[str, Row]]:
    """What each row is called, and the row: equal calls are one row, with how many there are. By the time of all of them
    together (`together_s`), heaviest first."""
    rows, equal = measured_rows(d), dict[tuple[str, str], list[Row]]()
    for row in rows:
        equal.setdefault((row["pass"], row["same_as"] or row["id"]), []).append(row)
    found = [
        (f"{same[0]['id']} x{len(same)}" if len(same) > 1 else same[0]["id"], {**same[0], "together_s": _sum(same)})
        for same in equal.values()
    ]
    return sorted(found, key=lambda item: -item[1]["together_s"])


def _sum(rows: list[Row]) -> float:
    return float(sum(row["time_s"] for row in rows))


def layers(d: Document) -> tuple[Block, ...]:
    rows = shown_rows(d)
    columns = (
        Column(name="#", numeric=True), Column(name="layer"), Column(name="pass"), Column(name="time", numeric=True),
        Column(name="±", numeric=True), Column(name="FLOP/s", numeric=True), Column(name="B/s", numeric=True),
        Column(name="of roof", numeric=True), Column(name="limit"), Column(name="predicted", numeric=True),
    )  # fmt: skip
    cells = tuple(
        (
            str(n), name, _PASS[row["pass"]], show(row["time_s"], "s", 3), _percent(row["spread"]),
            show(row["flop_per_s"], "", 3), show(row["bytes_per_s"], "", 3), of_roof(row), row["limited_by"] or "–",
            show(row["predicted_s"], "s", 3),
        )
        for n, (name, row) in enumerate(rows[:SHOWN], 1)
    )  # fmt: skip
    table = Table(
        columns=columns, rows=cells, elided=max(0, len(rows) - SHOWN), hint="see them with --format csv or json"
    )
    return Heading(text="Layers by themselves, heaviest first (xN: so many that do the same work)"), table


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def of_roof(row: Row) -> str:
    if row["roof_share"] is None:
        return "–"
    digits = 0 if row["roof_share"] >= 0.1 else 1
    return f"{row['roof_share']:.{digits}%}{'!' if row['above_roof'] else ''}"


def inside(d: Document) -> tuple[Block, ...]:
    """Layers that take another time inside the whole than by themselves."""
    rows = [r for _, r in shown_rows(d) if r["differs"]]
    if not rows:
        return ()
    columns = (
        Column(name="layer"), Column(name="pass"), Column(name="alone", numeric=True), Column(name="in the whole", numeric=True),
        Column(name="factor", numeric=True),
    )  # fmt: skip
    cells = tuple(
        (
            r["id"], _PASS[r["pass"]], show(r["time_s"], "s", 3), show(r["in_situ_s"], "s", 3),
            f"{r['in_situ_s'] / r['time_s']:.2f}x",
        )
        for r in rows[:10]
    )  # fmt: skip
    hint = "see them with --format csv or json"
    return Heading(text="More than 20 % apart, alone and in the whole"), Table(
        columns=columns, rows=cells, elided=max(0, len(rows) - 10), hint=hint
    )


def whole(d: Document) -> tuple[Block, ...]:
    """The sum of the layers against the whole run, the gap as its own row."""
    columns = (Column(name="run"), Column(name="time", numeric=True), Column(name="share", numeric=True))
    cells = [row for w in d["measured"]["whole"] for row in _whole_rows(w)]
    return (Heading(text="The whole and its layers"), Table(columns=columns, rows=tuple(cells))) if cells else ()


def _whole_rows(w: Row) -> list[tuple[str, ...]]:
    if w["time_s"] is None:
        return [(f"{_named(w)}: {w['status']}", "–", "–")]
    if w["execution"] == "compiled":
        shares = [("its kernels", w["kernels_s"]), ("gap: between the kernels, and before them", w["gap_s"])]
    else:
        shares = [
            (f"layers of {_named(w)}, inside it", w["layers_in_situ_s"]),
            ("gap: between the layers, and what belongs to none", w["gap_s"]),
            ("layers, each alone", w["layers_alone_s"]),
        ]
    first = (_named(w), show(w["time_s"], "s", 3), "100 %")
    return [first, *(
        (f"  {name}", _signed(value), "–" if value is None else f"{value / w['time_s']:.0%}") for name, value in shares
    )]  # fmt: skip


def _signed(value: float | None) -> str:
    if value is None:
        return "–"
    return show(value, "s", 3) if value >= 0 else f"-{show(-value, 's', 3)}"


def above(d: Document) -> tuple[Block, ...]:
    rows = [(name, r) for name, r in shown_rows(d) if r["above_roof"]]
    if not rows:
        return ()
    columns = (Column(name="layer"), Column(name="pass"), Column(name="of roof", numeric=True), Column(name="could be"))
    cells = tuple(
        (name, _PASS[r["pass"]], f"{r['roof_share']:.0%}", "; ".join(r["above_roof_reasons"])) for name, r in rows[:10]
    )
    table = Table(columns=columns, rows=cells, elided=max(0, len(rows) - 10), hint="see them with --format json")
    return Heading(text="Above their roof (above-roof, !): kept, and what could explain it"), table


def memory(d: Document) -> tuple[Block, ...]:
    done = [w for w in d["measured"]["whole"] if w["peak_memory_bytes"] is not None]
    lines = [f"Peak memory of {_named(w)}: {show(w['peak_memory_bytes'], 'B', 3)}." for w in done]
    return tuple(Paragraph(text=line) for line in lines)


def conditions(d: Document) -> tuple[Block, ...]:
    """What the reader must know to trust it."""
    m = d["measured"]
    switches = ", ".join(f"{k} {v}" for k, v in m["switches"].items())
    versions = ", ".join(f"{k} {v}" for k, v in m["versions"].items())
    rejected = sum(len(r["rejected"]) for r in m["ops"])
    unsure = [r["id"] for r in m["ops"] if r["inconclusive"]]
    roofs = f"roofs of {d['hardware']['name']}" if d["hardware"] else "no roofs"
    lines = [
        f"Measured {m['date']} on {m['device_name']}, {roofs}; {versions}; {switches}; pinned to CPU "
        f"{', '.join(map(str, m['pinned_cpus']))}; load {m['load_before']} before, "
        f"{m['load_after']} after; {rejected} samples rejected.",
        *_not_found(d),
        *([f"Inconclusive, with more than 10 % of their samples rejected: {_some(unsure)}."] if unsure else []),
        "Times are medians of each layer run by itself, warm; ± is half the distance of the quartiles.",
        *(f"Note: {n}." for n in (*m["notes"], *d["notes"])),
        *(f"Assumed: {a}." for a in d["assumptions"]),
    ]
    return tuple(Paragraph(text=line) for line in lines)


def _not_found(d: Document) -> list[str]:
    """Where the whole ran and yet did not call a layer as it was recorded."""
    ran = {w["pass"] for w in d["measured"]["whole"] if w["status"] == "ok" and w["execution"] == "eager"}
    needs = {"forward": "step" if d["settings"]["mode"] == "training" else "forward", "backward": "step"}
    rows = [r for r in d["measured"]["ops"] if r["status"] == "ok" and needs[r["pass"]] in ran]
    lost = [r["id"] for r in rows if not r["in_situ_samples_s"]]
    if not lost:
        return []
    return [
        f"Not found inside the whole, which goes another way there (such as the fast path of nn.MultiheadAttention): "
        f"{_some(lost)}; the gap holds their time."
    ]


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def chart(d: Document) -> tuple[Block, ...]:
    found = measured_chart(d)
    return (found,) if found is not None else ()


def measured_chart(d: Document) -> Roofline | None:
    """Measured dots, numbered as the table; the heaviest have an arrow from where they were predicted."""
    if d["hardware"] is None:
        return None
    rows = [(n, name, r) for n, (name, r) in enumerate(shown_rows(d), 1) if r["flops"] and r["bytes"]]
    total = sum(r["together_s"] for _, _, r in rows)
    under = frozenset((r["dtype"], r["unit"]) for _, _, r in rows)
    dots = tuple(
        Dot(
            number=n, label=f"{name} {_PASS[r['pass']]}", intensity=r["intensity_flop_per_byte"],
            flop_per_s=r["flop_per_s"], share=r["together_s"] / total, bound=r["limited_by"] or "unknown",
        )
        for n, name, r in rows
    )  # fmt: skip
    found = roofline_of(d["hardware"], f"{d['model']['name']} measured, roofs of {d['hardware']['name']}", dots, under)
    if found is None:
        return None
    arrows = tuple(
        Arrow(number=n, label=name, intensity=r["intensity_flop_per_byte"], flop_per_s=r["flops"] / r["predicted_s"])
        for n, name, r in rows[:8]
        if r["predicted_s"]
    )
    note = "Filled: measured. Hollow: predicted, for the slowest; arrows lead to what was measured"
    return replace(found, arrows=arrows, footnotes=(*found.footnotes, note)) if arrows else found
