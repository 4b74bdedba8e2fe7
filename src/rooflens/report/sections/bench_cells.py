"""Rows of a bench document in, a Table out in which a column stands only where some row has something to say in it."""

from collections.abc import Callable
from typing import Any

from rooflens.report.blocks import Column, Table
from rooflens.units import show

Row = dict[str, Any]
Field = tuple[Column, Callable[[Row], str]]


def field(name: str, of: Callable[[Row], str], *, numeric: bool = False, whole: bool = False) -> Field:
    """`of` gives an empty cell for what is not known."""
    return Column(name=name, numeric=numeric, whole=whole), of


def table_of(fields: tuple[Field, ...], rows: list[Row]) -> Table:
    cells = [[of(row) for _, of in fields] for row in rows]
    kept = [i for i in range(len(fields)) if i == 0 or any(row[i] for row in cells)]
    columns = tuple(fields[i][0] for i in kept)
    shown = (tuple(row[i] or ("–" if fields[i][0].numeric else "") for i in kept) for row in cells)
    return Table(columns=columns, rows=tuple(shown))


def count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def amount(value: float | None, unit: str) -> str:
    return "" if value is None else show(value, unit)


def plural(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's' if not thing.endswith('s') else 'es'}"
