"""What several test files share: the command line run as a user runs it, and the package's torchvision shim."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def nothing_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `rooflens machine` found on the machine that runs the tests decides none of them."""
    monkeypatch.setenv("ROOFLENS_HOME", str(tmp_path / "rooflens-home"))


@pytest.fixture
def cli(tmp_path: Path) -> Run:
    """`rooflens ARGS` in a process of its own, in an empty folder."""

    def run(*args: str, cwd: Path = tmp_path, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", "from rooflens.cli import main; main()", *args],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
