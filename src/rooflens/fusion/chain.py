"""Ops one by one in, groups out: the pass that grows a group while nobody outside has read it.

A group that an outside op has read takes no further member. So no path leaves a group and comes back, and running the
groups in the order of their last members is legal, without a search for cycles. The merges at the end (`late epilogue`,
`residual add`, `written-out attention`) join a product whose only reader is the other group, for which the same holds.
"""

from typing import NamedTuple

from rooflens.costs.sheet import CostSheet
from rooflens.fusion import rules as r
from rooflens.fusion.flow import NOBODY, Flow
from rooflens.graph.records import STORED_ROLES, Op
from rooflens.ops.table import OPS


class Link(NamedTuple):
    """A reader meets what a kernel wrote. `rule` is the row that joins the two, None where `reason` keeps them apart."""

    before: int
    after: int
    owner: int
    rule: str | None
    reason: str | None


class Cluster:
    """A group as it grows. `space` is how many elements it goes over, `rows` how many are left after its reductions and
    `norm` the kind of its norm, None where it has none."""

    __slots__ = ("closed_by", "kind", "last", "norm", "ops", "rows", "space")

    def __init__(self, place: int, kind: str, space: int, rows: int | None) -> None:
        self.ops = [place]
        self.kind, self.space, self.rows = kind, space, rows
        self.norm: str | None = None
        self.last = place
        self.closed_by: int | None = None


