"""CHIP text in, Hardware out: a catalogue id, a `.toml` path, `this`, or any of these `with KEY=VALUE[, …]`.

Every fault of a file is collected and reported at once, because mending a chip file one error at a time is a chore.
"""

import os
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from rooflens.errors import (
    ConfigError,
    FileError,
    HardwareError,
    InputError,
    RooflensError,
    nearest,
)
from rooflens.hardware import this
from rooflens.hardware.profile import load_profile, shipped_profile
from rooflens.hardware.records import KINDS, LEVELS, OFFCHIP, Fact, Hardware, checked_value, dimension_of, with_fact

CATALOG = Path(__file__).with_name("catalog")
MAX_FILE_BYTES = 1_000_000
_TEXT_KEYS = ("id", "name", "vendor", "kind", "family", "unit_name", "note", "source", "measured_on", "fingerprint")
_SWITCHES = ("hypothetical", "measured")
_PLAIN_KEYS = (*_TEXT_KEYS, *_SWITCHES, "year", "lower_bounds", "sources")


def catalog_ids() -> tuple[str, ...]:
    return tuple(sorted(p.stem for p in CATALOG.glob("*.toml")))


def load_chip(text: str) -> Hardware:
    """The chip that CHIP text names."""
    if _is_file(text):
        return load_file(Path(text.strip()))
    base, _, changes = _split_with(text.strip())
    hardware = _profiled(_load_base(base), base)
    return _with_changes(hardware, changes) if changes else hardware


def split_chips(text: str) -> tuple[str, ...]:
    """A comma list of chips; a piece with `=` belongs to the `with` before it."""
    if _is_file(text):
        return (text.strip(),)
    chips: list[str] = []
    for piece in (p.strip() for p in text.split(",")):
        if "=" in piece and " with " not in piece and chips:
            chips[-1] += f", {piece}"
        elif piece:
            chips.append(piece)
    if not chips:
        raise HardwareError("no chip named: give an id from 'rooflens hardware list'")
    return tuple(chips)


def _is_file(text: str) -> bool:
    """A path may hold commas and the word `with`."""
    return text.strip().endswith(".toml") and os.path.isfile(text.strip())  # noqa: PTH113 - takes any text, even NUL


def _split_with(text: str) -> tuple[str, str, str]:
    base, found, changes = f"{text} ".partition(" with ")
    if found and not changes.strip():
        raise HardwareError(f"'{text}': nothing after 'with': write KEY=VALUE, such as memory.offchip.bandwidth=5TB/s")
    return base.strip(), found, changes.strip()


def _profiled(hardware: Hardware, name: str) -> Hardware:
    """With what was calibrated here for it, else with what is shipped for it."""
    if name.endswith(".toml"):
        return hardware
    own = this.profile_path_of(hardware)
    return replace(hardware, profile=load_profile(own) if own.is_file() else shipped_profile(hardware.id))


def _load_base(base: str) -> Hardware:
    if base in this.NAMES:
        return this.checked(load_file(this.file_of(base)), base)
    if base.endswith(".toml"):
        return load_file(Path(base))
    if base in catalog_ids():
        return _load_catalog(base)
    if Path(base).is_dir():
        raise FileError(f"{base}: is a folder, not a file: name the .toml inside it")
    raise HardwareError(
        f"'{base}' is no chip of the catalogue and no .toml file.{nearest(base, catalog_ids())} See 'rooflens hardware list'"
    )


@cache
def _load_catalog(chip_id: str) -> Hardware:
    return load_file(CATALOG / f"{chip_id}.toml")


def _with_changes(hardware: Hardware, changes: str) -> Hardware:
    """The changes go into its name, so that no report takes it for the chip that is sold."""
    faults: list[str] = []
    name = f"{hardware.name} with {', '.join(c.strip() for c in changes.split(','))}"
    for piece in changes.split(","):
        try:
            hardware = _with_change(hardware, piece)
        except RooflensError as error:
            faults.append(str(error))
    if faults:
        raise HardwareError(f"{hardware.id} with …: {'; '.join(faults)}")
    return replace(hardware, name=name)


def _with_change(hardware: Hardware, piece: str) -> Hardware:
    key, found, raw = (s.strip() for s in piece.partition("="))
    if not found or not key or not raw:
        raise HardwareError(f"'{piece.strip()}' is not KEY=VALUE: write memory.offchip.bandwidth=5TB/s")
    key = _resolve(hardware, key)
    return with_fact(hardware, key, checked_value(key, raw), f"set by 'with {key}={raw}'")


def _resolve(hardware: Hardware, key: str) -> str:
    """`memory.offchip` names whichever off-chip level this chip has, and it has no second one."""
    level = key.split(".")[1] if key.startswith("memory.") and key.count(".") == 2 else ""
    if level not in ("offchip", *OFFCHIP):
        return key
    if hardware.offchip is None:
        raise HardwareError(f"{key}: {hardware.id} has no off-chip memory level: name one of {' '.join(OFFCHIP)}")
    own = key.replace(level, hardware.offchip.level, 1)
    if level not in ("offchip", hardware.offchip.level):
        raise HardwareError(
            f"{key}: the off-chip memory of {hardware.id} is {hardware.offchip.level}: write {own} or "
            f"{key.replace(level, 'offchip', 1)}"
        )
    return own


