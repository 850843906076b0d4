"""The manifest of a release: the files that a job run needs, of one version. A release never changes.

A release is a folder of files and their manifest. Every file is uploaded under a key with its own hash, so that releases
share equal files and no key is written twice.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from frazil.declaration.checks.constraints import at_least, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.declaration.documents.from_json import VERSION, from_json, members
from frazil.declaration.documents.to_json import canonical, digest, to_json
from frazil.release.emr_labels import LABELS

MANIFEST = "manifest.json"

SHA256 = matching("[0-9a-f]{64}", "a SHA-256", "Write 64 lower-case hexadecimal digits")
_FILE = matching(r"[A-Za-z0-9][A-Za-z0-9._+-]*", "a file's name", "Write a name without folders")
_VERSION = matching(r"[0-9][0-9A-Za-z.+-]*", "a version", "Write it like 1.2.3")
_COMMIT = matching("[0-9a-f]{40}", "a git commit", "Write its 40 hexadecimal digits")
_LABEL = matching("|".join(row.name for row in LABELS), "a supported label", "Write one of release/emr_labels.py")
_CLASS = matching(r"[a-z][A-Za-z0-9_.$]+", "a class", "Write its full name")


class Role(StrEnum):
    """The use of a file of a release in a job run.

    `package` is the wheel's content, importable as a zip file; `environment` the Python packages, to be unpacked; `ingest`
    and `maintain` are the entry points; `jar` is on the class path of driver and executors; `bill` is the bill of
    materials, for people and scanners; `reconciler` the program of the deployed reconciler.
    """

    PACKAGE = "package"
    ENVIRONMENT = "environment"
    INGEST = "ingest"
    MAINTAIN = "maintain"
    JAR = "jar"
    BILL = "bill"
    RECONCILER = "reconciler"


class Architecture(StrEnum):
    """The processors of the application, by EMR Serverless' names."""

    X86_64 = "X86_64"
    ARM64 = "ARM64"


@declared
class File:
    """One file of a release."""

    name: Annotated[str, "Its name, also in a run.", _FILE]
    role: Annotated[Role, "How a run uses it."]
    sha256: Annotated[str, "The SHA-256 of its bytes.", SHA256]
    size_bytes: Annotated[int, "Its size.", at_least(0)]

    @property
    def key(self) -> str:
        """The file's key in the artifact bucket."""
        return f"artifacts/{self.sha256}/{self.name}"


@declared
class Runtime:
    """The runtime that a release was built for. A job that finds another one does not start."""

    python: Annotated[str, "Python's version, two numbers.", _VERSION]
    spark: Annotated[str, "Spark's version.", _VERSION]
    iceberg: Annotated[str, "Iceberg's version, that of the release's own jar.", _VERSION]
    classes: Annotated[tuple[Annotated[str, _CLASS], ...], "Classes used that are not part of public interfaces."]


@declared
class Release:
    """The content of the manifest."""

    version: Annotated[str, "Frazil's version.", _VERSION]
    git_commit: Annotated[str | None, "The commit it was built from, if it was built in a checkout.", _COMMIT] = None
    wheel_sha256: Annotated[str | None, "The SHA-256 of the content of the wheel it was built from.", SHA256] = None
    is_dirty: Annotated[bool, "Whether files differed from that commit."]
    label: Annotated[str, "The EMR release that it is built for.", _LABEL]
    architecture: Annotated[Architecture, "The processors that its native packages are for."]
    runtime: Annotated[Runtime, "The runtime that a run requires."]
    files: Annotated[tuple[File, ...], "Every file but this manifest, sorted by name."]

    def _contradictions(self) -> Iterator[Problem]:
        if (self.git_commit is None) == (self.wheel_sha256 is None):
            yield Problem("git_commit", "a release is built from a commit or from a wheel", "Write one of the two")
        names = [file.name for file in self.files]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Problem(f"files[{index}].name", f"{name} is listed twice", "Remove one")
        for role in (role for role in Role if role is not Role.JAR):
            found = sum(file.role is role for file in self.files)
            if found != 1:
                yield Problem("files", f"{found} files have the role {role}", "Write exactly one")

    def the(self, role: Role) -> File:
        """Return the file of a role that exactly one file has."""
        return next(file for file in self.files if file.role is role)

    @property
    def jars(self) -> tuple[File, ...]:
        """The jars, sorted by name."""
        return tuple(file for file in self.files if file.role is Role.JAR)

    @property
    def digest(self) -> str:
        """The SHA-256 of the manifest, which identifies the release."""
        return digest(manifest(self))

    @property
    def key(self) -> str:
        """The manifest's key in the artifact bucket."""
        return f"releases/{self.version}/{self.digest}/{MANIFEST}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    release: Annotated[Release, "The release."]


def manifest(release: Release) -> bytes:
    """Return the canonical bytes of a release's manifest."""
    return canonical({"version": VERSION, "release": to_json(release)})


def parse_manifest(source: bytes | Mapping[str, Any]) -> Release:
    """Parse a manifest. Raises `InvalidDeclaration` with every problem."""
    return from_json(_Manifest, members(source, "manifest"), "").release


EXPECTED = "expected.json"


def expected_document(runtime: Runtime, release: str) -> bytes:
    """Return the document that the package of a release stores."""
    return canonical({"version": VERSION, "release": release, "runtime": to_json(runtime)})


def expected() -> Runtime | None:
    """Return the runtime that this release was built for; None in a checkout."""
    try:
        source = pkgutil.get_data("frazil", EXPECTED)
    except OSError:
        return None
    return from_json(Runtime, members(json.loads(source), EXPECTED)["runtime"], "runtime") if source else None
