"""The options that the verbs of `rooflens bench` share."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rooflens.report.blocks import Block
    from rooflens.report.output import Written

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="The store of runs. [default: ROOFLENS_STORE, else .rooflens/bench.db here or in a folder above]",
        show_default=False,
    ),
]
Suite = Annotated[
    str | None,
    typer.Option("--suite", metavar="NAME", help="Only runs of this suite. [default: all]", show_default=False),
]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write it as one offline page too.")]


def pages(path: str | None, blocks: "tuple[Block, ...]", title: str) -> "tuple[Written, ...]":
    """The page that --html asks for, drawn but not yet written."""
    if path is None:
        return ()
    from rooflens.report.output import text_file
    from rooflens.report.render.html import render

    return (text_file(path, render(blocks, title)),)
