"""Which graph tensor is this torch tensor? Storage and geometry in, graph tensor id out.

Storage ids repeat once a tensor dies, so every tensor seen is kept alive until the recording ends (meta tensors hold no
data). A write in place gives the storage a new graph tensor; views taken before it are looked up afresh.
"""

from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch

from rooflens.graph.build import GraphBuilder

DTYPES: dict[torch.dtype, str] = {
    torch.float64: "fp64", torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.int8: "int8",
    torch.uint8: "uint8", torch.bool: "bool", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64",
    torch.complex64: "complex64", torch.complex128: "complex128", torch.complex32: "complex32",
    torch.float8_e4m3fn: "fp8", torch.float8_e5m2: "fp8", torch.uint16: "uint16", torch.uint32: "uint32",
    torch.uint64: "uint64", torch.float8_e4m3fnuz: "fp8", torch.float8_e5m2fnuz: "fp8",
}  # fmt: skip
TORCH_DTYPES = {
    "fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16,
}  # fmt: skip


@dataclass(slots=True)
class _Storage:
    """The graph tensor that owns the bytes now, how often they were written, and the views known since."""

    owner: int
    version: int = 0
    views: dict[Any, int] = field(default_factory=dict)


class TensorTracker:
    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self._storages: dict[int, _Storage] = {}
        self._seen: dict[int, tuple[int, _Storage, int]] = {}
        self._alive: list[Any] = []

    def forget(self) -> None:
        """Autograd nodes know the recorder, which knows the tensors, which know their nodes: a ring that no garbage
        collector sees through."""
        self._storages.clear()
        self._seen.clear()
        self._alive.clear()

    def register(self, t: torch.Tensor, role: str, *, name: str = "", trainable: bool = False) -> int:
        """A tensor that exists before any op: a parameter, a buffer, an input. Tied ones keep their first name."""
        storage = t.untyped_storage()
        known = self._storages.get(storage._cdata)
        if known is not None:
            return self.id_of(t)
        shape = tuple(t.shape)
        tid = self.builder.tensor(
            shape, DTYPES[t.dtype], role, name=name, trainable=trainable, elements=_stored(t, shape)
        )
        self._own(t, storage, tid)
        return tid

    def fresh(self, t: torch.Tensor) -> int:
        """The output of an op, in storage of its own."""
        shape = tuple(t.shape)
        tid = self.builder.tensor(shape, DTYPES[t.dtype])
        self._own(t, t.untyped_storage(), tid)
        return tid

    def _own(self, t: torch.Tensor, storage: Any, tid: int) -> None:
        known = _Storage(tid)
        self._storages[storage._cdata] = known
        self._seen[id(t)] = (tid, known, 0)
        self._alive.append((t, storage))

    def adopt(self, t: torch.Tensor, tid: int) -> None:
        """A meta stand-in for a tensor that the graph already knows."""
        self._own(t, t.untyped_storage(), tid)

    def id_of(self, t: torch.Tensor) -> int:
        """The graph tensor that `t` holds now; a tensor never seen is a constant of the model."""
        entry = self._seen.get(id(t))
        if entry is not None and entry[2] == entry[1].version:
            return entry[0]
        storage = self._storages.get(t.untyped_storage()._cdata)
        if storage is None:
            return self.register(t, "buffer")
        tid = self._view_of(t, storage)
        self._remember(t, tid, storage)
        return tid

    def is_known(self, t: torch.Tensor) -> bool:
        return t.untyped_storage()._cdata in self._storages

    def _view_of(self, t: torch.Tensor, storage: _Storage) -> int:
        shape, stride, offset = tuple(t.shape), t.stride(), int(t.storage_offset())
        key = (shape, stride, offset, t.dtype)
        tid = storage.views.get(key)
        if tid is None:
            tid = self._matches_owner(t, storage, shape, offset)
            tid = self._alias(t, storage, shape, offset) if tid is None else tid
            storage.views[key] = tid
        return tid

    def _matches_owner(self, t: torch.Tensor, storage: _Storage, shape: tuple[int, ...], offset: int) -> int | None:
        owner = self.builder.tensors[storage.owner]
        same = owner.shape == shape and owner.offset == offset and owner.dtype == DTYPES[t.dtype]
        return storage.owner if same and owner.elements == prod(shape) else None

    def _alias(self, t: torch.Tensor, storage: _Storage, shape: tuple[int, ...], offset: int) -> int:
        owner = self.builder.tensors[storage.owner]
        return self.builder.tensor(
            shape,
            DTYPES[t.dtype],
            owner.role,
            name=owner.name,
            base=owner.base,
            elements=_stored(t, shape),
            offset=offset,
        )

    def _remember(self, t: torch.Tensor, tid: int, storage: _Storage) -> None:
        self._seen[id(t)] = (tid, storage, storage.version)
        self._alive.append(t)

    def viewed(self, t: torch.Tensor) -> int:
        """The output of a view op: a graph tensor of its own, so that the op stands between writer and reader."""
        storage = self._storages[t.untyped_storage()._cdata]
        tid = self._alias(t, storage, tuple(t.shape), int(t.storage_offset()))
        storage.views[(tuple(t.shape), t.stride(), int(t.storage_offset()), t.dtype)] = tid
        self._remember(t, tid, storage)
        return tid

    def written(self, t: torch.Tensor) -> int:
        """`t` was written in place: its storage now holds a new graph tensor."""
        self.id_of(t)
        storage = self._storages[t.untyped_storage()._cdata]
        shape = tuple(t.shape)
        old = self.builder.tensors[storage.owner]
        tid = self.builder.tensor(
            shape, DTYPES[t.dtype], elements=_stored(t, shape), offset=int(t.storage_offset()), name=old.name
        )
        storage.owner, storage.version, storage.views = tid, storage.version + 1, {}
        self._remember(t, tid, storage)
        return tid

    def kept_around(self, t: torch.Tensor, partly: bool) -> list[int]:
        """What a partial write leaves standing must have been written before: a dependency that reads no bytes."""
        self.id_of(t)
        storage = self._storages[t.untyped_storage()._cdata]
        old = self.builder.tensors[storage.owner]
        if not partly and _stored(t, tuple(t.shape)) * t.element_size() >= t.untyped_storage().nbytes():
            return []
        return [self.builder.tensor((0,), old.dtype, old.role, base=old.base, elements=0, name=old.name)]

    def shares_storage(self, t: torch.Tensor, others: list[torch.Tensor]) -> bool:
        mine = t.untyped_storage()._cdata
        return any(o.untyped_storage()._cdata == mine for o in others)


def _stored(t: torch.Tensor, shape: tuple[int, ...]) -> int:
    """Distinct elements: an expanded dimension has stride 0, overlapping windows cannot exceed their storage."""
    count = prod(shape)
    if t.is_contiguous():
        return count
    distinct = prod(n for n, step in zip(shape, t.stride(), strict=True) if step)
    return min(distinct, max(1, t.untyped_storage().nbytes() // t.element_size())) if count else 0
