"""The jars of Spark and the local servers, exactly those of `jobs/jars.lock`, fetched once.

The lock names every jar with its SHA-256 and no registry's address. pyspark's Ivy fetches jars that are not in the cache,
without their dependencies, into a folder beside the cache. Only a file with the locked hash is moved into the cache. A
cached file is trusted as long as its size and modification time are those of the check of its hash, so the usual call
reads no jar, starts no process and needs no network.

`python -m frazil.local.toolchain.jars` fetches all jars that this platform needs and checks every hash again. To change a
version, change it in the lock and run this command: it refuses the new file and prints its hash.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from frazil.errors import FrazilError, JarMismatch, JarsUnavailable
from frazil.local.toolchain.maven import Artifact, fetch
from frazil.local.toolchain.platforms import postgres_purpose

LOCK_VERSION = 1
EVERYWHERE = ("avro-converter", "connect", "debezium-postgres", "kafka", "registry", "spark")
"""What all platforms need."""
_STAMPS = "verified.json"


def locked(lock: Path) -> tuple[Artifact, ...]:
    """Read the lock, in its order. Raises `JarsUnavailable` if it does not exist or has another version."""
    try:
        document = json.loads(lock.read_bytes())
    except (OSError, ValueError) as problem:
        raise JarsUnavailable("the lock cannot be read", where=str(lock), do=str(problem)) from problem
    if document.get("version") != LOCK_VERSION:
        raise JarsUnavailable(
            f"the lock has version {document.get('version')}, this release reads {LOCK_VERSION}", where=str(lock)
        )
    return tuple(
        Artifact(purposes=tuple(entry.pop("for")), **entry)
        for entry in (dict(artifact) for artifact in document["artifacts"])
    )


def lock_file() -> Path:
    """Find the checkout's `jars.lock`: beside this package, or in a `jobs/` above the working folder."""
    here = Path(__file__).resolve().parents[3] / "jars.lock"
    for candidate in (here, *(folder / "jobs" / "jars.lock" for folder in (Path.cwd(), *Path.cwd().parents))):
        if candidate.is_file():
            return candidate
    raise JarsUnavailable(
        "jars.lock is not found", where=str(here), do="Run in a checkout, or name the file: jars(…, lock=…)"
    )


def cache_folder() -> Path:
    """Return the folder `frazil` in the user's cache, which all checkouts share."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frazil"


def spark_jars() -> tuple[Path, ...]:
    """Return the jars that a Spark session needs besides pyspark's own."""
    return jars("spark")


def jars(
    purpose: str, *, lock: Path | None = None, cache: Path | None = None, recheck: bool = False
) -> tuple[Path, ...]:
    """Return the files locked for a purpose (`spark`, `kafka`, `registry`, …) in the lock's order; fetch what is missing.

    With `recheck`, hashes every cached file again. Raises `JarsUnavailable` if a file cannot be fetched, and `JarMismatch` if
    a fetched file differs from the lock; the cache is then unchanged. Safe to call from several processes.
    """
    source = lock or lock_file()
    wanted = tuple(artifact for artifact in locked(source) if purpose in artifact.purposes)
    if not wanted:
        raise JarsUnavailable(f"nothing is locked for {purpose!r}", where=str(source))
    folder = (cache or cache_folder()) / "jars"
    if recheck or not _all_stamped(wanted, folder, _stamps(folder)):
        with _alone(folder):
            _complete(wanted, folder, recheck=recheck)
    return tuple(folder / artifact.path for artifact in wanted)


def _complete(wanted: Sequence[Artifact], folder: Path, *, recheck: bool) -> None:
    """Check the cached files, fetch the others, and record all stamps. The caller holds the cache's lock."""
    stamps = {} if recheck else _stamps(folder)
    missing = [
        artifact
        for artifact in wanted
        if not _all_stamped([artifact], folder, stamps) and _sha256(folder / artifact.path) != artifact.sha256
    ]
    if missing:
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as temporary:
            fetched = fetch(missing, Path(temporary))
            for artifact, file in zip(missing, fetched, strict=True):
                found = _sha256(file)
                if found != artifact.sha256:
                    raise JarMismatch(
                        f"its sha256 is {found}, the lock says {artifact.sha256}",
                        where=str(artifact),
                        do="Nothing was kept: ask who serves the jars, or correct the lock",
                    )
            for artifact, file in zip(missing, fetched, strict=True):
                target = folder / artifact.path
                target.parent.mkdir(parents=True, exist_ok=True)
                file.replace(target)
    stamps = _stamps(folder) | {artifact.path: _stamp(artifact, folder) for artifact in wanted}
    unfinished = folder / f".{_STAMPS}"
    unfinished.write_text(json.dumps(stamps, indent=1, sort_keys=True))
    unfinished.replace(folder / _STAMPS)


def _sha256(file: Path) -> str:
    """Return a file's hash in hexadecimal; empty if the file does not exist."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _stamps(folder: Path) -> dict[str, list[str | int]]:
    try:
        stamps: dict[str, list[str | int]] = json.loads((folder / _STAMPS).read_bytes())
    except (OSError, ValueError):
        return {}
    return stamps


def _stamp(artifact: Artifact, folder: Path) -> list[str | int]:
    facts = (folder / artifact.path).stat()
    return [artifact.sha256, facts.st_size, facts.st_mtime_ns]


def _all_stamped(artifacts: Sequence[Artifact], folder: Path, stamps: dict[str, list[str | int]]) -> bool:
    """Return whether every file exists, with the size and time of the check of its hash."""
    try:
        return all(stamps.get(artifact.path) == _stamp(artifact, folder) for artifact in artifacts)
    except FileNotFoundError:
        return False


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the cache against other processes."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for left in folder.glob(".fetch-*"):  # of a killed process
            shutil.rmtree(left, ignore_errors=True)
        yield


def main() -> int:
    """Fetch all locked files of this platform and hash them."""
    postgres = postgres_purpose()
    try:
        for purpose in (*EVERYWHERE, *([postgres] if postgres else ())):
            files = jars(purpose, recheck=True)
            size = sum(file.stat().st_size for file in files) / 1e6
            sys.stdout.write(f"{purpose}: {len(files)} files, {size:.0f} MB\n")
    except FrazilError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