class Chains:
    """The pass and what it has found so far."""

    def __init__(self, sheet: CostSheet, flow: Flow) -> None:
        self.graph, self.flow = sheet.graph, flow
        self.opaque = [row.opaque for row in sheet.rows]
        self.of: list[Cluster | None] = [None] * len(self.graph.ops)
        self.rule_of: list[str | None] = [None] * len(self.graph.ops)  # by which it joined the group it is in
        self.merged_by: list[tuple[str, int] | None] = [None] * len(
            self.graph.ops
        )  # by which its loop joined which product
        self.links: list[Link] = []
        for place, op in enumerate(self.graph.ops):
            if not op.view:
                self._place(place, op)

    def _place(self, place: int, op: Op) -> None:
        role = _ROLE.get(op.kind, "opaque")
        if op.kind == "mean" and self._is_global_pool(op):
            role = "pool"
        space, rows = self._space(op, role)
        joins: list[tuple[Cluster, str]] = []
        read: list[Cluster] = []
        for owner in self.flow.reads[place]:
            writer = self.flow.writers[owner]
            if writer in (NOBODY, place):
                continue
            cluster = self.of[writer]
            assert cluster is not None
            rule, reason = self._verdict(cluster, owner, place, op, role, space)
            self.links.append(Link(writer, place, owner, rule, reason))
            read.append(cluster)
            if rule is not None and all(cluster is not c for c, _ in joins):
                joins.append((cluster, rule))
        mine = self._joined(place, role, space, rows, joins)
        if role == "norm":
            mine.norm = op.kind
        elif op.kind == "concat" and not joins:
            mine.kind = r.ALONE  # copies side by side what others wrote: no loop goes on from there
        self.of[place] = mine
        for cluster in read:
            if self.of[cluster.ops[0]] is not mine and cluster.closed_by is None:
                cluster.closed_by = place

    def _is_global_pool(self, op: Op) -> bool:
        """A mean over all of space is a pool, however it is written."""
        shape, out = self.graph.tensors[op.inputs[0]].shape, self.graph.tensors[op.outputs[0]]
        return len(shape) > 3 and out.elements == shape[0] * shape[1]

    def _space(self, op: Op, role: str) -> tuple[int, int | None]:
        """Elements that it goes over, and what a reduction leaves of them."""
        tensors = self.graph.tensors
        written = tensors[op.outputs[0]].elements if op.outputs else 0
        if role not in ("norm", "reduction"):
            return written, None
        read = max((tensors[i].elements for i in op.inputs), default=0)
        return max(read, written), written if role == "reduction" else None

    def _joined(self, place: int, role: str, space: int, rows: int | None, joins: list[tuple[Cluster, str]]) -> Cluster:
        """The cluster that the op at `place` becomes part of: all that it may join, as long as they agree on rows."""
        if not joins:
            return Cluster(place, r.CLASS_OF_ROLE.get(role, r.ALONE), space, rows)
        joins.sort(key=lambda j: -j[0].last)
        into, rule = joins[0]
        self.rule_of[place] = rule
        for other, _ in joins[1:]:
            if _agree(into, other):
                into = self._united(into, other)
        into.ops.append(place)
        into.last = place
        into.space = max(into.space, space)
        if rows is not None or role == "norm":
            into.kind = r.ROWS
            into.rows = rows
        return into

    def _united(self, a: Cluster, b: Cluster) -> Cluster:
        """The smaller goes into the larger, so that a long series of merges stays quick."""
        if len(a.ops) < len(b.ops):
            a, b = b, a
        for place in b.ops:
            self.of[place] = a
        a.ops += b.ops
        a.last = max(a.last, b.last)
        a.space = max(a.space, b.space)
        if b.kind == r.ROWS:
            a.kind, a.rows, a.norm = r.ROWS, b.rows, b.norm
        return a

    # what may join what

    def _verdict(
        self, cluster: Cluster, owner: int, place: int, op: Op, role: str, space: int
    ) -> tuple[str | None, str | None]:
        writer = self.flow.writers[owner]
        if self.opaque[place] or self.opaque[writer]:
            return None, r.OPAQUE
        before = self.graph.ops[writer]
        if before.pass_ != op.pass_:
            return None, r.SAVED if op.pass_ == "backward" else self._unlisted(before, op)
        if cluster.kind == r.PRODUCT:
            return self._epilogue(owner, place, op, role, space)
        if cluster.kind == r.ALONE or role not in _LOOPS:
            return None, self._unlisted(before, op)
        rule, reason = self._loop(cluster, owner, place, op, role, space)
        if rule is not None and cluster.closed_by is not None:
            return None, self._closed(cluster, owner, place)
        return rule, reason

    def _epilogue(self, owner: int, place: int, op: Op, role: str, space: int) -> tuple[str | None, str | None]:
        before = self.graph.ops[self.flow.writers[owner]]
        if role not in r.ELEMENTWISE:
            cast = op.kind == "cast"
            return None, self._dtypes(owner, op) if cast else self._unlisted(before, op)
        others = self.others(owner, place) if len(self.flow.readers[owner]) > 1 else 0
        if others:
            return None, fork(others)
        if owner in self.flow.kept:
            return None, r.OUTPUT
        if len(self.flow.reads[place]) > 1 and len(self.operands(place)) > 1:
            return None, r.JOIN_ORDER
        tensor, out = self.graph.tensors[owner], self.graph.tensors[op.outputs[0]]
        if tensor.elements != space:
            return None, r.SHAPE.format(tensor.elements, space)
        if tensor.dtype != out.dtype:
            return None, self._dtypes(owner, op)
        return r.EPILOGUE, None

    def _loop(
        self, cluster: Cluster, owner: int, place: int, op: Op, role: str, space: int
    ) -> tuple[str | None, str | None]:
        """A generated kernel goes on where it goes over as many elements, or over the rows that it has made."""
        unlisted = None, self._unlisted(self.graph.ops[self.flow.writers[owner]], op)
        if role == "lookup":  # it may compute its indices, but must find its table in memory
            is_table = owner == self.graph.tensors[op.inputs[0]].base
            return unlisted if is_table or cluster.kind == r.ROWS else self._inline(cluster, owner, place, space)
        if not self._whole(owner, op):
            return None, r.SHAPE.format(cluster.space, f"a part of {self.graph.tensors[owner].elements}")
        if cluster.kind == r.ROWS:
            if role == "norm" or (role == "reduction" and not self._same_rows(cluster, op, space)):
                return unlisted
            if space in (cluster.space, cluster.rows):
                return r.OUT_OF_ROWS, None
            return None, r.SHAPE.format(cluster.space, space)
        if space == cluster.space:
            return (r.CHAIN if role not in ("norm", "reduction") else r.INTO_ROWS), None
        return self._inline(cluster, owner, place, space)

    def _whole(self, owner: int, op: Op) -> bool:
        """Does it see all that was written, not a slice of it? A loop makes its elements once, in one order."""
        tensors = self.graph.tensors
        return all(tensors[i].elements >= tensors[owner].elements for i in op.inputs if tensors[i].base == owner)

    def _same_rows(self, cluster: Cluster, op: Op, space: int) -> bool:
        left = self.graph.tensors[op.outputs[0]].elements
        return space == cluster.space and cluster.rows in (None, left)

    def _inline(self, cluster: Cluster, owner: int, place: int, space: int) -> tuple[str | None, str | None]:
        if cluster.space >= space:
            return None, r.SHAPE.format(self.graph.tensors[owner].elements, space)
        others = self.others(owner, place)
        if others:
            return None, fork(others)
        return (r.INLINE, None) if owner not in self.flow.kept else (None, r.OUTPUT)

    def _closed(self, cluster: Cluster, owner: int, place: int) -> str:
        others = self.others(owner, place)
        if others:
            return fork(others)
        assert cluster.closed_by is not None
        return r.CYCLE.format(self.graph.ops[cluster.closed_by].id)

    def others(self, owner: int, place: int) -> int:
        """Other readers of the same pass. What only backward reads is saved for it, and written either way."""
        readers, pass_ = self.flow.readers[owner], self.graph.ops[place].pass_
        return sum(p != place and self.graph.ops[p].pass_ == pass_ for p in readers)

    def operands(self, place: int) -> list[int]:
        """Activations that it reads; a single element is a factor, not an operand."""
        tensors = self.graph.tensors
        return [b for b in self.flow.reads[place] if tensors[b].role not in STORED_ROLES and tensors[b].elements > 1]

    def _unlisted(self, before: Op, after: Op) -> str:
        return r.UNLISTED.format(before.kind, after.kind)

    def _dtypes(self, owner: int, op: Op) -> str:
        tensors = self.graph.tensors
        return r.DTYPE.format(tensors[owner].dtype, tensors[op.outputs[0]].dtype)


_ROLE = {kind: spec.role for kind, spec in OPS.items()}
_LOOPS = frozenset({"affine", "pointwise", "move", "lookup", "norm", "reduction"})


def fork(others: int) -> str:
    return r.FORK.format(others, "s" * (others > 1))


def _agree(a: Cluster, b: Cluster) -> bool:
    """Two loops may share a kernel, or a loop and rows; two sets of rows only where they are the same."""
    if r.PRODUCT in (a.kind, b.kind):
        return False
    return not (a.kind == b.kind == r.ROWS) or (a.space, a.rows, a.norm) == (b.space, b.rows, b.norm)
