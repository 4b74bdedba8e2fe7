"""`rooflens hardware`: the chip catalogue."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rooflens.cli import options as o
from rooflens.errors import FileError, SyntaxFault

if TYPE_CHECKING:
    from rooflens.hardware.records import Hardware
    from rooflens.report.output import Written

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)
Chip = Annotated[str, typer.Argument(metavar="CHIP", help="Catalogue id, path to a .toml, or either 'with KEY=VALUE'.")]
Chips = Annotated[
    list[str] | None,
    typer.Argument(metavar="CHIP…", help="Ids or .toml files. [default: the whole catalogue]", show_default=False),
]


@app.callback()
def hardware() -> None:
    """The chip catalogue: every value with its source."""


def _chips(names: list[str] | None) -> "tuple[Hardware, ...]":
    from rooflens.hardware.load import catalog_ids, load_chip, split_chips

    wanted = [c for text in names for c in split_chips(text)] if names else catalog_ids()
    return tuple(load_chip(c) for c in wanted)


@app.command("list", epilog="Example:\n\nrooflens hardware list --format csv")
def list_chips(format: o.Format = "table", output: o.Output = None) -> int:
    """Every chip of the catalogue in a line."""
    from rooflens.report.sections.reference import chip_row, chips_blocks

    chips = _chips(None)
    rows = [chip_row(c) for c in chips]
    o.emit_as(o.check_format(format), {"schema": "rooflens.chips/1", "chips": rows}, chips_blocks(chips), rows, output)
    return 0


@app.command("show", epilog="Example:\n\nrooflens hardware show 'h100-sxm with memory.hbm.bandwidth=5TB/s'")
def show_chip(chip: Chip, format: o.Format = "table", output: o.Output = None, plot: o.Plot = None) -> int:
    """One chip: its roofline, its ridges, and every value with its source."""
    from rooflens.report.document import hardware_document
    from rooflens.report.sections.reference import chip_blocks

    found = _chips([chip])[0]
    facts = [{"key": f.key, "value": f.value, "source": f.source} for f in found.facts]
    document = {"schema": "rooflens.chip/1", **hardware_document(found), "facts": facts}
    o.emit_as(o.check_format(format), document, chip_blocks(found), facts, output, _drawn((found,), plot))
    return 0


@app.command("compare", epilog="Example:\n\nrooflens hardware compare h100-sxm a100-sxm-80gb --plot roofs.svg")
def compare_chips(chips: Chips = None, format: o.Format = "table", output: o.Output = None, plot: o.Plot = None) -> int:
    """Several chips side by side, and their roofs in one picture."""
    from rooflens.report.document import hardware_document
    from rooflens.report.sections.reference import chip_row, compare_blocks

    found = _chips(chips)
    document = {"schema": "rooflens.chips/1", "chips": [hardware_document(c) for c in found]}
    rows, blocks = [chip_row(c) for c in found], compare_blocks(found)
    o.emit_as(o.check_format(format), document, blocks, rows, output, _drawn(found, plot))
    return 0


@app.command("lint", epilog="Example:\n\nrooflens hardware lint mychip.toml")
def lint_chips(chips: Chips = None, format: o.Format = "table", output: o.Output = None) -> int:
    """Implausible values: ridge, order within a family, sparse peaks given as dense, GB for GiB. Status 1 on an error."""
    from dataclasses import asdict

    from rooflens.hardware.lint import lint
    from rooflens.report.sections.reference import lint_blocks

    found = _chips(chips)
    named = {c.id for c in found}
    findings = lint(found, beside=tuple(c for c in _chips(None) if c.id not in named))
    rows = [asdict(f) for f in findings]
    document = {"schema": "rooflens.lint/1", "findings": rows}
    o.emit_as(o.check_format(format), document, lint_blocks(findings, len(found)), rows, output)
    return int(any(f.severity == "error" for f in findings))


@app.command("new", epilog="Example:\n\nrooflens hardware new mychip.toml --from h100-sxm")
def new_chip(
    file: Annotated[str, typer.Argument(metavar="FILE.toml", help="Where to write it; must not exist yet.")],
    source: Annotated[str, typer.Option("--from", metavar="CHIP", help="Start from this catalogue chip.")] = "h100-sxm",
) -> int:
    """Start a chip file from another chip; edit it, then 'rooflens hardware lint FILE'."""
    from rooflens.hardware.write import chip_toml
    from rooflens.report.output import write_text

    if not file.endswith(".toml"):
        raise SyntaxFault(f"{file}: a chip is found by the ending of its file: write {file}.toml")
    if Path(file).exists():
        raise FileError(f"{file}: exists already: name a new file")
    write_text(file, chip_toml(_chips([source])[0], Path(file).stem))
    o.progress(f"wrote {file}: edit it, then run 'rooflens hardware lint {file}'")
    return 0


def _drawn(chips: "tuple[Hardware, ...]", plot: str | None) -> "tuple[Written, ...]":
    if plot is None:
        return ()
    from rooflens.report.sections.reference import charts_of

    return o.pictures_of(charts_of(chips), plot)
