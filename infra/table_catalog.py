"""The Glue databases that tables are in, one a namespace."""

from __future__ import annotations

from collections.abc import Iterable

from infra.protection import Protection
from infra.tf import Construct, GlueCatalogDatabase


class TableCatalog(Construct):
    """Databases without a location of their own: Iceberg then puts a table under `<warehouse>/<database>.db/<table>`,
    which is what the jobs' rights are written for. Tables are the jobs' to make, not Terraform's."""

    def __init__(self, scope: Construct, name: str, *, namespaces: Iterable[str], protection: Protection) -> None:
        super().__init__(scope, name)
        self.namespaces = tuple(sorted(set(namespaces)))
        for namespace in self.namespaces:
            GlueCatalogDatabase(self, namespace, name=namespace, lifecycle=protection.lifecycle)
