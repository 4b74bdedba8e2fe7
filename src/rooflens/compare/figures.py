"""A number as somebody wrote it in, the values that it may have been before it was rounded out.

20.7 s stands for 20.65 to 20.75 s. A count and a whole number of bytes stand for themselves: they were counted, not read off
a clock. Ratios of such figures are ranges too, and a claim is right where its own range meets that of the ratio.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

TIME, BYTES, COUNT, VALUE = "time", "bytes", "count", "value"
_GROUPED = r"\d{1,3}(?:[,_\u202f\u2009']\d{3})+(?!\d)(?:\.\d{1,30})?"
NUMBER = rf"(?>{_GROUPED}|\d{{1,30}}(?:\.\d{{1,30}})?(?:[eE][+-]?\d{{1,2}})?)"  # all of its digits, or none
_UNITS = {
    "ns": (TIME, "1e-9"), "us": (TIME, "1e-6"), "µs": (TIME, "1e-6"), "μs": (TIME, "1e-6"), "ms": (TIME, "1e-3"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), (TIME, "1")),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), (TIME, "60")),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), (TIME, "3600")),
    **dict.fromkeys(("b", "byte", "bytes"), (BYTES, "1")),
    "kb": (BYTES, "1e3"), "mb": (BYTES, "1e6"), "gb": (BYTES, "1e9"),
    "kib": (BYTES, "1024"), "mib": (BYTES, "1048576"), "gib": (BYTES, "1073741824"),
    **dict.fromkeys(("alloc", "allocs", "allocation", "allocations"), (COUNT, "1")),
    "k": (COUNT, "1e3"), "m": (COUNT, "1e6"),
}  # fmt: skip
UNIT = r"(?:[nuµμm]s|seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h|[KMG]iB|[kKMG]B|bytes?|B|allocations?|allocs?|[kKM])"
FIGURE = rf"{NUMBER}(?:\s?{UNIT}(?:/op|/iter|/call)?(?![\w/]))?"
_FIGURE = re.compile(rf"({NUMBER})\s?({UNIT})?(?:/op|/iter|/call)?(?![\w/+%]|\.\d|\s?[–-]\s?\d)")
_SPACED = re.compile(r"(?<=\d)[ \u00a0](?=\d{3}(?:\D|$))")
_TOLERANCE, _LEAST = 1e-12, 1e-15  # what floats lose of a ratio, and of one taken from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`low` and `high` in the unit of the metric: seconds, bytes, or how many. `metric` is `value` where no unit says."""

    text: str
    value: float
    low: float
    high: float
    metric: str

    def covers(self, other: "Figure") -> bool:
        """Whether the other one, written with more digits, may be what was rounded to this one."""
        same = self.metric == other.metric or VALUE in (self.metric, other.metric)
        return same and self.low <= other.value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    low: float
    high: float

    def meets(self, other: "Range") -> bool:
        slack = _TOLERANCE * min(abs(self.low), abs(other.low)) + _LEAST
        return self.low <= other.high + slack and other.low <= self.high + slack


def figure(text: str, unit: str = "") -> Figure | None:
    """The number that the text begins with; `unit` where it has none of its own. `~5`, `<5`, `5+` and `5-8` are none."""
    found = _FIGURE.match(_SPACED.sub("", text.strip()))
    if found is None:
        return None
    metric, factor = _unit(found.group(2) or unit)
    number = decimal(found.group(1))
    if number is None:
        return None
    exact = _counted(metric, factor, number)
    half = Decimal(0) if exact else last_digit(number) / 2
    low, high = ((number - half) * factor, (number + half) * factor)
    return Figure(text=found.group(), value=float(number * factor), low=float(low), high=float(high), metric=metric)


def decimal(text: str) -> Decimal | None:
    """A number as written, without what groups its digits; None for what no measurement is."""
    try:
        number = Decimal(re.sub(r"[,_\u202f\u2009']", "", text))
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number) < Decimal("1e30") else None


def last_digit(number: Decimal) -> Decimal:
    """The place value of the last digit that is shown."""
    exponent = number.as_tuple().exponent
    return Decimal(1).scaleb(exponent) if isinstance(exponent, int) else Decimal(1)


def ratio(base: Figure, new: Figure) -> Range | None:
    """New over base; None where there is nothing to divide by."""
    if base.value <= 0:
        return None
    return Range(low=max(new.low, 0.0) / base.high, high=new.high / base.low if base.low > 0 else math.inf)


def _unit(name: str) -> tuple[str, Decimal]:
    if not name:
        return VALUE, Decimal(1)
    metric, factor = _UNITS[name if name in _UNITS else name.lower()]
    return metric, Decimal(factor)


def _counted(metric: str, factor: Decimal, number: Decimal) -> bool:
    return metric in (COUNT, BYTES) and factor == 1 and number == number.to_integral_value()
