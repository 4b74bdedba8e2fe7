"""Models and options in, analysis documents out, and what is shown of them: what `analyze`, `fuse` and `report` share."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflens.cli import options as o
from rooflens.cli import streams
from rooflens.errors import SyntaxFault

if TYPE_CHECKING:
    from rooflens.pipeline.settings import Settings
    from rooflens.report.output import Written

Documents = list[dict[str, Any]]


def told(verb: str, models: Sequence[str], options: dict[str, Any], against: str | None = None) -> int:
    """Analyses each model on each chip and shows them as the verb does; the exit status."""
    from rooflens.api import checked_settings

    settings = checked_settings(**{name: value for name, value in options.items() if name != "on"})
    streams.keep_for_results()
    documents = [d for model in models for d in documents_of(model, options["on"], settings, against)]
    text = rendered(documents, options["format"], settings.output, verb)
    o.emit(text, settings.output, plotted(documents, settings.plot))
    o.say_why(documents, settings.strict, options["format"])
    return o.status_of(documents, settings.strict)


def documents_of(model: str, on: list[str] | None, settings: "Settings", against: str | None = None) -> Documents:
    from rooflens.api import analyze_many, analyze_one
    from rooflens.hardware.load import split_chips

    if not on:
        return [analyze_one(model, None, settings, against).to_dict()]
    chips = tuple(chip for text in on for chip in split_chips(text))
    return [a.to_dict() for a in analyze_many(model, chips, settings, against)]


def rendered(documents: Documents, format: str, output: str | None, verb: str = "analyze") -> str:
    from rooflens.report.document import comparison_document
    from rooflens.report.render import csv, markdown
    from rooflens.report.together import rows_together
    from rooflens.report.views import VIEWS, view_of

    view = VIEWS[view_of(documents[0], verb)]
    if format == "json":
        return o.as_json(documents[0] if len(documents) == 1 else comparison_document(documents))
    if format == "csv":
        return csv.render_rows(*rows_together(view, documents))
    if format in o.DIAGRAMS:
        return _diagram(documents, format)
    render = markdown.render if format == "md" else partial(o.terminal_text, output=output)
    first = [render(view.together(documents))] if len(documents) > 1 else []
    return "\n".join([*first, *(render(view.blocks(d)) for d in documents)])


def _diagram(documents: Documents, format: str) -> str:
    from rooflens.report.render.diagrams import DRAWN
    from rooflens.report.sections.diagram import diagram_of

    if len(documents) > 1:
        raise SyntaxFault(f"--format {format}: one picture shows one model: give one MODEL and at most one chip")
    return DRAWN[format](diagram_of(documents[0]))


def plotted(documents: Documents, path: str | None) -> "tuple[Written, ...]":
    if path is None:
        return ()
    from rooflens.report.together import charts_of, title_of

    return o.pictures_of(charts_of(documents), path, title_of(documents))
