"""`this` in, the chip file that `rooflens machine` left for it out: in the user's own data folder, checked to be of this
computer.

One file a device; `this` is the one measured last, by the date that the files themselves carry.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rooflens.errors import FileError, HardwareError
from rooflens.hardware.identity import ROOT, fingerprint, identity, text
from rooflens.hardware.records import Hardware

DEVICES = ("cpu", "cuda")
NAMES = ("this", *(f"this-{d}" for d in DEVICES))
CURE = "run 'rooflens machine'"


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """ROOFLENS_HOME, else the XDG folder for data, else its default."""
    home, xdg = environment.get("ROOFLENS_HOME", ""), environment.get("XDG_DATA_HOME", "")
    if home:
        return Path(home)
    return (Path(xdg) if xdg.startswith("/") else Path("~/.local/share").expanduser()) / "rooflens"


def path_of(device: str) -> Path:
    return data_folder() / f"this-{device}.toml"


def profile_path_of(chip: Hardware) -> Path:
    """Where `rooflens calibrate` leaves what it found for a chip: for this machine one file a device."""
    name = f"this-{name_of_device(chip)}" if chip.fingerprint else chip.id
    return data_folder() / f"profile-{name}.json"


def made_folder() -> None:
    folder = data_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made: {error.strerror}: set ROOFLENS_HOME to a folder of yours") from None


def file_of(name: str) -> Path:
    """Of `this-cpu`, `this-cuda`, or the one measured last of them."""
    device = name.removeprefix("this").removeprefix("-")
    found = [p for d in DEVICES if device in ("", d) and (p := path_of(d)).is_file()]
    if not found:
        option = " --device cuda" if device == "cuda" else ""
        raise HardwareError(
            f"chip '{name}': nothing was measured on this machine yet: run 'rooflens machine{option}' first"
        )
    return max(found, key=lambda p: (_measured_on(p), p.name))


def checked(chip: Hardware, name: str, root: Path = ROOT) -> Hardware:
    """Roofs of another computer would be wrong in silence: a home folder may be shared by many."""
    devices = (chip.name,) if name_of_device(chip) == "cuda" else ()
    here = fingerprint(identity(root), devices)
    if chip.fingerprint and chip.fingerprint != here:
        raise HardwareError(
            f"chip '{name}': {path_of(name_of_device(chip))} was measured on another machine ({chip.name}, fingerprint "
            f"{chip.fingerprint}, here {here}): {_cure(chip)}, or give the path of the file to use it all the same"
        )
    names = device_names(root)
    if devices and names is None:
        return replace(chip, note=f"{chip.note}; whether that device is here now could not be checked")
    if devices and names is not None and chip.name not in names:
        raise HardwareError(f"chip '{name}': measured on {chip.name}, here is {', '.join(names)}: {_cure(chip)}")
    return chip


def name_of_device(chip: Hardware) -> str:
    return "cuda" if chip.kind == "gpu" else "cpu"


def device_names(root: Path = ROOT) -> tuple[str, ...] | None:
    """Names of the NVIDIA devices without any library; None where the driver shows none."""
    files = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    lines = [line for f in files for line in (text(f) or "").splitlines() if line.startswith("Model:")]
    return tuple(line.partition(":")[2].strip() for line in lines) or None


def _cure(chip: Hardware) -> str:
    return f"{CURE} --device cuda here" if name_of_device(chip) == "cuda" else f"{CURE} here"


def _measured_on(path: Path) -> str:
    """'' of a file that cannot be read: whoever loads it says what is wrong with it."""
    try:
        return str(tomllib.loads(path.read_text("utf-8")).get("measured_on", ""))
    except (OSError, ValueError):
        return ""
