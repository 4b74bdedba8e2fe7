"""What leaves the tool: results alone on standard output, files whole or not at all, streams that are closed or full."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rooflens.errors import FileError
from rooflens.jsonfile import json_text
from rooflens.report.output import Written, write_all

NET = "8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2"
MAIN = "from rooflens.cli import main; main()"

LOUD = """
import atexit, os, subprocess, sys, torch
print("import")
os.write(1, b"descriptor\\n")
sys.__stdout__.write("dunder\\n")
atexit.register(print, "exit")
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        print("forward")
        subprocess.run(["echo", "child"])
        return self.inner(x)
def make():
    print("function")
    return Net(), torch.zeros(2, 4)
"""


def shell(line: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = f"{sys.executable} -c '{MAIN}' {line}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_model_that_prints_leaves_one_document_on_standard_output(cli, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(LOUD)
    done = cli("analyze", "m.py:make", "--format", "json")
    assert json.loads(done.stdout)["totals"]["ops"] == 1
    for word in ("import", "descriptor", "dunder", "exit", "forward", "child", "function"):
        assert word in done.stderr, word


def test_in_python_a_model_prints_to_standard_error(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        LOUD.replace("os.write", "len").replace("1, b", "b").replace("sys.__stdout__.write", "len")
    )
    code = "import rooflens; a = rooflens.analyze('m.py:make'); print(a.to_dict()['totals']['ops'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["1", "exit"]
    assert "forward" not in done.stdout
    assert {"import", "function", "forward"} <= set(done.stderr.split())


LEAVES = """
import torch
class Net(torch.nn.Module):
    def __init__(self, late):
        super().__init__()
        self.inner, self.late = torch.nn.Linear(4, 4), late
    def forward(self, x):
        if not self.late:
            raise SystemExit(7)
        return Stop.apply(self.inner(x))
class Stop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1
    @staticmethod
    def backward(ctx, g):
        raise SystemExit(7)
