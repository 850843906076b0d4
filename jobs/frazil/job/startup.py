"""Checks at the start of a job: versions, classes, and the answers of S3 for missing objects."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from frazil.declaration import Environment, GlueCatalog
from frazil.errors import ObjectStoreUnavailable, RuntimeDiffers
from frazil.release.manifest import Runtime
from frazil.version import VERSION


def check_python(wanted: Runtime | None, *, version: tuple[int, int] = sys.version_info[:2]) -> None:
    """Refuse another Python than the one that the packages are for. Raises `RuntimeDiffers`."""
    found = ".".join(map(str, version))
    if wanted is not None and found != wanted.python:
        what = f"this is Python {found}, the release's packages are for {wanted.python}"
        do = "Run it on the EMR release that its manifest names, with its own settings"
        raise RuntimeDiffers(what, where="start", do=do)


def check_jvm(wanted: Runtime | None, jvm: SessionJvm) -> None:
    """Refuse another Spark or Iceberg, or one that lacks a class that we use. Raises `RuntimeDiffers` with all of it."""
    found = list(_differences(wanted, jvm)) if wanted is not None else []
    if found:
        do = "Give the run exactly the release's jars, and leave the EMR release's own Iceberg off"
        raise RuntimeDiffers("; ".join(found), where="start", do=do)


def _differences(wanted: Runtime, jvm: SessionJvm) -> Iterator[str]:
    spark, iceberg = jvm.spark_version(), jvm.iceberg_version()
    if not _same(spark, wanted.spark):
        yield f"Spark is {spark}, not {wanted.spark}"
    if not _same(iceberg, wanted.iceberg):
        yield f"Iceberg is {iceberg}, not {wanted.iceberg}, by {jvm.place_of('org.apache.iceberg.IcebergBuild')}"
    for name in wanted.classes:
        if not jvm.has_class(name):
            yield f"class {name} is not there"


def _same(found: str, wanted: str) -> bool:
    """Return whether it is the version, EMR's own builds of it included: 4.1.1-amzn-0 is 4.1.1."""
    return found == wanted or found.startswith(f"{wanted}-amzn-")


def versions(jvm: SessionJvm) -> dict[str, str]:
    """Return the versions that this job runs on, by name. To know them, it has imported its packages."""
    python = platform.python_version()
    return {"frazil": VERSION, "python": python, "spark": jvm.spark_version(), "iceberg": jvm.iceberg_version()}


class SessionJvm:
    """The running session's JVM, asked by reflection: classes of `spark.jars` are not seen by name."""

    def __init__(self, spark: Any, iceberg: Any) -> None:
        self._spark, self._iceberg = spark, iceberg
        self._loader = iceberg.catalog.getClass().getClassLoader()
        self._class = spark._jvm.java.lang.Class

    def spark_version(self) -> str:
        """Return Spark's own version."""
        return str(self._spark.version)

    def iceberg_version(self) -> str:
        """Return the version of the Iceberg that the catalog's classes are from."""
        return str(self._iceberg.classes.static("IcebergBuild", "version"))

    def has_class(self, name: str) -> bool:
        """Return whether the class path has a class."""
        from py4j.protocol import Py4JJavaError

        try:
            self._load(name)
        except Py4JJavaError:
            return False
        return True

    def place_of(self, name: str) -> str:
        """Return the jar that a class was loaded from, as far as it is known."""
        source = self._load(name).getProtectionDomain().getCodeSource()
        return str(source.getLocation()) if source is not None else "an unknown place"

    def _load(self, name: str) -> Any:
        return self._class.forName(name, False, self._loader)


ARTIFACTS, TABLES = "artifacts", "tables"
NOT_FOUND = "not found"
"""The answer that jobs rely on."""
_NAME = "frazil-no-such-object"


class Reading(Protocol):
    """The operation on a bucket that is needed."""

    def read(self, key: str) -> object | None:
        """Return an object; None if S3 says that it does not exist."""
        ...


def places(environment: Environment, table: str) -> dict[str, tuple[str, str]]:
    """Return bucket and key of an object that does not exist, for each bucket of a deployed environment.

    `table` is the identifier of a table of the job.
    """
    if environment.artifact_bucket is None or not isinstance(environment.catalog, GlueCatalog):
        return {}
    bucket, _, folder = environment.catalog.warehouse.removeprefix("s3://").partition("/")
    namespace, _, name = table.partition(".")
    below = f"{folder.rstrip('/')}/".lstrip("/")
    return {
        ARTIFACTS: (environment.artifact_bucket, f"documents/{_NAME}"),
        TABLES: (bucket, f"{below}{namespace}.db/{name}/metadata/{_NAME}"),
    }


def answers(asked: Mapping[str, tuple[Reading, str]]) -> dict[str, str]:
    """Return what each bucket answers; `asked` has the bucket and the key. It never ends a job."""
    return {name: _answer(bucket, key) for name, (bucket, key) in asked.items()}


def _answer(bucket: Reading, key: str) -> str:
    try:
        return NOT_FOUND if bucket.read(key) is None else "found"
    except ObjectStoreUnavailable as refused:
        return refused.what
