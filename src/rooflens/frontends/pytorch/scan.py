"""Mamba's selective scan as one op of torch: h = exp(delta A) h + delta B x, y = C h, step after step.

torch has no such kernel. Here it is a loop, which counts as the one op that it is; how quick a fused kernel would be, it
does not say.
"""

from typing import Any

import torch


def _loop(x: Any, delta: Any, a: Any, b: Any, c: Any) -> Any:
    state = torch.zeros(x.shape[0], *a.shape, dtype=x.dtype, device=x.device)
    outs = []
    for step in range(x.shape[1]):
        d = delta[:, step, :, None]
        state = torch.exp(d * a) * state + d * b[:, step, None, :] * x[:, step, :, None]
        outs.append((state * c[:, step, None, :]).sum(-1))
    return torch.stack(outs, 1)


@torch.library.custom_op("rooflens::scan", mutates_args=())
def selective_scan(
    x: torch.Tensor, delta: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor
) -> torch.Tensor:
    out: torch.Tensor = _loop(x, delta, a, b, c)
    return out


@selective_scan.register_fake
def _shape(x: Any, delta: Any, a: Any, b: Any, c: Any) -> Any:
    return torch.empty_like(x)


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, gradient: Any) -> Any:
    given = [t.detach().requires_grad_() for t in ctx.saved_tensors]
    with torch.enable_grad():
        out = _loop(*given)
    return torch.autograd.grad(out, given, gradient)


selective_scan.register_autograd(_backward, setup_context=_keep)
