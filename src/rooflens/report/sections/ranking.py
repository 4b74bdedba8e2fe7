"""An analysis document in, its kernels numbered by weight out: the one order that table and chart share."""

from typing import Any


def ranked(document: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Heaviest first: by device time where a chip was named, else by bytes; views are left out."""
    kernels = [op for op in document["ops"] if not op["view"]]
    kernels.sort(key=lambda op: (-(op["device_time_s"] or 0.0), -op["bytes"]))
    return list(enumerate(kernels, 1))
