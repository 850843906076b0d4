"""The demonstration's own repository, with the files of this one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_NOT_COPIED = (".venv", "node_modules")
_AUTHOR = {"user.name": "demo", "user.email": "demo@example.invalid", "commit.gpgsign": "false"}


def make(root: Path, checkout: Path) -> None:
    """Copy every file that git tracks or would add, and link installed packages. The repository has no commit."""
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        source, target = root / name, checkout / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for name in _NOT_COPIED:
        (checkout / name).symlink_to(root / name)
    _git(checkout, "init", "--quiet")
    (checkout / ".git" / "info").mkdir(exist_ok=True)
    (checkout / ".git" / "info" / "exclude").write_text("\n".join(_NOT_COPIED) + "\n")


def commit(checkout: Path, message: str) -> str:
    """Commit everything and return the commit's id."""
    _git(checkout, "add", "--all")
    _git(checkout, "commit", "--quiet", "--no-verify", "-m", message)
    return _git(checkout, "rev-parse", "HEAD").strip()


def difference(checkout: Path) -> str:
    """Return the diff of the last commit."""
    return _git(checkout, "show", "--format=", "--stat", "--patch", "HEAD", "--", ":!*.avsc")


def _git(folder: Path, *arguments: str) -> str:
    settings = [part for name, value in _AUTHOR.items() for part in ("-c", f"{name}={value}")]
    # Git hooks set variables that name another repository.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *settings, "-c", f"core.hooksPath={os.devnull}", *arguments]
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=True)
    return ended.stdout
