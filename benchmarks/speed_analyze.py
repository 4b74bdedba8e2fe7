"""The whole call `rooflens.analyze(module, inputs, on=CHIP)` against torch's FlopCounterMode alone, on the same meta
module: forward, and forward with backward. The bar is a ratio of 1.0, the goal 0.5. `--profile` shows hot spots; names
choose models.
"""

import cProfile
import pstats
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from timing import interleaved, table, verdict
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import rooflens
from rooflens.frontends.pytorch.compat import prepare_torchvision

CHIP, ROUNDS, BAR, GOAL = "h100-sxm", 9, 1.0, 0.5
Built = tuple[nn.Module, dict[str, torch.Tensor]]


def _image(name: str) -> Built:
    import torchvision

    with torch.device("meta"):
        return torchvision.models.get_model(name), {"x": torch.empty(1, 3, 224, 224)}


def _tokens(model: str, config: str) -> Built:
    import transformers

    with torch.device("meta"):
        module = getattr(transformers, model)(getattr(transformers, config)())
        return module, {"input_ids": torch.zeros(1, 512, dtype=torch.int64)}


MODELS: dict[str, Callable[[], Built]] = {
    "ResNet-18": lambda: _image("resnet18"),
    "ViT-B/16": lambda: _image("vit_b_16"),
    "BERT-base": lambda: _tokens("BertModel", "BertConfig"),
    "Llama 7B": lambda: _tokens("LlamaForCausalLM", "LlamaConfig"),  # 32 layers of 4096; torch fails without its cache
}


def count_forward(module: nn.Module, inputs: dict[str, torch.Tensor]) -> int:
    module.eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(**inputs)
    return counter.get_total_flops()


def count_both(module: nn.Module, inputs: dict[str, torch.Tensor]) -> int:
    module.train()
    parameters = [p for p in module.parameters() if p.requires_grad]
    with FlopCounterMode(display=False) as counter:
        out = module(**inputs)
        found = [out] if isinstance(out, torch.Tensor) else [t for t in out.values() if isinstance(t, torch.Tensor)]
        torch.autograd.grad(found, parameters, [torch.empty_like(t) for t in found], allow_unused=True)
    return counter.get_total_flops()


def ours(module: nn.Module, inputs: dict[str, torch.Tensor], mode: str) -> rooflens.Analysis:
    if mode == "forward":
        return rooflens.analyze(module, inputs, on=CHIP)
    return rooflens.analyze(module, inputs, on=CHIP, mode="training", optimizer="none")


def whole(module: nn.Module, inputs: dict[str, torch.Tensor], mode: str) -> dict[str, Any]:
    """Advice, gates and the saved document as well, which are made when they are first asked for."""
    return ours(module, inputs, mode).to_dict()


def measured(name: str) -> list[list[str]]:
    module, inputs = MODELS[name]()
    counters = {"forward": count_forward, "with backward": count_both}
    rows = []
    for mode, counter in counters.items():
        cases = (
            ("torch", lambda c=counter: c(module, inputs)),
            ("ours", lambda m=mode: ours(module, inputs, m)),
            ("whole", lambda m=mode: whole(module, inputs, m)),
        )
        times = interleaved(cases, ROUNDS)
        ratio = times["ours"] / times["torch"]
        ops = len(ours(module, inputs, mode).prediction.graph.ops)
        cells = [f"{times['torch'] * 1e3:.1f} ms", f"{times['ours'] * 1e3:.1f} ms", f"{ratio:.2f}"]
        document = f"{times['whole'] / times['torch']:.2f}"
        rows.append([f"{name}, {mode}", str(ops), *cells, verdict(ratio, BAR, GOAL), document])
    return rows


def profiled(name: str, mode: str) -> None:
    module, inputs = MODELS[name]()
    ours(module, inputs, mode)
    profile = cProfile.Profile()
    profile.runcall(ours, module, inputs, mode)
    print(f"\n{name}, {mode}")
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def main() -> None:
    warnings.simplefilter("ignore")
    prepare_torchvision()
    chosen = [n for n in MODELS if not sys.argv[1:] or any(a in n for a in sys.argv[1:])] or list(MODELS)
    if "--profile" in sys.argv:
        for name in chosen:
            profiled(name, "forward")
            profiled(name, "with backward")
        return
    rows = [row for name in chosen for row in measured(name)]
    header = ("model", "ops", "FlopCounterMode", "rooflens", "ratio", f"bar {BAR:g}, goal {GOAL:g}", "with to_dict()")
    table("analyze against FlopCounterMode, meta tensors", header, rows)


if __name__ == "__main__":
    main()
