"""MODEL text and a Request in, Loaded out: the table of frontends, tried in order. Heavy imports happen inside."""

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rooflens.errors import FileError, FormatError, InputError, ModelError, NotInThisVersion, ShapeError, needs_extra
from rooflens.frontends.request import Loaded, Request, autocast_dtype, check_batch, recorded_dtype, stored

_TEXT = re.compile(r"^\s*-?\d+(\s*x\s*-?\d+)*\s*(\||$)")
CATALOGUE_LATER = (
    "llama-2-7b", "llama-3-8b", "llama-3-70b", "mistral-7b", "mixtral-8x7b", "qwen3-8b", "gemma-2-9b", "phi-3-mini",
    "deepseek-v3", "gpt2", "bert-base", "whisper-large-v3", "mamba-130m", "mamba-2.8b", "sd15-unet", "sdxl-unet",
)  # fmt: skip
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".jit", ".ptl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend:
    """One way in: which MODEL texts are its own, and how they load."""

    name: str
    takes: Callable[[str], bool]
    load: Callable[[str, Request], Loaded]
    symbolic: bool = False  # can have dimensions that --dim binds


def load_model(model: str, request: Request) -> Loaded:
    text = model.strip()
    if not text:
        raise ModelError("no model given: name a zoo model such as resnet18, a file, or layer text")
    frontend = next(f for f in FRONTENDS if f.takes(text))
    if request.dim and not frontend.symbolic:
        raise ShapeError(
            f"--dim {request.dim[0][0]}={request.dim[0][1]}: this model has no symbolic dimension: leave --dim out"
        )
    return frontend.load(text, request)


def load_with_inputs(model: str, inputs: Any, request: Request) -> Loaded:
    """Inputs of the user's own, for the models that run by being called."""
    text = model.strip()
    frontend = next(f for f in FRONTENDS if f.takes(text))
    if frontend.name not in _MODULES:
        raise InputError(
            f"inputs beside {frontend.name} '{text[:60]}': it says its own: leave inputs out, or give a zoo name, "
            "file.py:function or a module"
        )
    return frontend.load(text, replace(request, inputs=inputs))


def _text(model: str, request: Request) -> Loaded:
    from rooflens.frontends.text import text_graph

    if request.input is not None:
        raise ModelError("--input has no place beside layer text, which starts with its own shape: change that shape")
    _no_autocast(request)
    dtype = request.dtype or "fp32"
    graph = text_graph(model, dtype=recorded_dtype(dtype), training=request.training, optimizer=request.optimizer)
    shape = graph.tensors[graph.inputs[0]].shape
    check_batch(request, shape, "the layer text's shape")
    return Loaded(graph=stored(graph, dtype), dtype=dtype, batch=shape[0] if shape else None)


def _toml(model: str, request: Request) -> Loaded:
    from rooflens.frontends.text_toml import read_net

    _readable(model)
    net = read_net(Path(model))
    loaded = _text(net.text, request if request.dtype else replace(request, dtype=net.dtype))
    return Loaded(graph=replace(loaded.graph, name=net.name, source=model), dtype=loaded.dtype, batch=loaded.batch)


def _no_autocast(request: Request) -> None:
    if autocast_dtype(request):
        raise ModelError("--autocast is a torch feature and layer text has none: use --dtype alone")


def _saved(model: str, request: Request) -> Loaded:
    from rooflens.frontends.saved import load_saved

    _readable(model)
    return load_saved(Path(model), request)


def _zoo(model: str, request: Request) -> Loaded:
    if model in CATALOGUE_LATER:
        raise NotInThisVersion(
            f"catalogue model '{model}' is not in this version: give a torch module, file.py:function or layer text"
        )
    tagged = model.startswith("timm:")  # timm:NAME.TAG has a dot and is no file
    if not tagged and (Path(model).suffix or "/" in model or Path(model).exists()):
        _readable(model)
        raise FormatError(
            f"{model}: not a kind of model file that is known: use .pt2, .toml, .json, file.py:function or layer text"
        )
    needs_torch("zoo")
    from rooflens.frontends.pytorch.load import load_zoo_model

    return load_zoo_model(model, request)


