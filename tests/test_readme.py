"""The README is true: each command in it runs, and prints each line shown under it."""

import re
import shlex
from pathlib import Path

import pytest

TEXT = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"```console\n\$ rooflens (.*?)\n(.*?)```", TEXT, re.S)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[c[:40] for c, _ in EXAMPLES])
def test_example(cli, command: str, shown: str) -> None:
    done = cli(*shlex.split(command))
    assert done.returncode == 0, done.stderr
    printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in shown.splitlines():
        wanted = " ".join(line.split())
        if wanted and wanted != "…":
            assert any(wanted in p for p in printed), wanted


def test_there_are_five() -> None:
    assert len(EXAMPLES) == 5


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (Path(__file__).parent.parent / target).exists(), target
