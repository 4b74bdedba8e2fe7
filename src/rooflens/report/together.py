"""Several analysis documents in, what is shown of them beside each other out: models, chips, or both."""

from dataclasses import replace
from typing import Any

from rooflens.report.blocks import Roofline
from rooflens.report.sections.chart import chart_of
from rooflens.report.sections.measured import measured_chart
from rooflens.report.views import View, view_of

Documents = list[dict[str, Any]]
_NAMED = 4  # from so many on, a title counts them


def rows_together(view: View, documents: Documents) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Header and rows; of several documents each row says whose it is."""
    if len(documents) == 1:
        return view.header, view.rows(documents[0])
    rows = [(*view.key(d), *row) for d in documents for row in view.rows(d)]
    return (*view.key_header, *view.header), rows


def charts_of(documents: Documents) -> tuple[Roofline, ...]:
    """Those that there is something to draw of; beside others each is named by what tells it apart."""
    alone = len(documents) == 1
    drawn = [(d, measured_chart(d) if view_of(d) == "measure" else chart_of(d, members=alone)) for d in documents]
    charts = [(_told_apart(d, documents), c) for d, c in drawn if c is not None]
    return tuple(replace(c, title=name) if len(charts) > 1 else c for name, c in charts)


def title_of(documents: Documents) -> str:
    """What the legend does not say: which model stands on those chips, or on which chip those models stand."""
    models = dict.fromkeys(str(d["model"]["name"]) for d in documents)
    chips = dict.fromkeys(str(d["settings"]["on"]) for d in documents)
    return f"{_few(tuple(models), 'models')} on {_few(tuple(chips), 'chips')}"


def _few(names: tuple[str, ...], what: str) -> str:
    return ", ".join(names) if len(names) < _NAMED else f"{len(names)} {what}"


def _told_apart(document: dict[str, Any], documents: Documents) -> str:
    """Beside others: by its chip, by its model, or by both, whichever it takes."""
    chip, model = str(document["settings"]["on"]), str(document["model"]["name"])
    if len({d["model"]["name"] for d in documents}) == 1:
        return chip
    return model if len({d["settings"]["on"] for d in documents}) == 1 else f"{model} on {chip}"
