"""The content of wheels as one folder on Python's path (https://peps.python.org/pep-0427/)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

from frazil.errors import ReleaseIncomplete
from frazil.release.packages import normal

_ON_THE_PATH = ("purelib", "platlib")


@dataclass(frozen=True, slots=True)
class Facts:
    """A wheel's metadata. `licence` is an SPDX expression or a name; empty if unknown."""

    name: str
    version: str
    licence: str


def content(wheel: Path) -> dict[str, bytes]:
    """Return the files that imports need, by path, without scripts, headers and data."""
    files: dict[str, bytes] = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = PurePosixPath(entry.filename)
            if entry.is_dir():
                continue
            if path.is_absolute() or ".." in path.parts:
                raise ReleaseIncomplete(f"the entry {entry.filename!r} leaves the folder", where=wheel.name)
            if path.parts[0].endswith(".data"):
                if path.parts[1] not in _ON_THE_PATH:
                    continue
                path = PurePosixPath(*path.parts[2:])
            files[str(path)] = archive.read(entry)
    return files


def merged(wheels: Iterable[Path]) -> dict[str, bytes]:
    """Merge the content of several wheels. Raises `ReleaseIncomplete` if two have a file with different bytes."""
    files: dict[str, bytes] = {}
    for wheel in wheels:
        for name, data in content(wheel).items():
            if files.setdefault(name, data) != data:
                raise ReleaseIncomplete(f"another wheel has {name} with other content", where=wheel.name)
    return files


def facts(wheel: Path) -> Facts:
    """Read name, version and licence from the wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (
            entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA") and entry.count("/") == 1
        )
        headers = HeaderParser().parsestr(archive.read(name).decode())
    named = [c.rsplit(" :: ", 1)[-1] for c in headers.get_all("Classifier", []) if c.startswith("License :: ")]
    licence = headers.get("License-Expression") or _short(headers.get("License")) or ", ".join(named)
    return Facts(normal(headers["Name"]), headers["Version"], licence)


def _short(licence: str | None) -> str:
    """Return a licence's name; empty if the field holds the licence's full text."""
    return licence.strip() if licence and "\n" not in licence.strip() and len(licence) < 80 else ""
