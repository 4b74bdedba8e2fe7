"""What is asked of a frontend, and how a dtype is recorded and then stored. Request in, retyped Graph out."""

from dataclasses import dataclass
from typing import Any

from rooflens.errors import ShapeError, SyntaxFault
from rooflens.graph.records import Graph, retyped
from rooflens.ops.table import OPS

MAX_DIM = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`batch` and `input` are None where the user left them out, so that a conflict can be told from a default; `given`
    are all options that the user did not leave out, `inputs` what Python gave beside a model's name."""

    batch: int | None = None
    input: str | None = None
    dtype: str | None = None
    training: bool = False
    optimizer: str = "none"
    channels_last: bool = False
    autocast: bool = False
    dim: tuple[tuple[str, int], ...] = ()
    given: tuple[tuple[str, Any], ...] = ()
    inputs: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A graph stored in its dtype, with the batch that throughput counts. `settings` are options that came with the
    model, for where the user gave none."""

    graph: Graph
    dtype: str
    batch: int | None
    settings: tuple[tuple[str, Any], ...] = ()


# Types that torch cannot run everywhere are recorded in a wider one and stored narrow afterwards.
_RECORDED = {"tf32": "fp32", "fp8": "fp32", "int8": "fp32", "w8a16": "bf16", "w4a16": "bf16"}
_STORED = {"fp8": ("fp8", "fp8"), "int8": ("int8", "int8"), "w8a16": ("bf16", "int8"), "w4a16": ("bf16", "int4")}


def recorded_dtype(dtype: str) -> str:
    return _RECORDED.get(dtype, dtype)


def stored(graph: Graph, dtype: str) -> Graph:
    """The graph with its tensors in the types that `dtype` stores them in."""
    if dtype not in _STORED:
        return graph
    activation, weight = _STORED[dtype]
    return retyped(graph, activation, weight, _matrix_weights(graph) if activation != weight else None)


def _matrix_weights(graph: Graph) -> frozenset[int]:
    """Weight-only quantisation stores the matrices of matrix ops narrow, and leaves biases and norms alone."""
    return frozenset(
        graph.tensors[i].base
        for op in graph.ops
        if op.kind in OPS and OPS[op.kind].unit == "matrix"
        for i in op.inputs
        if graph.tensors[i].role == "param" and len(graph.tensors[i].shape) > 1
    )


def autocast_dtype(request: Request) -> str | None:
    if not request.autocast:
        return None
    if request.dtype not in ("bf16", "fp16"):
        raise SyntaxFault(
            f"--autocast computes in a narrower type: add --dtype bf16 or fp16, not {request.dtype or 'fp32'}"
        )
    return request.dtype


def parse_shape(text: str) -> tuple[int, ...]:
    """'1x3x224x224' to a tuple; every dim a whole number that a 64-bit index can hold."""
    dims: list[int] = []
    for piece in text.lower().replace(",", "x").split("x"):
        if not piece.strip().isdigit():
            raise ShapeError(
                f"--input {text}: '{piece.strip()}' is no dimension: write a whole shape such as 1x3x224x224"
            )
        if len(piece.strip()) > 19 or int(piece) > MAX_DIM:
            raise ShapeError(f"--input {text}: {piece.strip()[:24]} is beyond 2^63-1: give a smaller dimension")
        dims.append(int(piece))
    return tuple(dims)


def check_batch(request: Request, shape: tuple[int, ...], where: str) -> None:
    """A whole shape wins; another batch asked for beside it is a contradiction, not a preference."""
    if request.batch is not None and shape and shape[0] != request.batch:
        raise ShapeError(
            f"--batch {request.batch} contradicts {where} {'x'.join(map(str, shape))}, whose batch is {shape[0]}: leave one out"
        )


def input_shape(request: Request, default: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an input that we make ourselves."""
    if request.input is not None:
        shape = parse_shape(request.input)
        check_batch(request, shape, "--input")
        return shape
    return (request.batch or 1, *default[1:])
