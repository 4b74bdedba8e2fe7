"""`rooflens models`: what can be analysed by name alone."""

from typing import Annotated

import typer

from rooflens.cli import options as o
from rooflens.cli import streams

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@app.callback()
def models() -> None:
    """Models that need no file: torchvision's names and timm:NAME, built without weights or network."""


@app.command("list", epilog="Examples:\n\nrooflens models list convnext\n\nrooflens models list --format csv")
def list_models(
    contains: Annotated[str, typer.Argument(metavar="TEXT", help="Only names with this in them.")] = "",
    format: o.Format = "table",
    output: o.Output = None,
) -> int:
    """Every name, or those that contain TEXT."""
    from rooflens.frontends.load import needs_torch
    from rooflens.report.blocks import Column, Heading, Table

    needs_torch("zoo")
    streams.keep_for_results()  # packages of models may talk when they are imported
    from rooflens.frontends.pytorch.zoo import zoo_names

    found = [n for n in zoo_names() if contains.lower() in n.lower()]
    rows = [{"name": n, "source": "timm" if n.startswith("timm:") else "torchvision"} for n in found]
    table = Table(
        columns=(Column(name="name"), Column(name="source")), rows=tuple((r["name"], r["source"]) for r in rows)
    )
    blocks = (Heading(text=f"{len(rows)} models"), table)
    o.emit_as(o.check_format(format), {"schema": "rooflens.models/1", "models": rows}, blocks, rows, output)
    return 0


@app.command("show", epilog="Example:\n\nrooflens models show resnet50")
def show_model(model: o.Model, input: o.Input = None, format: o.Format = "table", output: o.Output = None) -> int:
    """One model's counts, without a chip."""
    from rooflens.api import analyze_one
    from rooflens.pipeline.settings import make_settings
    from rooflens.report.sections.head import title, totals

    streams.keep_for_results()
    document = analyze_one(model, None, make_settings(input=input)).to_dict()
    rows = [{**{k: document["model"][k] for k in ("name", "params", "param_bytes")}, **document["totals"]}]
    o.emit_as(o.check_format(format), document, (*title(document), *totals(document)), rows, output)
    return 0
