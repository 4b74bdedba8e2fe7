"""The configurations that a report states in, the bytes that each layer's output and input gradient need out.

A layer is known by its heading or its list item; its `Input`, `Output`, `Kernel`, `stride` and `padding` stand there or
below. Elements take four bytes where no type is named.
"""

import re
from dataclasses import dataclass
from math import prod

from rooflens.compare.columns import words
from rooflens.compare.written import Passage

_SHAPE = r"[\[(]?\s*(\d{1,9}(?:\s*[,x×]\s*\d{1,9}){1,5})\s*[\])]?"
_INPUT = re.compile(rf"\binput(?:\s+(?:shape|size|tensor))?\s*[:=]?\s*{_SHAPE}", re.I)
_OUTPUT = re.compile(rf"\boutput(?:\s+(?:shape|size|tensor))?\s*[:=]?\s*{_SHAPE}", re.I)
_SIDE = r"(?:\s*[,x×]\s*(\d{1,6}))?"
_FIELD = re.compile(rf"\b(kernel|stride|padding)s?(?:\s+size)?\s*[:=]?\s*[\[(]?(\d{{1,6}}){_SIDE}{_SIDE}", re.I)
_TYPES = ((8, r"float64|double|fp64|\bf64\b"), (2, r"b?float16|b?fp?16|\bhalf\b"), (1, r"\bint8\b|fp8"))
SLACK = 16  # what is left over is less than this part of what is needed,
SLACK_BYTES = 4096  # and no more than this: a few records, not another tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """`output_bytes` None where the layer's output does not follow from what is stated."""

    name: str
    line: int
    input_bytes: int
    output_bytes: int | None

    def of(self, key: tuple[str, ...]) -> int | None:
        """What the pass that the row's names say must at least allocate."""
        told = " ".join(key)
        if re.search(r"backward|\bbwd\b|\bgrad", told):
            return self.input_bytes
        return self.output_bytes if re.search(r"forward|\bfwd\b|inference", told) else None


def needs(passages: tuple[Passage, ...]) -> dict[str, Need]:
    """By the layer's name as rows have it."""
    texts: dict[str, list[Passage]] = {}
    for passage in passages:
        name = _name(passage)
        if name:
            texts.setdefault(name, []).append(passage)
    found = {name: _need(name, told) for name, told in texts.items()}
    return {name: need for name, need in found.items() if need is not None}


def multiple(needed: int, found: float) -> int | None:
    """How many times what is needed was taken, where that is whole but for a small constant."""
    times, left = divmod(int(found), needed)
    return times if times >= 1 and left <= min(needed // SLACK, SLACK_BYTES) else None


def _name(passage: Passage) -> str:
    """A configuration's own line begins with its field; what stands before a colon names the layer otherwise."""
    if not re.search(r"\b(?:input|output|kernel|stride|padding|type|dtype)\b", passage.text[:400], re.I):
        return ""
    first = passage.text.split(":")[0] if ":" in passage.text[:60] else ""
    if first and not re.search(r"input|output|kernel|stride|padding|type", first, re.I):
        return words(first)
    above = next(iter((*passage.above, *passage.headings)), "")
    return words(above.split(":")[0][:120])


def _need(name: str, told: list[Passage]) -> Need | None:
    text = " ; ".join(p.text[:400] for p in told[:12])
    given = _INPUT.search(text)
    if given is None:
        return None
    shape, size = _dims(given.group(1)), next((b for b, p in _TYPES if re.search(p, text, re.I)), 4)
    output = _OUTPUT.search(text)
    out = _dims(output.group(1)) if output else _pooled(name, shape, text)
    if not all(shape) or (out is not None and not all(out)):
        return None
    return Need(
        name=name,
        line=told[0].line,
        input_bytes=prod(shape) * size,
        output_bytes=None if out is None else prod(out) * size,
    )


def _dims(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text))


def _pooled(name: str, shape: tuple[int, ...], text: str) -> tuple[int, ...] | None:
    """Of a pooling layer, which keeps its channels: (n + 2 p - k) // s + 1 along each axis of space."""
    fields = {m.group(1).lower(): [int(g) for g in m.groups()[1:] if g] for m in _FIELD.finditer(text)}
    if "pool" not in name or "kernel" not in fields or len(shape) < 3:
        return None
    space = len(shape) - 2
    kernel, stride, padding = (
        _each(fields.get(f, default), space)
        for f, default in (("kernel", []), ("stride", fields["kernel"]), ("padding", [0]))
    )
    if 0 in stride:
        return None
    sides = zip(shape[2:], kernel, stride, padding, strict=True)
    return (*shape[:2], *((n + 2 * p - k) // s + 1 for n, k, s, p in sides))


def _each(values: list[int], axes: int) -> list[int]:
    return values[:axes] if len(values) >= axes else [values[0]] * axes
