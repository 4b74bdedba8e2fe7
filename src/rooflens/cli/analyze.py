"""`rooflens analyze`: every layer's place on the roofline, its time, and advice."""

from typing import Any

import typer

from rooflens.cli import options as o

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EPILOG = """Examples:

rooflens analyze resnet18 --on h100-sxm

rooflens analyze resnet18 --on h100-sxm,a100-sxm-80gb --batch 32 --dtype bf16

rooflens analyze '1x1x64x64 | conv2d 1 k3 | relu | maxpool2d k2' --dtype int8 --reuse none

rooflens analyze timm:convnext_tiny --on 'h100-sxm with memory.hbm.bandwidth=5TB/s' --format json -o out.json

rooflens analyze model.py:make --on l4 --gate 'totals.device_time_s<=5ms' --plot roofline.svg
"""


@app.command(epilog=EPILOG)
@o.analysis_options
def analyze(model: o.Model, **options: Any) -> int:
    """Every layer's place on the roofline, its time, and advice.

    Without --on, work and bytes are counted and everything that depends on a chip is left empty.
    """
    o.check_format(options["format"])
    from rooflens.cli.documents import told

    return told("analyze", (model,), options)
