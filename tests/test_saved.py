"""Saved results read again: they say what they were saved with, and damaged ones are refused by the field at fault."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rooflens
from rooflens.cli.documents import plotted, rendered
from rooflens.errors import ConfigError, RooflensError
from rooflens.report.saved import read_documents

NET = "8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2"
SMALL = "2x4x8x8 | conv2d 6 k3 p1 bias as a | batchnorm | relu | maxpool2d k2 | flatten | linear 5"


def save(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "training", "optimizer": "sgd"},
        {"mode": "training", "optimizer": "none", "layout": "channels-last", "dtype": "bf16", "autocast": True},
        {"sparsity": "2:4", "reuse": "none"},
        {"weight_density": 0.25, "reuse": "line-buffer"},
    ],
)
def test_a_saved_result_says_again_what_it_was_saved_with(tmp_path: Path, options: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    (tmp_path / "m.py").write_text(
        "import torch\n"
        "def make():\n"
        "    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 1))\n"
        "    return net\n"
    )
    first = rooflens.analyze(f"{tmp_path}/m.py:make", on="h100-sxm", **options)
    again = rooflens.analyze(save(tmp_path / "r.json", first.to_json()), on="h100-sxm")
    assert again.to_dict() == first.to_dict()
    for name, value in options.items():
        assert again.to_dict()["settings"][name] == value


def test_notes_and_assumptions_of_the_frontend_are_kept(tmp_path: Path) -> None:
    text = "2x4x8x16 | linear 16 | attention | dropout"
    first = rooflens.analyze(text, mode="training")
    assert len(first.to_dict()["assumptions"]) > 1
    again = rooflens.analyze(save(tmp_path / "r.json", first.to_json()), on="l4").to_dict()
    assert again["assumptions"] == rooflens.analyze(text, mode="training", on="l4").to_dict()["assumptions"]


def test_what_is_asked_for_wins_where_it_can_and_is_refused_where_it_cannot(tmp_path: Path) -> None:
    file = save(tmp_path / "r.json", rooflens.analyze(NET, sparsity="2:4", reuse="none").to_json())
    plain = rooflens.analyze(file, sparsity="none", reuse="compulsory").to_dict()
    assert plain["totals"]["bytes"] == rooflens.analyze(NET).to_dict()["totals"]["bytes"]
    assert plain["settings"]["sparsity"] == "none"
    for option in ({"mode": "training"}, {"layout": "channels-last"}, {"autocast": True, "dtype": "bf16"}):
        with pytest.raises(RooflensError, match="was saved"):
            rooflens.analyze(file, **option)
    trained = save(tmp_path / "t.json", rooflens.analyze(NET, mode="training").to_json())
    with pytest.raises(RooflensError, match="was saved with optimizer adamw"):
        rooflens.analyze(trained, mode="training", optimizer="sgd")
    assert rooflens.analyze(trained, on="l4").to_dict()["settings"]["optimizer"] == "adamw"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda d: d["tensors"][0].update(shape=[-2, 4, 8, 8]), "tensors[0].shape[0]"),
        (lambda d: d["tensors"][0].update(elements=-1), "tensors[0].elements"),
        (lambda d: d["tensors"][0].update(elements=3.5), "tensors[0].elements"),
        (lambda d: d["tensors"][0].update(dtype="fp33"), "tensors[0].dtype"),
        (lambda d: d["tensors"][1].update(tensor=0), "tensors[1].tensor"),
        (lambda d: d["tensors"][0].pop("base"), "tensors[0].base"),
        (lambda d: d["ops"][0]["attrs"].update(groups={}), "ops[0].attrs.groups"),
        (lambda d: d["ops"][3]["attrs"].update(kernel="two"), "ops[3]"),
        (lambda d: d["ops"][0].update(inputs=[]), "ops[0]"),
        (lambda d: d["ops"][0]["inputs"][0].update(tensor=999), "ops[0].inputs[0].tensor"),
        (lambda d: d["ops"][0].update(inputs=3), "ops[0].inputs"),
        (lambda d: d["ops"][3]["attrs"].update(kernel=[0, -2]), "ops[3]"),
        (lambda d: d["outputs"].append(999), "outputs[1]"),
        (lambda d: d["model"].update(graph_hash="0" * 16), "model.graph_hash"),
        (lambda d: d["tensors"][0].update(shape=[2, 4, 8, 9]), "model.graph_hash"),
        (lambda d: d["settings"].update(mode="dreaming"), "settings.mode"),
        (lambda d: d["settings"].update(weight_density=0), "settings.weight_density"),
        (lambda d: d.update(totals=None), "totals"),
    ],
)
def test_damage_is_refused_by_its_field(tmp_path: Path, change: Any, field: str) -> None:
    document = rooflens.analyze(SMALL, on="l4").to_dict()
    change(document)
    with pytest.raises(ConfigError) as error:
        rooflens.analyze(save(tmp_path / "r.json", document))
    assert f"field '{field}'" in str(error.value)
    if field.startswith(("settings", "totals")):
        with pytest.raises(ConfigError, match="field"):
            read_documents(str(tmp_path / "r.json"))


BAD = (None, True, -1, 0, 1e-320, 10**299, "x", "", [], {}, [None], {"x": 1}, 0.5)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def damaged(document: Any, path: tuple[Any, ...], bad: Any) -> Any:
    """One field replaced, or taken out where `bad` is `...`."""
    changed = copy.deepcopy(document)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    if bad is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = bad
    return changed


@pytest.mark.parametrize("bad", [*BAD, ...], ids=repr)
def test_any_field_may_be_damaged(tmp_path: Path, bad: Any) -> None:
    """Each field in turn: drawn and analysed, or refused in one line."""
    document = rooflens.analyze("2x4x8x8 | conv2d 6 k3 p1 | relu", on="l4", reuse="none").to_dict()
    file = tmp_path / "r.json"
    for path in places(document):
        if not path or (path[0] == "advice" and path[1:2] != (0,)):
            continue
        save(file, damaged(document, path, bad))
        for read in (_report, _analyze):
            try:
                read(str(file))
            except RooflensError as error:
                assert "\n" not in str(error), path
            except Exception as error:
                raise AssertionError(f"{'.'.join(map(str, path))} = {bad!r}: {error!r}") from error


def _report(path: str) -> None:
    documents = read_documents(path)
    rendered(documents, "table", None)
    rendered(documents, "csv", None)


def _analyze(path: str) -> None:
    rooflens.analyze(path, on="t4").to_json()


def test_an_empty_comparison_is_refused(cli, tmp_path: Path) -> None:
    save(tmp_path / "c.json", {"schema": "rooflens.comparison/1", "analyses": []})
    done = cli("report", "c.json")
    assert done.returncode == 2
    assert "E_CONFIG" in done.stderr


def test_our_reader_of_the_schema_agrees_with_a_full_one() -> None:
    import jsonschema

    from rooflens.resultfile import ANALYSIS_SCHEMA, faults, published

    document = rooflens.analyze("2x4x8x8 | conv2d 6 k3 p1 | relu", on="l4", reuse="none").to_dict()
    full = jsonschema.Draft202012Validator(published(ANALYSIS_SCHEMA))
    for path in places(document):
        for bad in (-1, "x", None, [], 0.5) if path else ():
            changed = damaged(document, path, bad)
            assert full.is_valid(changed) == (not any(faults(changed, published(ANALYSIS_SCHEMA), ""))), (path, bad)
    assert plotted([document], None) == ()
