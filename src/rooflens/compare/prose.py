"""A passage of a report in, the claims that it makes out, each with what it says they are about.

A claim is a factor or a percentage with a word that says which way: `2.7x faster`, `58.4 % reduction`, `reduced by 45 %`. A
number with `about`, `up to` or `over` before it claims no digits, and a bare percentage claims no change.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rooflens.compare.claims import (
    FASTER,
    PERCENT_LESS,
    PERCENT_MORE,
    SLOWER,
    TIMES,
    TIMES_LESS,
    TIMES_MORE,
    Claim,
)
from rooflens.compare.columns import metric_of
from rooflens.compare.figures import FIGURE, NUMBER, TIME, VALUE, Figure, decimal, figure
from rooflens.compare.written import Passage

_FACTOR = r"(?:[x×X]|\s?times|-?\s?fold)(?![\w×])(?!\s*[\d×])"
_SHARE = re.compile(rf"(?<![\w.,])(?:(?<![)%\w])[+−-])?({NUMBER})(?:(\s?(?:%|％|percent\b))|{_FACTOR})")
_NEAR = 300  # characters around a claim in which its metric may be named
_HEDGE = re.compile(
    r"(?:about|around|roughly|approx\w{0,20}\.?|nearly|almost|up to|over|more than|at least|at most|under|less than|below|above"
    r"|within|[~≈<>≤≥±])\s?$",
    re.I,
)
_RANGE = re.compile(r"\d\s?[%x×]?\s*(?:[–—-]|\bto\b)\s*[+−-]?$")
_SENTENCE = r"(?<![.\s][A-Za-z])(?<!\bvs)\.\s"  # `i.e.` ends none
_CLAUSE = rf"[,;()]|\band\b|\bbut\b|{_SENTENCE}"
_STOP = re.compile(rf"[,;()→]|\bbut\b|{_SENTENCE}|->")
_WAYS = (
    ("better", r"faster|as fast|quicker|speed-?\s?up|sped|improve\w*|better|gain\w*"),
    ("worse", r"slower|slow-?down|regress\w*|worse"),
    ("less", r"reduc\w*|fewer|less|lower\w*|smaller|decreas\w*|\bcut\b|saved|saving\w*|drop\w*|shrank|shrunk|down"),
    ("more", r"more|higher|larger|bigger|increas\w*|grew|growth|rose|\bup\b"),
)  # fmt: skip
_WORDS = tuple((way, re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.I)) for way, words in _WAYS)
_PERCENT = {"better": FASTER, "worse": SLOWER, "less": PERCENT_LESS, "more": PERCENT_MORE, "": PERCENT_MORE}
_TIMES = {"better": TIMES_LESS, "worse": TIMES_MORE, "less": TIMES_LESS, "more": TIMES_MORE, "": TIMES}
_SPEED = re.compile(r"faster|slower|quicker|speed", re.I)
_OTHER = re.compile(
    r"throughput|bandwidth|accuracy|utili[sz]ation|flop|coverage|confidence|ops/s|\brate\b|tokens/s|power|energy", re.I
)
_ALONE = r"(?!\s?%|\s?[A-Za-z]{0,12}/s)"  # no rate and no share
_PAIR = re.compile(
    rf"(?<![\w.,])(?P<a>{FIGURE})\s*(?:→|->|=>|⇒|–>)\s*(?P<b>{FIGURE}){_ALONE}"
    rf"|(?:\bfrom\s+|\()(?P<c>{FIGURE})\s+(?:down\s+|up\s+)?to\s+(?P<d>{FIGURE}){_ALONE}"
    rf"|(?<![\w.,])(?P<e>{FIGURE})\s+(?:vs\.?|versus)\s+(?P<f>{FIGURE}){_ALONE}", re.I)  # fmt: skip
_THAN = r"\b(?:than|as fast as|vs\.?|versus|from|over|compared (?:to|with)|relative to|against)"
_BASE = re.compile(rf"{_THAN}\s+(?:the\s+)?([^\d(),;]{{1,80}})", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """`A → B`: base and new. `A vs B` says not which is which."""

    base: Figure
    new: Figure
    ordered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """`clause` and `sentence`: the words around it, in which its layer may be named. `metric`: None for what no table
    here measures, empty where nothing says. `base`: what it is relative to, in its words."""

    claim: Claim
    passage: Passage
    clause: str
    sentence: str
    metric: str | None
    pair: Pair | None
    base: str


def said(passage: Passage) -> Iterator[Said]:
    """Each claim of the passage, in order."""
    text = passage.text
    found = list(_SHARE.finditer(text))
    begin = 0  # of what no claim before has used
    for place, match in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        after = text[match.end() : end]
        one = _said(passage, match, text[begin : match.start()], after)
        used = _PAIR.search(_near(after)) if one is not None and one.pair is not None else None
        begin = match.end() + (used.end() if used else 0)
        if one is not None:
            yield one


def _said(passage: Passage, match: re.Match[str], before: str, after: str) -> Said | None:
    number = decimal(match.group(1))
    just = before[-30:]
    if match.group(2) and (re.search(r"\bto\s?$", just) or re.match(r"\s*of\b", after)):
        return None  # a share of something, and no change
    if number is None or _HEDGE.search(just) or _RANGE.search(passage.text[: match.start()][-8:]):
        return None
    ahead, behind = _STOP.split(after, maxsplit=1)[0], _STOP.split(before)[-1]
    way = _way(ahead, behind)
    pair = _pair(_near(after)) or _pair(re.split(_SENTENCE, before)[-1][-200:])
    sign = match.group()[0] if match.group()[0] in "+-−" else ""
    if not way and (pair is None or not (sign or match.group(2) is None)):
        return None
    number = -number if sign in ("-", "−") else number
    form = (_PERCENT if match.group(2) else _TIMES)[way]
    around = passage.text[max(0, match.start() - _NEAR) : match.end() + _NEAR]
    metric = _metric(ahead, behind, way, pair, around)
    form = PERCENT_LESS if form == FASTER and metric not in (TIME, "") else form
    form = PERCENT_MORE if form == SLOWER and metric not in (TIME, "") else form
    shown = f"{match.group()} {' '.join(ahead.split())}".rstrip(" .")
    claim = Claim(text=_short(shown), line=passage.line_of(match.start()), number=number, form=form, signed=sign == "+")
    base = _base(re.split(_SENTENCE, after[:300])[0])
    clause, sentence = (_around(passage.text, match.start(), stop) for stop in (_CLAUSE, rf";|{_SENTENCE}"))
    return Said(
        claim=claim,
        passage=passage,
        clause=clause.replace(base, "") if base else clause,
        sentence=sentence.replace(base, "") if base else sentence,
        metric=metric,
        pair=pair,
        base=base,
    )


def form_said(words: str, *, percent: bool) -> str:
    """What a number is meant as by the words after it; empty where none of them says."""
    way = _way(words, "")
    return (_PERCENT if percent else _TIMES)[way] if way else ""


def _way(ahead: str, behind: str) -> str:
    """Which way it says the number went: the first word after it, else the last one before it."""
    after = [(m.start(), way) for way, words in _WORDS if (m := words.search(ahead))]
    if after:
        return min(after)[1]
    before = [(m.start(), way) for way, words in _WORDS for m in words.finditer(behind[-_NEAR:])]
    return max(before)[1] if before else ""


def _metric(ahead: str, behind: str, way: str, pair: Pair | None, text: str) -> str | None:
    """What was counted or timed, by the nearest words that say so."""
    near = f"{ahead} " if way else f"{behind} {ahead}"
    if _OTHER.search(near) or _OTHER.search(behind):
        return None
    if metric_of(near):
        return metric_of(near)
    if _SPEED.search(near):
        return TIME
    if pair is not None and pair.new.metric != VALUE:
        return pair.new.metric
    if metric_of(behind) or _SPEED.search(behind):
        return metric_of(behind) or TIME
    return metric_of(text)


def _pair(text: str) -> Pair | None:
    """One unit at the end stands for both numbers."""
    found = _PAIR.search(text)
    if found is None:
        return None
    first = found["a"] or found["c"] or found["e"]
    second = found["b"] or found["d"] or found["f"]
    new = figure(second)
    unit = re.sub(rf"^{NUMBER}\s?|/op$|/iter$|/call$", "", second)
    base = figure(first, unit)
    if base is None or new is None:
        return None
    ordered = not found["e"]
    return Pair(base=base, new=new, ordered=True) if ordered else Pair(base=new, new=base, ordered=False)


def _near(after: str) -> str:
    """What belongs to the claim before it: up to a comma or a new sentence outside its parentheses."""
    return re.split(rf"[,;](?!\d|\s*from\b)|{_SENTENCE}|\band\b|\)", after[:200])[0]


def _base(after: str) -> str:
    found = _BASE.search(after)
    return re.split(rf"\bbut\b|\band\b|{_SENTENCE}", found.group(1))[0].strip(" \"'.") if found else ""


def _around(text: str, place: int, stop: str) -> str:
    """The words from the last stop before the place to the first after it."""
    before = re.split(stop, text[max(0, place - 500) : place])[-1]
    return before + re.split(stop, text[place : place + 500], maxsplit=1)[0]


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
