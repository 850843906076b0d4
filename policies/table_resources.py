"""Places: the names of a lake's tables and files as policies need them, made in one place from what is declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.documents import placeholders
from policies.documents.filling import Value


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
