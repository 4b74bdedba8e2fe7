"""The public result for several chips: a tuple of Analyses that is looked at as one Analysis is."""

from typing import TYPE_CHECKING, Any

from rooflens.analysis import NOTHING_TO_DRAW, Analysis
from rooflens.errors import InputError, SyntaxFault, needs_extra
from rooflens.jsonfile import json_text
from rooflens.report.document import comparison_document
from rooflens.report.together import charts_of, rows_together, title_of
from rooflens.report.views import VIEWS, View

if TYPE_CHECKING:
    import pandas


class Comparison(tuple[Analysis, ...]):
    """What `rooflens.analyze` returns for several chips: its items are Analyses, in the order that was asked for."""

    __slots__ = ()

    @property
    def _view(self) -> View:
        return VIEWS[self[0].view]

    def _documents(self) -> list[dict[str, Any]]:
        return [a.to_dict() for a in self]

    def to_dict(self) -> dict[str, Any]:
        return comparison_document(self._documents())

    def to_json(self, indent: int | None = 2) -> str:
        return json_text(self.to_dict(), indent)

    def to_markdown(self) -> str:
        from rooflens.report.render.markdown import render

        return "\n".join([render(self._view.together(self._documents())), *(a.to_markdown() for a in self)])

    def to_csv(self) -> str:
        from rooflens.report.render.csv import render_rows

        return render_rows(*rows_together(self._view, self._documents()))

    def to_pandas(self) -> "pandas.DataFrame":
        try:
            import pandas
        except ImportError:
            raise needs_extra("pandas", "table") from None
        header, rows = rows_together(self._view, self._documents())
        return pandas.DataFrame(rows, columns=list(header))

    def to_html(self) -> str:
        return self[0].to_html()

    def plot(self, path: str | None = None) -> bytes:
        """All roofs in one picture, as SVG (or PNG by the path's ending); written to `path` where one is given."""
        from rooflens.report.output import write_bytes

        drawn = self.picture(path or "roofline.svg")
        if path is not None:
            write_bytes(path, drawn)
        return drawn

    def picture(self, path: str) -> bytes:
        from rooflens.report.output import picture_format
        from rooflens.report.render.plot import draw

        documents = self._documents()
        kind, charts = picture_format(path), charts_of(documents)
        if not charts:
            raise InputError(NOTHING_TO_DRAW)
        return draw(charts if len(charts) > 1 else charts[0], kind, title_of(documents))

    def to_text(self, format: str) -> str:
        """In one of the forms that `--format` names."""
        forms = {"json": self.to_json, "csv": self.to_csv, "md": self.to_markdown, "table": self.__str__}
        if format not in forms:
            raise SyntaxFault(f"format={format!r}: one picture shows one model on one chip: ask an item of this for it")
        text = forms[format]()
        return text if text.endswith("\n") else f"{text}\n"

    def __repr__(self) -> str:
        return f"<Comparison of {self[0].prediction.graph.name} on {', '.join(str(a.on) for a in self)}>"

    def __str__(self) -> str:
        from rooflens.report.render.terminal import render

        return "\n".join([render(self._view.together(self._documents())), *map(str, self)])

    def _repr_markdown_(self) -> str:
        return self.to_markdown()
