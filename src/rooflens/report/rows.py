"""An analysis document in, one flat row per op, or per unit of fusion, out: CSV and data frames."""

from typing import Any

_OP_FIELDS = (
    "id", "module", "kind", "pass", "dtype", "unit", "macs", "flops", "input_bytes", "output_bytes", "param_bytes",
    "bytes", "intensity_flop_per_byte", "ceiling_flop_per_s", "ridge_flop_per_byte", "zone", "bound", "roofline_time_s",
    "device_time_s", "share",
)  # fmt: skip
_REUSE_FIELDS = ("ops_per_output", "bytes_per_output", "intensity")
HEADER = (*_OP_FIELDS, "input_shapes", "output_shapes", *(f"reuse_{f}" for f in _REUSE_FIELDS))

GROUP_HEADER = (
    "id", "pattern", "ops", "dtype", "unit", "macs", "extra_macs", "flops", "input_bytes", "output_bytes", "param_bytes",
    "bytes", "internal_bytes", "unfused_bytes", "intensity_flop_per_byte", "unfused_intensity_flop_per_byte",
    "ceiling_flop_per_s", "ridge_flop_per_byte", "zone", "bound", "roofline_time_s", "device_time_s", "share", "cut_reason",
)  # fmt: skip


MEASURED_HEADER = (
    "id", "module", "call", "pass", "status", "reason", "time_s", "low_s", "high_s", "spread", "in_situ_s", "differs",
    "kernels", "allocations", "allocated_bytes", "peak_memory_bytes", "flops", "bytes", "intensity_flop_per_byte",
    "flop_per_s", "bytes_per_s", "unit", "dtype", "roofline_time_s", "predicted_s", "roof_share", "distance", "limited_by",
    "move", "above_roof", "inconclusive",
)  # fmt: skip


def measured_rows_of(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(row[f] for f in MEASURED_HEADER) for row in document["measured"]["ops"]]


def rows_of(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [_row(op) for op in document["ops"]]


def group_rows_of(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(" ".join(group[f]) if f == "ops" else group[f] for f in GROUP_HEADER) for group in document["groups"]]


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
