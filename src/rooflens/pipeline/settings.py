"""The options of one analysis, with the contract's defaults: what the command line and the Python keywords both become."""

from dataclasses import dataclass, fields
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
}
# Options that later parts bring; until then anything but the default is refused.
_LATER = {"fusion": "none", "bn": "kept", "phase": None, "kv_dtype": None, "seq": None, "context": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """None stands for "not given": the model or another option then decides, and `resolved` values are reported."""

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

    @property
    def training(self) -> bool:
        return self.mode == "training"

    @property
    def step(self) -> str:
        """The optimizer that runs: adamw in training unless another is asked for, none in inference."""
        if not self.training:
            return "none"
        return self.optimizer or "adamw"


OPTION_NAMES = tuple(f.name for f in fields(Settings))


def make_settings(**options: Any) -> Settings:
    """Checked settings from keywords as they are typed; None means the default."""
    given = {k: v for k, v in options.items() if v is not None}
    for name in given:
        if name not in OPTION_NAMES:
            raise SyntaxFault(f"unknown option '{name}'.{nearest(name, OPTION_NAMES)}")
    if isinstance(given.get("input"), list | tuple):
        given["input"] = "x".join(str(n) for n in given["input"])
    given["gate"] = _listed(given.get("gate", ()))
    given["dim"] = _dims(given.get("dim", ()))
    for name, choices in CHOICES.items():
        if name in given and given[name] not in choices:
            raise SyntaxFault(f"--{name.replace('_', '-')} {given[name]}: use one of {' '.join(choices)}")
    settings = Settings(**given)
    _check_numbers(settings)
    _check_later(settings)
    if not settings.training and settings.optimizer not in (None, "none"):
        raise SyntaxFault(f"--optimizer {settings.optimizer}: an optimizer steps in training: add --mode training")
    return settings


def _listed(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _dims(value: Any) -> tuple[tuple[str, int], ...]:
    pairs = value.items() if isinstance(value, dict) else [_pair(v) for v in _listed(value)]
    return tuple((str(k), int(v)) for k, v in pairs)


def _pair(text: Any) -> tuple[str, str]:
    name, found, value = str(text).partition("=")
    if not found or not value.strip().isdigit():
        raise SyntaxFault(f"--dim {text}: write NAME=NUMBER, such as --dim N=1")
    return name.strip(), value.strip()


def _check_numbers(settings: Settings) -> None:
    for name in ("batch", "seq", "context"):
        value = getattr(settings, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise SyntaxFault(f"--{name} {value}: must be a whole number of at least 1")
        if value is not None and value > MAX_DIM:
            raise ShapeError(f"--{name} {str(value)[:24]} is beyond 2^63-1: give a smaller number")
    if not 0 < settings.weight_density <= 1:
        raise SyntaxFault(f"--weight-density {settings.weight_density}: must be above 0 and at most 1")


def _check_later(settings: Settings) -> None:
    if settings.execution == "compiled":
        raise NotInThisVersion("--execution compiled is not in this version (it needs fusion): use eager or graph")
    for name, default in _LATER.items():
        if getattr(settings, name) != default:
            flag = name.replace("_", "-")
            raise NotInThisVersion(f"--{flag} {getattr(settings, name)} is not in this version: leave --{flag} out")
