"""Trainable parameters and their gradients in, the optimizer's step out: one fused update per parameter."""

from rooflens.errors import SyntaxFault
from rooflens.graph.build import GraphBuilder
from rooflens.graph.records import FLOATS

STATES = {"sgd": (), "adamw": ("exp_avg", "exp_avg_sq")}
OPTIMIZERS = ("none", *STATES)


def record_step(builder: GraphBuilder, optimizer: str, gradients: list[tuple[int, int]]) -> None:
    """`gradients` pairs each parameter with its gradient. State is kept in the parameter's type."""
    if optimizer == "none":
        return
    if optimizer not in STATES:
        raise SyntaxFault(f"--optimizer {optimizer}: use one of {' '.join(OPTIMIZERS)}")
    for parameter, gradient in gradients:
        _update(builder, optimizer, parameter, gradient)


def _update(builder: GraphBuilder, optimizer: str, parameter: int, gradient: int) -> None:
    p = builder.tensors[parameter]
    if p.dtype not in FLOATS:
        return
    states = tuple(builder.tensor(p.shape, p.dtype, "state", name=f"{p.name}.{s}") for s in STATES[optimizer])
    written = tuple(builder.tensor(p.shape, p.dtype, name=p.name) for _ in range(1 + len(states)))
    builder.op(
        f"{optimizer}_step",
        (parameter, gradient, *states),
        written,
        label=p.name,
        module=p.name.rpartition(".")[0],
        pass_="optimizer",
    )
