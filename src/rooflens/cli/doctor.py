"""`rooflens doctor`: what is installed, what is missing, and which extra brings it."""

import importlib.metadata
import importlib.util
import platform
from typing import Any

import typer

from rooflens.cli import options as o
from rooflens.version import __version__

app = typer.Typer(rich_markup_mode=None, add_completion=False)

# distribution -> (extra that brings it, what it is for)
PACKAGES = {
    "torch": ("torch", "torch modules, file.py:function, .pt2"),
    "torchvision": ("zoo", "zoo names such as resnet18"),
    "timm": ("zoo", "timm:NAME"),
    "transformers": ("hf", "transformers modules"),
    "matplotlib": ("plot", "--plot FILE.svg|png"),
    "numpy": ("torch", "rooflens machine"),
    "nvidia-ml-py": ("gpu", "clocks, power and driver of NVIDIA devices"),
    "pandas": ("table", "Analysis.to_pandas()"),
    "fvcore": ("dev", "reconcile"),
    "ptflops": ("dev", "reconcile"),
    "torchinfo": ("dev", "reconcile"),
    "thop": ("dev", "reconcile"),
}


@app.command(epilog="Example:\n\nrooflens doctor --format json")
def doctor(format: o.Format = "table", output: o.Output = None) -> int:
    """What is installed, what is missing, and which extra brings it."""
    from rooflens.hardware.load import catalog_ids
    from rooflens.report.blocks import Column, Heading, Paragraph, Table

    rows = [_package(name, extra, use) for name, (extra, use) in PACKAGES.items()]
    document = {
        "schema": "rooflens.doctor/1",
        "rooflens_version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "chips": len(catalog_ids()),
        "packages": rows,
    }
    cells = tuple((r["package"], r["version"] or "missing", r["use"], r["cure"] or "") for r in rows)
    columns = tuple(Column(name=n) for n in ("package", "version", "for", "to install"))
    text = f"Python {document['python']} on {document['platform']}, {document['chips']} chips in the catalogue."
    blocks = (Heading(text=f"rooflens {__version__}"), Paragraph(text=text), Table(columns=columns, rows=cells))
    o.emit_as(o.check_format(format), document, blocks, rows, output)
    return 0


def _package(name: str, extra: str, use: str) -> dict[str, Any]:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return {
            "package": name,
            "version": None,
            "extra": extra,
            "use": use,
            "cure": f"pip install 'rooflens[{extra}]'",
        }
    return {"package": name, "version": version, "extra": extra, "use": use, "cure": None}
