"""A measurement document in, what the changes that were tried gained beside what was predicted out, then the lines to paste
for those that gained."""

from collections.abc import Iterator
from typing import Any

from rooflens.report.blocks import Block, Code, Column, Heading, Paragraph, Table

Document = dict[str, Any]
Row = dict[str, Any]
_PASS = {"forward": "fwd", "step": "fwd+bwd"}


def changes(d: Document) -> tuple[Block, ...]:
    rows = d["measured"]["tried"]
    if not rows:
        return ()
    columns = (
        Column(name="change"), Column(name="pass"), Column(name="predicted", numeric=True),
        Column(name="measured", numeric=True), Column(name="±", numeric=True), Column(name="outputs differ", numeric=True),
        Column(name="so it"),
    )  # fmt: skip
    ran = [r for r in rows if r["measured_gain"] is not None]
    cells = tuple(
        (
            _name(r), _PASS[r["pass"]], _gain(r["predicted_gain"]), _gain(r["measured_gain"]), _about(r),
            _small(r["output_difference"]), _verdict(r),
        )
        for r in ran
    )  # fmt: skip
    table = (Table(columns=columns, rows=cells),) if cells else ()
    return (
        Heading(text="Changes that were tried: time saved per item"),
        *table,
        *(Paragraph(text=line) for line in _reasons(rows)),
    )


def _name(r: Row) -> str:
    more = f" x{len(r['same']) + 1}" if r["same"] else ""
    return f"{r['change']}: {r['layer']}{more}" if r["layer"] else r["change"]


def _gain(value: float | None) -> str:
    """What takes more than twice as long says how many times."""
    if value is None:
        return "–"
    return f"{value or 0.0:+.1%}".replace("-0.0%", "+0.0%") if value >= -1 else f"{1 - value:.3g}x as long"


def _about(r: Row) -> str:
    """In the same way as the gain that it belongs to."""
    if r["noise"] is None:
        return "–"
    return f"{r['noise']:.1%}" if r["measured_gain"] >= -1 else f"{r['noise']:.2g}x"


def _small(value: float | None) -> str:
    return "–" if value is None else "0" if value == 0 else f"{value:.1e}"


def _verdict(r: Row) -> str:
    if r["status"] != "ok":
        return str(r["status"])
    found = "gains" if r["measured_gain"] > 0 else "loses"
    return f"{found}, unsure" if r["inconclusive"] else found


def _reasons(rows: list[Row]) -> list[str]:
    """Why something did not run, or was not predicted: each reason once, with the passes where it is not for all of them."""
    passes: dict[str, set[str]] = {}
    told: dict[str, dict[str, set[str]]] = {}
    for r in rows:
        passes.setdefault(_name(r), set()).add(r["pass"])
        for why in _whys(r):
            told.setdefault(why, {}).setdefault(_name(r), set()).add(r["pass"])
    return [
        f"{', '.join(_with_passes(n, of, passes[n]) for n, of in names.items())}: {why}." for why, names in told.items()
    ]


def _whys(r: Row) -> Iterator[str]:
    if r["reason"] and r["status"] != "no difference":
        yield r["reason"] if r["status"] == "ok" else f"{r['status']}: {r['reason']}"
    if r["predicted_reason"]:
        yield f"not predicted: {r['predicted_reason']}"


def _with_passes(name: str, passes: set[str], of: set[str]) -> str:
    return name if passes == of else f"{name} ({', '.join(_PASS[p] for p in _PASS if p in passes)})"


def lines(d: Document) -> tuple[Block, ...]:
    """Best first; a change that gains in two passes stands here once."""
    gained = [r for r in d["measured"]["tried"] if r["status"] == "ok" and r["measured_gain"] > 0 and r["lines"]]
    best: dict[str, Row] = {}
    for r in sorted(gained, key=lambda r: -r["measured_gain"]):
        best.setdefault(_name(r), r)
    blocks: list[Block] = []
    for name, r in best.items():
        blocks += [
            Paragraph(text=f"{name}, {_gain(r['measured_gain'])} ({_PASS[r['pass']]}):"),
            Code(lines=tuple(r["lines"])),
        ]
    return (Heading(text="Lines to paste, for what gained"), *blocks) if blocks else ()
