"""A ratio of times and its interval in, the words for it out, which claim no more than the interval holds.

Ends of an interval are rounded outward, and a bound is the end nearer to no change. Percentages are of time, new over
base; beyond half or twice the time, where percentages mislead, a claim is a factor.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from rooflens.units import show, show_share

_MOST_DECIMALS = 7
_DOUBLE = Decimal(2)
_FAR = Decimal("0.5")


def change(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """change(1.12, 1.09, 1.15) is '+12 % (+9.0 to +15)'."""
    middle = f"{_percent(_more(ratio), ROUND_HALF_EVEN):+,} %"
    return middle if low is None or high is None else f"{middle} ({_span(low, high)})"


def speedup(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """speedup(0.5, 0.45, 0.55) is '2.00x (1.81 to 2.23)'."""
    middle = 1 / _exact(ratio)
    told = f"{_digits(middle, ROUND_HALF_EVEN, 4 if 10 <= middle < 100 else 3)}x"
    if low is None or high is None:
        return told
    return f"{told} ({_digits(1 / _exact(high), ROUND_FLOOR)} to {_digits(1 / _exact(low), ROUND_CEILING)})"


def claim(low: float, high: float) -> str:
    """What a whole interval on one side of 1 allows to be said: 'at least 8.6 % faster (between 8.6 and 14 %)'."""
    faster = high < 1
    near, far = (high, low) if faster else (low, high)
    if faster and _exact(near) <= 1 / _DOUBLE:
        return _times(1 / _exact(high), 1 / _exact(low), "as fast")
    if _exact(near) >= _DOUBLE:
        return _times(_exact(low), _exact(high), "the time")
    least, most = (_percent(abs(_more(r)), way) for r, way in ((near, ROUND_FLOOR), (far, ROUND_CEILING)))
    return f"at least {least} % {'faster' if faster else 'slower'} (between {least} and {most} %)"


def plus_minus(time_s: float | None, low_s: float | None, high_s: float | None) -> str:
    """A time and how far the further end of its interval is from it: '1.234 ms ±2.1 %'; both ends where that is far."""
    if time_s is None or low_s is None or high_s is None or time_s <= 0:
        return show(time_s, "s")
    off = max(_exact(high_s) - _exact(time_s), _exact(time_s) - _exact(low_s)) / _exact(time_s)
    if off > _FAR:
        return f"{show(time_s, 's', 3)} ({show(low_s, 's', 3)} to {show(high_s, 's', 3)})"
    return f"{show(time_s, 's')} ±{_percent(100 * off, ROUND_CEILING)} %"


def reduction(before: int | None, after: int | None) -> Fraction | None:
    """The share of them that is gone; negative where there are more; None where nobody knows, or there was none."""
    return None if before is None or after is None or before == 0 else 1 - Fraction(after, before)


def reduction_text(before: int | None, after: int | None) -> str:
    """reduction_text(221280, 92) is '99.96 %'."""
    share = reduction(before, after)
    return _from_none(before, after) if share is None else show_share(share)


def count_change(before: int | None, after: int | None) -> str:
    """count_change(92, 101) is '+9.8 %'."""
    share = reduction(before, after)
    return _from_none(before, after) if share is None else show_share(-share, signed=True)


def _from_none(before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return ""
    return "0 %" if after == 0 else f"{after:,} instead of none"


def _exact(value: float) -> Decimal:
    """As it is written: 1 - 0.914 is 0.086, and not a little less."""
    return Decimal(repr(value))


def _more(ratio: float) -> Decimal:
    return 100 * (_exact(ratio) - 1)


def _percent(percent: Decimal, rounding: str) -> Decimal:
    """Whole from 10 on, a decimal below, and as many more as it takes not to say that all of the time is gone."""
    for decimals in range(0 if abs(percent) >= 10 else 1, _MOST_DECIMALS + 1):
        found = percent.quantize(Decimal(1).scaleb(-decimals), rounding)
        if found != -100 or found == percent:  # twice the time is +100 %
            break
    return abs(found) if found == 0 else found


def _span(low: float, high: float) -> str:
    return f"{_percent(_more(low), ROUND_FLOOR):+,} to {_percent(_more(high), ROUND_CEILING):+,}"


def _digits(factor: Decimal, rounding: str, digits: int = 3) -> str:
    """So many digits, and none of a whole number left out."""
    decimals = max(0, digits - 1 - factor.adjusted())
    return f"{factor.quantize(Decimal(1).scaleb(-decimals), rounding):,f}"


def _times(low: Decimal, high: Decimal, what: str) -> str:
    least, most = _digits(low, ROUND_FLOOR), _digits(high, ROUND_CEILING)
    return f"at least {least} times {what} (between {least} and {most} times)"
