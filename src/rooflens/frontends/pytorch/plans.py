"""How one ATen overload is read: its name row, our shape function, its details and what it writes to. Overload in, Plan
out, made once per overload."""

from typing import Any

from rooflens.frontends.pytorch.attributes import DETAILS
from rooflens.frontends.pytorch.missing import MISSING
from rooflens.frontends.pytorch.names import FACTORIES, ROWS, TAKEN_APART, Row
from rooflens.frontends.pytorch.shapes import SHAPES

Writes = tuple[tuple[int, str], ...]  # places and names of the arguments that a call writes to


class Plan:
    __slots__ = ("detail", "factory", "name", "quantised", "row", "shape", "writes")

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.name: str = schema.name.partition("::")[2]
        apart = not schema.name.startswith("aten::") or f"{self.name}.{schema.overload_name}" in TAKEN_APART
        self.row: Row | None = None if apart else ROWS.get(self.name)
        self.quantised = schema.name.startswith(("quantized::", "aten::quantized_"))
        self.factory = self.name in FACTORIES
        # ours know neither a tensor to write to nor another type for the result
        plain = schema.overload_name != "dtype" and not any(a.is_out for a in schema.arguments)
        self.shape = (SHAPES.get(self.name) or MISSING.get(self.name)) if plain else None
        self.detail = DETAILS.get(self.name)
        self.writes = tuple(
            (place, a.name)
            for place, a in enumerate(schema.arguments)
            if a.alias_info is not None and a.alias_info.is_write
        )


_plans: dict[Any, Plan] = {}


def plan_of(func: Any) -> Plan:
    plan = _plans.get(func)
    if plan is None:
        plan = _plans[func] = Plan(func)
    return plan
