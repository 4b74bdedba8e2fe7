"""What the tests of Inductor's kernels share: networks on meta, each compiled once in a process."""

from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import nn

from rooflens.benches.inductor import Compiled, compile_with_inductor
from rooflens.frontends.pytorch.compat import prepare_torchvision
from rooflens.frontends.pytorch.zoo import built, load_zoo

if not (torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available()):
    pytest.skip("the kernels told here are those of a CPU with oneDNN and MKL", allow_module_level=True)


def image(module: nn.Module) -> tuple[nn.Module, tuple[Any, ...]]:
    return module, (torch.empty((1, 3, 224, 224), device="meta"),)


def vision_model(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    """DenseNet and Swin with two stages of their four: the others are the same again."""
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    prepare_torchvision()
    from torchvision import models

    if name == "densenet":
        return image(built(lambda: models.DenseNet(growth_rate=32, block_config=(3, 4))))
    if name == "swin":
        sizes = {"patch_size": [4, 4], "embed_dim": 96, "depths": [2, 2], "num_heads": [3, 6], "window_size": [7, 7]}
        return image(built(lambda: models.SwinTransformer(**sizes)))
    return image(load_zoo(name).module)


def language_model(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    prepare_torchvision()
    hf = pytest.importorskip("transformers")
    configs = {
        "gpt2": lambda: hf.GPT2LMHeadModel(
            hf.GPT2Config(n_layer=2, vocab_size=1000, bos_token_id=0, eos_token_id=0, use_cache=False)
        ),
        "llama": lambda: hf.LlamaForCausalLM(
            hf.LlamaConfig(
                num_hidden_layers=2, vocab_size=1000, use_cache=False,
                hidden_size=256, intermediate_size=688, num_attention_heads=4,
            )
        ),
    }  # fmt: skip
    return built(configs[name]), (torch.zeros((1, 64), dtype=torch.int64, device="meta"),)


@cache
def model(name: str) -> tuple[nn.Module, Compiled]:
    module, args = language_model(name) if name in ("gpt2", "llama") else vision_model(name)
    result = compile_with_inductor(module, args, {}, name)
    assert all(p.is_meta for p in module.parameters())
    return module, result
