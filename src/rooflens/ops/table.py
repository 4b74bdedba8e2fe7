"""The table OPS: kind to OpSpec, gathered from one file a family. Registering a kind twice raises."""

from rooflens.errors import GraphError
from rooflens.ops import matrix, move, norm, pointwise, reduce
from rooflens.ops.spec import OpSpec


def gather(*families: tuple[OpSpec, ...]) -> dict[str, OpSpec]:
    table: dict[str, OpSpec] = {}
    for row in (row for rows in families for row in rows):
        if row.kind in table:
            raise GraphError(f"op kind '{row.kind}' is registered twice")
        table[row.kind] = row
    return table


OPS = gather(matrix.ROWS, pointwise.ROWS, norm.ROWS, reduce.ROWS, move.ROWS)


def is_view_kind(kind: str) -> bool:
    row = OPS.get(kind)
    return row is not None and row.role == "view"
