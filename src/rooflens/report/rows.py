"""An analysis document in, one flat row per op out: CSV and data frames."""

from typing import Any

_OP_FIELDS = (
    "id", "module", "kind", "pass", "dtype", "unit", "macs", "flops", "input_bytes", "output_bytes", "param_bytes",
    "bytes", "intensity_flop_per_byte", "ceiling_flop_per_s", "ridge_flop_per_byte", "zone", "bound", "roofline_time_s",
    "device_time_s", "share",
)  # fmt: skip
_REUSE_FIELDS = ("ops_per_output", "bytes_per_output", "intensity")
HEADER = (*_OP_FIELDS, "input_shapes", "output_shapes", *(f"reuse_{f}" for f in _REUSE_FIELDS))


def rows_of(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [_row(op) for op in document["ops"]]


def _row(op: dict[str, Any]) -> tuple[Any, ...]:
    reuse = op["reuse"] or {}
    return (
        *(op[f] for f in _OP_FIELDS),
        shapes(op["inputs"]),
        shapes(op["outputs"]),
        *(reuse.get(f) for f in _REUSE_FIELDS),
    )


def shapes(tensors: list[dict[str, Any]]) -> str:
    return " ".join("x".join(map(str, t["shape"])) or "scalar" for t in tensors)
