"""A ratio of times and its interval in, the words for it out, which claim no more than the interval holds.

Ends of an interval are rounded outward, and a bound is the end nearer to no change. Percentages are of time, new over
base; beyond half or twice the time, where percentages mislead, a claim is a factor.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from rooflens.units import show, show_share

_MOST_DECIMALS = 7
_DOUBLE = Decimal(2)


def change(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """change(1.12, 1.09, 1.15) is '+12 % (+9.0 to +15)'."""
    middle = f"{_percent(_more(ratio), ROUND_HALF_EVEN):+} %"
    return middle if low is None or high is None else f"{middle} ({_span(low, high)})"


def speedup(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """speedup(0.5, 0.45, 0.55) is '2.00x (1.81 to 2.23)'."""
    middle = f"{_factor(1 / _exact(ratio), ROUND_HALF_EVEN)}x"
    if low is None or high is None:
        return middle
    return f"{middle} ({_factor(1 / _exact(high), ROUND_FLOOR)} to {_factor(1 / _exact(low), ROUND_CEILING)})"


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
    """A time and how far the further end of its interval is from it: '1.234 ms ±2.1 %'."""
    if time_s is None or low_s is None or high_s is None or time_s <= 0:
        return show(time_s, "s")
    off = max(_exact(high_s) - _exact(time_s), _exact(time_s) - _exact(low_s)) / _exact(time_s)
    return f"{show(time_s, 's')} ±{_percent(100 * off, ROUND_CEILING)} %"


def reduction(before: int | None, after: int | None) -> Fraction | None:
    """The share of them that is gone; negative where there are more; None where nobody knows, or there was none."""
    return None if before is None or after is None or before == 0 else 1 - Fraction(after, before)


def reduction_text(before: int | None, after: int | None) -> str:
    share = reduction(before, after)
    if share is None:
        return "" if before is None or after is None else "0 %" if after == 0 else f"{after:,} instead of none"
    return show_share(share)


def _exact(value: float) -> Decimal:
    """As it is written: 1 - 0.914 is 0.086, and not a little less."""
    return Decimal(repr(value))


def _more(ratio: float) -> Decimal:
    return 100 * (_exact(ratio) - 1)


def _percent(percent: Decimal, rounding: str) -> Decimal:
    """Whole from 10 on, a decimal below, and as many more as it takes not to say that all of the time is gone."""
    for decimals in range(0 if abs(percent) >= 10 else 1, _MOST_DECIMALS + 1):
        found = percent.quantize(Decimal(1).scaleb(-decimals), rounding)
        if abs(found) != 100 or found == percent:
            break
    return abs(found) if found == 0 else found


def _span(low: float, high: float) -> str:
    return f"{_percent(_more(low), ROUND_FLOOR):+} to {_percent(_more(high), ROUND_CEILING):+}"


def _factor(factor: Decimal, rounding: str) -> str:
    """Two decimals, and at least three digits."""
    decimals = max(2, 2 - factor.adjusted())
    return f"{factor.quantize(Decimal(1).scaleb(-decimals), rounding):,f}"


def _times(low: Decimal, high: Decimal, what: str) -> str:
    least, most = _factor(low, ROUND_FLOOR), _factor(high, ROUND_CEILING)
    return f"at least {least} times {what} (between {least} and {most} times)"
