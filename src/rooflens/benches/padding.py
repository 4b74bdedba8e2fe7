"""A recorded linear or convolution in, the same call with more outputs out: as many as the machine's units take at once."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from rooflens.benches.device import Device
from rooflens.benches.replay import differentiated, forward_of, needed_bytes
from rooflens.benches.trial import Attempt, Pair, Run, attempt
from rooflens.benches.whole import Around
from rooflens.frontends.pytorch.calls import Call, Place, Slot

_WEIGHT, _BIAS, _GROUPS = 1, 2, 6  # among the arguments of all of them
_PADDED = frozenset({"aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Padded:
    """`width` outputs were asked for, `wide` are computed."""

    call: Call
    width: int
    wide: int


def multiple_of(device: str, bits: int) -> int:
    """Outputs that are computed at once: 16 lanes of a CPU's widest vectors, 16 bytes of a tensor core's rows at the least
    and 8 of them."""
    return 16 if device == "cpu" else max(8, 128 // bits)


def padded(call: Call, device: str) -> Padded | None:
    """None where it is no such layer, or where nothing is left over. Groups would have to be padded one by one."""
    if call.name not in _PADDED or _argument(call, _GROUPS, 1) != 1:
        return None
    weight = _argument(call, _WEIGHT, None)
    if not isinstance(weight, Place) or not call.slots[weight.slot].shape:
        return None
    slot = call.slots[weight.slot]
    step = multiple_of(device, slot.dtype.itemsize * 8)
    width, wide = slot.shape[0], -(-slot.shape[0] // step) * step
    bias = _argument(call, _BIAS, None)
    changed = {p.slot for p in (weight, bias) if isinstance(p, Place)}
    if width == wide or len(changed) != 1 + isinstance(bias, Place):
        return None
    slots = tuple(_wider(s, wide) if place in changed else s for place, s in enumerate(call.slots))
    return Padded(call=replace(call, slots=slots), width=width, wide=wide)


def _argument(call: Call, place: int, default: Any) -> Any:
    arguments = call.function._schema.arguments
    name = arguments[place].name if place < len(arguments) else ""
    return call.args[place] if place < len(call.args) else call.kwargs.get(name, default)


def _wider(slot: Slot, wide: int) -> Slot:
    """In the same order of strides, without gaps."""
    shape = (wide, *slot.shape[1:])
    order = sorted(range(len(shape)), key=lambda axis: -slot.stride[axis])
    strides = {axis: prod(shape[later] for later in order[place + 1 :]) for place, axis in enumerate(order)}
    return replace(slot, shape=shape, stride=tuple(strides[axis] for axis in range(len(shape))))


def padded_attempt(
    call: Call, wide: Call, *, training: bool, device: Device, around: Around, seconds: float
) -> Attempt:
    """Each alone: forward, or with `training` forward and backward."""

    def run(given: Call) -> Run:
        if not training:
            return forward_of(given, device.name, around)
        both = differentiated(given, device.name, around)

        def step() -> None:
            both.forward()
            if both.backward is not None:
                both.backward()

        return step

    needed = 2 * (needed_bytes(call) + needed_bytes(wide))
    return attempt(lambda: Pair(before=run(call), after=run(wide)), device, seconds, needed, captured=True)
