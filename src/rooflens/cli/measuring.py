"""What `measure` asks before it runs, and the status that it ends with."""

from typing import Any

from rooflens.cli import INTERRUPTED, TERMINATED, streams
from rooflens.errors import HardwareError, PartialResult, SyntaxFault
from rooflens.frontends.load import needs_torch
from rooflens.hardware.load import load_chip, split_chips
from rooflens.hardware.records import Hardware
from rooflens.measuring import device_name

STOPPED = {"KeyboardInterrupt": INTERRUPTED, "Terminated": TERMINATED}


def roofs_of(on: list[str] | None, device: str | None) -> tuple[Hardware, str]:
    """The chip that --on names, else this machine as it was measured, if need be now."""
    chips = [chip for text in on or () for chip in split_chips(text)]
    if len(chips) > 1:
        raise SyntaxFault(f"--on names {len(chips)} chips: layers run on one machine: name one, or leave --on out")
    if chips:
        return load_chip(chips[0]), chips[0]
    needs_torch()
    name = f"this-{device_name(device)}"
    try:
        return load_chip(name), name
    except HardwareError:
        return _found_now(name)


def _found_now(name: str) -> tuple[Hardware, str]:
    """A first try should end with a distance to the roof, not with advice to run another verb before."""
    from rooflens.cli.machine import found_now

    streams.say("rooflens: the roofs of this machine are not known yet: finding them first, in about ten seconds")
    found_now(name.removeprefix("this-"))
    return load_chip(name), name


def interrupted_status(document: dict[str, Any]) -> int:
    return STOPPED.get(document["measured"]["stopped_by"] or "", 0)


def partial_status(document: dict[str, Any], strict: bool) -> int:
    """3 where a layer failed or found no memory; under --strict also where one could not be told."""
    rows = [*document["measured"]["ops"], *document["measured"]["whole"]]
    broken = any(r["status"] in ("failed", "oom") for r in rows)
    judged = [*rows, *document["measured"]["tried"], *document["measured"]["groups"]]
    unsure = strict and any(r["inconclusive"] for r in judged)
    return PartialResult.status if broken or unsure else 0
