"""`rooflens analyze`: every layer's place on the roofline, its time, and advice."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from rooflens.cli import options as o
from rooflens.cli import streams

if TYPE_CHECKING:
    from rooflens.report.output import Written

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EPILOG = """Examples:

rooflens analyze resnet18 --on h100-sxm

rooflens analyze resnet18 --on h100-sxm,a100-sxm-80gb --batch 32 --dtype bf16

rooflens analyze '1x1x64x64 | conv2d 1 k3 | relu | maxpool2d k2' --dtype int8 --reuse none

rooflens analyze timm:convnext_tiny --on 'h100-sxm with memory.hbm.bandwidth=5TB/s' --format json -o out.json

rooflens analyze model.py:make --on l4 --gate 'totals.device_time_s<=5ms' --plot roofline.svg
"""


@app.command(epilog=EPILOG)
def analyze(
    model: o.Model,
    on: o.On = None,
    batch: o.Batch = None,
    input: o.Input = None,
    dim: o.Dim = None,
    dtype: o.Dtype = None,
    kv_dtype: o.KvDtype = None,
    mode: o.Mode = None,
    optimizer: o.Optimizer = None,
    layout: o.Layout = None,
    autocast: o.Autocast = None,
    phase: o.Phase = None,
    seq: o.Seq = None,
    context: o.Context = None,
    fusion: o.Fusion = None,
    bn: o.Bn = None,
    execution: o.Execution = None,
    reuse: o.Reuse = None,
    sparsity: o.Sparsity = None,
    weight_density: o.WeightDensity = None,
    uncalibrated: o.Uncalibrated = False,
    gate: o.Gate = None,
    strict: o.Strict = False,
    format: o.Format = "table",
    output: o.Output = None,
    html: o.Html = None,
    plot: o.Plot = None,
    trace_out: o.TraceOut = None,
) -> int:
    """Every layer's place on the roofline, its time, and advice.

    Without --on, work and bytes are counted and everything that depends on a chip is left empty.
    """
    o.check_format(format)
    from rooflens.api import checked_settings

    settings = checked_settings(
        batch=batch, input=input, dim=dim, dtype=dtype, kv_dtype=kv_dtype, mode=mode, optimizer=optimizer, layout=layout,
        autocast=autocast, phase=phase, seq=seq, context=context, fusion=fusion, bn=bn, execution=execution, reuse=reuse,
        sparsity=sparsity, weight_density=weight_density, uncalibrated=uncalibrated, gate=gate, strict=strict,
        format=format, output=output, html=html, plot=plot, trace_out=trace_out,
    )  # fmt: skip
    documents = _documents(model, on, settings)
    o.emit(rendered(documents, format, output), output, plotted(documents, plot))
    return o.status_of(documents, strict)


def _documents(model: str, on: list[str] | None, settings: Any) -> list[dict[str, Any]]:
    from rooflens.api import analyze_many, analyze_one
    from rooflens.hardware.load import split_chips

    streams.keep_for_results()
    if not on:
        return [analyze_one(model, None, settings).to_dict()]
    chips = tuple(chip for text in on for chip in split_chips(text))
    return [a.to_dict() for a in analyze_many(model, chips, settings)]


def rendered(documents: list[dict[str, Any]], format: str, output: str | None) -> str:
    from rooflens.report.document import comparison_document
    from rooflens.report.render import csv, markdown
    from rooflens.report.rows import HEADER, rows_of
    from rooflens.report.sections.side import side_by_side
    from rooflens.report.sections.table import blocks_of

    if format == "json":
        return o.as_json(documents[0] if len(documents) == 1 else comparison_document(documents))
    if format == "csv":
        if len(documents) == 1:
            return csv.render_rows(HEADER, rows_of(documents[0]))
        rows = [(d["settings"]["on"], *row) for d in documents for row in rows_of(d)]
        return csv.render_rows(("chip", *HEADER), rows)
    render = markdown.render if format == "md" else partial(o.terminal_text, output=output)
    first = [render(side_by_side(documents))] if len(documents) > 1 else []
    return "\n".join([*first, *(render(blocks_of(d)) for d in documents)])


def plotted(documents: list[dict[str, Any]], path: str | None) -> "tuple[Written, ...]":
    if path is None:
        return ()
    from rooflens.report.sections.chart import chart_of

    drawn = [(d["settings"]["on"], chart_of(d)) for d in documents]
    charts = [(chip, c) for chip, c in drawn if c is not None]
    if len(charts) > 1:  # side by side only the chips tell the pictures apart
        charts = [(chip, replace(c, title=str(chip))) for chip, c in charts]
    return o.pictures_of(tuple(c for _, c in charts), path)
