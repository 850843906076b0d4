"""A release of the real project with small stand-ins for its downloads: two packages, and empty jars."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from frazil.release.archives import write_zip
from frazil.release.build import Jar, build
from frazil.release.emr_labels import LABELS
from frazil.release.function_package import PARTS
from frazil.release.installed import Checkout, Source
from frazil.release.manifest import Architecture, Release
from frazil.release.sbom import Kind, Part

COMMIT = "c" * 40
SDK_FILES = {
    **{f"{part}__init__.py" if part.endswith("/") else part: b"" for part in PARTS},
    "botocore/data/endpoints.json": b"{}",
    "botocore/data/s3/2006-03-01/service-2.json": b"{}",
    "botocore/data/ec2/2016-11-15/service-2.json": b"{}",
}
"""A stand-in for the AWS SDK and `cryptography`."""


def wheel(folder: Path, name: str, files: Mapping[str, bytes], *, version: str = "1.0", metadata: str = "") -> Path:
    """Write a wheel with these files and its metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    told = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{metadata}\n"
    # Without times, or what is built again a moment later would be of other wheels.
    write_zip(path, {**files, f"{name}-{version}.dist-info/METADATA": told.encode()})
    return path


def jar(folder: Path, name: str, version: str) -> Jar:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{version}.jar"
    file.write_bytes(f"{name} {version}".encode())
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    part = Part(kind=Kind.MAVEN, group="org.x", name=name, version=version, sha256=sha256, licence="Apache-2.0")
    return file, part


def checkout(root: Path) -> Checkout:
    return Checkout(root=root, commit=COMMIT, committed_at=datetime(2026, 1, 2, tzinfo=UTC), is_dirty=False)


def built(root: Path, own: Path, folder: Path, out: Path, *, of: Source | None = None) -> Release:
    packages = folder / "packages"
    return build(
        of or checkout(root),
        out,
        own_wheel=own,
        packages=[
            wheel(packages, "apple", {"apple/__init__.py": b"COLOUR = 'red'\n"}, metadata="License-Expression: MIT\n"),
            wheel(packages, "boto3", SDK_FILES),
            wheel(packages, "pear", {"pear.py": b"", "pear-1.0.data/scripts/pear": b"#!/x\n"}),
        ],
        jars=[jar(folder, "iceberg-spark-runtime-4.1_2.13", "1.11.0"), jar(folder, "kafka-clients", "3.9.1")],
        label=LABELS[0],
        architecture=Architecture.X86_64,
    )
