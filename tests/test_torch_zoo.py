"""Zoo names: what they build, without weights or network, and that torchvision's own published numbers come out.

Most torchvision weights state `_ops`: multiply-accumulates in units of 1e9, rounded to three digits, counted by their
authors with another tool. Every model is held to them whose default input is the one of its weights.
"""

import random
from typing import Any

import pytest

import rooflens

torch = pytest.importorskip("torch")

from rooflens.costs.sheet import cost_sheet  # noqa: E402
from rooflens.errors import ModelError  # noqa: E402
from rooflens.frontends.pytorch.trace import trace_module  # noqa: E402
from rooflens.frontends.pytorch.zoo import load_zoo, zoo_names  # noqa: E402

DETECTION = ("rcnn", "retinanet", "fcos", "ssd")
TORCHVISION = [n for n in zoo_names() if not n.startswith("timm:")]
TIMM = [n for n in zoo_names() if n.startswith("timm:")]
if not TORCHVISION or not TIMM:
    pytest.skip("torchvision or timm is not installed", allow_module_level=True)
PLAIN = [n for n in TORCHVISION if not any(word in n for word in DETECTION)]


def macs_of(name: str, shape: tuple[int, ...] | None = None) -> tuple[int, int]:
    """Multiply-accumulates and parameters."""
    model = load_zoo(name)
    inputs = tuple(torch.empty(shape or model.input_shape, device="meta") for _ in range(model.copies))
    graph = trace_module(model.module, inputs, {}, name=name, source="zoo")
    sheet = cost_sheet(graph)
    assert not sheet.coverage.opaque, name
    return sum(row.macs for row in sheet.rows), graph.params


def published(name: str) -> list[dict[str, Any]]:
    from torchvision import models

    return [w.meta for w in models.get_model_weights(name) if w.meta.get("_ops") is not None]


def test_every_torchvision_model_but_detectors_traces_without_an_opaque_op_and_as_published() -> None:
    held = 0
    for name in PLAIN:
        macs, params = macs_of(name)
        stated = [m for m in published(name) if m["num_params"] == params]
        nearest = min((m["_ops"] for m in stated), key=lambda ops: abs(ops - macs / 1e9), default=None)
        at_other_size = nearest is None or abs(nearest * 1e9 - macs) > 0.05 * macs
        if not at_other_size:
            assert macs / 1e9 == pytest.approx(nearest, abs=0.0006), name
            held += 1
    assert held >= 80


@pytest.mark.parametrize(
    ("name", "size"),
    [("efficientnet_b4", 380), ("efficientnet_b7", 600), ("efficientnet_v2_s", 384), ("swin_v2_t", 256)],
)
def test_models_published_at_another_size_agree_there(name: str, size: int) -> None:
    macs, params = macs_of(name, (1, 3, size, size))
    (meta,) = published(name)
    assert params == meta["num_params"]
    assert macs / 1e9 == pytest.approx(meta["_ops"], abs=0.0006)


def test_every_part_of_a_zoo_model_is_on_meta() -> None:
    for name in ("resnet18", "regnet_y_400mf", "raft_small", "timm:vit_tiny_patch16_224"):
        module = load_zoo(name).module
        assert all(t.is_meta for t in (*module.parameters(), *module.buffers()))


def test_timm_has_all_its_names() -> None:
    assert len(TIMM) >= 1000


@pytest.mark.parametrize("name", random.Random(2026).sample(TIMM, 12))
def test_a_seeded_sample_of_timm_builds_and_traces(name: str) -> None:
    model = load_zoo(name)
    assert all(p.is_meta for p in model.module.parameters())
    assert macs_of(name)[0] > 0


@pytest.mark.parametrize(
    "name",
    ["convnext_tiny", "deeplabv3_mobilenet_v3_large", "densenet121", "googlenet", "maxvit_t", "mobilenet_v3_small",
     "mvit_v2_s", "regnet_y_400mf", "s3d", "shufflenet_v2_x1_0", "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11_bn",
     "vit_b_32", "timm:coat_tiny", "timm:levit_128s", "timm:poolformer_s12", "timm:xcit_nano_12_p8_224",
     "timm:mixer_s32_224", "timm:edgenext_xx_small", "timm:beit_base_patch16_224"],
)  # fmt: skip
def test_training_is_recorded_without_an_opaque_op(name: str) -> None:
    """Backward: each convolution, linear layer and product twice, less the gradient of the image; attention more, since
    its scores are computed again."""
    model = load_zoo(name)
    shape = (2, *model.input_shape[1:])
    graph = trace_module(
        model.module,
        (torch.empty(shape, device="meta"),),
        {},
        name=name,
        source="zoo",
        training=True,
        optimizer="adamw",
    )
    sheet = cost_sheet(graph)
    assert not sheet.coverage.opaque
    by_pass = {
        p: sum(r.macs for r, op in zip(sheet.rows, graph.ops, strict=True) if op.pass_ == p)
        for p in ("forward", "backward")
    }
    assert 1.6 < by_pass["backward"] / by_pass["forward"] < 2.2
    updated = {graph.tensors[op.inputs[0]].name for op in graph.ops if op.pass_ == "optimizer"}
    assert len(updated) == sum(p.requires_grad for p in model.module.parameters())


def test_videos_and_pairs_of_images_have_their_inputs() -> None:
    assert load_zoo("r3d_18").input_shape == (1, 3, 16, 112, 112)
    assert load_zoo("swin3d_t").input_shape == (1, 3, 16, 224, 224)
    assert load_zoo("inception_v3").input_shape == (1, 3, 299, 299)
    assert load_zoo("raft_small").copies == 2
    assert load_zoo("timm:convnext_tiny.fb_in22k_ft_in1k_384").input_shape == (1, 3, 384, 384)  # as the tag says


def test_a_name_with_its_tag_is_a_model_and_no_file() -> None:
    """The whole way in: a dot at the end of a name looks like the ending of a file."""
    plain, tagged = (rooflens.analyze(n).to_dict() for n in ("timm:resnet18", "timm:resnet18.tv_in1k"))
    assert tagged["totals"] == plain["totals"]
    assert tagged["model"]["params"] == 11_689_512
    with pytest.raises(ModelError, match=r"has no weights 'tv_in1'\. Did you mean tv_in1k"):
        rooflens.analyze("timm:resnet18.tv_in1")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("resnet81", "Did you mean resnet18"),
        ("convnext_nano", "Did you mean timm:convnext_nano?"),
        ("timm:alexnet", "Did you mean alexnet?"),
        ("timm:convnxt_tiny", "Did you mean timm:convnext_tiny"),
        ("timm:resnet18.tv_in1", "has no weights 'tv_in1'. Did you mean tv_in1k"),
        ("fasterrcnn_resnet50_fpn", "non-maximum suppression"),
    ],
)
def test_a_name_that_does_not_build_says_why(name: str, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_zoo(name)
    assert said in str(caught.value)


def test_quantized_names_say_that_they_are_not_quantized_yet() -> None:
    assert "before quantization" in load_zoo("quantized_resnet18").notes[0]
