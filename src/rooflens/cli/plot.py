"""`rooflens plot`: a roofline from bare numbers."""

from typing import Annotated

import typer

from rooflens.cli import options as o

app = typer.Typer(rich_markup_mode=None, add_completion=False)
EPILOG = """Examples:

rooflens plot --peak 100GFLOPS --bandwidth 50GB/s

rooflens plot --peak 989TFLOPS --bandwidth 3.35TB/s --point gemm,400,700TFLOPS --plot roof.svg
"""


@app.command("plot", epilog=EPILOG)
def plot_bare(
    peak: Annotated[str, typer.Option(metavar="RATE", help="Peak compute, such as 100GFLOPS or 275TOPS.")],
    bandwidth: Annotated[str, typer.Option(metavar="RATE", help="Peak bandwidth, such as 50GB/s.")],
    point: Annotated[
        list[str] | None, typer.Option(metavar="NAME,AI,PERF", help="A dot: name, FLOP/byte, FLOP/s; may be repeated.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the picture.")] = "roofline",
    format: o.Format = "table",
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the result there; .svg and .png are pictures."),
    ] = None,
    plot: o.Plot = None,
) -> int:
    """A roofline from bare numbers: where the ridge is, and which zone each point is in."""
    from rooflens.report.sections.bare import bare_blocks, bare_document, bare_roofline

    found = bare_document(peak, bandwidth, tuple(point or ()))
    chart = bare_roofline(found, title)
    picture = output is not None and output.lower().endswith((".svg", ".png"))
    drawn = [o.pictures_of((chart,), path) for path in (plot, output if picture else None)]
    blocks, text_to = bare_blocks(found, chart), None if picture else output
    o.emit_as(o.check_format(format), found, blocks, found["points"], text_to, (*drawn[0], *drawn[1]))
    return 0
