"""The upload of a release and of documents to the artifact bucket, under keys that contain digests. Idempotent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from frazil.declaration.documents.to_json import digest
from frazil.errors import ReleaseIncomplete
from frazil.release.archives import sha256
from frazil.release.manifest import MANIFEST, Release, manifest, parse_manifest
from frazil.release.signature import SIGNATURES, in_folder, verify


class WriteOnce(Protocol):
    """The operation on the artifact bucket that an upload needs."""

    def put_once(self, key: str, source: Path | bytes) -> bool:
        """Write an object that is never overwritten. Return whether this call wrote it."""
        ...


def built_release(folder: Path) -> Release:
    """Read the manifest in a release's folder. Raises `ReleaseIncomplete` if it does not exist."""
    try:
        return parse_manifest((folder / MANIFEST).read_bytes())
    except OSError:
        raise ReleaseIncomplete(
            "the folder holds no release", where=str(folder), do="Run `frazil release build`"
        ) from None


def verified_release(folder: Path) -> Release:
    """Read a release whose files are those of its manifest. Raises `ReleaseIncomplete`."""
    release = built_release(folder)
    wrong = list(_wrong(release, folder))
    if wrong:
        raise ReleaseIncomplete(
            f"files differ from the manifest: {', '.join(wrong)}", where=str(folder), do="Build the release again"
        )
    return release


def upload_release(folder: Path, store: WriteOnce, *, trusted: Sequence[str] = ()) -> tuple[Release, dict[str, bool]]:
    """Upload a built release, its manifest last: if the manifest exists, all its files and signatures do.

    Return the release, and for each key whether this call wrote its object. `trusted` are the public keys of which one must
    have signed it; any release may be uploaded if there are none. Raises `ReleaseIncomplete` if a file differs from the
    manifest, and `ReleaseUntrusted`, before anything is written.
    """
    release = verified_release(folder)
    verify(release, trusted, in_folder(folder))
    is_new = {file.key: store.put_once(file.key, folder / file.name) for file in release.files}
    for file in sorted(folder.glob(SIGNATURES)):
        key = f"{release.key.rpartition('/')[0]}/{file.name}"
        is_new[key] = store.put_once(key, file)
    is_new[release.key] = store.put_once(release.key, manifest(release))
    return release, is_new


def document_key(document: bytes) -> str:
    """Return the key of a document in the artifact bucket, from its canonical bytes."""
    return f"documents/{digest(document)}.json"


def _wrong(release: Release, folder: Path) -> Iterator[str]:
    for file in release.files:
        try:
            found = sha256(folder / file.name)
        except OSError:
            found = ""
        if found != file.sha256:
            yield file.name
