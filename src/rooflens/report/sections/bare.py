"""Bare numbers in, a roofline and the zone of each point out. A point above the roof is kept and flagged."""

import math
from typing import Any

from rooflens.errors import SyntaxFault
from rooflens.estimate.roofline import attainable_flop_per_s, zone_of
from rooflens.report.blocks import Block, Column, Dot, Paragraph, Roof, Roofline, Slope, Table
from rooflens.report.sections.chart import decades
from rooflens.units import EXAMPLES, parse_as, show


def bare_document(peak: str, bandwidth: str, points: tuple[str, ...]) -> dict[str, Any]:
    roof, slope = _positive("--peak", peak, "flop_per_s"), _positive("--bandwidth", bandwidth, "bytes_per_s")
    return {
        "schema": "rooflens.plot/1",
        "peak_flop_per_s": roof,
        "bandwidth_bytes_per_s": slope,
        "ridge_flop_per_byte": roof / slope,
        "points": [_point(text, roof, slope) for text in points],
    }


def _positive(flag: str, text: str, dimension: str) -> float:
    value = parse_as(text, dimension)
    if value <= 0:
        raise SyntaxFault(f"{flag} {text}: must be above 0: {EXAMPLES[dimension]}")
    return value


def _point(text: str, roof: float, slope: float) -> dict[str, Any]:
    pieces = text.rsplit(",", 2)
    if len(pieces) != 3:
        raise SyntaxFault(f"--point {text}: write NAME,AI,PERF, such as gemm,40,90GFLOPS")
    name, intensity, rate = (
        pieces[0],
        _positive(f"--point {text}: intensity", pieces[1], "number"),
        _positive(f"--point {text}: performance", pieces[2], "flop_per_s"),
    )
    ceiling = attainable_flop_per_s(intensity, roof, slope) or roof
    return {
        "name": name,
        "intensity_flop_per_byte": intensity,
        "flop_per_s": rate,
        "ceiling_flop_per_s": ceiling,
        "share_of_roof": rate / ceiling,
        "zone": zone_of(intensity, roof / slope, 1),
        "flag": "above-roof" if rate > ceiling * (1 + 1e-9) else None,
    }


def bare_roofline(document: dict[str, Any], title: str) -> Roofline:
    roofs = (Roof(label="peak", flop_per_s=document["peak_flop_per_s"], main=True),)
    slopes = (Slope(label="memory", bytes_per_s=document["bandwidth_bytes_per_s"], main=True),)
    x, y = decades(roofs, slopes)
    dots = tuple(
        Dot(
            number=i, label=f"{p['name']} {p['flag'] or ''}".rstrip(), intensity=p["intensity_flop_per_byte"],
            flop_per_s=p["flop_per_s"], share=None, bound="compute" if p["zone"] == "compute-bound" else "memory",
        )
        for i, p in enumerate(document["points"], 1)
    )  # fmt: skip
    return Roofline(title=title, roofs=roofs, slopes=slopes, dots=dots, x_decades=x, y_decades=y)


def bare_blocks(document: dict[str, Any], chart: Roofline) -> tuple[Block, ...]:
    ridge = document["ridge_flop_per_byte"]
    text = f"The ridge is at {ridge:.4g} FLOP/byte: left of it memory limits, right of it compute."
    if not document["points"]:
        return chart, Paragraph(text=text)
    columns = (
        Column(name="#", numeric=True), Column(name="point"), Column(name="FLOP/B", numeric=True),
        Column(name="reached", numeric=True), Column(name="roof", numeric=True), Column(name="of roof", numeric=True),
        Column(name="zone"), Column(name="flag"),
    )  # fmt: skip
    rows = tuple(
        (
            str(i), p["name"], f"{p['intensity_flop_per_byte']:.4g}", show(p["flop_per_s"], "FLOP/s"),
            show(p["ceiling_flop_per_s"], "FLOP/s"), _percent(p["share_of_roof"]), p["zone"] or "–", p["flag"] or "",
        )
        for i, p in enumerate(document["points"], 1)
    )  # fmt: skip
    return chart, Paragraph(text=text), Table(columns=columns, rows=rows)


def _percent(share: float) -> str:
    return f"{share:.1%}" if math.isfinite(share) else "–"
