"""`rooflens fuse`: what runs as one unit, what that saves, and why each edge that is left was cut."""

from typing import Annotated, Any

import typer

from rooflens.cli import options as o

app = typer.Typer(rich_markup_mode=None, add_completion=False)
FORMATS = (*o.FORMATS, *o.DIAGRAMS)

Against = Annotated[
    str | None,
    typer.Option(metavar="COMPILER", help="Beside what inductor fuses. Implies --fusion residual --bn folded."),
]
Format = Annotated[str, typer.Option(help="table, json, csv, md, dot or mermaid.")]
EPILOG = """Examples:

rooflens fuse resnet18 --on h100-sxm

rooflens fuse resnet18 mobilenet_v2 --on h100-sxm,l4 --fusion residual --bn folded

rooflens fuse '4x128x256 | linear 256 | gelu | linear 256 | add input | layernorm'

rooflens fuse resnet18 --against inductor

rooflens fuse mobilenet_v2 --format mermaid -o fused.mmd

rooflens fuse vit_b_16 --on l4 --dtype bf16 --gate 'fusion.after.bytes<=400MB' --plot fused.svg
"""


@app.command(epilog=EPILOG)
@o.analysis_options
def fuse(model: o.Models, against: Against = None, format: Format = "table", **options: Any) -> int:
    """Before and after fusion, edge by edge with reasons, and what not fusing costs.

    --fusion is chain unless told otherwise. Without --on, bytes are counted and no times are given. JSON of one model is
    the document of analyze; csv has one row a unit; dot and mermaid draw the units and what passes between them.
    """
    o.check_format(format, FORMATS)
    from rooflens.against import check_compiler
    from rooflens.api import fusing
    from rooflens.cli.documents import told

    if against is not None:
        check_compiler(against)
    return told("fuse", model, fusing({**options, "format": format}, against), against)
