"""Ops and tensors one by one in, a verified Graph out: the one way in which every frontend assembles its graph."""

from math import prod

from rooflens.graph.records import Attr, Graph, Op, Tensor, unique_param_bytes, verify


class GraphBuilder:
    """Gives tensors their places and ops their stable ids (module path, kind, and a counter where that repeats)."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self._seen: dict[str, int] = {}

    def tensor(
        self,
        shape: tuple[int, ...],
        dtype: str,
        role: str = "activation",
        *,
        name: str = "",
        base: int | None = None,
        elements: int | None = None,
        offset: int = 0,
        trainable: bool = False,
    ) -> int:
        place = len(self.tensors)
        self.tensors.append(
            Tensor(
                id=place,
                shape=shape,
                dtype=dtype,
                role=role,
                base=place if base is None else base,
                elements=prod(shape) if elements is None else elements,
                offset=offset,
                name=name,
                trainable=trainable,
            )
        )
        return place

    def op(
        self,
        kind: str,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        *,
        label: str,
        module: str = "",
        pass_: str = "forward",
        attrs: tuple[tuple[str, Attr], ...] = (),
        view: bool = False,
    ) -> int:
        self.ops.append(
            Op(
                id=self._unique(label if pass_ == "forward" else f"{label}@{pass_}"),
                kind=kind,
                module=module,
                pass_=pass_,
                inputs=inputs,
                outputs=outputs,
                attrs=attrs,
                view=view,
            )
        )
        return len(self.ops) - 1

    def _unique(self, label: str) -> str:
        """`layer1.0.relu`, then `layer1.0.relu:2`: stable as long as the order of calls is."""
        count = self._seen.get(label, 0) + 1
        self._seen[label] = count
        if count == 1:
            return label
        return self._unique(f"{label}:{count}")  # a user's own name may end in :2 as well

    def build(
        self,
        name: str,
        source: str,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        assumptions: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Graph:
        tensors = tuple(self.tensors)
        owned = [t for t in tensors if t.role == "param" and t.base == t.id]
        return verify(
            Graph(
                name=name,
                source=source,
                tensors=tensors,
                ops=tuple(self.ops),
                inputs=inputs,
                outputs=outputs,
                params=sum(t.elements for t in owned if t.trainable),
                param_bytes=unique_param_bytes(tensors),
                assumptions=assumptions,
                notes=notes,
            )
        )
