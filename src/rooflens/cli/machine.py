"""`rooflens machine`: this machine's ceilings, as a chip."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rooflens.cli import options as o
from rooflens.cli import streams

if TYPE_CHECKING:
    from rooflens.benches.ceilings import Ceilings
    from rooflens.report.output import Written

app = typer.Typer(rich_markup_mode=None, add_completion=False)
EPILOG = """Examples:

rooflens machine

rooflens machine --quick --format json -o machine.json

rooflens machine --device cuda --plot roofs.svg

rooflens analyze resnet18 --on this
"""


@app.command(epilog=EPILOG)
def machine(
    quick: Annotated[
        bool, typer.Option("--quick", help="Ten seconds instead of a minute: fewer sizes, fewer readings.")
    ] = False,
    device: Annotated[
        str | None, typer.Option(metavar="cpu|cuda", help="What to measure. [default: cuda where there is one]")
    ] = None,
    format: o.Format = "table",
    output: o.Output = None,
    plot: o.Plot = None,
) -> int:
    """Peak compute by dtype and unit, bandwidth by memory level, launch overhead; saved as the chip 'this'."""
    o.check_format(format)
    from rooflens.report.machine import machine_document
    from rooflens.report.output import picture_format

    if plot is not None:
        picture_format(plot)
    found = _found(device, quick=quick)
    chip = _chip_file(found)
    return show(machine_document(found, chip.path), format, output, plot, (chip,))


def found_now(device: str) -> None:
    """Quickly, and kept, for a verb that needs roofs."""
    from rooflens.report.output import write_all

    write_all((_chip_file(_found(device, quick=True)),))


def show(
    document: dict[str, Any], format: str, output: str | None, plot: str | None, beside: "tuple[Written, ...]" = ()
) -> int:
    """A machine document, measured now or saved before, with whatever else is to be written."""
    from rooflens.report.sections.machine import machine_blocks, machine_chart, machine_rows

    chart = machine_chart(document)
    drawn = o.pictures_of((chart,) if chart else (), plot)
    o.emit_as(format, document, machine_blocks(document), machine_rows(document), output, (*drawn, *beside))
    return 0


def _found(device: str | None, *, quick: bool) -> "Ceilings":
    from rooflens.benches.machine import checked_device, measured

    chosen = checked_device(device)
    with streams.bar() as told:
        return measured(
            chosen, quick=quick, tick=lambda share: told(f"measuring the {chosen}", round(100 * share), 100)
        )


def _chip_file(found: "Ceilings") -> "Written":
    """Written together with the other files: all of them or none."""
    from rooflens.benches.chip import chip_of
    from rooflens.hardware.this import made_folder, path_of
    from rooflens.hardware.write import measured_toml
    from rooflens.report.output import text_file

    made_folder()
    return text_file(str(path_of(found.device)), measured_toml(chip_of(found)))
