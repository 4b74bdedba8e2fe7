"""What autocast changes: torch's own lists for CUDA (ATen/autocast_mode.h) by ATen name, the casts that they bring, and
the regions of a model in which it is on."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from rooflens.frontends.pytorch.tracker import TensorTracker
from rooflens.frontends.pytorch.trees import mapped, tensors_in


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What runs in the lower type, what is kept in fp32 (some only where the call names no type), and what takes the widest
# type among its arguments.
LOWER = _words(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution linear matmul mm bmm mv addmm addmv "
    "addr baddbmm addbmm prelu scaled_dot_product_attention lstm gru rnn_tanh rnn_relu"
)
UNLESS_TYPED = _words("softmax log_softmax sum prod cumsum cumprod linalg_vector_norm")
FULL = UNLESS_TYPED | _words(
    "acos asin cosh sinh tan erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt pow softplus layer_norm "
    "native_layer_norm rms_norm group_norm dist cdist renorm logsumexp "
    "l1_loss mse_loss smooth_l1_loss huber_loss kl_div nll_loss nll_loss2d nll_loss_forward nll_loss2d_forward "
    "binary_cross_entropy_with_logits "
    "cosine_similarity upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa "
    "upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa"
)
PROMOTE = _words(
    "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add linalg_cross"
)
LISTED = LOWER | FULL | PROMOTE
_ELIGIBLE = (torch.float32, torch.bfloat16, torch.float16)
_META = torch.device("meta")
_DEVICES = ("cpu", "cuda")
Record = Callable[[str, tuple[int, ...], tuple[int, ...]], object]


class Casts:
    """Those of one recording. Weights are cast once, as torch's autocast cache does. `lower` is the type of the region
    where the run stands; torch's own switch cannot be read below autograd."""

    def __init__(self, asked: torch.dtype, tracker: TensorTracker, record: Record) -> None:
        self.asked, self._tracker, self._record = asked, tracker, record
        self.lower: torch.dtype | None = None
        self._known: dict[tuple[int, torch.dtype], torch.Tensor] = {}

    def clear(self) -> None:
        self._known.clear()

    def below(self, name: str, args: Any, kwargs: Any, backward: bool) -> Any:
        """For a call that autograd has passed on, or never saw."""
        dtype = self._wanted(name, args, kwargs)
        if dtype is None and backward and name in LOWER and len(_types(args)) > 1:
            dtype = self.asked  # autograd kept the operand as it was before it was cast
        return args if dtype is None else mapped(lambda t: self._cast(t, dtype), args)

    def above(self, name: str, args: Any, kwargs: Any) -> Any:
        """Casts that autograd sees, so that gradients are cast back."""
        dtype = self._wanted(name, args, kwargs)
        return args if dtype is None else mapped(lambda t: self._seen_cast(t, dtype), args)

    def _seen_cast(self, t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if t.dtype == dtype or t.dtype not in _ELIGIBLE:
            return t
        if not (t.is_leaf and t.requires_grad):
            return t.to(dtype)
        known = self._known.get((id(t), dtype))
        if known is None:
            known = self._known[(id(t), dtype)] = t.to(dtype)
        return known

    def _cast(self, t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if t.dtype == dtype or t.dtype not in _ELIGIBLE:
            return t
        before = self._tracker.id_of(t)
        known = self._known.get((before, dtype))
        if known is None:
            known = torch.empty_like(t, dtype=dtype, device=_META)
            self._record("cast", (before,), (self._tracker.fresh(known),))
            if self._tracker.builder.tensors[before].role == "param":
                self._known[(before, dtype)] = known
        return known

    def _wanted(self, name: str, args: Any, kwargs: Any) -> torch.dtype | None:
        """The type that this call runs in where it stands; a backward stands outside of every region."""
        if self.lower is None or name in LOWER:
            return self.lower
        if name in FULL:
            typed = name in UNLESS_TYPED and any(isinstance(a, torch.dtype) for a in (*args, *kwargs.values()))
            return None if typed else torch.float32
        return _widest(args) if name in PROMOTE else None

    @contextmanager
    def switched_to(self, lower: torch.dtype | None) -> Iterator[None]:
        before, self.lower = self.lower, lower
        try:
            yield
        finally:
            self.lower = before


def _types(args: Any) -> set[torch.dtype]:
    return {t.dtype for t in tensors_in(args) if t.dtype in _ELIGIBLE}


def _widest(args: Any) -> torch.dtype | None:
    found = _types(args)
    return torch.float32 if len(found) > 1 else next(iter(found), None)


@contextmanager
def regions(casts: Casts | None) -> Iterator[None]:
    """Every torch.autocast that a model enters, whatever device it names, is one for the device it will run on. Without
    casts that were asked for it changes nothing: the types are those of the model."""
    region = torch.autocast
    rules = {"__init__": _made, "__enter__": _entering(casts), "__exit__": _leaving}
    before = {name: getattr(region, name) for name in rules}
    try:
        for name, rule in rules.items():
            setattr(region, name, rule)
        yield
    finally:
        for name, rule in before.items():
            setattr(region, name, rule)


def _made(self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
    """Without the checks of what this machine has."""
    self.device, self._enabled, self._cache_enabled = device_type, enabled, False
    self.fast_dtype = dtype or torch.get_autocast_dtype("cpu")


def _entering(casts: Casts | None) -> Callable[[Any], Any]:
    def enter(self: Any) -> Any:
        self.inside = ExitStack()
        if casts is not None:
            self.inside.enter_context(casts.switched_to(self.fast_dtype if self._enabled else None))
            self.inside.enter_context(_told(self._enabled, self.fast_dtype))
        return self

    return enter


def _leaving(self: Any, *error: Any) -> bool:
    self.inside.close()
    return False


@contextmanager
def _told(enabled: bool, dtype: torch.dtype) -> Iterator[None]:
    """torch's switches are for models that ask, and for checkpoints, which enter the same region again."""
    before = [(d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in _DEVICES]
    try:
        _tell([(d, enabled, dtype) for d in _DEVICES])
        yield
    finally:
        _tell(before)


def _tell(switches: list[tuple[str, bool, torch.dtype]]) -> None:
    for device, enabled, dtype in switches:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
