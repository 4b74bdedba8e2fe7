"""The options of one analysis, with the contract's defaults: what the command line and the Python keywords both become."""

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from rooflens.errors import NotInThisVersion, ShapeError, SyntaxFault, nearest

MAX_DIM = 2**63 - 1
DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "w8a16", "w4a16")
CHOICES: dict[str, tuple[str, ...]] = {
    "dtype": DTYPES,
    "kv_dtype": DTYPES,
    "mode": ("inference", "training"),
    "optimizer": ("none", "sgd", "adamw"),
    "layout": ("nchw", "channels-last"),
    "phase": ("prefill", "decode"),
    "fusion": ("none", "chain", "residual", "tile"),
    "bn": ("kept", "folded"),
    "execution": ("eager", "graph", "compiled"),
    "reuse": ("none", "line-buffer", "compulsory"),
    "sparsity": ("none", "2:4"),
    "format": ("table", "json", "csv", "md", "dot", "mermaid"),
}
# Options that later parts bring; until then anything but the default is refused.
_LATER = {"phase": None, "kv_dtype": None, "seq": None, "context": None}
# What a compiler does unless it is told otherwise: with `--execution compiled` alone these hold.
_COMPILED = {"fusion": "residual", "bn": "folded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """None stands for "not given": the model or another option then decides, and `resolved` values are reported. `given`
    are the options that were not left out, whatever their defaults."""

    batch: int | None = None
    input: str | None = None
    dim: tuple[tuple[str, int], ...] = ()
    dtype: str | None = None
    kv_dtype: str | None = None
    mode: str = "inference"
    optimizer: str | None = None
    layout: str = "nchw"
    autocast: bool = False
    phase: str | None = None
    seq: int | None = None
    context: int | None = None
    fusion: str = "none"
    bn: str = "kept"
    execution: str = "eager"
    reuse: str = "compulsory"
    sparsity: str = "none"
    weight_density: float = 1.0
    uncalibrated: bool = False
    gate: tuple[str, ...] = ()
    strict: bool = False
    format: str | None = None
    output: str | None = None
    html: str | None = None
    plot: str | None = None
    trace_out: str | None = None
    given: tuple[tuple[str, Any], ...] = ()

    @property
    def training(self) -> bool:
        return self.mode == "training"

    @property
    def step(self) -> str:
        """The optimizer that runs: adamw in training unless another is asked for, none in inference."""
        if not self.training:
            return "none"
        return self.optimizer or "adamw"

    def adopting(self, found: tuple[tuple[str, Any], ...]) -> "Settings":
        """With the options that came with the model, where none were given."""
        given = dict(self.given)
        return replace(self, **{name: value for name, value in found if name not in given})


OPTION_NAMES = tuple(f.name for f in fields(Settings) if f.name != "given")


def make_settings(**options: Any) -> Settings:
    """Checked settings from keywords as they are typed; None means the default."""
    given = {k: v for k, v in options.items() if v is not None}
    for name in given:
        if name not in OPTION_NAMES:
            raise SyntaxFault(f"unknown option '{name}'.{nearest(name, OPTION_NAMES)}")
    for name, read in _READERS.items():
        if name in given:
            given[name] = read(name, given[name])
    implied = _COMPILED if given.get("execution") == "compiled" and not _COMPILED.keys() & given.keys() else {}
    settings = Settings(**{**implied, **given}, given=tuple(given.items()))
    _check_later(settings)
    if settings.training and settings.dtype in ("w8a16", "w4a16"):
        raise SyntaxFault(f"--dtype {settings.dtype}: weights stored so narrow are not trained: use bf16, or inference")
    if not settings.training and settings.optimizer not in (None, "none"):
        raise SyntaxFault(f"--optimizer {settings.optimizer}: an optimizer steps in training: add --mode training")
    return settings


def _wrong(name: str, value: Any, wanted: str) -> SyntaxFault:
    return SyntaxFault(f"--{name.replace('_', '-')} {value}: {wanted}")


def _choice(name: str, value: Any) -> str:
    if not isinstance(value, str) or value not in CHOICES[name]:
        raise _wrong(name, value, f"use one of {' '.join(CHOICES[name])}")
    return value


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(name, value, "must be a whole number of at least 1")
    if value > MAX_DIM:
        raise ShapeError(f"--{name} {str(value)[:24]} is beyond 2^63-1: give a smaller number")
    return value


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise _wrong(name, value, "must be a number above 0 and at most 1")
    return float(value)


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "is a switch: True or False")
    return value


def _path(name: str, value: Any) -> str:
    if not isinstance(value, str | os.PathLike) or not str(value).strip():
        raise _wrong(name, value, "must be the path of a file")
    return os.fsdecode(value)


def _shape(name: str, value: Any) -> str:
    """In Python a list of numbers is a shape too."""
    if isinstance(value, list | tuple):
        return "x".join(str(n) for n in value)
    if not isinstance(value, str):
        raise _wrong(name, value, "write a whole shape such as 1x3x224x224")
    return value


def _gates(name: str, value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(t, str) for t in texts):
        raise _wrong(name, value, "write FIELD<=VALUE, such as 'totals.latency_s<=5ms', or a list of those")
    return tuple(texts)


def _dims(name: str, value: Any) -> tuple[tuple[str, int], ...]:
    pieces = value.items() if isinstance(value, dict) else [value] if isinstance(value, str) else value
    if not isinstance(value, dict | str | list | tuple):
        raise _wrong(name, value, "write NAME=NUMBER, or give a dict such as {'N': 1}")
    bound: dict[str, int] = {}
    for key, size in (_bound(p) for p in pieces):
        if bound.setdefault(key, size) != size:
            raise _wrong(name, f"{key}={size}", f"{key} is {bound[key]} already: bind it once")
    return tuple(bound.items())


def _bound(piece: Any) -> tuple[str, int]:
    """`N=1`, or a name and its number."""
    key, size = piece if isinstance(piece, tuple) and len(piece) == 2 else str(piece).partition("=")[::2]
    digits = str(size).strip()
    if isinstance(size, bool) or not str(key).strip() or not (digits.isascii() and digits.isdecimal()):
        raise SyntaxFault(f"--dim {key}={size}: write NAME=NUMBER, such as --dim N=1")
    if len(digits.lstrip("0")) > 19 or int(digits) > MAX_DIM:
        raise ShapeError(f"--dim {key}={digits[:24]} is beyond 2^63-1: give a smaller number")
    return str(key).strip(), int(digits)


_READERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(CHOICES, _choice),
    **dict.fromkeys(("batch", "seq", "context"), _count),
    **dict.fromkeys(("autocast", "uncalibrated", "strict"), _switch),
    **dict.fromkeys(("output", "html", "plot", "trace_out"), _path),
    "weight_density": _share, "input": _shape, "gate": _gates, "dim": _dims,
}  # fmt: skip


def _check_later(settings: Settings) -> None:
    for name in ("html", "trace_out"):
        if getattr(settings, name) is not None:
            flag = name.replace("_", "-")
            raise NotInThisVersion(f"--{flag} is not in this version: use --plot FILE.svg or --format json")
    for name, default in _LATER.items():
        if getattr(settings, name) != default:
            flag = name.replace("_", "-")
            raise NotInThisVersion(f"--{flag} {getattr(settings, name)} is not in this version: leave --{flag} out")
