"""A Diagram in, DOT for Graphviz out. Names stand in quoted labels alone, where nothing in them is syntax."""

from rooflens.report.blocks import Cluster, Connection, Diagram, Node
from rooflens.report.render.escape import safe_text

_LIMIT = 120
# Okabe and Ito's colours, as in the roofline; the words say the same.
_COLORS = {"memory": "#0072B2", "compute": "#D55E00", "launch": "#009E73", "unknown": "#666666"}
# A backslash begins an escape in a label, and `&` an HTML entity.
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;", "<": "&lt;", ">": "&gt;"})
_HEAD = """digraph fusion {
  graph [rankdir=TB, labelloc=t, fontname="sans-serif", label=%s];
  node [shape=box, fontname="sans-serif", fontsize=10];
  edge [fontname="sans-serif", fontsize=9, color="#666666"];
"""


def render(diagram: Diagram) -> str:
    title = _label((diagram.title, *diagram.notes))
    lines = [_HEAD % title]
    lines += [_node(node) for node in diagram.nodes]
    lines += [_cluster(place, cluster) for place, cluster in enumerate(diagram.clusters)]
    lines += [_edge(connection) for connection in diagram.connections]
    return "".join((*lines, "}\n"))


def _label(lines: tuple[str, ...]) -> str:
    return '"' + "\\n".join(safe_text(line, _LIMIT).translate(_ESCAPED) for line in lines) + '"'


def _node(node: Node) -> str:
    return f'  n{node.id} [color="{_COLORS.get(node.bound, _COLORS["unknown"])}", label={_label(node.lines)}];\n'


def _cluster(place: int, cluster: Cluster) -> str:
    members = " ".join(f"n{i};" for i in cluster.nodes)
    return (
        f'  subgraph cluster_{place} {{ style=rounded; color="#a0a0a0"; label={_label((cluster.text,))}; {members} }}\n'
    )


def _edge(c: Connection) -> str:
    """What leads to the next repetition is dashed and does not pull the run apart."""
    back = ", style=dashed, constraint=false" if c.back else ""
    return f"  n{c.before} -> n{c.after} [label={_label((_text(c),))}{back}];\n"


def _text(c: Connection) -> str:
    return f"next: {c.text}" if c.back else c.text
