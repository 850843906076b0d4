"""Checkout: a repository of the demonstration's own, with the files of this one, in which a person would work."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_NOT_COPIED = (".venv", "node_modules")
_AUTHOR = {"user.name": "demo", "user.email": "demo@example.invalid", "commit.gpgsign": "false"}


def make(root: Path, checkout: Path) -> None:
    """Copy every file that git knows or would take, and link what was installed. It is a repository without a commit."""
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
    """Commit everything; the commit's id."""
    _git(checkout, "add", "--all")
    _git(checkout, "commit", "--quiet", "--no-verify", "-m", message)
    return _git(checkout, "rev-parse", "HEAD").strip()


def difference(checkout: Path) -> str:
    """What the last commit changed."""
    return _git(checkout, "show", "--format=", "--stat", "--patch", "HEAD", "--", ":!*.avsc")


def _git(folder: Path, *arguments: str) -> str:
    settings = [part for name, value in _AUTHOR.items() for part in ("-c", f"{name}={value}")]
    # A hook that runs this has told git of another repository.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *settings, "-c", f"core.hooksPath={os.devnull}", *arguments]
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=True)
    return ended.stdout