def early(): return Net(False), torch.zeros(2, 4)
def late(): return Net(True), torch.zeros(2, 4)
"""


@pytest.mark.parametrize("name", ["early", "late"])
def test_a_module_that_exits_is_one_line(cli, tmp_path: Path, name: str) -> None:
    (tmp_path / "m.py").write_text(LEAVES)
    done = cli("analyze", f"m.py:{name}", "--mode", "training")
    assert done.returncode == 2, done.stderr
    assert "E_MODEL" in done.stderr
    assert "SystemExit: 7" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full on this system")
@pytest.mark.parametrize("line", ["--help", "hardware list", "hardware --help", "--version"])
@pytest.mark.parametrize("to", [">/dev/full", ">&-"])
def test_standard_output_that_takes_nothing(tmp_path: Path, line: str, to: str) -> None:
    done = shell(f"{line} {to}", tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("rooflens: E_FILE: standard output")
    assert len(done.stderr.splitlines()) == 1


def test_files_are_written_without_standard_output(tmp_path: Path) -> None:
    done = shell(f"analyze '\"'\"'{NET}'\"'\"' --format csv -o out.csv >&-".replace("'\"'\"'", '"'), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.csv").read_text().startswith("id,")


@pytest.mark.parametrize(("line", "status"), [("ops list", 0), ("nonsense", 2), ("ops show convv", 2)])
@pytest.mark.parametrize("to", ["2>&-", "2>/dev/full"])
def test_standard_error_that_takes_nothing(tmp_path: Path, line: str, status: int, to: str) -> None:
    done = shell(f"{line} {to}", tmp_path)
    assert (done.returncode, done.stderr) == (status, "")
    assert bool(done.stdout) == (status == 0)


def test_a_reader_that_leaves_early_is_no_fault(tmp_path: Path) -> None:
    long = "|".join(["8x8", *["relu"] * 300])  # far more than a pipe holds
    done = shell(f'analyze "{long}" --format json | head -c 1', tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{", "")


def in_terminal(*args: str, cwd: Path, columns: str | None = None) -> str:
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")} | {"TERM": "xterm"}
    ours, theirs = pty.openpty()  # a new one has 0 columns
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *args], cwd=cwd, stdout=theirs, env=env | ({"COLUMNS": columns} if columns else {})
    )
    os.close(theirs)
    found = b""
    while True:
        try:
            found += os.read(ours, 65536)
        except OSError:
            break
    assert process.wait(60) == 0
    os.close(ours)
    return found.decode()


def test_a_file_is_the_same_wherever_it_is_made(cli, tmp_path: Path) -> None:
    args = ("analyze", NET, "--on", "l4", "-o")
    assert cli(*args, "piped.txt", env={"COLUMNS": "60", "PYTHONIOENCODING": "ascii"}).returncode == 0
    in_terminal(*args, "typed.txt", cwd=tmp_path, columns="118")
    assert (tmp_path / "typed.txt").read_bytes() == (tmp_path / "piped.txt").read_bytes()
    text = (tmp_path / "typed.txt").read_text("utf-8")
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "─" in text


def test_a_terminal_has_its_colours_and_columns(tmp_path: Path) -> None:
    import re

    for columns, width in ((None, 80), ("60", 60)):
        shown = in_terminal("analyze", NET, "--on", "l4", cwd=tmp_path, columns=columns)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        assert plain != shown
        assert 50 < max(map(len, plain.splitlines())) <= width


@pytest.mark.parametrize(
    ("args", "left"),
    [
        (("--plot", "p.svg", "-o", "missing/x.json"), []),
        (("--plot", "missing/p.svg", "-o", "x.json"), []),
        (("--plot", "same.svg", "-o", "./same.svg"), []),
        (("--plot", "p.svg", "-o", "."), []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", [("analyze", NET, "--on", "l4"), ("hardware", "show", "l4"), ("report", "../r.json")])
def test_two_files_or_none(cli, tmp_path: Path, verb: tuple[str, ...], args: tuple[str, ...], left: list[str]) -> None:
    if verb[0] == "report":
        assert cli("analyze", NET, "--on", "l4", "--format", "json", "-o", "r.json").returncode == 0
    (tmp_path / "inner").mkdir()
    done = cli(*verb, *args, cwd=tmp_path / "inner")
    assert done.returncode == 2, done.stderr
    assert "E_FILE" in done.stderr
    assert done.stdout == ""
    assert sorted(p.name for p in (tmp_path / "inner").iterdir()) == left


def test_the_first_file_is_not_written_when_the_second_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    calls: list[int] = []
    real = os.fsync

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    files = tuple(Written(path=str(tmp_path / name), data=b"new") for name in ("a", "b"))
    with pytest.raises(FileError, match="No space left"):
        write_all(files)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a", "old")]


def test_a_picture_of_several_chips_names_the_model_and_explains_its_shapes(cli, tmp_path: Path) -> None:
    done = cli("analyze", "1x8x8 | relu", "--on", "h100-sxm,cortex-m7", "--plot", "p.svg")
    assert done.returncode == 0, done.stderr
    texts = re.findall(r">([^<>]+)</text>", (tmp_path / "p.svg").read_text())
    assert "layers on h100-sxm, cortex-m7" in texts
    # one ReLU each: an H100 waits for its launch, a Cortex-M7 (no launch cost published) for its memory
    assert {"Bound by", "launch (1)", "memory (1)"} <= set(texts)


@pytest.mark.parametrize("indent", [2, None])
def test_json_has_a_record_a_line(indent: int | None) -> None:
    """So a document of 100,000 ops is half as large as with every number on a line of its own. Anything else is laid out
    as the standard library does it."""
    inner = {"schema": "x/1", "rows": [{"a": [1, 2]}, {"a": []}], "none": {}, "empty": [], "text": "\u00e9\ud800"}
    text = json_text({"schema": "y/1", "of": [inner], "sizes": [1, 2.5, None]}, indent)
    assert json.loads(text) == {"schema": "y/1", "of": [inner], "sizes": [1, 2.5, None]}
    if indent is None:
        assert text == json.dumps(json.loads(text))
    else:
        assert [line for line in text.splitlines() if "a" in line and "schema" not in line] == [
            '        {"a": [1, 2]},',
            '        {"a": []}',
        ]
        assert text.startswith('{\n  "schema": "y/1",\n  "of": [\n    {\n      "schema": "x/1",\n')


def test_chips_side_by_side_say_against_what(cli) -> None:
    """A ReLU over 1 MB moves 2 MB: at 3.35 TB/s (H100) and 300 GB/s (L4) that differs by 3350 / 300 = 11.2."""
    table = cli("analyze", "1x250000 | relu", "--on", "l4,h100-sxm").stdout.split("\n\n")[1].splitlines()
    assert table[0].endswith(" against the") and table[1].endswith(" fastest")
    assert [line.split()[0] for line in table[-2:]] == ["h100-sxm", "l4"]
    assert table[-2].endswith(" fastest") and table[-1].endswith(" 11.2x as long")


def test_one_layer_of_many_is_not_nothing(cli) -> None:
    """Of 200 equal layers each takes half a percent."""
    verdict = " ".join(cli("analyze", "1x2000000 | relu x200", "--on", "l4").stdout.split("total")[0].split())
    assert "The heaviest layer is relu1 (under 1%)" in verdict
    assert " 0%" not in verdict
