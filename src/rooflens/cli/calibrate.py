"""`rooflens calibrate`: what classes of ops reach here, as a profile that estimates use from then on."""

from typing import Annotated

import typer

from rooflens.cli import options as o
from rooflens.cli import streams

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Quick = Annotated[
    bool, typer.Option("--quick", help="A third of the layers, in twenty seconds instead of three minutes.")
]
Device = Annotated[
    str | None, typer.Option(metavar="cpu|cuda", help="Where to run. [default: cuda where there is one]")
]
Dtype = Annotated[str | None, typer.Option(metavar="TYPE[,TYPE…]", help="Types to run. [default: those the chip has]")]
Chip = Annotated[
    str | None, typer.Option("--on", metavar="CHIP", help="Whose roofs it is held against. [default: this]")
]
EPILOG = """Examples:

rooflens calibrate --quick

rooflens calibrate --device cuda --on h200-sxm

rooflens analyze resnet18 --on this --uncalibrated
"""


@app.command(epilog=EPILOG)
def calibrate(
    quick: Quick = False,
    device: Device = None,
    on: Chip = None,
    dtype: Dtype = None,
    format: o.Format = "table",
    output: o.Output = None,
) -> int:
    """What classes of ops reach here, as a profile that estimates use from then on.

    Layers of every family are run forward and backward, and held against the roofs of --on, which is what 'rooflens machine'
    found here unless told otherwise. The profile is kept for that chip; -o writes it elsewhere too.
    """
    o.check_format(format)
    from rooflens.calibrating import calibrate_device
    from rooflens.hardware import this
    from rooflens.hardware.load import load_chip
    from rooflens.hardware.profile import profile_document, profile_text
    from rooflens.report.output import text_file, write_all
    from rooflens.report.sections.profile import profile_blocks

    hardware = load_chip(on or (f"this-{device}" if device else "this"))
    dtypes = tuple(d.strip() for d in dtype.split(",")) if dtype else None
    streams.keep_for_results()
    with streams.bar() as progress:
        profile, _ = calibrate_device(hardware, device=device, quick=quick, dtypes=dtypes, progress=progress)
    this.made_folder()
    path = this.profile_path_of(hardware)
    write_all((text_file(str(path), profile_text(profile)),))
    document = profile_document(profile)
    o.emit_as(format, document, profile_blocks(document), document["reaches"], output)
    streams.say(f"rooflens: profile kept in {path}: estimates for {hardware.id} use it from now on")
    return 0
