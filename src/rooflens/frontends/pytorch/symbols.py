"""The inputs of an exported program and what the user asks for in, their shapes out: symbolic dimensions bound to sizes,
within the ranges that the program was exported for."""

from collections.abc import Iterator
from typing import Any

import torch

from rooflens.errors import ShapeError
from rooflens.frontends.request import Request, check_batch, parse_shape

Shape = tuple[int, ...]
Dims = list[tuple[Any, ...]]  # of each input: whole numbers, and sympy expressions of symbols


def bound_shapes(
    inputs: list[torch.Tensor], names: list[str], ranges: dict[Any, Any], request: Request, where: str
) -> tuple[list[Shape], dict[str, int]]:
    """`names` are those of the inputs. The shapes, and the size that each symbol got where nobody gave a whole shape."""
    dims = [tuple(n.node.expr if isinstance(n, torch.SymInt) else int(n) for n in t.shape) for t in inputs]
    if request.input is not None:
        given = _given(dims, request, where)
        sizes = _solved(dims[0], given, where, request.input)
    else:
        sizes = _chosen(inputs, names, dims, request, where)
    _check_ranges(sizes, ranges, where)
    shapes = [tuple(_size(d, sizes) for d in shape) for shape in dims]
    if request.input is not None and shapes[0] != given:
        raise _contradicts(request.input, where, dims[0])
    if shapes:
        check_batch(request, shapes[0], "the exported shape")
    return shapes, {} if request.input is not None else {str(s): n for s, n in sizes.items()}


def _symbols(dims: Dims) -> Iterator[Any]:
    for shape in dims:
        for d in shape:
            if not isinstance(d, int):
                yield from sorted(d.free_symbols, key=str)


def _chosen(inputs: list[torch.Tensor], names: list[str], dims: Dims, request: Request, where: str) -> dict[Any, int]:
    """What --dim says, or the batch for a symbol that comes first in an input, or the size at the export."""
    known = {str(s): s for s in _symbols(dims)}
    asked = _matched(dict(request.dim), list(known), _places(names, dims), where)
    first = {shape[0] for shape in dims if shape and not isinstance(shape[0], int)}
    examples = _examples(inputs)
    sizes: dict[Any, int] = {}
    for name, symbol in known.items():
        batch = request.batch if symbol in first else None
        size = asked.get(name, batch if batch is not None else examples.get(symbol))
        if size is None:
            raise ShapeError(f"{where}: symbolic dimension {name} has no example size: bind it with --dim {name}=N")
        sizes[symbol] = size
    return sizes


def _matched(asked: dict[str, int], known: list[str], places: list[str], where: str) -> dict[str, int]:
    """The file numbers its symbols and keeps no names: any other name means the one symbol that is left, if it is one."""
    others, left = [name for name in asked if name not in known], [symbol for symbol in known if symbol not in asked]
    if len(others) == len(left) == 1:
        return {left[0] if name in others else name: size for name, size in asked.items()}
    if others:
        has = f"name one that it has: {', '.join(places)}" if places else "it has none: leave --dim out"
        raise ShapeError(f"--dim {others[0]}: {where} has no symbolic dimension of that name: {has}")
    return asked


def _places(names: list[str], dims: Dims) -> list[str]:
    """Each symbol with where it stands first: s77 (axis 0 of x)."""
    found: dict[str, str] = {}
    for name, shape in zip(names, dims, strict=True):
        for axis, d in enumerate(shape):
            for symbol in _symbols([(d,)]):
                found.setdefault(str(symbol), f"{symbol} (axis {axis} of {name})")
    return list(found.values())


def _examples(inputs: list[torch.Tensor]) -> dict[Any, int]:
    """The sizes that the program was exported with."""
    for t in inputs:
        for n in t.shape:
            if isinstance(n, torch.SymInt):
                env: Any = n.node.shape_env
                found = getattr(env, "backed_var_to_val", None) or getattr(env, "var_to_val", {})
                return {symbol: int(size) for symbol, size in found.items()}
    return {}


def _given(dims: Dims, request: Request, where: str) -> Shape:
    text = str(request.input)
    if request.dim:
        raise ShapeError(f"--dim {request.dim[0][0]} beside --input {text}: a whole shape says all: leave one out")
    if len(dims) != 1:
        raise ShapeError(f"--input {text}: {where} takes {len(dims)} inputs: leave --input out")
    shape = parse_shape(text)
    if len(shape) != len(dims[0]):
        raise _contradicts(text, where, dims[0])
    return shape


def _solved(dims: tuple[Any, ...], given: Shape, where: str, text: str) -> dict[Any, int]:
    """Symbols that stand alone take the size at their place; one symbol has one size."""
    sizes: dict[Any, int] = {}
    for d, size in zip(dims, given, strict=True):
        if not isinstance(d, int) and d.is_symbol and sizes.setdefault(d, size) != size:
            raise _contradicts(text, where, dims)
    if any(s not in sizes for s in _symbols([dims])):
        raise ShapeError(f"--input {text}: {where} has dimensions {_spelled(dims)}: bind them with --dim instead")
    return sizes


def _contradicts(text: str, where: str, dims: tuple[Any, ...]) -> ShapeError:
    return ShapeError(f"--input {text}: {where} was exported for {_spelled(dims)}: keep to that, or export it anew")


def _spelled(dims: tuple[Any, ...]) -> str:
    return "x".join(map(str, dims))


def _size(d: Any, sizes: dict[Any, int]) -> int:
    return d if isinstance(d, int) else int(d.subs(sizes))


def _check_ranges(sizes: dict[Any, int], ranges: dict[Any, Any], where: str) -> None:
    for symbol, size in sizes.items():
        allowed = ranges.get(symbol)
        if allowed is not None and not (bool(allowed.lower <= size) and bool(size <= allowed.upper)):
            span = (
                f"{allowed.lower} to {allowed.upper}" if str(allowed.upper).isdecimal() else f"{allowed.lower} or more"
            )
            raise ShapeError(
                f"{where}: symbolic dimension {symbol} is {size}, it was exported for {span}: give such a size"
            )
