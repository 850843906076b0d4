"""The installed wheel that a release is built from, where there is no checkout."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import ClassVar

from frazil.errors import ReleaseIncomplete
from frazil.release.archives import write_zip

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


INPUTS = "frazil/release/inputs/"
"""The folder of the wheel with the entry points of jobs and the lock of their packages, which no job imports."""
_OF_THE_WHEEL = ("METADATA", "WHEEL", "entry_points.txt", "licenses")
"""The wheel's own files in its metadata folder; installers add others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The content of the installed wheel by path, each file with the hash that the wheel lists. `inputs` is a folder of it."""

    version: str
    content: Mapping[str, bytes]
    inputs: Path
    commit: ClassVar[None] = None
    committed_at: ClassVar[datetime] = datetime(1980, 1, 1, tzinfo=UTC)  # a wheel has no time of its own
    is_dirty: ClassVar[bool] = False

    @classmethod
    def of_this_python(cls, found: Distribution | None = None) -> Installed:
        """Read the installed files. Raises `ReleaseIncomplete` for another installation than of a wheel, or a changed file."""
        try:
            found = found or distribution("frazil")
        except PackageNotFoundError:
            raise ReleaseIncomplete("Frazil is not installed as a wheel", do="Install the wheel") from None
        files = {str(each): each for each in found.files or () if _is_of_the_wheel(PurePosixPath(each))}
        if "frazil/__init__.py" not in files:  # pip copies the inputs of an editable install, too
            raise ReleaseIncomplete(
                "Frazil is installed from a checkout, which is not a wheel",
                where=str(found.locate_file("")),
                do="Build in the checkout and give --release MANIFEST, or install the wheel",
            )
        content = {}
        for name, each in sorted(files.items()):
            file = Path(str(each.locate()))
            content[name] = data = file.read_bytes() if file.is_file() else b""
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            if each.hash is None or (each.hash.mode, each.hash.value) != ("sha256", digest):
                raise ReleaseIncomplete("the file is not that of the wheel", where=name, do="Install the wheel again")
        return cls(version=found.version, content=content, inputs=Path(str(found.locate_file(INPUTS))))

    @property
    def wheel_sha256(self) -> str:
        """The SHA-256 of the wheel's content: of a line `PATH,SHA256` for each file, sorted. No installer changes it."""
        lines = (f"{name},{hashlib.sha256(data).hexdigest()}\n" for name, data in sorted(self.content.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def wheel(self, folder: Path) -> Path:
        """Write the wheel into a folder, without the list of its files."""
        file = folder / f"frazil-{self.version}-py3-none-any.whl"
        write_zip(file, self.content)
        return file


Source = Checkout | Installed


def source_at(root: Path) -> Source:
    """Return what a release is built from: the checkout that `root` is, or the installed wheel."""
    return Checkout.at(root) if is_checkout(root) else Installed.of_this_python()


def is_checkout(root: Path) -> bool:
    """Return whether a folder is a checkout of Frazil."""
    return (root / "jobs" / "requirements.lock").is_file()


def _is_of_the_wheel(path: PurePosixPath) -> bool:
    first, inner = path.parts[0], path.parts[1:]
    if first.endswith(".dist-info"):
        return bool(inner) and inner[0] in _OF_THE_WHEEL
    return first in ("frazil", "frazil_deploy") and path.suffix != ".pyc"
