"""A folder in, the git commit that it stands at out; and other revisions of it, checked out beside it for a while."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rooflens.benches.bench_run import Revision
from rooflens.errors import InputError, one_line


def revision_of(folder: Path, label: str = "") -> Revision | None:
    """None where there is no git, or nothing was committed."""
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain")
    if commit is None or changes is None:
        return None
    return Revision(commit=commit, dirty=bool(changes), label=label)


def commit_of(folder: Path, name: str) -> str:
    """The commit that a branch, a tag or the start of a commit stands for."""
    if _git(folder, "rev-parse", "--show-toplevel") is None:
        raise InputError(
            f"--checkout {name}: {folder.absolute()} is in no git repository: run it in the project's folder"
        )
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if not commit:
        raise InputError(f"--checkout {name}: git knows no such revision here: give a commit, a branch or a tag")
    return commit


@contextmanager
def checked_out(folder: Path, name: str) -> Iterator[Path]:
    """The folder as it was at that revision, in a worktree of its own: what is not committed stays where it is."""
    commit = commit_of(folder, name)
    top = Path(_git(folder, "rev-parse", "--show-toplevel") or folder)
    with tempfile.TemporaryDirectory(prefix="rooflens-") as made:
        tree = Path(made) / "tree"
        failed = _fails(top, "worktree", "add", "--detach", "--quiet", str(tree), commit)
        if failed:
            raise InputError(f"--checkout {name}: git could not check it out: {failed}")
        try:
            yield tree / folder.resolve().relative_to(top.resolve())
        finally:
            _fails(top, "worktree", "remove", "--force", str(tree))


def _git(folder: Path, *words: str) -> str | None:
    try:
        found = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return found.stdout.strip() if found.returncode == 0 else None


def _fails(folder: Path, *words: str) -> str:
    found = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    return one_line(found.stderr, 300) if found.returncode else ""
