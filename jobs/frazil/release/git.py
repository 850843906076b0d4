"""The checkout that a release is built from."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from frazil.errors import ReleaseIncomplete

_MADE_OF = ("jobs", "pyproject.toml", "README.md", "LICENSE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The folder of the sources, and their commit. `is_dirty`: files that a release is built from differ from the commit."""

    root: Path
    commit: str
    committed_at: datetime
    is_dirty: bool
    wheel_sha256: ClassVar[None] = None

    @property
    def inputs(self) -> Path:
        """The folder with the entry points of jobs and the lock of their packages."""
        return self.root / "jobs"

    @classmethod
    def at(cls, root: Path) -> Checkout:
        """Ask git for the commit. Raises `ReleaseIncomplete` outside of a checkout of Frazil."""
        for needed in ("jobs/ingest.py", "jobs/requirements.lock", "jobs/jars.lock", "pyproject.toml"):
            if not (root / needed).is_file():
                raise ReleaseIncomplete(f"{needed} is missing", where=str(root), do="Run in a checkout of Frazil")
        commit, seconds = _git(root, "show", "-s", "--format=%H %ct", "HEAD").split()
        changed = _git(root, "status", "--porcelain", "--", *_MADE_OF)
        return cls(
            root=root,
            commit=commit,
            committed_at=datetime.fromtimestamp(int(seconds), UTC),
            is_dirty=bool(changed.strip()),
        )


def _git(root: Path, *arguments: str) -> str:
    try:
        ended = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise ReleaseIncomplete(
            f"git does not know the commit: {said.strip()[:200]}", where=str(root), do="Run in a git checkout"
        ) from None
    return ended.stdout
