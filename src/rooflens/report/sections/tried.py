"""A measurement document in, what the changes that were tried gained beside what was predicted out, then the lines to paste
for those that gained."""

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
            _name(r), _PASS[r["pass"]], _gain(r["predicted_gain"]), _gain(r["measured_gain"]), _plain(r["noise"]),
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
    return "–" if value is None else f"{value:+.1%}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _small(value: float | None) -> str:
    return "–" if value is None else "0" if value == 0 else f"{value:.1e}"


def _verdict(r: Row) -> str:
    if r["status"] != "ok":
        return str(r["status"])
    found = "gains" if r["measured_gain"] > 0 else "loses"
    return f"{found}, unsure" if r["inconclusive"] else found


def _reasons(rows: list[Row]) -> list[str]:
    """Why something did not run, or was not predicted, each reason once."""
    told: dict[str, list[str]] = {}
    for r in rows:
        if r["status"] in ("not here", "failed"):
            told.setdefault(f"{r['status']}: {r['reason']}", []).append(_name(r))
        elif r["status"] == "ok" and r["reason"]:
            told.setdefault(r["reason"], []).append(_name(r))
        if r["predicted_reason"]:
            told.setdefault(f"not predicted: {r['predicted_reason']}", []).append(_name(r))
    return [f"{', '.join(dict.fromkeys(names))}: {why}." for why, names in told.items()]


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
