"""Places: the names of a lake's tables and files as policies need them, made in one place from what is declared.

A role's ARN is made from its name, so that it can be named before it exists: Confluent's integration is told which role it will
assume, and only then tells by which id it will be known, which that role's trust must name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from policies.documents import placeholders
from policies.documents.filling import Value

_ROLE_NAME = re.compile(r"[\w+=,.@-]{1,64}", re.ASCII)
_ACCOUNT = re.compile(r"[0-9]{12}")


def role_arn(account: str, name: str) -> str:
    """The ARN that a role of this name has, or will have; both the name given to IAM and the ARN must come from one variable.

    Raises `ValueError` for an account that is not 12 digits and a name that IAM refuses: the ARN would be another's.
    """
    if not _ACCOUNT.fullmatch(account) or not _ROLE_NAME.fullmatch(name):
        raise ValueError(f"{name!r} in account {account!r} can be no role: 12 digits, and 1 to 64 of letters, digits, +=,.@_-")
    return f"arn:aws:iam::{account}:role/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a lake keeps its tables. `warehouse` is the prefix under the bucket, without slashes at its ends.

    `tables` are identifiers, `namespace.table`, dead-letter tables among them. A table's files are under
    `<warehouse>/<namespace>.db/<table>`, as Iceberg's `GlueCatalog` puts them in a database without a location of its own.
    """

    region: str
    account: str
    table_bucket: str
    warehouse: str
    tables: Sequence[str]

    def values(self, document: str, **more: Value) -> dict[str, Value]:
        """The values that `fill(document, …)` asks for: ours as far as it has placeholders for them, and `more`."""
        ours: dict[str, Value] = {
            "region": self.region,
            "account": self.account,
            "table_bucket": self.table_bucket,
            "tables": [identifier.replace(".", "/") for identifier in self.tables],
            "table_prefixes": [self.prefix(identifier) for identifier in self.tables],
            "databases": self.databases,
            "database_prefixes": [f"{self.warehouse}/{database}.db" for database in self.databases],
        }
        wanted = placeholders(document)
        return {**{key: value for key, value in ours.items() if key in wanted}, **more}

    @property
    def databases(self) -> list[str]:
        """The tables' namespaces, sorted."""
        return sorted({identifier.partition(".")[0] for identifier in self.tables})

    def prefix(self, identifier: str) -> str:
        """Where a table's files are, under the bucket."""
        database, _, table = identifier.partition(".")
        return f"{self.warehouse}/{database}.db/{table}"
