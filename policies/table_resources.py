"""The ARNs and names of a lake's tables and files for policies, derived from the declarations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.documents import placeholders
from policies.documents.filling import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The location of a lake's tables. `warehouse` is the prefix in the bucket, without slashes at its ends.

    `tables` are identifiers, `namespace.table`, including dead-letter tables. A table's files are under
    `<warehouse>/<namespace>.db/<table>`, as Iceberg's `GlueCatalog` places them if a database has no location of its own.
    """

    region: str
    account: str
    table_bucket: str
    warehouse: str
    tables: Sequence[str]

    def values(self, document: str, **more: Value) -> dict[str, Value]:
        """Return the values that `fill(document, …)` needs: those of this lake that it has placeholders for, and `more`."""
        own: dict[str, Value] = {
            "region": self.region,
            "account": self.account,
            "table_bucket": self.table_bucket,
            "tables": [identifier.replace(".", "/") for identifier in self.tables],
            "table_prefixes": [self.prefix(identifier) for identifier in self.tables],
            "databases": self.databases,
            "database_prefixes": [f"{self.warehouse}/{database}.db" for database in self.databases],
        }
        wanted = placeholders(document)
        return {**{key: value for key, value in own.items() if key in wanted}, **more}

    @property
    def databases(self) -> list[str]:
        """The tables' namespaces, sorted."""
        return sorted({identifier.partition(".")[0] for identifier in self.tables})

    def prefix(self, identifier: str) -> str:
        """Return the prefix of a table's files in the bucket."""
        database, _, table = identifier.partition(".")
        return f"{self.warehouse}/{database}.db/{table}"
