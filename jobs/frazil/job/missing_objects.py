"""What S3 answers this job for an object that does not exist: not found, if its role may list the prefix, else forbidden.

Iceberg and the object store rely on *not found*. IAM's conditions on `s3:ListBucket` decide, and no emulator evaluates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from frazil.declaration import Environment, GlueCatalog
from frazil.errors import ObjectStoreUnavailable

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
