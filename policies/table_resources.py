"""The ARNs and names of a lake's tables and files for policies, derived from the declarations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from policies.documents import Below, placeholders
from policies.documents.filling import Value


class Scope(StrEnum):
    """The resources that the policies of roles name. `namespace`: a database with all its tables. `table`: each table.

    With `namespace`, the size of a policy does not depend on the number of tables.
    """

    NAMESPACE = "namespace"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The location of a lake's tables. `warehouse` is the prefix in the bucket, without slashes at its ends.

    `tables` are identifiers, `namespace.table`, including dead-letter tables. A table's files are under
    `<warehouse>/<namespace>.db/<table>`, as Iceberg's `GlueCatalog` places them if a database has no location of its own.
    In the namespaces of `shared`, other roles have tables too, so policies name each table there. Those of `open_namespaces`
    get tables of new topics, so policies name the namespace, whatever the scope is.
    """

    region: str
    account: str
    table_bucket: str
    warehouse: str
    tables: Sequence[str]
    scope: Scope
    shared: frozenset[str] = frozenset()
    open_namespaces: frozenset[str] = frozenset()

    def values(self, document: str, **more: Value) -> dict[str, Value]:
        """Return the values that `fill(document, …)` needs: those of this lake and of `more` that it has."""
        named = list(self._named())
        own: dict[str, Value] = {
            "region": self.region,
            "account": self.account,
            "table_bucket": self.table_bucket,
            "tables": [Below(name) if is_namespace else name.replace(".", "/") for name, is_namespace in named],
            "table_prefixes": [
                Below(self._database_prefix(name)) if is_namespace else self.prefix(name)
                for name, is_namespace in named
            ],
            "databases": self.databases,
            "open_databases": sorted(self.open_namespaces),
            "database_prefixes": [self._database_prefix(database) for database in self.databases],
        }
        wanted = placeholders(document)
        return {key: value for key, value in {**own, **more}.items() if key in wanted}

    @property
    def databases(self) -> list[str]:
        """The tables' namespaces, sorted."""
        return sorted({_database(identifier) for identifier in self.tables} | self.open_namespaces)

    def prefix(self, identifier: str) -> str:
        """Return the prefix of a table's files in the bucket."""
        return f"{self._database_prefix(_database(identifier))}/{identifier.partition('.')[2]}"

    def _database_prefix(self, database: str) -> str:
        return f"{self.warehouse}/{database}.db"

    def _named(self) -> Iterator[tuple[str, bool]]:
        """Yield what policies name: namespaces, with true, and tables, with false."""
        complete = {each for each in self.databases if self.scope is Scope.NAMESPACE and each not in self.shared}
        complete |= self.open_namespaces
        yield from ((database, True) for database in sorted(complete))
        yield from ((identifier, False) for identifier in self.tables if _database(identifier) not in complete)


def _database(identifier: str) -> str:
    return identifier.partition(".")[0]
