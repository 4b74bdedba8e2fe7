"""What classes of ops reach of a chip's roofs, as measured: a Profile, its file, and the profile that a chip has.

The time of an op is overhead + max(work at its share of the peak, bytes at their share of the bandwidth): three numbers a
class and type, so that a chip with another peak or bandwidth still has a time that follows from them.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from rooflens.errors import ConfigError
from rooflens.jsonfile import read_json
from rooflens.resultfile import PROFILE_SCHEMA, faults, published

_CURE = "make it again with 'rooflens calibrate'"
SHIPPED = Path(__file__).with_name("profiles")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Of one class of ops in one type. A share is None where no point was limited by that roof; then it is taken as the
    other one. `low` and `high`: measured over predicted time, of the tenth and the ninetieth of a hundred points."""

    op_class: str
    dtype: str
    layout: str
    overhead_s: float
    work_share: float | None
    bytes_share: float | None
    low: float
    high: float
    points: int

    def time_s(self, work_s: float, moved_s: float) -> float:
        work = self.work_share or self.bytes_share or 1.0
        moved = self.bytes_share or self.work_share or 1.0
        return self.overhead_s + max(work_s / work, moved_s / moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    chip: str
    date: str
    device: str
    versions: tuple[tuple[str, str], ...]
    reaches: tuple[Reach, ...]
    note: str = ""

    def reach(self, op_class: str, dtype: str, layout: str) -> Reach | None:
        return self.lookup(layout)(op_class, dtype)

    def lookup(self, layout: str) -> Callable[[str, str], Reach | None]:
        """What a class reaches in a type, to be asked for many ops. In another layout as in the usual one, in one 16-bit type
        as in the other, where it was not run by itself."""
        known = {(r.op_class, r.dtype, r.layout): r for r in self.reaches}

        @cache
        def found(op_class: str, dtype: str) -> Reach | None:
            kinds = (dtype, _ALIKE.get(dtype, dtype))
            tried = (known.get((op_class, kind, place)) for kind in kinds for place in (layout, "nchw"))
            return next((reach for reach in tried if reach is not None), None)

        return found


_ALIKE = {"fp16": "bf16", "bf16": "fp16"}


def profile_document(p: Profile) -> dict[str, Any]:
    return {
        "schema": PROFILE_SCHEMA, "chip": p.chip, "date": p.date, "device": p.device, "versions": dict(p.versions),
        "note": p.note, "reaches": [asdict(r) for r in p.reaches],
    }  # fmt: skip


def profile_text(p: Profile) -> str:
    return json.dumps(profile_document(p), indent=1, ensure_ascii=True) + "\n"


def load_profile(path: Path) -> Profile:
    found = read_json(str(path))
    kind = found.get("schema") if isinstance(found, dict) else None
    if kind != PROFILE_SCHEMA:
        raise ConfigError(f"{path}: schema is {kind!r}, not '{PROFILE_SCHEMA}': {_CURE}")
    for where, what in faults(found, published(PROFILE_SCHEMA), ""):
        raise ConfigError(f"{path}: field '{where}' {what}: {_CURE}")
    known = [f.name for f in fields(Reach)]
    return Profile(
        chip=found["chip"],
        date=found["date"],
        device=found["device"],
        versions=tuple((str(k), str(v)) for k, v in found["versions"].items()),
        note=found["note"],
        reaches=tuple(Reach(**{name: row[name] for name in known}) for row in found["reaches"]),
    )


@cache
def shipped_profile(chip: str) -> Profile | None:
    file = SHIPPED / f"{chip}.json"
    return load_profile(file) if file.is_file() else None
