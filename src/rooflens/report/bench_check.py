"""A checked report in, its document out (`rooflens.bench/1`, kind `check`)."""

from typing import Any

from rooflens.compare.checked import Checked, Finding
from rooflens.report.bench import bench_document


def check_document(file: str, found: Checked) -> dict[str, Any]:
    return {
        **bench_document("check"),
        "file": file,
        "tables": found.tables,
        "claims": {"right": found.right, "wrong": found.wrong, "not_checkable": found.not_checkable},
        "findings": [_finding(f) for f in found.findings],
        "left_out": list(found.left_out),
    }


def _finding(f: Finding) -> dict[str, Any]:
    return {
        "line": f.line,
        "kind": f.kind,
        "claim": f.claim,
        "should_be": f.should_be or None,
        "why": f.why,
        "lines": list(f.lines),
    }
