"""A wheel's content as files of a folder that is put on the path (https://peps.python.org/pep-0427/)."""

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
    """What a wheel says of itself. `licence` is an SPDX expression or a name, empty where it says nothing."""

    name: str
    version: str
    licence: str


def content(wheel: Path) -> dict[str, bytes]:
    """The files that importing needs, by their path; scripts, headers and data are left out."""
    files: dict[str, bytes] = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = PurePosixPath(entry.filename)
            if entry.is_dir():
                continue
            if path.is_absolute() or ".." in path.parts:
                raise ReleaseIncomplete(f"its entry {entry.filename!r} leaves the folder", where=wheel.name)
            if path.parts[0].endswith(".data"):
                if path.parts[1] not in _ON_THE_PATH:
                    continue
                path = PurePosixPath(*path.parts[2:])
            files[str(path)] = archive.read(entry)
    return files


def merged(wheels: Iterable[Path]) -> dict[str, bytes]:
    """The content of several wheels as one folder. Raises `ReleaseIncomplete` if two give a file different bytes."""
    files: dict[str, bytes] = {}
    for wheel in wheels:
        for name, data in content(wheel).items():
            if files.setdefault(name, data) != data:
                raise ReleaseIncomplete(f"{name} is in another wheel too, with other content", where=wheel.name)
    return files


def facts(wheel: Path) -> Facts:
    """Name, version and licence, by the wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (
            entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA") and entry.count("/") == 1
        )
        told = HeaderParser().parsestr(archive.read(name).decode())
    licence = (
        told.get("License-Expression") or _short(told.get("License")) or _classified(told.get_all("Classifier", []))
    )
    return Facts(normal(told["Name"]), told["Version"], licence)


def _short(licence: str | None) -> str:
    """A licence's name; some put its whole text there."""
    return licence.strip() if licence and "\n" not in licence.strip() and len(licence) < 80 else ""


def _classified(classifiers: Iterable[str]) -> str:
    named = [c.rsplit(" :: ", 1)[-1] for c in classifiers if c.startswith("License :: ")]
    return " AND ".join(named) if len(named) == 1 else ", ".join(named)
