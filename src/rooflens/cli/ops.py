"""`rooflens ops`: the one table that says what is counted."""

from typing import Annotated, Any

import typer

from rooflens.cli import options as o
from rooflens.errors import SyntaxFault, nearest
from rooflens.report.blocks import Block

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@app.callback()
def ops() -> None:
    """What is counted for each kind of op: macs, alu and special operations.

    FLOP = 2*macs + alu + special.
    """


@app.command("list", epilog="Example:\n\nrooflens ops list --format md")
def list_ops(format: o.Format = "table", output: o.Output = None) -> int:
    """Every kind of op with its formula."""
    from rooflens.report.sections.reference import ops_blocks, ops_document

    return _out(ops_document(), ops_blocks(), o.check_format(format), output)


@app.command("show", epilog="Example:\n\nrooflens ops show conv")
def show_op(
    kind: Annotated[str, typer.Argument(help="A kind of 'rooflens ops list'.")],
    format: o.Format = "table",
    output: o.Output = None,
) -> int:
    """One kind of op: formula, unit, backward kernels, and its worked example."""
    from rooflens.ops.table import OPS
    from rooflens.report.sections.reference import op_blocks, op_document

    if kind not in OPS:
        raise SyntaxFault(f"'{kind}' is no kind of op.{nearest(kind, OPS)} See 'rooflens ops list'")
    return _out([op_document(OPS[kind])], op_blocks(OPS[kind]), o.check_format(format), output)


def _out(document: list[dict[str, Any]], blocks: tuple[Block, ...], format: str, output: str | None) -> int:
    o.emit_as(format, {"schema": "rooflens.ops/1", "ops": document}, blocks, document, output)
    return 0
