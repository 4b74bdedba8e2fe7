"""`rooflens bench merge`: the runs of other stores into this one."""

from typing import Annotated

import typer

from rooflens.cli import options as o
from rooflens.cli import streams
from rooflens.cli.bench.options import Store

EXAMPLES = """Examples:

rooflens bench merge ../laptop/bench.db

rooflens bench merge runner-1.db runner-2.db --store all.db
"""


def merge(
    others: Annotated[list[str], typer.Argument(metavar="OTHER.db…", help="Stores to take runs and baselines from.")],
    store: Store = None, format: o.Format = "table", output: o.Output = None,
) -> int:  # fmt: skip
    """Add what other stores hold: the same run is kept once, a baseline whose name is taken stays as it is here."""
    from rooflens.report.sections.store import merge_blocks, merge_document, merge_rows
    from rooflens.store.place import store_to_write
    from rooflens.store.store import open_store

    o.check_format(format)
    for other in others:
        with open_store(other, write=False):
            pass  # before a store is made for what cannot be read
    with open_store(store_to_write(store), write=True) as opened:
        found = [(other, opened.merge(other)) for other in others]
        document = merge_document(str(opened.path), found)
    o.emit_as(format, document, merge_blocks(document), merge_rows(document), output)
    for other, merged in found:
        for t in merged.taken:
            streams.say(f"rooflens: baseline {t.name} stays run {t.here}; in {other} it is run {t.there}")
    return 0
