"""The options that several verbs share, declared once, and how a result leaves: stdout, files, exit status."""

import inspect
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from rooflens.cli import streams
from rooflens.errors import PartialResult, SyntaxFault
from rooflens.jsonfile import json_text
from rooflens.report.blocks import Block, Roofline

if TYPE_CHECKING:
    from rooflens.report.output import Written

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="Zoo name, timm:NAME, file.py:function, .pt2, layer text, .toml, or a saved .json."
    ),
]
Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL", help="Zoo name, timm:NAME, file.py:function, .pt2, layer text, .toml, or a saved .json."
    ),
]
On = Annotated[
    list[str] | None,
    typer.Option("--on", metavar="CHIP[,CHIP…]", help="Chip id, .toml, or either 'with KEY=VALUE'; may be repeated."),
]
Batch = Annotated[
    int | None, typer.Option(help="Batch of inputs that we make ourselves. [default: 1]", show_default=False)
]
Input = Annotated[
    str | None, typer.Option(metavar="SHAPE", help="Whole input shape. [default: the model's own, such as 1x3x224x224]")
]
Dim = Annotated[list[str] | None, typer.Option(metavar="NAME=N", help="Bind a symbolic dimension; may be repeated.")]
Dtype = Annotated[str | None, typer.Option(help="fp32 tf32 bf16 fp16 fp8 int8 w8a16 w4a16. [default: fp32]")]
KvDtype = Annotated[str | None, typer.Option(help="Type of the KV cache (not in this version).")]
Mode = Annotated[
    str | None, typer.Option(help="inference or training (forward, backward, optimizer step). [default: inference]")
]
Optimizer = Annotated[str | None, typer.Option(help="none, sgd or adamw. [default: adamw in training]")]
Layout = Annotated[str | None, typer.Option(help="nchw or channels-last. [default: nchw]")]
Autocast = Annotated[bool | None, typer.Option("--autocast", help="fp32 weights, compute in --dtype.")]
Phase = Annotated[str | None, typer.Option(help="prefill or decode (not in this version).")]
Seq = Annotated[int | None, typer.Option(help="Sequence length of token models (not in this version).")]
Context = Annotated[int | None, typer.Option(help="Context length in decode (not in this version).")]
Fusion = Annotated[
    str | None, typer.Option(help="none, chain, residual or tile: what runs as one unit. [default: none; fuse: chain]")
]
Bn = Annotated[str | None, typer.Option(help="kept or folded into the layer before. [default: kept]")]
Execution = Annotated[
    str | None,
    typer.Option(
        help="eager, graph or compiled: which launch cost latency counts; compiled alone implies --fusion residual "
        "--bn folded. [default: eager]"
    ),
]
Reuse = Annotated[
    str | None, typer.Option(help="none, line-buffer or compulsory: fills the per-output view. [default: compulsory]")
]
Sparsity = Annotated[str | None, typer.Option(help="none or 2:4. [default: none]")]
WeightDensity = Annotated[
    float | None, typer.Option(help="Stored share of weight bytes after compression, 0 to 1. [default: 1.0]")
]
Uncalibrated = Annotated[bool, typer.Option("--uncalibrated", help="Ignore calibration profiles.")]
Gate = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD<=VALUE", help="Fail (status 1) unless it holds, e.g. 'totals.latency_s<=5ms'; may be repeated."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Status 3 where any op could not be counted.")]
Format = Annotated[str, typer.Option("--format", help="table, json, csv or md.")]
Output = Annotated[
    str | None, typer.Option("-o", "--output", metavar="FILE", help="Write the result there instead of stdout.")
]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE", help="One offline page (not in this version).")]
Plot = Annotated[str | None, typer.Option("--plot", metavar="FILE.svg|png", help="Draw the roofline.")]
TraceOut = Annotated[
    str | None,
    typer.Option("--trace-out", metavar="FILE.json", help="Chrome trace of the mapping (not in this version)."),
]

FORMATS = ("table", "json", "csv", "md")
DIAGRAMS = ("dot", "mermaid")

# What decides an analysis and where it goes, in the order of `--help`: the keywords of `rooflens.analyze`.
_ANALYSIS: dict[str, tuple[Any, Any]] = {
    "on": (On, None), "batch": (Batch, None), "input": (Input, None), "dim": (Dim, None), "dtype": (Dtype, None),
    "kv_dtype": (KvDtype, None), "mode": (Mode, None), "optimizer": (Optimizer, None), "layout": (Layout, None),
    "autocast": (Autocast, None), "phase": (Phase, None), "seq": (Seq, None), "context": (Context, None),
    "fusion": (Fusion, None), "bn": (Bn, None), "execution": (Execution, None), "reuse": (Reuse, None),
    "sparsity": (Sparsity, None), "weight_density": (WeightDensity, None), "uncalibrated": (Uncalibrated, False),
    "gate": (Gate, None), "strict": (Strict, False), "format": (Format, "table"), "output": (Output, None),
    "html": (Html, None), "plot": (Plot, None), "trace_out": (TraceOut, None),
}  # fmt: skip


