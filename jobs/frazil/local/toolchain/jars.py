"""The jars of Spark and the local servers, exactly those of `jobs/jars.lock`, fetched once or taken from a folder.

The lock names every jar with its SHA-256 and no registry's address. pyspark's Ivy fetches jars that are not in the cache,
without their dependencies, into a folder next to the cache. Only a file with the locked hash is moved into the cache. A
cached file is trusted as long as its size and modification time are those of the check of its hash, so the usual call
reads no jar, starts no process and needs no network.

If `FRAZIL_JARS` names a folder, nothing is fetched: it must hold the jars by their file names, and each call hashes those
that it returns.

To change a version, change it in the lock and run `frazil local jars`: it refuses the new file and prints its hash.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from frazil.errors import JarMismatch, JarsUnavailable
from frazil.local.toolchain.maven import CACHE, MIRROR, Artifact, fetch


@contextmanager
def shown(artifacts: Sequence[Artifact], folder: Path, stream: TextIO) -> Iterator[None]:
    """Show on `stream` how much of the artifacts has arrived in `folder`, while the block fetches them.

    If the lock has no sizes, the bar shows no share.
    """
    sizes = [artifact.size_bytes for artifact in artifacts]
    total = sum(sizes) if all(sizes) else None
    what = f"{len(artifacts)} jars" if len(artifacts) != 1 else artifacts[0].name
    if not stream.isatty():
        began = time.monotonic()
        _say(
            stream, f"fetching {what}{'' if total is None else f', {total / 1e6:.1f} MB'}; they are kept for later runs"
        )
        yield
        _say(stream, f"fetched {what} in {time.monotonic() - began:.0f} s")
        return
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    class Bar(Progress):
        """A bar that looks at the folder each time that it is drawn."""

        def get_renderables(self) -> Iterable[RenderableType]:
            for task in self.tasks:
                task.completed = _arrived(folder, total)
            yield from super().get_renderables()

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(file=stream), refresh_per_second=4) as bar:
        bar.add_task(f"fetching {what}", total=total)
        yield


def _say(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def _arrived(folder: Path, total: int | None) -> int:
    """Return the bytes of the files in a folder, at most `total`: Ivy writes a few of its own. Files may go meanwhile."""
    size = 0
    for file in folder.rglob("*"):
        try:
            size += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue
    return size if total is None else min(size, total)


def unpacked(folder: Path, program: str, unpack: Callable[[Path], None]) -> Path:
    """Return the file `program` of a folder in the cache. If it does not exist, call `unpack` with an empty folder first.

    Safe to call from several processes. A killed call leaves no incomplete folder.
    """
    wanted = folder / program
    if wanted.is_file():
        return wanted
    with _alone(folder.parent):
        if not wanted.is_file():
            with tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder.parent) as temporary:
                unfinished = Path(temporary, "unfinished")
                unfinished.mkdir()
                unpack(unfinished)
                shutil.rmtree(folder, ignore_errors=True)
                unfinished.rename(folder)
    return wanted


_POSTGRES = {("Linux", "x86_64"): "postgres-linux-amd64", ("Darwin", "x86_64"): "postgres-darwin-amd64"}


def postgres_purpose() -> str | None:
    """Return the purpose in `jobs/jars.lock` of this platform's PostgreSQL; None if the lock has none."""
    return _POSTGRES.get((platform.system(), platform.machine()))


LOCK_VERSION = 1
EVERYWHERE = ("avro-converter", "connect", "debezium-postgres", "kafka", "registry", "spark")
"""The purposes of all platforms."""
FOLDER = "FRAZIL_JARS"
"""The variable that names a folder with all jars."""
LOCK_NAME = "jars.lock"
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
    """Return the lock of an installed package, which is next to this module, or of the checkout."""
    here = Path(__file__).resolve()
    candidates = (here.parent / LOCK_NAME, here.parents[3] / LOCK_NAME)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise JarsUnavailable("the package lacks jars.lock", where=str(candidates[0]), do="Install Frazil's wheel again")


