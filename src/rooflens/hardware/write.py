"""Hardware in, a chip file out that loads to the same chip: what `hardware new` starts from, and what was measured."""

import json

from rooflens.hardware.records import Fact, Hardware, dimension_of
from rooflens.units import exact

_SI = {
    "bytes": "B",
    "bytes_per_s": "B/s",
    "flop_per_s": "FLOP/s",
    "hz": "Hz",
    "w": "W",
    "s": "s",
    "j_per_byte": "J/B",
    "j_per_flop": "J/OP",
}


def chip_toml(hardware: Hardware, chip_id: str) -> str:
    """Values as a datasheet prints them, yet without loss; every source kept."""
    lines = [
        f"# Started from {hardware.id}: change every value that differs, and its source with it.",
        f"id = {_text(chip_id)}",
        f"name = {_text(f'{chip_id} (from {hardware.name})')}",
        f"vendor = {_text(hardware.vendor)}",
        f"kind = {_text(hardware.kind)}",
        f"family = {_text(chip_id)}",
        f"unit_name = {_text(hardware.unit_name)}",
        "hypothetical = true",
        f"note = {_text(f'started from {hardware.id}')}",
    ]
    return "\n".join([*lines, *_tables(hardware)]) + "\n"


def measured_toml(hardware: Hardware) -> str:
    """A chip that was measured: with its date, and whose roofs these are."""
    lines = [
        "# Written by rooflens machine, which writes it anew each time: copy it before you change it.",
        f"id = {_text(hardware.id)}",
        f"name = {_text(hardware.name)}",
        f"vendor = {_text(hardware.vendor)}",
        f"kind = {_text(hardware.kind)}",
        f"unit_name = {_text(hardware.unit_name)}",
        f"note = {_text(hardware.note)}",
        "measured = true",
        f"measured_on = {_text(hardware.measured_on)}",
        f"fingerprint = {_text(hardware.fingerprint)}",
        f"lower_bounds = [{', '.join(_text(level) for level in hardware.lower_bounds)}]",
    ]
    return "\n".join([*lines, *_tables(hardware)]) + "\n"


def _tables(hardware: Hardware) -> list[str]:
    lines: list[str] = []
    for table in dict.fromkeys(f.key.rpartition(".")[0] for f in hardware.facts):
        lines += ["", f"[{table}]", *(_fact(f) for f in hardware.facts if f.key.rpartition(".")[0] == table)]
    return lines


def _fact(fact: Fact) -> str:
    name = fact.key.rpartition(".")[2]
    if fact.value is None:
        return f"{name} = {{ {'absent' if fact.absent else 'unpublished'} = {_text(fact.source)} }}"
    unit = _SI.get(dimension_of(fact.key))
    value = _text(exact(fact.value, unit)) if unit else repr(fact.value).removesuffix(".0")
    return f"{name} = {{ value = {value}, source = {_text(fact.source)} }}"


def _text(value: str) -> str:
    """A TOML basic string: JSON's escapes are a subset of TOML's."""
    return json.dumps(value, ensure_ascii=False)
