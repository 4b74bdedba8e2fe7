"""Symbolic dimensions of a `.pt2`: bound to sizes that the program was exported for, or refused with the range."""

import re
import warnings
import zipfile
from pathlib import Path

import pytest

import rooflens
from rooflens.errors import FormatError, RooflensError, ShapeError

torch = pytest.importorskip("torch")


class Joined(torch.nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y], 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Path, and the name that torch gave the symbol."""
    folder, made = tmp_path_factory.mktemp("pt2"), {}
    b, s = torch.export.Dim("b", min=2, max=16), torch.export.Dim("s", min=1, max=64)
    n = torch.export.Dim("n")
    programs = {
        "one": (torch.nn.Linear(4, 3), (torch.zeros(3, 4),), ({0: b},)),
        "two": (Joined(), (torch.zeros(6, 4), torch.zeros(12, 4)), ({0: s}, {0: 2 * s})),
        "open": (torch.nn.ReLU(), (torch.zeros(3, 4),), ({0: n},)),
        "square": (torch.nn.ReLU(), (torch.zeros(3, 3),), ({0: s, 1: s},)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (module, inputs, dims) in programs.items():
            program = torch.export.export(module, inputs, dynamic_shapes=dims)
            torch.export.save(program, folder / f"{name}.pt2")
            symbol = min((str(k) for k in program.range_constraints), key=len)
            made[name] = (str(folder / f"{name}.pt2"), symbol)
    return made


def shapes(path: str, **options: object) -> list[list[int]]:
    return [i["shape"] for i in rooflens.analyze(path, **options).to_dict()["model"]["inputs"]]


def test_a_symbol_takes_what_is_asked_for(files: dict[str, tuple[str, str]]) -> None:
    path, name = files["one"]
    assert shapes(path) == [[3, 4]]
    assert shapes(path, dim={name: 16}) == shapes(path, batch=16) == shapes(path, input="16x4") == [[16, 4]]
    assert shapes(files["open"][0], batch=10**6) == [[10**6, 4]]


@pytest.mark.parametrize("size", [1, 17, 0])
def test_a_size_outside_the_range_is_refused_with_the_range(files: dict[str, tuple[str, str]], size: int) -> None:
    path, name = files["one"]
    ways = [{"dim": {name: size}}, {"input": f"{size}x4"}, *([{"batch": size}] if size else [])]
    for options in ways:
        with pytest.raises(ShapeError, match=r"exported for 2 to 16"):
            rooflens.analyze(path, **options)


def test_expressions_follow_their_symbol(files: dict[str, tuple[str, str]]) -> None:
    path, name = files["two"]
    assert shapes(path) == [[6, 4], [12, 4]]
    assert shapes(path, dim={name: 5}) == shapes(path, batch=5) == [[5, 4], [10, 4]]


def test_the_name_that_the_file_does_not_keep(files: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    """torch numbers the symbols: the b of Dim("b") is nowhere in the file. Where there is one, it can mean no other."""
    for key, wanted in (("one", [[5, 4]]), ("two", [[5, 4], [10, 4]])):
        path, symbol = files[key]
        assert shapes(path, dim={"N": 5}) == wanted
        said = f"symbolic dimension {symbol} of {key}.pt2 taken as 5"
        assert said in rooflens.analyze(path, dim={"N": 5}).to_dict()["assumptions"]
    dims = ({0: torch.export.Dim("b")}, {0: torch.export.Dim("s")})
    program = torch.export.export(Joined(), (torch.zeros(6, 4), torch.zeros(12, 4)), dynamic_shapes=dims)
    torch.export.save(program, path := str(tmp_path / "both.pt2"))
    with pytest.raises(ShapeError, match=r"--dim b: .* (s\d+) \(axis 0 of x\), (s\d+) \(axis 0 of y\)") as told:
        rooflens.analyze(path, dim={"b": 5})
    first, second = re.findall(r"s\d+(?= \()", str(told.value))
    assert shapes(path, dim={first: 5, second: 7}) == shapes(path, dim={first: 5, "s": 7}) == [[5, 4], [7, 4]]
    with pytest.raises(ShapeError, match="it has none: leave --dim out"):
        torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.zeros(2),)), tmp_path / "fixed.pt2")
        rooflens.analyze(tmp_path / "fixed.pt2", dim={"b": 5})


def test_contradictions(files: dict[str, tuple[str, str]]) -> None:
    path, name = files["one"]
    for options in (
        {"dim": {name: 5}, "input": "5x4"}, {"dim": {name: 5}, "batch": 6}, {"input": "5x5"}, {"input": "5x4x1"},
        {"dim": [f"{name}=5", f"{name}=6"]},
    ):  # fmt: skip
        with pytest.raises(RooflensError):
            rooflens.analyze(path, **options)
    with pytest.raises(ShapeError, match="exported for"):
        rooflens.analyze(files["square"][0], input="5x6")
    assert shapes(files["square"][0], input="5x5") == [[5, 5]]
    assert shapes(path, dim=[f"{name}=5", f"{name}=5"]) == [[5, 4]]


def test_many_small_entries_may_be_a_bomb_together(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(40):
            archive.writestr(f"m/data/{i}", b" " * 900_000)  # each below the size that is looked at alone
    with pytest.raises(FormatError, match="40 entries expand"):
        rooflens.analyze(tmp_path / "many.pt2")
