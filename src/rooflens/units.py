"""Quantities in and out: the one place that knows that MB is 1e6 and MiB is 2^20.

Text in: "3.35 TB/s", "80 GiB", "989.4 TFLOP/s", "5ms", "1.98 GHz". Floats in SI units out, and back to short text.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from rooflens.errors import SyntaxFault

_SI = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SMALL = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9, "p": 1e-12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

# What follows the number -> (dimension, factor). Built once: a lookup beats a grammar for a closed list.
_UNITS: dict[str, tuple[str, float]] = {"": ("number", 1.0), "%": ("number", 0.01)}
for _p, _f in _SI.items():
    _UNITS[f"{_p}B"] = ("bytes", _f)
    _UNITS[f"{_p}b/s"] = ("bytes_per_s", _f / 8)
    _UNITS[f"{_p}bit/s"] = ("bytes_per_s", _f / 8)
    _UNITS[f"{_p}B/s"] = _UNITS[f"{_p}Bps"] = ("bytes_per_s", _f)
    for _n in ("FLOPS", "FLOP/s", "FLOPs/s", "OPS", "OP/s", "OPs/s"):
        _UNITS[f"{_p}{_n}"] = ("flop_per_s", _f)
    _UNITS[f"{_p}Hz"] = ("hz", _f)
    _UNITS[f"{_p}W"] = ("w", _f)
    _UNITS[f"{_p}FLOP"] = _UNITS[f"{_p}OP"] = ("flop", _f)
    if _p:
        _UNITS.setdefault(_p, ("number", _f))
for _p, _f in _BINARY.items():
    _UNITS[f"{_p}B"] = ("bytes", float(_f))
    _UNITS[f"{_p}B/s"] = ("bytes_per_s", float(_f))
for _p, _f in _SMALL.items():
    _UNITS[f"{_p}s"] = ("s", _f)
    _UNITS[f"{_p}J"] = ("j", _f)
    _UNITS[f"{_p}J/B"] = ("j_per_byte", _f)
    _UNITS[f"{_p}J/OP"] = _UNITS[f"{_p}J/FLOP"] = ("j_per_flop", _f)
for _p in ("m", "k"):
    _UNITS[f"{_p}W"] = ("w", {"m": 1e-3, "k": 1e3}[_p])
_UNITS["USD"] = ("usd", 1.0)

_QUANTITY = re.compile(
    r"^\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?nan|[+-]?inf(?:inity)?)\s*(\S*)\s*$", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    value: float
    dimension: str


def parse(text: str) -> Quantity:
    """A number with a unit; without one its dimension is `number`."""
    match = _QUANTITY.match(text)
    unit = _UNITS.get(match.group(2)) if match else None
    if match is None or unit is None:
        raise SyntaxFault(
            f"'{text}' is not a quantity: write a number and a unit, such as 3.35TB/s, 80GB, 100GFLOPS, 5ms"
        )
    return Quantity(value=_scale(match.group(1).replace("_", ""), unit[1]), dimension=unit[0])


def _scale(number: str, factor: float) -> float:
    """66.9 T is 66.9e12 to the last bit, which a float product would miss."""
    exponent = round(math.log10(factor))
    if factor == float(f"1e{exponent}") and "e" not in number.lower() and number[-1].isdigit():
        return float(f"{number}e{exponent}")
    return float(number) * factor


def parse_as(text: str | int | float, dimension: str) -> float:
    """A finite quantity of one dimension; a bare number is taken as SI."""
    found = parse(text) if isinstance(text, str) else Quantity(value=float(text), dimension="number")
    if found.dimension not in (dimension, "number"):
        raise SyntaxFault(f"'{text}' is a quantity of {found.dimension}, not of {dimension}: {EXAMPLES[dimension]}")
    if not math.isfinite(found.value):
        raise SyntaxFault(f"'{text}' is not finite: {EXAMPLES[dimension]}")
    return found.value


EXAMPLES = {
    "bytes": "write bytes such as 80GB or 256KiB",
    "bytes_per_s": "write a bandwidth such as 3.35TB/s",
    "flop_per_s": "write a rate such as 989TFLOP/s or 275TOP/s",
    "hz": "write a clock such as 1.98GHz",
    "w": "write a power such as 700W",
    "s": "write a time such as 5us",
    "j_per_byte": "write an energy such as 7pJ/B",
    "j_per_flop": "write an energy such as 0.5pJ/OP",
    "number": "write a plain number",
    "count": "write how many there are, such as 132",
    "usd": "write a price such as 1.5USD",
}


def _scaled(value: float, unit: str, steps: tuple[tuple[float, str], ...], digits: int) -> str:
    for size, prefix in steps:
        if abs(value) >= size * (1 - 5e-4):
            return f"{value / size:.{digits}g} {prefix}{unit}"
    return f"{value / steps[-1][0]:.{digits}g} {steps[-1][1]}{unit}"


_UP = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_DOWN = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p"))


def show(value: float | None, unit: str, digits: int = 4) -> str:
    """Short text of an SI value: show(3.35e12, 'B/s') is '3.35 TB/s'; unknown is a dash."""
    if value is None:
        return "–"
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}".strip()
    return _scaled(value, unit, _steps(unit), digits)


def _steps(unit: str) -> tuple[tuple[float, str], ...]:
    return _DOWN if unit == "s" or unit.startswith("J") else _UP


def show_size(value: float) -> str:
    """Bytes as a datasheet has them: 50 MiB of cache and not 52.43 MB, 80 GB of memory and not 74.51 GiB."""
    return _binary(value) or show(value, "B")


def _binary(value: float) -> str:
    """Empty for what is round in decimal, and for what is not round in binary either."""
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")) if value % 1000 else ():
        if value >= size and value * 100 % size == 0:
            return f"{value / size:g} {unit}"
    return ""


def exact(value: float, unit: str) -> str:
    """Text that parses back to the very same value: exact(66.9e12, 'FLOP/s') is '66.9 TFLOP/s'."""
    if unit == "B" and _binary(value):
        return _binary(value)
    steps = _steps(unit)
    size, prefix = next((step for step in steps if value >= step[0]), steps[-1] if value else (1.0, ""))
    return f"{(Decimal(repr(value)) / Decimal(repr(size))).normalize():f} {prefix}{unit}"


_MOST_DECIMALS = 7


def show_share(share: Fraction | float, *, signed: bool = False) -> str:
    """A share as a percentage that says neither 100 % of what is not all nor 0 % of what is not nothing: a decimal, and as
    many more, up to seven, as the first digit of what is left needs. show_share(1 - Fraction(92, 221280)) is '99.96 %'.
    `signed`: it is a change, of which +100 % is a doubling and not all."""
    percent = 100 * (share if isinstance(share, Fraction) else Fraction(repr(share)))
    sign = "+" if signed and percent > 0 else ""
    if percent in (0, 100, -100):
        return f"{sign}{int(percent)} %"
    for decimals in range(1, _MOST_DECIMALS + 1):
        near = round(percent, decimals)
        if near not in ((0, -100) if signed else (0, 100, -100)):
            return f"{sign}{Decimal(near.numerator) / near.denominator:,.{decimals}f} %"
    return _beyond(percent, "-" if percent < 0 else sign)


def _beyond(percent: Fraction, sign: str) -> str:
    """So close to nothing or to all that no decimal tells it apart."""
    step = Decimal(1).scaleb(-_MOST_DECIMALS)
    if abs(percent) < 1:
        return f"less than {sign}{step:f} %"
    if abs(percent) < 100:
        return f"more than {sign}{100 - step:f} %"
    return f"less than {sign}{100 + step:f} %"
