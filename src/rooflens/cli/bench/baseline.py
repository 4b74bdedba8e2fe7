"""`rooflens bench baseline`: names for runs, which other verbs take wherever they take a run."""

from typing import TYPE_CHECKING, Annotated

import typer

from rooflens.cli import options as o
from rooflens.cli.bench.options import Store, Suite

if TYPE_CHECKING:
    from rooflens.store.store import Store as Opened

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, '.', '_' and '-'.")]
Run = Annotated[
    str,
    typer.Argument(metavar="RUN", help="latest, previous, latest~N, an id or the start of one, or another baseline."),
]


@app.callback()
def baseline() -> None:
    """Names for runs: set, list, remove. A run keeps its name whatever is measured later."""


@app.command(
    "set", epilog="Examples:\n\nrooflens bench baseline set before\n\nrooflens bench baseline set v1.2 latest~3"
)
def set_baseline(
    name: Name, run: Run = "latest", suite: Suite = None, store: Store = None, format: o.Format = "table",
    output: o.Output = None,
) -> int:  # fmt: skip
    """Give a run a name; a name that is there already moves."""
    from rooflens.store.place import store_to_read
    from rooflens.store.store import checked_name, open_store

    o.check_format(format)
    checked_name(name)
    path = store_to_read(store)
    with open_store(path, write=False) as opened:
        id = opened.id_of(run, suite)
    with open_store(path, write=True) as opened:
        before = opened.set_baseline(name, id)
        moved = f", no longer {before}" if before not in (None, id) else ""
        o.progress(f"{name} is run {id}{moved}")
        return _told(opened, format, output)


@app.command("list", epilog="Example:\n\nrooflens bench baseline list --format json")
def list_baselines(store: Store = None, format: o.Format = "table", output: o.Output = None) -> int:
    """Every name, and its run."""
    from rooflens.store.place import store_to_read
    from rooflens.store.store import open_store

    o.check_format(format)
    with open_store(store_to_read(store), write=False) as opened:
        return _told(opened, format, output)


@app.command("remove", epilog="Example:\n\nrooflens bench baseline remove before")
def remove_baseline(name: Name, store: Store = None, format: o.Format = "table", output: o.Output = None) -> int:
    """Forget a name; its run stays."""
    from rooflens.store.place import store_to_read
    from rooflens.store.store import open_store

    o.check_format(format)
    path = store_to_read(store)
    with open_store(path, write=False):
        pass  # says what is wrong with it before anything of it could change
    with open_store(path, write=True) as opened:
        o.progress(f"{name} was run {opened.remove_baseline(name)}")
        return _told(opened, format, output)


def _told(opened: "Opened", format: str, output: str | None) -> int:
    from rooflens.report.sections.store import baselines_blocks, baselines_document

    document = baselines_document(str(opened.path), opened.baselines())
    o.emit_as(format, document, baselines_blocks(document), document["baselines"], output)
    return 0
