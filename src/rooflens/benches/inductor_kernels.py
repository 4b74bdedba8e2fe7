"""What Inductor lowered a graph to in, the values that each of its kernels computes out: pure reading of names.

Inductor's own `origins` of a kernel also name what the kernels before it computed. What a loop nest computes is here what
its values need, back to the buffers that it reads.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A node of the graph that was lowered: input | constant | shape (moves nothing) | result. `source` is the node of
    the captured graph that it came from."""

    name: str
    role: str
    inputs: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Buffers that are written at once, and the last value that went into them. `kernel` None: nothing runs, the parts
    of a concatenation stand where they belong. A `call` of a library reads all its inputs from memory."""

    value: str
    reads: frozenset[str]
    writes: frozenset[str]
    kernel: int | None
    call: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """Values in topological order, stores in the order they run, the kernels' names."""

    values: tuple[Value, ...]
    stores: tuple[Store, ...]
    names: tuple[str, ...]


def computed(lowered: Lowered) -> tuple[frozenset[str], ...]:
    """Of each kernel, the values that it computes; shapes only where it ends with them, which makes it a copy."""
    reading = _Reading(lowered)
    found: list[set[str]] = [set() for _ in lowered.names]
    for place, store in enumerate(lowered.stores):
        for kernel in [store.kernel] if store.kernel is not None else reading.writers_of(store):
            found[kernel].update(reading.computed(place))
    return tuple(map(frozenset, found))


class _Reading:
    """`final`: value to the last store that ends with it; a call stores copies of its inputs under its own name first.
    `held`: what each store really holds, the input of a call or concatenation where it was made for one."""

    def __init__(self, lowered: Lowered) -> None:
        self.stores = lowered.stores
        self.values = {v.name: v for v in lowered.values}
        self.writer = {b: place for place, s in enumerate(self.stores) for b in s.writes}
        self.final = {s.value: place for place, s in enumerate(self.stores)}
        self.held: list[str] = []
        for place in range(len(self.stores)):
            self.held.append(self._made_for(place) if self._is_auxiliary(place) else self.stores[place].value)

    def writers_of(self, store: Store) -> list[int]:
        """The kernels that write the parts of a concatenation."""
        kernels = (self.stores[self.writer[b]].kernel for b in store.reads if b in self.writer)
        return [k for k in kernels if k is not None]

    def computed(self, place: int) -> Iterator[str]:
        """What the store ends with and what that needs. A second stage reads the first under the same name: it needs
        those inputs again that it can compute from what else it reads."""
        store, held = self.stores[place], self.held[place]
        known = self._known(place)
        if held == store.value:
            yield held
        if store.call or store.kernel is None or held not in self.values:
            return
        again = held == store.value and held in known
        for start in [i for i in self.values[held].inputs if self._is_open(i, known)] if again else [held]:
            yield from (n for n in self._back_from(start, known) if n not in known and self.values[n].role == "result")
        yield from self._reshaped(held, known)

    def _reshaped(self, name: str, known: set[str]) -> Iterator[str]:
        """The shapes that a store ends with: it is a copy into the last of them."""
        while name not in known and self.values[name].role == "shape":
            yield name
            name = self.values[name].inputs[0]

    def _is_auxiliary(self, place: int) -> bool:
        store = self.stores[place]
        end = self.final[store.value]
        return store.value in self.values and end != place and not store.call and self._is_fixed(end)

    def _is_fixed(self, place: int) -> bool:
        """A call or a concatenation: what it stores cannot be computed once more by whoever needs it."""
        return self.stores[place].call or self.stores[place].kernel is None

    def _made_for(self, place: int) -> str:
        """Of the inputs that can be computed from what the store reads, the one that uses most of it; not one that
        another store holds already."""
        known = self._known(place)
        taken = set(self.held) - known
        inputs = [i for i in self.values[self.stores[place].value].inputs if i not in taken]
        inputs = [i for i in inputs if self._is_open(i, known)]
        return max(inputs, key=lambda i: len(known.intersection(self._back_from(i, known))), default="")

    def _is_open(self, name: str, known: set[str]) -> bool:
        """Whether loops can compute it from what is known."""
        return not any(self._is_elsewhere(n) for n in self._back_from(name, known) if n not in known)

    def _known(self, place: int) -> set[str]:
        """What the store reads from memory: what other stores hold, and inputs of the graph under their own names."""
        reads = self.stores[place].reads
        held = {self.held[self.writer[b]] for b in reads if self.writer.get(b, place) < place}
        return held | (reads & self.values.keys())

    def _is_elsewhere(self, name: str) -> bool:
        end = self.final.get(name)
        return self.values[name].role == "input" or (end is not None and self._is_fixed(end))

    def _back_from(self, name: str, known: set[str]) -> Iterator[str]:
        """The value and all that it needs, up to and with what is known."""
        todo, seen = [name], {name}
        while todo:
            at = todo.pop()
            yield at
            new = () if at in known else [i for i in self.values[at].inputs if i not in seen]
            seen.update(new)
            todo += new
