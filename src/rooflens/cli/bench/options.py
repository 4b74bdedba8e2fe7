"""The options that the verbs of `rooflens bench` share."""

from typing import Annotated

import typer

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
