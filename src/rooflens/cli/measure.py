"""`rooflens measure`: each layer run here for real, and where it stands under the roof."""

from typing import Annotated, Any

import typer

from rooflens.cli import options as o
from rooflens.cli import streams

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Device = Annotated[
    str | None, typer.Option(metavar="cpu|cuda", help="Where to run. [default: cuda where there is one]")
]
Time = Annotated[str, typer.Option(metavar="DURATION", help="How long to run each distinct layer, in each pass.")]
Try = Annotated[
    bool,
    typer.Option("--try", help="Make real changes (layout, dtype, compile, batch, …) and say what each gained."),
]
EPILOG = """Examples:

rooflens measure resnet18

rooflens measure '8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2' --time 0.5s

rooflens measure timm:convnext_tiny --device cuda --dtype bf16 --layout channels-last --mode inference

rooflens measure resnet18 --try --mode inference

rooflens measure resnet18 --execution compiled

rooflens measure model.py:make --format json -o measured.json

rooflens report measured.json --plot measured.svg
"""


@app.command(epilog=EPILOG)
@o.analysis_options
def measure(model: o.Model, device: Device = None, time: Time = "0.2s", try_: Try = False, **options: Any) -> int:
    """Run the layers here, forward and backward; measured dots under the roof.

    Without --on, layers are held against what 'rooflens machine' found here. --mode inference leaves the backward passes
    out; --mode training runs the forward passes as in training too. --execution compiled gives each unit of fusion the time
    of the kernels that torch's Inductor makes of it. What was finished when the run is interrupted is kept.
    """
    o.check_format(options["format"])
    from rooflens.api import checked_settings, measured, seconds_of
    from rooflens.cli.documents import plotted, rendered
    from rooflens.cli.measuring import interrupted_status, partial_status, roofs_of
    from rooflens.measuring import check_run

    settings = checked_settings(**{name: value for name, value in options.items() if name != "on"})
    seconds = seconds_of(time)
    check_run(settings, device)
    streams.keep_for_results()
    hardware, named = roofs_of(options["on"], device)
    with streams.bar() as progress:
        found = measured(
            model, None, hardware, named, settings, device=device, seconds=seconds, progress=progress, try_=try_
        )
    documents = [found.to_dict()]
    text = rendered(documents, options["format"], settings.output, "measure")
    o.emit(text, settings.output, plotted(documents, settings.plot))
    return (
        interrupted_status(documents[0])
        or partial_status(documents[0], settings.strict)
        or o.status_of(documents, settings.strict)
    )
