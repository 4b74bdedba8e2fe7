"""The public result: a Prediction with its advice and gates, and every way to look at it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from rooflens.advise.whatif import Advice, advise
from rooflens.collector import collector_paused
from rooflens.compare.gates import GateResult, judge
from rooflens.compare.inductor import Against
from rooflens.compare.standing import Measured
from rooflens.errors import InputError, NotInThisVersion, needs_extra
from rooflens.jsonfile import json_text
from rooflens.pipeline.run import Prediction
from rooflens.report.blocks import Block
from rooflens.report.document import analysis_document, with_gates
from rooflens.report.views import VIEWS
from rooflens.units import show

if TYPE_CHECKING:
    import pandas


NOTHING_TO_DRAW = "nothing to draw: analyse on a chip whose peaks and bandwidth are published"


@dataclass(frozen=True, kw_only=True, repr=False)
class Analysis:
    """What `rooflens.analyze` returns. Advice and the document are made when they are first asked for."""

    prediction: Prediction
    on: str | None = None
    batch: int | None = None
    view: str = "analyze"  # or fuse, or measure: which report it prints itself as
    against: Against | None = None  # what a compiler does with the same graph
    measured: Measured | None = None

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        with collector_paused():
            return advise(self.prediction)

    @cached_property
    def gates(self) -> tuple[GateResult, ...]:
        return tuple(judge(self._ungated, g) for g in self.prediction.settings.gate)

    @cached_property
    def _ungated(self) -> dict[str, Any]:
        advice = self.advice
        with collector_paused():
            return analysis_document(self.prediction, advice, self.on, self.batch, self.against, self.measured)

    def to_dict(self) -> dict[str, Any]:
        return with_gates(self._ungated, self.gates)

    def to_json(self, indent: int | None = 2) -> str:
        return json_text(self.to_dict(), indent)

    def to_markdown(self) -> str:
        from rooflens.report.render.markdown import render

        return render(self._blocks())

    def _blocks(self) -> tuple[Block, ...]:
        return VIEWS[self.view].blocks(self.to_dict())

    def to_csv(self) -> str:
        from rooflens.report.render.csv import render_rows

        return render_rows(VIEWS[self.view].header, VIEWS[self.view].rows(self.to_dict()))

    def to_diagram(self, form: str) -> str:
        """The units and what passes between them, as `dot` or `mermaid`."""
        from rooflens.report.render.diagrams import DRAWN
        from rooflens.report.sections.diagram import diagram_of

        return DRAWN[form](diagram_of(self.to_dict()))

    def to_pandas(self) -> "pandas.DataFrame":
        try:
            import pandas
        except ImportError:
            raise needs_extra("pandas", "table") from None
        view = VIEWS[self.view]
        return pandas.DataFrame(view.rows(self.to_dict()), columns=list(view.header))

    def plot(self, path: str | None = None) -> bytes:
        """The roofline as SVG (or PNG by the path's ending); written to `path` where one is given."""
        from rooflens.report.output import write_bytes

        drawn = self.picture(path or "roofline.svg")
        if path is not None:
            write_bytes(path, drawn)
        return drawn

    def picture(self, path: str) -> bytes:
        """What `plot` would write to such a path."""
        from rooflens.report.output import picture_format
        from rooflens.report.render.plot import draw
        from rooflens.report.sections.chart import chart_of
        from rooflens.report.sections.measured import measured_chart

        chart_for = chart_of if self.measured is None else measured_chart
        kind, chart = picture_format(path), chart_for(self.to_dict())
        if chart is None:
            raise InputError(NOTHING_TO_DRAW)
        return draw(chart, kind)

    def to_text(self, format: str) -> str:
        """In one of the forms that `--format` names."""
        forms: dict[str, Callable[[], str]] = {
            "json": self.to_json, "csv": self.to_csv, "md": self.to_markdown, "table": self.__str__,
            **{form: partial(self.to_diagram, form) for form in ("dot", "mermaid")},
        }  # fmt: skip
        text = forms[format]()
        return text if text.endswith("\n") else f"{text}\n"

    def __repr__(self) -> str:
        p = self.prediction
        on = f" on {self.on}" if self.on else ""
        time = f", device time at least {show(p.estimate.device_time_s, 's')}" if p.estimate else ""
        return f"<Analysis of {p.graph.name}{on}: {len(p.graph.ops)} ops{time}>"

    def to_html(self) -> str:
        raise NotInThisVersion("to_html() is not in this version: use to_markdown(), plot() or to_json()")

    def __str__(self) -> str:
        from rooflens.report.render.terminal import render

        return render(self._blocks())

    def _repr_markdown_(self) -> str:
        return self.to_markdown()
