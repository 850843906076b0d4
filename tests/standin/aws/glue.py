"""Glue's optimistic lock, which moto lacks: `UpdateTable` with an outdated `VersionId` is refused.

Iceberg's `GlueCatalog` has no other lock. It reads a table with its version, and names that version when it points the
table to new metadata. If a server ignores the version, one of two writers silently loses the other's commit.

https://docs.aws.amazon.com/glue/latest/webapi/API_UpdateTable.html
"""

from __future__ import annotations

from functools import wraps
from threading import RLock
from typing import Any

from moto.core.exceptions import ServiceException
from moto.glue.models import FakeTable, GlueBackend
from moto.glue.responses import GlueResponse

_STEPS = ("create_database", "delete_database", "create_table", "delete_table")

_one_at_a_time = RLock()
"""Makes compare and set one step, because the server answers each request in a thread of its own. Also, no reader may see
a table between two versions, when it has none."""


class StaleVersion(ServiceException):
    """AWS's answer to a writer whose version of the table is outdated."""

    code = "ConcurrentModificationException"
    message = "Update table failed due to concurrent modifications."


def patch_glue() -> None:
    """Add Glue's lock and archive to this process's moto. Idempotent."""
    if getattr(GlueResponse.update_table, "is_patched", False):
        return
    for name in _STEPS:
        setattr(GlueBackend, name, _alone(getattr(GlueBackend, name)))
    for name in ("as_dict", "update", "delete_version"):
        setattr(FakeTable, name, _alone(getattr(FakeTable, name)))
    setattr(GlueResponse, "update_table", _checked(GlueResponse.update_table))  # noqa: B010 - a method is replaced


def _alone(change: Any) -> Any:
    @wraps(change)
    def alone(*arguments: Any, **options: Any) -> Any:
        with _one_at_a_time:
            return change(*arguments, **options)

    return alone


def _checked(update_table: Any) -> Any:
    @wraps(update_table)
    def checked(self: Any) -> Any:
        request = self.parameters
        with _one_at_a_time:
            table = self.glue_backend.get_table(request["DatabaseName"], request["TableInput"]["Name"])
            held, named = str(table.as_dict()["VersionId"]), request.get("VersionId")
            if named is not None and str(named) != held:
                raise StaleVersion
            answer = update_table(self)
            if request.get("SkipArchive"):
                table.delete_version(held)
            return answer

    checked.is_patched = True  # type: ignore[attr-defined]
    return checked
