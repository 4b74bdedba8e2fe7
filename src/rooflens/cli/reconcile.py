"""`rooflens reconcile`: our counts beside those of other FLOP counters."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rooflens.cli import options as o
from rooflens.cli import streams

if TYPE_CHECKING:
    from rooflens.pipeline.settings import Settings

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Module = Annotated[str, typer.Argument(metavar="MODEL", help="Zoo name, timm:NAME or file.py:function.")]
EPILOG = """Examples:

rooflens reconcile resnet18

rooflens reconcile vit_b_16 --batch 8 --format md

rooflens reconcile model.py:make --format json -o reconcile.json
"""


@app.command(epilog=EPILOG)
def reconcile(
    model: Module, batch: o.Batch = None, input: o.Input = None, format: o.Format = "table", output: o.Output = None
) -> int:
    """Our counts beside those of other FLOP counters, each difference named.

    torch's FlopCounterMode, fvcore, ptflops, torchinfo and thop, whichever are installed, on the same model and inputs.
    What no rule explains is shown as unexplained, with the modules it comes from.
    """
    o.check_format(format)
    document = _document(model, batch, input)
    from rooflens.report.sections.reconcile import reconcile_blocks, reconcile_rows

    o.emit_as(format, document, reconcile_blocks(document), reconcile_rows(document), output)
    return 0


def _document(model: str, batch: int | None, input: str | None) -> dict[str, Any]:
    from rooflens.pipeline.settings import make_settings

    settings = make_settings(batch=batch, input=input)
    from rooflens.frontends.load import check_module

    streams.keep_for_results()
    check_module(model, "other counters need")
    return _counted(model, settings)


def _counted(model: str, settings: "Settings") -> dict[str, Any]:
    from rooflens.benches.peers import PEERS, count_with, module_facts
    from rooflens.benches.subject import Subject
    from rooflens.compare.reconcile import reconcile as explained
    from rooflens.costs.sheet import cost_sheet
    from rooflens.frontends.pytorch.load import load_module, module_of
    from rooflens.frontends.request import Request
    from rooflens.report.sections.reconcile import reconcile_document

    request = Request(batch=settings.batch, input=settings.input)
    found = module_of(model.strip(), request)
    module, inputs = found.module, found.inputs
    loaded = load_module(module, inputs, request, name=found.name, source=model)
    sheet, facts = cost_sheet(loaded.graph), module_facts(module)
    subject = Subject(module=module, args=inputs[0], kwargs=inputs[1])
    return reconcile_document(sheet, tuple(explained(sheet, facts, count_with(p, subject)) for p in PEERS))
