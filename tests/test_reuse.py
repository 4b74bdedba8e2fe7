"""`--reuse none`: per output element one read per operand use, weights held on chip. fp32, so 4 bytes an element."""

import pytest

import rooflens


def bytes_per_output(text: str, last: int = -1, **options: str) -> float | None:
    found = rooflens.analyze(text, reuse="none", **options).to_dict()["ops"][last]["reuse"]
    return None if found is None else found["bytes_per_output"] / 4


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("1x1x8x8 | conv2d 1 k3 p1", 9),
        ("1x4x8x8 | conv2d 8 k3 p1 g2", 2 * 9),
        # with stride 2 a 2x2 kernel gives each output one tap, a 3x3 kernel up to 2x2, a 5x5 up to 3x3
        ("1x3x8x8 | convtranspose2d 5 k2 s2", 3),
        ("1x3x8x8 | convtranspose2d 5 k3 s2", 3 * 4),
        ("1x4x8x8 | convtranspose2d 6 k5 s2 g2", 2 * 9),
        ("1x3x8 | convtranspose1d 5 k4", 3 * 4),
        ("1x2x8x8 | convtranspose2d 2 k3 s2 d2", 2 * 9),  # taps 2 apart all meet the grid of stride 2
        # 7 into 3: windows 0-2, 2-4, 4-6; 5 into 2: 0-2, 2-4; 8 into 2: halves
        ("1x2x7x7 | avgpool 3", 9),
        ("1x2x5x5 | avgpool 2", 9),
        ("1x2x8x8 | avgpool 2", 16),
        ("1x2x8x8 | avgpool2d k2", 4),
        ("1x2x8x8 | relu as a | concat a", 1),
        ("1x2x8x8 | relu as a | add a", 2),
        ("6x5 | linear 7 bias", 5),
        # heads of 16, 10 keys: a row of q, all of k, a column of v
        ("2x4x8x16 | attention context=10", 16 + 10 * 16 + 10),
        ("2x4x8x16 | attention kvheads=2", 16 + 8 * 16 + 8),
    ],
)
def test_reads_of_one_output(text: str, reads: int) -> None:
    assert bytes_per_output(text) == reads + 1


@pytest.mark.parametrize("text", ["2x5x8 | lstm 4", "1x5x3 | scan 4"])
def test_what_is_not_made_one_by_one_has_no_such_number(text: str) -> None:
    assert bytes_per_output(text) is None


def test_gradients_of_windows_and_matrices_have_none() -> None:
    ops = rooflens.analyze("1x1x8x8 | conv2d 2 k3 p1 | relu | maxpool2d k2", mode="training", reuse="none").to_dict()[
        "ops"
    ]
    found = {op["kind"]: op["reuse"] for op in ops}
    assert found["conv_backward"] is found["maxpool_backward"] is None
    assert found["relu_backward"] is not None


@pytest.mark.parametrize("size", [16, 224])
def test_a_convolution_with_its_pool_on_line_buffers(size: int) -> None:
    """Per pixel 18 + 1 + 3/4 ops; 2 + 2 + 5/4 bytes one by one, 1 + 1/4 as one unit (docs/fusion.md)."""
    text = f"1x1x{size}x{size} | conv2d 1 k3 p1 | relu | maxpool2d k2"
    options = {"dtype": "int8", "reuse": "line-buffer", "on": "linebuffer-cnn"}
    (unit,) = rooflens.fuse(text, fusion="tile", **options).to_dict()["groups"]
    assert unit["reuse"] == pytest.approx(
        {
            "mode": "line-buffer",
            "ops_per_output": 19.75,
            "bytes_per_output": 1.25,
            "intensity": 15.8,
            "unfused_intensity": 19.75 / 5.25,
        }
    )


def test_a_product_reads_a_row_and_a_column() -> None:
    torch = pytest.importorskip("torch")

    class Product(torch.nn.Module):
        def forward(self, a, b):
            return a @ b

    d = rooflens.analyze(Product(), (torch.zeros(2, 5), torch.zeros(5, 3)), reuse="none").to_dict()
    assert d["ops"][0]["reuse"]["bytes_per_output"] == 4 * (5 + 5 + 1)
    assert d["ops"][0]["reuse"]["ops_per_output"] == 10
