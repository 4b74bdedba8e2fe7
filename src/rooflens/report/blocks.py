"""What a report is made of: sections make Blocks, renderers draw them. A section knows no renderer, a renderer computes
nothing, so that every output says the same."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    text: str
    tone: str = "plain"  # plain | warning


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    numeric: bool = False
    whole: bool = False  # what a reader copies from here: never cut to make room


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cells are text already; `elided` rows were left out and `hint` says how to see them."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    elided: int = 0
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Lines that a reader copies: as they are, never wrapped or cut."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a user wrote, kept as it was written, line by line; nothing in it acts on what is around it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """A flat roof: the peak of one dtype on one kind of unit. `main` roofs are those that dots of this run stand under.
    `measured`: found by running, and drawn so that nobody takes it for a datasheet's."""

    label: str
    flop_per_s: float
    main: bool = False
    measured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A slanted roof: the bandwidth of one memory level. `main` is the off-chip one."""

    label: str
    bytes_per_s: float
    main: bool = False
    measured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    number: int
    label: str
    intensity: float
    flop_per_s: float
    share: float | None
    bound: str  # memory | compute | launch | unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """From where an op would stand by itself to the dot of that number, the unit that it runs in."""

    number: int
    label: str
    intensity: float
    flop_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Axes are whole decades fixed by the chip's ceilings, never fitted to the run; dots outside get a badge at the edge."""

    title: str
    roofs: tuple[Roof, ...]
    slopes: tuple[Slope, ...]
    dots: tuple[Dot, ...]
    x_decades: tuple[int, int]
    y_decades: tuple[int, int]
    footnotes: tuple[str, ...] = ()
    arrows: tuple[Arrow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value of a series. `low` and `high` are what its bar spans."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What the points from place `first` to `last` (both in it) are about: a slope where both ends differ, which `text`
    tells."""

    first: int
    last: int
    start: float
    end: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Right before the point at place `after`. `short` stands in the picture; one not `sure` is drawn as a guess."""

    after: int
    short: str
    text: str
    up: bool
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values that can be compared with each other, over runs, oldest first. `bars` says what the bars span. Without a title
    the heading above says what they are."""

    title: str
    unit: str
    points: tuple[Point, ...]
    levels: tuple[Level, ...] = ()
    steps: tuple[Step, ...] = ()
    bars: str = ""
    notes: tuple[str, ...] = ()


Block = Heading | Paragraph | Table | Code | Words | Roofline | Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A unit: its name, its pattern, and what else is known of it, a line each."""

    id: int
    lines: tuple[str, ...]
    bound: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What passes between two units; `back` leads to the next repetition of the run that both stand in."""

    before: int
    after: int
    text: str
    back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes that stand for so many repetitions of the same run."""

    text: str
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Nodes in the order they run; `notes` say what was left out."""

    title: str
    nodes: tuple[Node, ...]
    connections: tuple[Connection, ...]
    clusters: tuple[Cluster, ...]
    notes: tuple[str, ...] = ()
