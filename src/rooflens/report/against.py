"""What a compiler does with the same graph in, `fusion.against` of the Analysis JSON out."""

from collections import Counter
from typing import Any

from rooflens.compare.inductor import DIFFERENCES, TOGETHER, Against, EdgeMatch
from rooflens.graph.records import Graph

UNEXPLAINED = "unexplained"
_WHY = {d.name: d.why for d in DIFFERENCES}


def against_document(against: Against, graph: Graph) -> dict[str, Any]:
    edges, agreed = against.edges, sum(e.difference is None for e in against.edges)
    return {
        "compiler": against.compiler,
        "edges": len(edges),
        "agreed": agreed,
        "share": agreed / len(edges) if edges else None,
        "left_bytes": sum(_left(e) for e in edges),
        "differences": _differences(edges),
        "kernels": [
            {"name": name, "ops": [op.id for op, mine in zip(graph.ops, against.kernels, strict=True) if k in mine]}
            for k, name in enumerate(against.names)
        ],
        "pairs": [_pair(e, graph) for e in edges],
    }


def _left(edge: EdgeMatch) -> int:
    """What a fusion of ours that the compiler did not do leaves in memory."""
    return edge.bytes if edge.difference is not None and edge.ours == TOGETHER else 0


def _differences(edges: tuple[EdgeMatch, ...]) -> list[dict[str, Any]]:
    """Most frequent first."""
    named = [(e.difference or UNEXPLAINED, e) for e in edges if e.difference is not None]
    counts = Counter(name for name, _ in named)
    return [
        {
            "name": name,
            "why": _WHY.get(name, "no rule of ours tells why"),
            "edges": count,
            "left_bytes": sum(_left(e) for n, e in named if n == name),
        }
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _pair(edge: EdgeMatch, graph: Graph) -> dict[str, Any]:
    return {
        "from": graph.ops[edge.before].id,
        "to": graph.ops[edge.after].id,
        "ours": edge.ours,
        "theirs": edge.theirs,
        "why": edge.why,
        "difference": None if edge.difference is None else edge.difference or UNEXPLAINED,
        "bytes": edge.bytes,
    }
