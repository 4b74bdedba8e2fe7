"""A machine document in, its Blocks out: the picture, the levels, the peaks, and what all of it was measured on."""

from collections.abc import Iterator
from typing import Any

from rooflens.report.blocks import Block, Column, Heading, Paragraph, Roofline, Table
from rooflens.report.sections.chart import roofline_of
from rooflens.units import show

Document = dict[str, Any]


def machine_chart(document: Document) -> Roofline | None:
    return roofline_of(document, f"{document['name']}, measured")


def machine_blocks(document: Document) -> tuple[Block, ...]:
    chart = machine_chart(document)
    return (
        Heading(text=f"{document['name']}: what it reaches"),
        Paragraph(text=_what_ran(document)),
        *((chart,) if chart else ()),
        *_levels(document),
        *_peaks(document),
        Paragraph(text=_launches(document)),
        *(Paragraph(text=f"{note[:1].upper()}{note[1:]}.", tone="warning") for note in document["notes"]),
        *_saved(document),
    )


def machine_rows(document: Document) -> list[dict[str, Any]]:
    """A row a ceiling, for CSV."""
    levels = [
        {"what": "bandwidth", "name": m["level"], "value": m["bandwidth_bytes_per_s"], "unit": "B/s",
         "one_core": m["one_core_bandwidth_bytes_per_s"], "spread": m["spread"], "lower_bound": m["lower_bound"]}
        for m in document["memory"]
    ]  # fmt: skip
    peaks = [
        {"what": "peak", "name": f"{p['dtype']} {p['unit']}", "value": p["flop_per_s"], "unit": "FLOP/s",
         "one_core": p["one_core_flop_per_s"], "spread": p["spread"], "lower_bound": False}
        for p in document["peaks"]
    ]  # fmt: skip
    launches = [
        {
            "what": "launch",
            "name": name,
            "value": s,
            "unit": "s",
            "one_core": None,
            "spread": None,
            "lower_bound": False,
        }
        for name, s in document["launch_s"].items()
    ]
    return [*levels, *peaks, *launches]


def _what_ran(document: Document) -> str:
    facts, threads = document["facts"], document["threads"]
    device = facts["device"]
    if device is not None:
        where = f"{device['multiprocessors']} multiprocessors, {show(device['memory_bytes'], 'B', 3)}, device time"
    else:
        where = f"{threads} thread{'s' if threads != 1 else ''}, each pinned to a core of its own"
    pace = "quick measurement" if document["quick"] else "measurement"
    return f"{pace.capitalize()} of {document['date']}: {where}. Fingerprint {document['fingerprint']}."


def _levels(document: Document) -> Iterator[Block]:
    columns = (
        Column(name="level"), Column(name="size", numeric=True), Column(name="bandwidth", numeric=True),
        Column(name="one core", numeric=True), Column(name="spread", numeric=True), Column(name="shown by"), Column(name="note"),
    )  # fmt: skip
    rows = tuple(
        (
            m["level"], _size(m["capacity_bytes"]), _at_least(m["lower_bound"]) + show(m["bandwidth_bytes_per_s"], "B/s"),
            show(m["one_core_bandwidth_bytes_per_s"], "B/s"), _percent(m["spread"]), m["kernel"] or "–", m["why"] or "",
        )
        for m in document["memory"]
    )  # fmt: skip
    yield Table(columns=columns, rows=rows)


def _peaks(document: Document) -> Iterator[Block]:
    """Units that do not exist are left out; what could not be measured says why."""
    columns = (
        Column(name="dtype"), Column(name="unit"), Column(name="peak", numeric=True), Column(name="one core", numeric=True),
        Column(name="ridge FLOP/byte", numeric=True), Column(name="spread", numeric=True), Column(name="shown by"),
    )  # fmt: skip
    slowest = document["memory"][-1]["bandwidth_bytes_per_s"] if document["memory"] else None
    rows = tuple(
        (
            p["dtype"], p["unit"], show(p["flop_per_s"], "FLOP/s"), show(p["one_core_flop_per_s"], "FLOP/s"),
            f"{p['flop_per_s'] / slowest:.4g}" if p["flop_per_s"] and slowest else "–", _percent(p["spread"]),
            p["how"] or p["why"] or "",
        )
        for p in document["peaks"]
        if not p["absent"]
    )  # fmt: skip
    yield Table(columns=columns, rows=rows)


def _launches(document: Document) -> str:
    launch = document["launch_s"]
    told = [
        f"{show(s, 's', 3)} a call, {how}"
        for how, s in (("eager", launch["eager"]), ("in a graph", launch["graph"]))
        if s
    ]
    return f"Launch overhead: {'; '.join(told)}." if told else "Launch overhead: not measured."


def _saved(document: Document) -> Iterator[Block]:
    if document["chip_file"]:
        yield Paragraph(text=f"Saved as {document['chip_file']}: --on this uses it.")


def _size(size: int | None) -> str:
    if size is None:
        return "–"
    steps = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
    return next((f"{size / s:.4g} {name}" for s, name in steps if size >= s), f"{size} B")


def _at_least(lower_bound: bool) -> str:
    return ">= " if lower_bound else ""


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
