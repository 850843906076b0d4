"""The Python packages of a job: the wheels that `jobs/requirements.lock` names, for the machines that run jobs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from frazil.errors import ReleaseIncomplete
from frazil.release.archives import sha256
from frazil.release.manifest import Architecture

_REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s\\;]+)(?P<marker>\s*;)?")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")

GLIBC = (2, 34)
"""The version of glibc on the machines that run jobs, Amazon Linux 2023
(https://docs.aws.amazon.com/linux/al2023/ug/compare-with-al2.html)."""
_MACHINE = {Architecture.X86_64: "x86_64", Architecture.ARM64: "aarch64"}


@dataclass(frozen=True, slots=True)
class Package:
    """One package of the lock: its normalised name, its version, and the hashes of all its files."""

    name: str
    version: str
    hashes: frozenset[str]


def locked_packages(text: str) -> tuple[Package, ...]:
    """Return the packages of a lock, in its order. Raises `ReleaseIncomplete` for one without version or hash."""
    packages = []
    for block in re.split(r"\n(?=[^\s#])", "\n" + text):
        lines = [line for line in block.strip("\n").splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if not lines:
            continue
        found = _REQUIREMENT.match(lines[0])
        hashes = frozenset(_HASH.findall(block))
        if not found or found["marker"] or not hashes:
            raise ReleaseIncomplete(
                f"{lines[0].strip()[:80]!r} is not a pinned, hashed package",
                where="requirements.lock",
                do="Create the lock again, as CONTRIBUTING.md says",
            )
        packages.append(Package(normal(found["name"]), found["version"], hashes))
    return tuple(packages)


def normal(name: str) -> str:
    """Normalise a distribution's name (https://peps.python.org/pep-0503/#normalized-names)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def platforms(architecture: Architecture) -> tuple[str, ...]:
    """Return the wheel platforms that the machines support, the oldest first: AWS Lambda has an older glibc than jobs."""
    machine = _MACHINE[architecture]
    return (f"manylinux2014_{machine}", *(f"manylinux_2_{minor}_{machine}" for minor in range(17, GLIBC[1] + 1)))


def download(lock: Path, folder: Path, architecture: Architecture, *, python: str) -> tuple[Path, ...]:
    """Download the lock's wheels that `folder` lacks, by pip. Return all wheels in the lock's order, with checked hashes.

    `python` is the version that runs them, like 3.11. Raises `ReleaseIncomplete` if a package has no wheel for the machines,
    or one with another hash.
    """
    packages = locked_packages(lock.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    if len(matched(packages, _hashed(folder))) < len(packages):
        chosen = [part for platform in platforms(architecture) for part in ("--platform", platform)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python, *chosen]
        command += ["--require-hashes", "-r", str(lock), "-d", str(folder)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if ended.returncode:
            if "No module named pip" in ended.stderr:
                what, do = "this Python has no pip, which fetches the wheels", "Run python -m ensurepip"
                raise ReleaseIncomplete(what, where=sys.prefix, do=do)
            complaints = [line.strip() for line in ended.stderr.splitlines() if "ERROR" in line]
            raise ReleaseIncomplete(
                f"pip could not fetch the wheels for {architecture}",
                where=lock.name,
                do=" ".join(complaints[-2:])[:400] or "Check that the package index is reachable",
            )
    wheels = matched(packages, _hashed(folder))
    missing = [package.name for package in packages if package.name not in wheels]
    if missing:
        raise ReleaseIncomplete(f"no wheel with the locked hash exists for {', '.join(missing)}", where=lock.name)
    return tuple(wheels[package.name] for package in packages)


def matched(packages: Sequence[Package], files: Mapping[Path, str]) -> dict[str, Path]:
    """Return the file of each package by name. `files` maps files to hashes; files with unlocked hashes are ignored."""
    found: dict[str, Path] = {}
    for file, digest in sorted(files.items()):
        name, _, version = file.name.removesuffix(".whl").partition("-")
        for package in packages:
            is_it = normal(name) == package.name and version.split("-")[0] == package.version
            if is_it and digest in package.hashes:
                found[package.name] = file
    return found


def _hashed(folder: Path) -> dict[Path, str]:
    return {file: sha256(file) for file in folder.glob("*.whl")}
