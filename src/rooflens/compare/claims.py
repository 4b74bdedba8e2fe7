"""What a claim says in, the ratios (new over base) that it stands for out; and a ratio in, what should have been claimed.

A claim is right where a ratio that its numbers allow rounds to the digits it shows, halves either way; cutting digits off is
not rounding. `12 % faster` is right where the time fell by 12 %, and where the rate rose by 12 %: both are said that way.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from rooflens.compare.figures import Figure, Range, last_digit, ratio

# What a number can be meant as. `times_*` are factors, `percent_*` shares of the base.
TIMES_LESS, TIMES_MORE, TIMES = "times less", "times more", "times"
PERCENT_LESS, PERCENT_MORE, FASTER, SLOWER = "percent less", "percent more", "percent faster", "percent slower"
PERCENT_OF = "percent of"
_MOST_DIGITS = 12
_TINY = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`form`: one of the meanings above. `signed`: it was written with its plus sign."""

    text: str
    line: int
    number: Decimal
    form: str
    signed: bool = False

    @property
    def factor(self) -> bool:
        return self.form in (TIMES_LESS, TIMES_MORE, TIMES)


def ratios(claim: Claim) -> tuple[Range, ...]:
    """Each range of ratios that the claim may mean."""
    half = last_digit(claim.number) / 2
    low, high = float(claim.number - half), float(claim.number + half)
    if not claim.factor:
        low, high = low / 100, high / 100
    inverse = _inverse(low, high)
    return {
        TIMES_LESS: inverse,
        TIMES_MORE: (Range(low=low, high=high),),
        TIMES: (*inverse, Range(low=low, high=high)),
        PERCENT_LESS: (Range(low=1 - high, high=1 - low),),
        PERCENT_MORE: (Range(low=1 + low, high=1 + high),),
        PERCENT_OF: (Range(low=low, high=high),),
        FASTER: (Range(low=1 - high, high=1 - low), *_inverse(1 + low, 1 + high)),
        SLOWER: (Range(low=1 + low, high=1 + high), *_inverse(1 - high, 1 - low)),
    }[claim.form]


def right(claim: Claim, base: Figure, new: Figure) -> bool | None:
    """None where the numbers decide nothing."""
    found = ratio(base, new)
    return None if found is None else any(r.meets(found) for r in ratios(claim))


def agree(one: Claim, other: Claim) -> bool:
    """Whether two claims about the same thing can both be right."""
    return any(a.meets(b) for a in ratios(one) for b in ratios(other))


def should_be(claim: Claim, base: Figure, new: Figure) -> str:
    """In the claim's own form and with its digits, or as many more as it takes not to say 100 % or 0."""
    found = new.value / base.value
    value = _meant(claim, found)
    digits = max(0, -int(last_digit(claim.number).as_tuple().exponent))
    while digits < _MOST_DIGITS and _hides(value, digits, claim.factor):
        digits += 1
    return f"{value:{'+' if claim.signed else ''}.{digits}f}{'x' if claim.factor else '%'}"


def _meant(claim: Claim, found: float) -> float:
    if claim.factor:
        less = claim.form == TIMES_LESS or (claim.form == TIMES and (found < 1) == (claim.number >= 1))
        return 1 / max(found, _TINY) if less else found
    if claim.form == PERCENT_OF:
        return 100 * found
    return 100 * ((1 - found) if claim.form in (PERCENT_LESS, FASTER) else (found - 1))


def _hides(value: float, digits: int, factor: bool) -> bool:
    shown = round(value, digits)
    return (shown == 0 and abs(value) > _TINY) or (not factor and abs(shown) == 100 and abs(value) != 100)


def _inverse(low: float, high: float) -> tuple[Range, ...]:
    if high <= 0:
        return ()
    return (Range(low=1 / high, high=1 / low if low > 0 else math.inf),)
