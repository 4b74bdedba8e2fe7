"""A Diagram in, the text of a picture out, by the name of its form."""

from collections.abc import Callable

from rooflens.report.blocks import Diagram
from rooflens.report.render import graphviz, mermaid

DRAWN: dict[str, Callable[[Diagram], str]] = {"dot": graphviz.render, "mermaid": mermaid.render}
