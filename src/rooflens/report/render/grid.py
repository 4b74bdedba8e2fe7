"""A Roofline and a width in, an empty grid of character cells with its log-log scales out.

Cells carry a style, and remember which of them a dot or a label has taken, because those never overlap.
"""

from dataclasses import dataclass, field

from rooflens.report.blocks import Roofline

Span = tuple[str, str]
ROWS = 20


@dataclass(slots=True)
class Grid:
    chart: Roofline
    width: int
    cells: list[list[Span]] = field(default_factory=list)
    taken: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        decades = span(self.chart.y_decades)
        self.cells = [[(" ", "")] * self.width for _ in range(max(1, round(ROWS / decades)) * decades + 1)]

    @property
    def height(self) -> int:
        return len(self.cells)

    def column(self, x: float) -> int:
        per_decade = (self.width - 1) / span(self.chart.x_decades)
        return min(self.width - 1, max(0, round((x - self.chart.x_decades[0]) * per_decade)))

    def row(self, y: float) -> int:
        per_decade = (self.height - 1) / span(self.chart.y_decades)
        return min(self.height - 1, max(0, round((self.chart.y_decades[1] - y) * per_decade)))

    def height_of(self, row: int) -> float:
        """The decade that a row stands for: the inverse of `row`."""
        return self.chart.y_decades[1] - row * span(self.chart.y_decades) / (self.height - 1)

    def put(self, row: int, column: int, text: str, style: str) -> None:
        for i, c in enumerate(text):
            self.cells[row][column + i] = (c, style)

    def take(self, row: int, column: int, length: int) -> None:
        self.taken.update((row, c) for c in range(column, column + length))

    def free(self, row: int, column: int, length: int) -> bool:
        inside = 0 <= row < self.height and column >= 0 and column + length <= self.width
        return inside and not any((row, c) in self.taken for c in range(column, column + length))

    def blank(self, row: int, column: int, length: int) -> bool:
        return self.free(row, column, length) and all(c == " " for c, _ in self.cells[row][column : column + length])


def span(bounds: tuple[int, int]) -> int:
    return max(1, bounds[1] - bounds[0])