def cache_folder() -> Path:
    """Return the folder `frazil` in the user's cache, which all checkouts share."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frazil"


def jars(
    purpose: str, *, lock: Path | None = None, cache: Path | None = None, recheck: bool = False
) -> tuple[Path, ...]:
    """Return the files locked for a purpose (`spark`, `kafka`, `registry`, …) in the lock's order; fetch what is missing.

    With `recheck`, hashes every cached file again. If `FRAZIL_JARS` names a folder, its files are returned.
    Raises `JarsUnavailable` if a file is not in the folder or cannot be fetched, and `JarMismatch` if it differs from the lock;
    the cache is then unchanged. Safe to call from several processes.
    """
    source = lock or lock_file()
    wanted = tuple(artifact for artifact in locked(source) if purpose in artifact.purposes)
    if not wanted:
        raise JarsUnavailable(f"nothing is locked for {purpose!r}", where=str(source))
    if given := os.environ.get(FOLDER):
        return _of_folder(wanted, Path(given).absolute())
    folder = (cache or cache_folder()) / "jars"
    if recheck or not _all_stamped(wanted, folder, _stamps(folder)):
        with _alone(folder):
            _complete(wanted, folder, recheck=recheck)
    return tuple(folder / artifact.path for artifact in wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class JarState:
    """The locked files of a purpose as they are in a folder, by hash; `is_given` says that `FRAZIL_JARS` names the folder."""

    folder: Path
    is_given: bool
    count: int
    missing: tuple[str, ...]
    different: tuple[str, ...]


def jar_state(purpose: str, is_wanted: Callable[[str], bool] = lambda name: True) -> JarState:
    """Hash the files locked for a purpose, and fetch nothing. `is_wanted` chooses among their names."""
    wanted = [a for a in locked(lock_file()) if purpose in a.purposes and is_wanted(a.file_name)]
    given = os.environ.get(FOLDER)
    folder = Path(given).absolute() if given else cache_folder() / "jars"
    hashes = {a: _sha256(folder / (a.file_name if given else a.path)) for a in wanted}
    return JarState(
        folder=folder,
        is_given=bool(given),
        count=len(wanted),
        missing=tuple(a.file_name for a, found in hashes.items() if not found),
        different=tuple(a.file_name for a, found in hashes.items() if found and found != a.sha256),
    )


def purposes() -> tuple[str, ...]:
    """Return the purposes of this platform."""
    postgres = postgres_purpose()
    return (*EVERYWHERE, *([postgres] if postgres else ()))


def copied(files: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """Copy files into a folder, made if it does not exist, and return them there. A killed call leaves no partial file."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        target = folder / file.name
        if not (target.is_file() and target.samefile(file)):
            unfinished = folder / f".{file.name}"
            shutil.copyfile(file, unfinished)
            unfinished.replace(target)
    return tuple(folder / file.name for file in files)


def _of_folder(wanted: Sequence[Artifact], folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder that someone filled. Raises `JarsUnavailable` or `JarMismatch`."""
    files = tuple(folder / artifact.file_name for artifact in wanted)
    hashes = [_sha256(file) for file in files]
    where = f"{FOLDER}={folder}"
    if absent := [file.name for file, found in zip(files, hashes, strict=True) if not found]:
        raise JarsUnavailable(
            f"{len(absent)} of {len(files)} jars are not in the folder: {', '.join(absent[:5])}",
            where=where,
            do="On a machine with a network, run `frazil local jars --out FOLDER`",
        )
    for artifact, file, found in zip(wanted, files, hashes, strict=True):
        if found != artifact.sha256:
            what = f"the sha256 of {file.name} is {found}, the lock has {artifact.sha256}"
            raise JarMismatch(what, where=where, do="Copy this file again: `frazil local jars --out FOLDER`")
    return files


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
            with shown(missing, Path(temporary, CACHE), sys.stderr):
                fetched = fetch(missing, Path(temporary), os.environ)
            for artifact, file in zip(missing, fetched, strict=True):
                found = _sha256(file)
                if found != artifact.sha256:
                    raise JarMismatch(
                        f"its sha256 is {found}, the lock says {artifact.sha256}",
                        where=str(artifact),
                        do=f"Nothing was kept. Use another mirror ({MIRROR}); after a change of the lock, correct the lock",
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
    """Lock a folder of the cache against other processes."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for left in folder.glob(".fetch-*"):  # of a killed process
            shutil.rmtree(left, ignore_errors=True)
        yield
