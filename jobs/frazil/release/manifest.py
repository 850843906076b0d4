"""Release: everything a job run needs, of one version, named by its content. Built once, never changed.

A release is a folder of files and their manifest. Every file is uploaded under a key with its own hash, so that releases
share the files they have in common and no key is ever written twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from frazil.declaration.constraints import at_least, matching
from frazil.declaration.from_json import VERSION, from_json, members
from frazil.declaration.problems import Problem
from frazil.declaration.to_json import canonical, digest, to_json
from frazil.declaration.validation import validate
from frazil.release.emr_labels import LABELS

MANIFEST = "manifest.json"

SHA256 = matching("[0-9a-f]{64}", "a SHA-256", "Write 64 lower-case hexadecimal digits")
_FILE = matching(r"[A-Za-z0-9][A-Za-z0-9._+-]*", "a file's name", "Write a name without folders")
_VERSION = matching(r"[0-9][0-9A-Za-z.+-]*", "a version", "Write it like 1.2.3")
_COMMIT = matching("[0-9a-f]{40}", "a git commit", "Write its 40 hexadecimal digits")
_LABEL = matching("|".join(row.name for row in LABELS), "a label we build for", "Write one of release/emr_labels.py")
_CLASS = matching(r"[a-z][A-Za-z0-9_.$]+", "a class", "Write its full name")


class Role(StrEnum):
    """What a file of a release is to a job run.

    `package` is the wheel's content, importable as it is; `environment` the Python packages, to be unpacked; `ingest` and
    `maintain` are the entry points; `jar` is on the class path of driver and executors; `bill` is the bill of materials,
    for people and scanners.
    """

    PACKAGE = "package"
    ENVIRONMENT = "environment"
    INGEST = "ingest"
    MAINTAIN = "maintain"
    JAR = "jar"
    BILL = "bill"


class Architecture(StrEnum):
    """The processors of the application, by EMR Serverless' own names."""

    X86_64 = "X86_64"
    ARM64 = "ARM64"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file of a release."""

    name: Annotated[str, "Its name; a run sees it under this name.", _FILE]
    role: Annotated[Role, "What it is to a run."]
    sha256: Annotated[str, "The SHA-256 of its bytes.", SHA256]
    size_bytes: Annotated[int, "Its size.", at_least(0)]

    def __post_init__(self) -> None:
        validate(self)

    @property
    def key(self) -> str:
        """Where it is kept in the artifact bucket."""
        return f"artifacts/{self.sha256}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What must be there when a job starts, or the release was built for something else."""

    python: Annotated[str, "Python's version, two numbers.", _VERSION]
    spark: Annotated[str, "Spark's version.", _VERSION]
    iceberg: Annotated[str, "Iceberg's version, by the jar of ours that must win.", _VERSION]
    classes: Annotated[tuple[Annotated[str, _CLASS], ...], "Classes that we use beside public interfaces."]

    def __post_init__(self) -> None:
        validate(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What the manifest says."""

    version: Annotated[str, "Frazil's version.", _VERSION]
    git_commit: Annotated[str, "The commit it was built from.", _COMMIT]
    is_dirty: Annotated[bool, "Whether files differed from that commit."]
    label: Annotated[str, "The EMR release it is for.", _LABEL]
    architecture: Annotated[Architecture, "The processors that its native packages are for."]
    runtime: Annotated[Runtime, "What a run finds, or refuses to begin."]
    files: Annotated[tuple[File, ...], "Every file but this manifest, sorted by name."]

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

    def _contradictions(self) -> Iterator[Problem]:
        names = [file.name for file in self.files]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Problem(f"files[{index}].name", f"{name} is there twice", "Keep one")
        for role in (Role.PACKAGE, Role.ENVIRONMENT, Role.INGEST, Role.MAINTAIN, Role.BILL):
            found = sum(file.role is role for file in self.files)
            if found != 1:
                yield Problem("files", f"there are {found} files with role {role}", "There is exactly one")

    def the(self, role: Role) -> File:
        """The one file of a role that has one."""
        return next(file for file in self.files if file.role is role)

    @property
    def jars(self) -> tuple[File, ...]:
        """The jars, sorted by name."""
        return tuple(file for file in self.files if file.role is Role.JAR)

    @property
    def digest(self) -> str:
        """The release's name by content: the SHA-256 of its manifest."""
        return digest(manifest(self))

    @property
    def key(self) -> str:
        """Where its manifest is kept in the artifact bucket."""
        return f"releases/{self.version}/{self.digest}/{MANIFEST}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    release: Annotated[Release, "What was built."]


def manifest(release: Release) -> bytes:
    """The canonical bytes of a release's manifest."""
    return canonical({"version": VERSION, "release": to_json(release)})


def parse_manifest(source: bytes | Mapping[str, Any]) -> Release:
    """The release that a manifest describes. Raises `InvalidDeclaration` with every problem."""
    return from_json(_Manifest, members(source, "manifest"), "").release
