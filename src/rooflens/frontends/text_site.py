"""A layer's place in the network in; the graph tensors and ops that it asks for out.

What every layer rule needs and no rule should repeat: names, dtypes, the limit of a dimension, errors that say where.
"""

from dataclasses import dataclass
from typing import NoReturn

from rooflens.errors import ShapeError
from rooflens.frontends.text_grammar import MAX_DIM, ParsedLayer
from rooflens.graph.build import GraphBuilder
from rooflens.graph.records import Attr

Shape = tuple[int, ...]
Attrs = tuple[tuple[str, Attr], ...]


def spelled(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a layer stands: the graph so far, its label there, and what was asked of the whole network."""

    builder: GraphBuilder
    layer: ParsedLayer
    label: str
    dtype: str
    training: bool
    references: tuple[int, ...] = ()

    def refuse(self, why: str) -> NoReturn:
        raise ShapeError(f"column {self.layer.column}: layer '{self.label}' ({self.layer.name}): {why}")

    def shape(self, x: int) -> Shape:
        return self.builder.tensors[x].shape

    def dims(self, x: int, least: int, most: int, wanted: str) -> Shape:
        """The shape of `x`, which must have so many dimensions."""
        shape = self.shape(x)
        if not least <= len(shape) <= most:
            self.refuse(f"takes {wanted}, not {spelled(shape)}: give an input with as many dimensions")
        return shape

    def _checked(self, shape: Shape) -> Shape:
        if any(n > MAX_DIM for n in shape):
            self.refuse(f"shape {spelled(shape)} has a dimension beyond 2^63-1: make it smaller")
        return shape

    def param(self, name: str, shape: Shape) -> int:
        return self.builder.tensor(
            self._checked(shape), self.dtype, "param", name=f"{self.label}.{name}", trainable=True
        )

    def buffer(self, name: str, shape: Shape) -> int:
        return self.builder.tensor(shape, self.dtype, "buffer", name=f"{self.label}.{name}")

    def given(self, name: str, shape: Shape) -> int:
        """One more input of the graph."""
        return self.builder.tensor(self._checked(shape), self.dtype, "input", name=f"{self.label}.{name}")

    def out(self, shape: Shape, dtype: str = "") -> int:
        return self.builder.tensor(self._checked(shape), dtype or self.dtype)

    def view(self, kind: str, x: int, shape: Shape) -> int:
        """The same bytes under another shape: an op that moves nothing."""
        t = self.builder.tensors[x]
        seen = self.builder.tensor(
            self._checked(shape), t.dtype, t.role, base=t.base, elements=t.elements, offset=t.offset, name=t.name
        )
        self.builder.op(kind, (x,), (seen,), label=self.label, module=self.label, view=True)
        return seen

    def op(self, kind: str, ins: Shape, outs: Shape, attrs: Attrs = (), part: str = "") -> int:
        label = f"{self.label}.{part}" if part else self.label
        self.builder.op(kind, ins, outs, label=label, module=self.label, attrs=attrs)
        return outs[0]
