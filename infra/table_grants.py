"""Lake Formation's grants: what a role may do with databases and their tables, where IAM alone does not decide.

Lake Formation knows permissions of its own. With IAM's, a request needs both. So a grant on all tables of a database opens
no table that the role's policy does not name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from infra.tf import Construct, LakeformationPermissions, TerraformResource


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """Permissions in Lake Formation's terms."""

    database: tuple[str, ...]
    tables: tuple[str, ...]


# A role that creates a table has all permissions on it: so the ingest job may drop the scratch table of its catalog check.
LANDS = Granted(database=("CREATE_TABLE", "DESCRIBE"), tables=("ALTER", "DESCRIBE"))
MAINTAINS = Granted(database=("DESCRIBE",), tables=("ALTER", "DESCRIBE"))
READS = Granted(database=("DESCRIBE",), tables=("DESCRIBE", "SELECT"))


class TableGrants(Construct):
    """The grants of one role, two for each database: on the database, and on all tables in it, also those that follow."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        role_arn: str,
        databases: Iterable[str],
        granted: Granted,
        after: Sequence[Construct],
    ) -> None:
        """`after`: the role, which must exist."""
        super().__init__(scope, name)
        waiting: dict[str, Any] = {"principal": role_arn, "depends_on": list(after)}
        made = []
        for each in databases:
            made += [
                LakeformationPermissions(
                    self,
                    f"{each}-database",
                    permissions=list(granted.database),
                    database={"name": each},
                    **waiting,
                ),
                LakeformationPermissions(
                    self,
                    f"{each}-tables",
                    permissions=list(granted.tables),
                    table={"database_name": each, "wildcard": True},
                    **waiting,
                ),
            ]
        self.ready: tuple[TerraformResource, ...] = tuple(made)
        """What an assumer of the role must wait for."""
