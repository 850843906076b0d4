"""Upload: a release and documents into the artifact bucket, under keys that name their content. Done twice, it is done once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from frazil.declaration.to_json import digest
from frazil.errors import ReleaseIncomplete
from frazil.release.manifest import MANIFEST, Release, manifest, parse_manifest


class WriteOnce(Protocol):
    """What is needed of the artifact bucket."""

    def put_once(self, key: str, source: Path | bytes) -> bool:
        """Write what is never overwritten; whether this call wrote it."""
        ...


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A key, and whether this upload wrote it or it was there already."""

    key: str
    is_new: bool


def built_release(folder: Path) -> Release:
    """What the manifest in a release's folder says. Raises `ReleaseIncomplete` if there is none."""
    try:
        return parse_manifest((folder / MANIFEST).read_bytes())
    except OSError:
        raise ReleaseIncomplete("it holds no release", where=str(folder), do="frazil release build") from None


def upload_release(folder: Path, store: WriteOnce) -> tuple[Release, tuple[Uploaded, ...]]:
    """Upload a built release, its manifest last: a manifest that is there has all its files.

    Raises `ReleaseIncomplete`, before anything is written, if a file is not what the manifest says.
    """
    release = built_release(folder)
    wrong = list(_wrong(release, folder))
    if wrong:
        raise ReleaseIncomplete(f"not as its manifest says: {', '.join(wrong)}", where=str(folder), do="Build it anew")
    done = [Uploaded(file.key, store.put_once(file.key, folder / file.name)) for file in release.files]
    done.append(Uploaded(release.key, store.put_once(release.key, manifest(release))))
    return release, tuple(done)


def document_key(document: bytes) -> str:
    """Where a document is kept, by its canonical bytes."""
    return f"documents/{digest(document)}.json"


def upload_document(document: bytes, store: WriteOnce) -> Uploaded:
    """Upload the canonical bytes of a document of pipelines, or of an environment."""
    key = document_key(document)
    return Uploaded(key, store.put_once(key, document))


def _wrong(release: Release, folder: Path) -> Iterator[str]:
    for file in release.files:
        try:
            with (folder / file.name).open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            found = ""
        if found != file.sha256:
            yield file.name
