"""The demonstration's own checkout of Frazil, in which releases and the wheel are built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from packaging.version import Version

_NOT_COPIED = (".venv", "node_modules")
_VERSION = re.compile(r'^version = "(.+)"$', re.MULTILINE)
_ENTRY = 'if __name__ == "__main__":\n'
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
    _git(checkout, "commit", "--quiet", "--no-verify", "--allow-empty", "-m", message)
    return _git(checkout, "rev-parse", "HEAD").strip()


def begin(folder: Path, message: str) -> None:
    """Make a folder a repository with a first commit."""
    _git(folder, "init", "--quiet")
    commit(folder, message)


def difference(folder: Path) -> str:
    """Return the diff of the last commit."""
    return _git(folder, "show", "--format=", "--stat", "--patch", "HEAD", "--", ":!*.avsc")


def raise_version(checkout: Path) -> None:
    """Write the next version into the checkout."""
    project = checkout / "pyproject.toml"
    text = project.read_text()
    [version] = _VERSION.findall(text)
    project.write_text(_VERSION.sub(f'version = "{next_version(version)}"', text))


def next_version(version: str) -> str:
    """Return the version after one: `0.2.0` after `0.2.0.dev0`, `0.2.1` after that."""
    of = Version(version)
    return of.base_version if of.is_prerelease else f"{of.major}.{of.minor}.{of.micro + 1}"


def break_ingest(checkout: Path) -> None:
    """Make a release of which no run can start."""
    file = checkout / "jobs" / "ingest.py"
    text = file.read_text()
    if text.count(_ENTRY) != 1:
        raise ValueError(f"{file}: {_ENTRY!r} is there {text.count(_ENTRY)} times, and not once")
    file.write_text(text.replace(_ENTRY, f'{_ENTRY}    raise SystemExit("this release cannot start")\n'))


def _git(folder: Path, *arguments: str) -> str:
    settings = [part for name, value in _AUTHOR.items() for part in ("-c", f"{name}={value}")]
    # Git hooks set variables that name another repository.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *settings, "-c", f"core.hooksPath={os.devnull}", *arguments]
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=True)
    return ended.stdout
