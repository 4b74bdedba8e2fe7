"""The Python functions: a model, a chip and options in, an Analysis out. The command line calls the same ones."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from rooflens.analysis import Analysis
from rooflens.compare.gates import check_gate
from rooflens.compare.inductor import Against, matches
from rooflens.comparison import Comparison
from rooflens.errors import SyntaxFault
from rooflens.frontends.request import Loaded
from rooflens.hardware.load import load_chip, split_chips
from rooflens.hardware.records import Hardware
from rooflens.loading import load
from rooflens.pipeline.run import predict
from rooflens.pipeline.settings import Settings, make_settings
from rooflens.report.output import Written, text_file, write_all
from rooflens.units import parse_as

if TYPE_CHECKING:
    from rooflens.benches.inductor import Compiled

MEASURE_S, LONGEST_S = 0.2, 3600
Chip = tuple[Hardware | None, str | None]  # the chip, and how it was named
Chips = list[str] | tuple[str | os.PathLike[str] | Hardware, ...]


@overload
def analyze(
    model: Any, inputs: Any = None, on: str | os.PathLike[str] | Hardware | None = None, **options: Any
) -> Analysis: ...


@overload
def analyze(model: Any, inputs: Any = None, *, on: Chips, **options: Any) -> Comparison: ...


def analyze(model: Any, inputs: Any = None, on: Any = None, **options: Any) -> Analysis | Comparison:
    """Every layer's place on the roofline of a chip; of several chips (`on=["h100-sxm", "l4"]`) a Comparison.

    `model` is MODEL text (`"resnet18"`, layer text, a file) or a torch module; `inputs` a tensor, a tuple or a dict for
    a module. `options` are the command line's flags with underscores: `batch=8, dtype="bf16", mode="training"`.
    """
    return _run(model, inputs, on, options, "analyze")


@overload
def fuse(
    model: Any,
    inputs: Any = None,
    on: str | os.PathLike[str] | Hardware | None = None,
    against: str | None = None,
    **options: Any,
) -> Analysis: ...


@overload
def fuse(model: Any, inputs: Any = None, *, on: Chips, against: str | None = None, **options: Any) -> Comparison: ...


def fuse(
    model: Any, inputs: Any = None, on: Any = None, against: str | None = None, **options: Any
) -> Analysis | Comparison:
    """Before and after fusion, group by group and edge by edge: `analyze` at `fusion="chain"` unless told otherwise. What
    it returns prints itself as `rooflens fuse` does. `against="inductor"` holds it beside what that compiler fuses."""
    return _run(model, inputs, on, fusing(options, against), "fuse", against)


def measure(
    model: Any,
    inputs: Any = None,
    on: str | os.PathLike[str] | Hardware | None = None,
    device: str | None = None,
    time: float | str = MEASURE_S,
    try_: bool = False,
    **options: Any,
) -> Analysis:
    """Each layer run here for real, forward and backward, beside what is predicted for it. `device` is cpu or cuda, `on`
    the chip whose roofs it is held against (what `rooflens machine` found here, unless told otherwise), `time` how long
    each distinct layer is run (0.2, "50ms"). `try_` makes changes for real and says what each gained."""
    from rooflens.measuring import this_machine

    settings = checked_settings(**options)
    hardware, named = _one_chip(this_machine(device) if on is None else on)
    found = measured(model, inputs, hardware, named, settings, device=device, seconds=seconds_of(time), try_=try_)
    _write_files(found, settings)
    return found


def measured(
    model: Any,
    inputs: Any,
    hardware: Hardware | None,
    on: str | None,
    settings: Settings,
    *,
    device: str | None,
    seconds: float,
    progress: Callable[[str, int, int], None] = lambda what, done, of: None,
    try_: bool = False,
) -> Analysis:
    """An explicit mode of inference leaves the backward passes out."""
    from rooflens.measuring import measure_model

    found = measure_model(
        model, inputs, hardware, settings, device=device, seconds=seconds, progress=progress,
        backward=dict(settings.given).get("mode") != "inference", try_=try_,
    )  # fmt: skip
    return Analysis(prediction=found.prediction, on=on, batch=found.batch, view="measure", measured=found.measured)


def seconds_of(value: float | str) -> float:
    found = parse_as(value, "s") if isinstance(value, str) else value
    if not 0 < found < LONGEST_S:
        raise SyntaxFault(f"--time {value}: must be above 0 and below {LONGEST_S} s, such as 0.2s")
    return float(found)


def _run(
    model: Any, inputs: Any, on: Any, options: dict[str, Any], view: str, against: str | None = None
) -> Analysis | Comparison:
    """The model is traced once, for however many chips."""
    settings, chips = checked_settings(**options), _chips(on)
    source = _source(model, inputs, settings, against)
    each = [replace(_analysis(source, hardware, named, settings), view=view) for hardware, named in chips]
    found = each[0] if len(each) == 1 else Comparison(each)
    _write_files(found, settings)
    return found


def fusing(options: dict[str, Any], against: str | None = None) -> dict[str, Any]:
    """The options of `fuse`: its own default level, unless another option brings one, as `compiled` alone does. Against a
    compiler it is what a compiler does."""
    if against is not None:
        asked = {name: value for name, value in options.items() if value is not None}
        return {**options, "fusion": asked.get("fusion", "residual"), "bn": asked.get("bn", "folded")}
    compiled = options.get("execution") == "compiled" and options.get("bn") is None
    told = options.get("fusion") is not None or compiled
    return options if told else {**options, "fusion": "chain"}


def checked_settings(**options: Any) -> Settings:
    """Gates too are checked before anything is built."""
    settings = make_settings(**options)
    for gate in settings.gate:
        check_gate(gate)
    return settings


def _write_files(found: Analysis | Comparison, settings: Settings) -> None:
    """`output` in the form of `format`, and `plot`, as on the command line."""
    files = [] if settings.plot is None else [Written(path=settings.plot, data=found.picture(settings.plot))]
    if settings.output is not None:
        files.append(text_file(settings.output, found.to_text(settings.format or "table")))
    write_all(tuple(files))


def _one_chip(on: Any) -> Chip:
    found = _chips(on)
    if len(found) != 1:
        raise SyntaxFault(f"on={on!r} names {len(found)} chips: layers run on one machine: give the chip of its roofs")
    return found[0]


def _chips(on: Any) -> list[Chip]:
    """No chip is one case too: then there are counts alone."""
    if on is None:
        return [(None, None)]
    found = [chip for each in (on if isinstance(on, list | tuple) else [on]) for chip in _named(each, on)]
    if not found:
        raise SyntaxFault(f"on={on!r} names no chip: give a chip id, or leave on out")
    return found


def _named(each: Any, on: Any) -> list[Chip]:
    """Of one piece, which may be several with commas between them."""
    if isinstance(each, Hardware):
        return [(each, each.id)]
    if not isinstance(each, str | os.PathLike):
        raise SyntaxFault(f"on={on!r}: give a chip id, a path to a .toml, or a Hardware, or a list of those")
    return [(load_chip(text), text) for text in split_chips(os.fspath(each))]


def analyze_one(model: str, on: str | None, settings: Settings, against: str | None = None) -> Analysis:
    source = _source(model, None, settings, against)
    return _analysis(source, load_chip(on) if on else None, on, settings)


def analyze_many(
    model: Any, chips: tuple[str, ...], settings: Settings, against: str | None = None
) -> tuple[Analysis, ...]:
    """The same model on several chips: traced once."""
    hardware = [load_chip(c) for c in chips]
    source = _source(model, None, settings, against)
    return tuple(_analysis(source, h, c, settings) for h, c in zip(hardware, chips, strict=True))


Source = tuple[Loaded, "Compiled | None"]  # a graph, and what a compiler makes of it


def _source(model: Any, inputs: Any, settings: Settings, against: str | None) -> Source:
    if against is None:
        return load(model, inputs, settings), None
    from rooflens.against import load_compiled

    return load_compiled(model, inputs, settings, against)


def _analysis(source: Source, hardware: Hardware | None, on: str | None, settings: Settings) -> Analysis:
    loaded, compiled = source
    prediction = predict(loaded.graph, hardware, settings.adopting(loaded.settings), loaded.dtype)
    judged = None
    if compiled is not None:
        edges = matches(prediction.partition, compiled.kernels, compiled.names)
        judged = Against(compiler=compiled.compiler, kernels=compiled.kernels, names=compiled.names, edges=edges)
    return Analysis(prediction=prediction, on=on, batch=loaded.batch, against=judged)
