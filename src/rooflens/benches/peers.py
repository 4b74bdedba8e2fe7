"""A module and its inputs in, what another FLOP counter says about them out: its total, in its own unit, and what it
counted in which module.

torch's counter, torchinfo and thop read shapes and run on the meta device. fvcore traces through a check that a meta
tensor cannot answer, and ptflops patches functions that torch's own meta kernels are written in and would count those:
both run on the CPU, on zeros.
"""

import contextlib
import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from torch import nn
from torch.nn import functional
from torch.nn.modules import module as nn_module

from rooflens.benches.subject import Subject
from rooflens.errors import one_line
from rooflens.units import show

CPU_LIMIT_BYTES = 8 * 10**9
Tally = dict[tuple[str, str], list[int]]  # (module, what): calls, amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What was counted in one module, its children left out, under the counter's own name for it."""

    module: str
    what: str
    calls: int
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFact:
    """Counters go by the exact class of a module, so a subclass of nn.Linear is another thing than nn.Linear."""

    path: str
    class_name: str
    leaf: bool
    dim: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerCount:
    """`total` is None where there is a `problem`: not installed, or it failed on this model."""

    name: str
    version: str
    flop_per_mac: int
    total: int | None
    device: str = ""
    parts: tuple[Part, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """`devices` are tried in order."""

    name: str
    package: str
    flop_per_mac: int
    devices: tuple[str, ...]
    run: Callable[[Subject], tuple[int, Tally]]


def module_facts(module: nn.Module) -> tuple[ModuleFact, ...]:
    return tuple(
        ModuleFact(path=path, class_name=_class_of(m), leaf=not m._modules, dim=_dim(m))
        for path, m in module.named_modules()
    )


def _class_of(module: nn.Module) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"


def _dim(module: nn.Module) -> int | None:
    found = getattr(module, "dim", None)
    return found if isinstance(found, int) else None


def count_with(peer: Peer, subject: Subject) -> PeerCount:
    """The peer's count, or why there is none; what it prints goes nowhere."""
    try:
        found = version(peer.package)
    except PackageNotFoundError:
        return _none(peer, "", "not installed: pip install 'rooflens[dev]'")
    problem = ""
    for device in peer.devices:
        try:
            total, tally = _quietly(peer, subject, device)
        except Exception as error:
            problem = problem or one_line(f"could not run: {type(error).__name__}: {error}", 200)
            continue
        parts = tuple(Part(module=m, what=w, calls=c, amount=a) for (m, w), (c, a) in tally.items())
        return PeerCount(
            name=peer.name, version=found, flop_per_mac=peer.flop_per_mac, total=total, device=device, parts=parts
        )
    return _none(peer, found, problem)


def _none(peer: Peer, found: str, problem: str) -> PeerCount:
    return PeerCount(name=peer.name, version=found, flop_per_mac=peer.flop_per_mac, total=None, problem=problem)


def _quietly(peer: Peer, subject: Subject, device: str) -> tuple[int, Tally]:
    if device == "cpu" and subject.bytes > CPU_LIMIT_BYTES:
        raise MemoryError(f"it needs real weights, {show(subject.bytes, 'B')}, more than {show(CPU_LIMIT_BYTES, 'B')}")
    nowhere = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        return peer.run(subject.on(device))


def _add(tally: Tally, module: str, what: str, amount: int, calls: int = 1) -> None:
    entry = tally.setdefault((module, what), [0, 0])
    entry[0] += calls
    entry[1] += amount


def _own(by_module: dict[str, dict[str, int]], names: Iterable[str], calls: bool = False) -> Tally:
    """Counts that include those of children, without them."""
    tally: Tally = {}
    for path, counts in by_module.items():
        inside = [by_module[n] for n in names if n in by_module and n != path and _parent(n, by_module) == path]
        for what, amount in counts.items():
            rest = amount - sum(c.get(what, 0) for c in inside)
            if rest:
                _add(tally, path, what, 0 if calls else rest, rest if calls else 1)
    return tally


def _parent(path: str, known: dict[str, Any]) -> str:
    """The nearest module around it that is known."""
    while path:
        path = path.rpartition(".")[0]
        if path in known:
            return path
    return ""


def _torch(subject: Subject) -> tuple[int, Tally]:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        subject.module(*subject.args, **subject.kwargs)
    root = type(subject.module).__name__
    by_module = {
        path.removeprefix(root).removeprefix("."): {str(op): n for op, n in counts.items()}
        for path, counts in counter.get_flop_counts().items()
        if path != "Global"
    }
    return counter.get_total_flops(), _own(by_module, tuple(by_module))


def _fvcore(subject: Subject) -> tuple[int, Tally]:
    from fvcore.nn import FlopCountAnalysis

    analysis = FlopCountAnalysis(subject.module, subject.positional())
    analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
    total = int(analysis.total())
    counted = {path: {k: int(n) for k, n in c.items()} for path, c in analysis.by_module_and_operator().items()}
    skipped = {path: dict(analysis.unsupported_ops(path)) for path in counted}
    names = tuple(counted)
    return total, _own(counted, names) | _own(skipped, names, calls=True)


def _torchinfo(subject: Subject) -> tuple[int, Tally]:
    import torchinfo

    paths = {m: path for path, m in subject.module.named_modules()}
    found = torchinfo.summary(subject.module, input_data=subject.keywords(), verbose=0)
    tally: Tally = {}
    for layer in found.summary_list:
        if layer.is_leaf_layer:
            _add(tally, paths[layer.module], layer.class_name, int(layer.macs))
    return int(found.total_mult_adds), tally


def _thop(subject: Subject) -> tuple[int, Tally]:
    import thop

    total, _, layers = thop.profile(subject.module, subject.positional(), verbose=False, ret_layer_info=True)
    tally: Tally = {}
    _thop_leaves(layers, "", tally)
    if not layers:
        _add(tally, "", "module", int(total))
    return int(total), tally


def _thop_leaves(layers: dict[str, Any], above: str, tally: Tally) -> None:
    for name, (amount, _, below) in layers.items():
        path = f"{above}.{name}" if above else name
        if below:
            _thop_leaves(below, path, tally)
        else:
            _add(tally, path, "module", int(amount))


def _ptflops(subject: Subject) -> tuple[int, Tally]:
    import ptflops
    from ptflops import pytorch_ops as tables

    paths = {m: path for path, m in subject.module.named_modules()}
    tally: Tally = {}
    hooks = {cls: _noting(hook, tally, paths) for cls, hook in tables.MODULES_MAPPING.items()}
    module, inputs = _not_alone(subject)
    with _functions_noted((tables.FUNCTIONAL_MAPPING, tables.TENSOR_OPS_MAPPING), tally, paths):
        total, _ = ptflops.get_model_complexity_info(
            module,
            (1,),
            input_constructor=lambda _: inputs,
            print_per_layer_stat=False,
            as_strings=False,
            custom_modules_hooks=hooks,
        )
    if total is None:
        raise RuntimeError("it gave up on this model")
    hidden = {path for m, path in paths.items() for inner in m.modules() if inner is not m and type(m) in hooks}
    inside = {(path, what) for path, what in tally if what == "module" and any(_within(path, h) for h in hidden)}
    return int(total), {key: entry for key, entry in tally.items() if key not in inside}


def _not_alone(subject: Subject) -> tuple[nn.Module, dict[str, Any]]:
    """Named inputs are what it needs to count a whole batch, and inputs by place what its rule for a layer needs."""
    if subject.module._modules or len(subject.args) != 1 or subject.kwargs:
        return subject.module, subject.keywords()
    return nn.Sequential(subject.module), {"input": subject.args[0]}


def _within(path: str, outer: str) -> bool:
    """ptflops adds up no children of a module that it counts as a whole."""
    return path != outer and (not outer or path.startswith(f"{outer}."))


def _noting(hook: Callable[..., None], tally: Tally, paths: dict[Any, str]) -> Callable[..., None]:
    def noted(module: Any, *args: Any) -> None:
        before = module.__flops__
        hook(module, *args)
        _add(tally, paths[module], "module", module.__flops__ - before)

    return noted


@contextlib.contextmanager
def _functions_noted(tables: tuple[dict[Any, Any], ...], tally: Tally, paths: dict[Any, str]) -> Iterator[None]:
    """While ptflops runs, its rules for functions also say in which module they were called, and by which name."""
    stack = [""]

    def enter(module: Any, args: Any) -> None:
        stack.append(paths.get(module, stack[-1]))

    def leave(module: Any, args: Any, output: Any) -> None:
        stack.pop()

    originals = [dict(t) for t in tables]
    handles = (nn_module.register_module_forward_pre_hook(enter), nn_module.register_module_forward_hook(leave))
    for table in tables:
        for function, rule in table.items():
            table[function] = _named(rule, _name_of(function), tally, stack)
    try:
        yield
    finally:
        for table, original in zip(tables, originals, strict=True):
            table.update(original)
        for handle in handles:
            handle.remove()


def _name_of(function: Any) -> str:
    inside = [name for name, value in vars(functional).items() if value is function]
    return inside[0] if inside else str(function.__name__)


def _named(rule: Callable[..., Any], name: str, tally: Tally, stack: list[str]) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        amount = rule(*args, **kwargs)
        _add(tally, stack[-1], name, int(amount))
        return amount

    return noted


PEERS = (
    Peer(name="FlopCounterMode", package="torch", flop_per_mac=2, devices=("meta", "cpu"), run=_torch),
    Peer(name="fvcore", package="fvcore", flop_per_mac=1, devices=("cpu",), run=_fvcore),
    Peer(name="ptflops", package="ptflops", flop_per_mac=1, devices=("cpu",), run=_ptflops),
    Peer(name="torchinfo", package="torchinfo", flop_per_mac=1, devices=("meta", "cpu"), run=_torchinfo),
    Peer(name="thop", package="thop", flop_per_mac=1, devices=("meta", "cpu"), run=_thop),
)