def load_file(path: Path) -> Hardware:
    """A chip file, validated whole."""
    return parse_chip(read_toml(path), origin=str(path), default_id=path.stem)


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML document of sane size; its own faults as one line."""
    try:
        if path.stat().st_size >= MAX_FILE_BYTES:
            raise ConfigError(
                f"{path}: larger than {MAX_FILE_BYTES} bytes, which no chip or layer file needs: shorten it"
            )
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}: give a readable file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text: save it as UTF-8 TOML") from None
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply: flatten its tables") from None


def parse_chip(document: dict[str, Any], *, origin: str, default_id: str) -> Hardware:
    faults: list[str] = []
    facts = _facts(document, faults)
    _check_plain(document, faults)
    if not faults:
        _check_whole(facts, faults)
    if faults:
        raise HardwareError(f"{origin}: {'; '.join(faults)}")
    return Hardware(
        id=document.get("id", default_id),
        name=document.get("name", default_id),
        vendor=document.get("vendor", "unknown"),
        kind=document["kind"],
        year=document.get("year"),
        family=document.get("family", ""),
        unit_name=document.get("unit_name", "unit"),
        hypothetical=document.get("hypothetical", False),
        note=document.get("note", ""),
        origin=os.path.basename(origin),  # noqa: PTH119 - origin is a label, not a path to open
        measured=document.get("measured", False),
        measured_on=document.get("measured_on", ""),
        fingerprint=document.get("fingerprint", ""),
        lower_bounds=tuple(document.get("lower_bounds", ())),
        facts=facts,
    )


def _facts(document: dict[str, Any], faults: list[str]) -> tuple[Fact, ...]:
    sources = document.get("sources", {})
    sources = sources if isinstance(sources, dict) else {}
    facts: list[Fact] = []
    for key, raw in _leaves(document, faults):
        try:
            facts.append(_fact(key, raw, sources, str(document.get("source", ""))))
        except InputError as error:
            faults.append(str(error))
    return tuple(facts)


def _leaves(document: dict[str, Any], faults: list[str]) -> list[tuple[str, Any]]:
    """Every value of the document with its dotted key, but for the plain fields at the top."""
    found: list[tuple[str, Any]] = []

    def walk(prefix: str, table: dict[str, Any], depth: int) -> None:
        for name, item in table.items():
            key = f"{prefix}{name}"
            if isinstance(item, dict) and not ({"value", "unpublished", "absent"} & item.keys()) and depth < 3:
                walk(f"{key}.", item, depth + 1)
            else:
                found.append((key, item))

    for name, item in document.items():
        if name in _PLAIN_KEYS:
            continue
        if isinstance(item, dict):
            walk(f"{name}.", item, 1)
        else:
            faults.append(f"{name}: unknown key.{nearest(name, _PLAIN_KEYS)}")
    return found


def _fact(key: str, raw: Any, sources: dict[str, Any], default_source: str) -> Fact:
    if isinstance(raw, dict):
        unknown = raw.keys() - {"value", "source", "unpublished", "absent"}
        if unknown:
            raise HardwareError(
                f"{key}: unknown field {sorted(unknown)[0]}: use value and source, or unpublished, or absent"
            )
        for word in ("unpublished", "absent"):
            if word in raw:
                dimension_of(key)
                return Fact(key=key, value=None, source=str(raw[word]), absent=word == "absent")
        source = str(raw.get("source", default_source))
        return Fact(key=key, value=_number(key, raw["value"]), source=str(sources.get(source, source)))
    return Fact(key=key, value=_number(key, raw), source=default_source)


def _number(key: str, raw: Any) -> float:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        dimension_of(key)
        raise HardwareError(f"{key}: {type(raw).__name__} where a quantity belongs")
    return checked_value(key, raw)


def _check_plain(document: dict[str, Any], faults: list[str]) -> None:
    for key in _TEXT_KEYS:
        if key in document and not isinstance(document[key], str):
            faults.append(f"{key}: must be text")
    if document.get("kind") not in KINDS:
        faults.append(f"kind: must be one of {' '.join(KINDS)}")
    if not isinstance(document.get("year", 2000), int):
        faults.append("year: must be a whole number")
    for key in _SWITCHES:
        if not isinstance(document.get(key, False), bool):
            faults.append(f"{key}: must be true or false")
    lower_bounds = document.get("lower_bounds", [])
    if not isinstance(lower_bounds, list) or any(level not in LEVELS for level in lower_bounds):
        faults.append(f"lower_bounds: must be a list of {' '.join(LEVELS)}")


def _check_whole(facts: tuple[Fact, ...], faults: list[str]) -> None:
    keys = [f.key for f in facts]
    offchip = [level for level in OFFCHIP if any(k.startswith(f"memory.{level}.") for k in keys)]
    if not any(k.startswith("peak.") for k in keys):
        faults.append('peak: no peak given: add [peak.fp32] vector = "1 TFLOP/s"')
    if len(offchip) != 1:
        faults.append(f"memory: needs exactly one off-chip level of {' '.join(OFFCHIP)}, has {len(offchip)}")
