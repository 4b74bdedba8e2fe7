"""rooflens: which zone of the roofline each layer of a neural network occupies, on any chip, and what to change."""

from functools import partial
from typing import Any, NoReturn

from rooflens.errors import InputError, NotInThisVersion, PartialResult, RooflensError
from rooflens.version import __version__

# Loaded on first use, so that `import rooflens` and `rooflens --help` cost next to nothing.
_LAZY = {
    "analyze": "rooflens.api",
    "fuse": "rooflens.api",
    "measure": "rooflens.api",
    "bench": "rooflens.benched",
    "load_chip": "rooflens.hardware.load",
    "prepare_torchvision": "rooflens.frontends.pytorch.compat",
    "Analysis": "rooflens.analysis",
    "Comparison": "rooflens.comparison",
    "Hardware": "rooflens.hardware.records",
    "Graph": "rooflens.graph.records",
}
_LATER = ("map_to", "trace", "sweep", "check")
__all__ = ["InputError", "NotInThisVersion", "PartialResult", "RooflensError", "__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return partial(_later, name)
    if name not in _LAZY:
        raise AttributeError(f"module 'rooflens' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    """What is loaded on first use is there all the same: for dir(), and for the tab key."""
    return sorted({*globals(), *__all__, *_LATER})


def _later(name: str, *args: Any, **options: Any) -> NoReturn:
    raise NotInThisVersion(f"rooflens.{name} is not in this version: use rooflens.analyze")