def _function(model: str, request: Request) -> Loaded:
    if model.endswith(".py"):
        _readable(model)
        raise ModelError(f"{model}: name the function in it that returns the model: {model}:FUNCTION")
    _readable(model.rpartition(":")[0])
    needs_torch()
    from rooflens.frontends.pytorch.load import load_function

    return load_function(model, request)


def _exported(model: str, request: Request) -> Loaded:
    _readable(model)
    needs_torch()
    from rooflens.frontends.pytorch.exported import load_exported

    return load_exported(Path(model), request)


def _pickle(model: str, request: Request) -> Loaded:
    _readable(model)
    raise FormatError(
        f"{model}: a pickle or TorchScript file can run code when it is read, so it is refused: save the model with "
        "torch.export.save (.pt2) or as ONNX, or name the code that builds it as file.py:function"
    )


def _later(model: str, request: Request) -> Loaded:
    raise NotInThisVersion(
        f"{model}: ONNX, TFLite and Hugging Face configs are not in this version: give a torch module or layer text"
    )


def _readable(path: str) -> None:
    file = Path(path)
    if file.is_dir():
        raise FileError(f"{path}: is a folder, not a file: name the model file inside it")
    try:
        with file.open("rb"):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{path}: cannot be read: {reason}: check the path") from None


def needs_torch(extra: str = "torch") -> None:
    """`extra` brings it with whatever else is wanted, so that a name of the zoo is not refused twice."""
    if importlib.util.find_spec("torch") is None:
        raise needs_extra("torch", extra)


_MODULES = ("zoo", "function")
_GIVE = "give a zoo name, timm:NAME or file.py:function"


def layers_of(model: str) -> tuple[str, str | None] | None:
    """Layer text, or a file of it, as text with the type that the file names; None for other models."""
    kind = next(f.name for f in FRONTENDS if f.takes(model))
    if kind == "layer toml":
        from rooflens.frontends.text_toml import read_net

        _readable(model)
        net = read_net(Path(model))
        return net.text, net.dtype
    return (model, None) if kind == "layer text" else None


def check_module(model: str, who: str) -> None:
    """For those who run a torch module themselves, which only some kinds of MODEL have. `who` starts the complaint."""
    text = model.strip()
    kind = next(f.name for f in FRONTENDS if f.takes(text))
    if not text or kind not in _MODULES:
        raise ModelError(f"'{text[:60]}': {who} a torch module: {_GIVE}")
    if text in CATALOGUE_LATER:
        raise NotInThisVersion(f"catalogue model '{text}' is not in this version: {_GIVE}")
    path = Path(text.rpartition(":")[0])
    if kind == "function" and not path.is_file():
        raise FileError(f"{path}: cannot be read: no such file: check the path")
    needs_torch("zoo" if kind == "zoo" else "torch")


def _ends(*endings: str) -> Callable[[str], bool]:
    return lambda text: text.lower().endswith(endings)


FRONTENDS = (
    Frontend(name="layer text", takes=lambda t: "|" in t or bool(_TEXT.match(t)), load=_text),
    Frontend(name="hf", takes=lambda t: t.startswith("hf:"), load=_later),
    Frontend(name="onnx", takes=_ends(".onnx", ".tflite"), load=_later),
    Frontend(name="layer toml", takes=_ends(".toml"), load=_toml),
    Frontend(name="saved result", takes=_ends(".json"), load=_saved),
    Frontend(name="exported", takes=_ends(".pt2"), load=_exported, symbolic=True),
    Frontend(name="pickle", takes=_ends(*_PICKLES), load=_pickle),
    Frontend(name="function", takes=lambda t: ".py:" in t or t.endswith(".py"), load=_function),
    Frontend(name="zoo", takes=lambda t: True, load=_zoo),
)
