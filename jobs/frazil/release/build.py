"""The build of a release from a checkout or the installed wheel, locked wheels and locked jars. Equal sources make equal bytes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from frazil.errors import ReleaseIncomplete
from frazil.release import function_package, sbom, wheels
from frazil.release.archives import sha256, write_tar_gz, write_zip
from frazil.release.emr_labels import Label
from frazil.release.installed import INPUTS, Installed, Source
from frazil.release.manifest import (
    EXPECTED,
    MANIFEST,
    Architecture,
    File,
    Release,
    Role,
    Runtime,
    expected_document,
    manifest,
)
from frazil.release.sbom import Kind, Part

NOT_RELEASED = (
    "frazil/local/",
    "frazil/cli/",
    "frazil/doctor/",
    "frazil/page/",
    "frazil/smoke/",
    "frazil/inference/",
    "frazil/project/",
    "frazil/status/",
    "frazil_deploy/",
    INPUTS,
)
"""Folders of the wheel that no job needs."""
_NOT_RELEASED_METADATA = ("/RECORD", "/entry_points.txt")  # they name files that are omitted

CLASSES = (
    "org.apache.iceberg.aws.s3.S3FileIO",
    "org.apache.iceberg.deletes.BaseDVFileWriter",
    "org.apache.iceberg.deletes.RoaringPositionBitmap",
    "org.apache.iceberg.spark.FileRewriteCoordinator",
    "org.apache.iceberg.spark.SparkRewriteTableCatalog",
    "org.apache.iceberg.spark.SparkTableCache",
    "org.apache.iceberg.spark.source.SparkPartitioningAwareScan",
    "org.apache.iceberg.spark.source.SparkPositionDeltaWrite$PreviousDeleteLoader",
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "org.apache.spark.sql.v2.avro.AvroDataSourceV2",
)
"""One class of each jar, and Iceberg's internal classes that staging and deletes use."""


Jar = tuple[Path, Part]
"""A locked jar that was downloaded: its file, and its line in the bill of materials."""


def build(
    source: Source,
    out: Path,
    *,
    own_wheel: Path,
    packages: Sequence[Path],
    jars: Sequence[Jar],
    label: Label,
    architecture: Architecture,
) -> Release:
    """Write the release into `out`, replacing an earlier one, and return the content of its manifest.

    `packages` are wheels for the architecture. Raises `ReleaseIncomplete` if a part is missing or contradicts another.
    """
    own = wheels.facts(own_wheel)
    runtime = Runtime(python=label.python, spark=label.spark, iceberg=_iceberg(jars, label), classes=CLASSES)
    if out.exists():
        if not (out / MANIFEST).is_file() and any(out.iterdir()):
            raise ReleaseIncomplete(
                "the folder has other content", where=str(out), do="Name another folder, or empty this one"
            )
        shutil.rmtree(out)
    out.mkdir(parents=True)
    roles: dict[str, Role] = {}

    def place(name: str, role: Role) -> Path:
        roles[name] = role
        return out / name

    write_zip(place(f"frazil-{own.version}.zip", Role.PACKAGE), _package(own_wheel, runtime, own.version))
    environment = wheels.merged(packages)
    archive = place(f"environment-{architecture.lower()}.tar.gz", Role.ENVIRONMENT)
    write_tar_gz(archive, environment)
    program = function_package.function_package(wheels.content(own_wheel), environment)
    write_zip(place(function_package.FILE_NAME, Role.RECONCILER), program)
    for role in (Role.INGEST, Role.MAINTAIN):
        entry_point = source.inputs / f"{role}.py"
        place(entry_point.name, role).write_bytes(entry_point.read_bytes())
    for file, _ in jars:
        shutil.copyfile(file, place(file.name, Role.JAR))
    parts = [*(part for _, part in jars), *map(_part, packages)]
    listed = sbom.bill(parts, version=own.version, built_from=source.committed_at)
    place(sbom.FILE_NAME, Role.BILL).write_bytes(listed)
    release = Release(
        version=own.version,
        git_commit=source.commit,
        wheel_sha256=source.wheel_sha256,
        is_dirty=source.is_dirty,
        label=label.name,
        architecture=architecture,
        runtime=runtime,
        files=tuple(_file(out / name, role) for name, role in sorted(roles.items())),
    )
    (out / MANIFEST).write_bytes(manifest(release))
    return release


def own_wheel(source: Source, folder: Path) -> Path:
    """Build Frazil's wheel into the empty `folder`. Raises `ReleaseIncomplete` with the builder's message."""
    if isinstance(source, Installed):
        return source.wheel(folder)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    ended = subprocess.run(command, cwd=source.root, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("frazil-*.whl"))
    if ended.returncode or len(found) != 1:
        said = " ".join((ended.stderr or ended.stdout).split())[-300:]
        raise ReleaseIncomplete(f"the wheel could not be built: {said}", where=str(source.root))
    return found[0]


def _package(wheel: Path, runtime: Runtime, version: str) -> Mapping[str, bytes]:
    """Return the wheel's content without the files that jobs do not need, and with the expected runtime."""
    released = {
        name: data
        for name, data in wheels.content(wheel).items()
        if not name.startswith(NOT_RELEASED) and not name.endswith(_NOT_RELEASED_METADATA)
    }
    return {**released, f"frazil/{EXPECTED}": expected_document(runtime, version)}


def _iceberg(jars: Iterable[Jar], label: Label) -> str:
    """Return the version of Iceberg, that of the jar for the label's Spark."""
    wanted = f"iceberg-spark-runtime-{re.sub(r'[.][0-9]+$', '', label.spark)}_{label.scala}"
    for _, part in jars:
        if part.name == wanted:
            return part.version
    raise ReleaseIncomplete(f"the jar {wanted} is not locked", where="jars.lock", do=f"{label.name} needs it")


def _part(wheel: Path) -> Part:
    facts = wheels.facts(wheel)
    return Part(kind=Kind.PYPI, name=facts.name, version=facts.version, sha256=sha256(wheel), licence=facts.licence)


def _file(path: Path, role: Role) -> File:
    return File(name=path.name, role=role, sha256=sha256(path), size_bytes=path.stat().st_size)
