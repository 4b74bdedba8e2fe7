"""A Diagram in, a Mermaid flowchart out. In quoted texts every sign that means something becomes a numbered entity."""

from rooflens.report.blocks import Cluster, Connection, Diagram, Node
from rooflens.report.render.escape import safe_text

_LIMIT = 60  # Mermaid refuses more than 50,000 characters in all
_PLAIN = frozenset(" .,:/+-_()=…→")
_CLASSES = (
    ("memory", "#0072B2"), ("compute", "#D55E00"), ("launch", "#009E73"), ("unknown", "#666666"),
)  # fmt: skip


def render(diagram: Diagram) -> str:
    lines = [f"%% {_comment(text)}" for text in (diagram.title, *diagram.notes)]
    lines += ["flowchart TB", *(f"  classDef {name} stroke:{color},stroke-width:2px" for name, color in _CLASSES)]
    lines += map(_node, diagram.nodes)
    for place, cluster in enumerate(diagram.clusters):
        lines += _cluster(place, cluster)
    lines += map(_edge, diagram.connections)
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    """Braces in a comment would open a directive."""
    return safe_text(text, _LIMIT).replace("{", "(").replace("}", ")")


def _quoted(lines: tuple[str, ...]) -> str:
    return '"' + "<br/>".join(map(_text, lines)) + '"'


def _text(line: str) -> str:
    return "".join(c if c.isalnum() or c in _PLAIN else f"#{ord(c)};" for c in safe_text(line, _LIMIT))


def _node(node: Node) -> str:
    bound = node.bound if node.bound in dict(_CLASSES) else "unknown"
    return f"  n{node.id}[{_quoted(node.lines)}]:::{bound}"


def _cluster(place: int, cluster: Cluster) -> list[str]:
    return [f"  subgraph r{place}[{_quoted((cluster.text,))}]", *(f"    n{i}" for i in cluster.nodes), "  end"]


def _edge(c: Connection) -> str:
    """What leads to the next repetition is dotted."""
    if c.back:
        return f"  n{c.before} -.->|{_quoted((f'next: {c.text}',))}| n{c.after}"
    return f"  n{c.before} -->|{_quoted((c.text,))}| n{c.after}"