def analysis_options(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb with the options of every analysis, which reach it as keywords; those it names itself stay its own."""
    own = [p for p in inspect.signature(verb, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
    kind, named = inspect.Parameter.KEYWORD_ONLY, {p.name for p in own}
    shared = [
        inspect.Parameter(name, kind, default=default, annotation=of)
        for name, (of, default) in _ANALYSIS.items()
        if name not in named
    ]
    verb.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    verb.__annotations__ = {p.name: p.annotation for p in (*own, *shared)}
    return verb


def check_format(name: str, formats: tuple[str, ...] = FORMATS) -> str:
    if name not in formats:
        raise SyntaxFault(f"--format {name}: use one of {' '.join(formats)}")
    return name


def terminal_text(blocks: tuple[Block, ...], output: str | None) -> str:
    """Drawn for where it goes: a file is the same for everybody, colour is for a terminal that wants it."""
    from rooflens.report.render.terminal import render

    if output is not None:
        return render(blocks)
    stream = streams.results()
    color = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return render(blocks, width=max(min(streams.width(stream), 120), 40), color=color, unicode=_unicode(stream))


def _unicode(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") in ("utf8", "utf16", "utf32")


def as_json(document: Any) -> str:
    return json_text(document, end="\n")


def emit(text: str, output: str | None, pictures: "tuple[Written, ...]" = ()) -> None:
    """All files or none of them, and then the text where it has none of its own."""
    from rooflens.report.output import text_file, write_all

    text = text if text.endswith("\n") else text + "\n"
    write_all((*pictures, *([text_file(output, text)] if output is not None else [])))
    if output is None:
        streams.write(text)


def status_of(documents: list[dict[str, Any]], strict: bool) -> int:
    """1 where a gate failed; 3 where one could not be judged, or an op not be counted under --strict."""
    gates = [g for d in documents for g in d["gates"]]
    if any(g["passed"] is False for g in gates):
        return 1
    if any(g["passed"] is None for g in gates):
        return PartialResult.status
    opaque = any(d["coverage"]["opaque"] for d in documents)
    return PartialResult.status if strict and opaque else 0


def say_why(documents: list[dict[str, Any]], strict: bool, format: str) -> None:
    """What a status other than 0 is for, a line each: a script that takes JSON or CSV has no report to read it from.
    In CSV nothing but rows can stand, so that what is not counted is said here."""
    for d in documents:
        for g in d["gates"]:
            if not g["passed"]:
                verdict = "cannot be judged: its value is unknown" if g["passed"] is None else f"it is {g['value']}"
                streams.say(f"rooflens: gate {g['gate']}: {verdict}")
        c = d["coverage"]
        if c["opaque"] and (strict or format == "csv"):
            named = ", ".join(f"{o['count']} x {o['kind']}" for o in c["opaque"])
            streams.say(f"rooflens: not counted: {named}; {c['share_counted']:.1%} of the ops are counted")


def progress(line: str) -> None:
    """Notes go to stderr, and only to a person."""
    if sys.stderr.isatty():
        streams.say(line)


def emit_as(
    format: str,
    document: Any,
    blocks: tuple[Block, ...],
    rows: list[dict[str, Any]],
    output: str | None,
    pictures: "tuple[Written, ...]" = (),
) -> None:
    """One result in the form that was asked for: the document as JSON, its rows as CSV, its blocks as text."""
    emit(_in_form(format, document, blocks, rows, output), output, pictures)


def _in_form(
    format: str, document: Any, blocks: tuple[Block, ...], rows: list[dict[str, Any]], output: str | None
) -> str:
    if format == "json":
        return as_json(document)
    if format == "csv":
        from rooflens.report.render.csv import render_rows

        header = tuple(rows[0]) if rows else ()
        return render_rows(header, [tuple(r.values()) for r in rows])
    if format == "md":
        from rooflens.report.render.markdown import render

        return render(blocks)
    return terminal_text(blocks, output)


def pictures_of(charts: tuple[Roofline, ...], path: str | None, title: str = "") -> "tuple[Written, ...]":
    """The file that --plot asks for, drawn but not yet written."""
    if path is None:
        return ()
    from rooflens.report.output import Written, picture_format
    from rooflens.report.render.plot import draw

    kind = picture_format(path)
    if not charts:
        raise SyntaxFault(
            f"--plot {path}: nothing to draw: name a chip with --on whose peaks and bandwidth are published"
        )
    return (Written(path=path, data=draw(charts if len(charts) > 1 else charts[0], kind, title)),)
