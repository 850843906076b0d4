"""The lake without a JVM, through PyIceberg: it reads tables and their snapshots, and never writes.

PyIceberg and Arrow cost most of a second to import, so they are imported when a table is first asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.clients.aws_session import ATTEMPTS
from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.environment import Environment
from frazil.errors import CatalogUnavailable
from frazil.lake.catalogs import Resolve, pyiceberg_properties
from frazil.lake.layout import Layout
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import Find, walk
from frazil.lake.read.catalog_errors import damage, translated_errors
from frazil.schemas.iceberg import FIELD_IDS, row_type
from frazil.schemas.types import Struct

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot


_RESTORE = "Restore it from the bucket's versions, or register an older metadata file of the table"
_FILES = "frazil.lake.read.variant_metadata.VariantFileIO"
"""PyIceberg imports its access to files by name."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of a table, as its metadata describe it; `manifest_list` is the file that lists its manifests."""

    id: int
    parent_id: int | None
    sequence_number: int
    committed_at: datetime
    operation: str
    summary: Mapping[str, str]
    manifest_list: str

    @property
    def entry(self) -> Entry:
        """The snapshot's summary as an entry of the ledger; without offsets if another writer made it."""
        return Entry.of(self.id, self.summary, round(self.committed_at.timestamp() * 1000))

    def belongs_to(self, pipeline: str) -> bool:
        """Return whether a pipeline's commit made it."""
        return ledger.END in self.summary and self.summary.get(ledger.PIPELINE) == pipeline


class StoredTable:
    """A table as it was when it was loaded: later commits do not show."""

    def __init__(self, table: IcebergTable, identifier: str) -> None:
        self.iceberg, self.identifier = table, identifier

    @property
    def uuid(self) -> str:
        """The table's id, another one after it was dropped and created again."""
        return str(self.iceberg.metadata.table_uuid)

    @property
    def version(self) -> str:
        """The metadata file that it was loaded from: another one after each commit."""
        return self.iceberg.metadata_location

    @property
    def location(self) -> str:
        """The folder under which the table keeps its files."""
        return self.iceberg.location()

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return dict(self.iceberg.properties)

    @property
    def layout(self) -> Layout:
        """The table's layout."""
        from pyiceberg.typedef import IcebergBaseModel

        from frazil.lake.read.variant_metadata import restored

        names = {"table_uuid", "format_version", "schemas", "current_schema_id", "partition_specs", "default_spec_id"}
        names |= {"sort_orders", "default_sort_order_id", "properties"}
        # `TableMetadataV3` refuses to write itself as JSON: call the method that it overrides.
        found = json.loads(IcebergBaseModel.model_dump_json(self.iceberg.metadata, include=names, by_alias=True))
        schemas, refs = [restored(schema) for schema in found["schemas"]], self.iceberg.metadata.refs
        return Layout.of({**found, "schemas": schemas, "refs": refs})

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The table's current schema as Iceberg's JSON."""
        from frazil.lake.read.variant_metadata import restored

        return dict(restored(json.loads(self.iceberg.schema().model_dump_json())))

    @cached_property
    def columns(self) -> Struct:
        """The table's columns as a row type."""
        return row_type(self.schema, self.iceberg.properties.get(FIELD_IDS))

    @cached_property
    def snapshots(self) -> Mapping[int, Snapshot]:
        """All snapshots that the table still has, by id, oldest first."""
        found = sorted(map(_snapshot, self.iceberg.metadata.snapshots), key=lambda s: s.sequence_number)
        return {snapshot.id: snapshot for snapshot in found}

    @property
    def head(self) -> Snapshot | None:
        """The current snapshot; None for a table that never had rows."""
        return self.snapshots.get(self.iceberg.metadata.current_snapshot_id or -1)

    def tagged(self, pipeline: str) -> Snapshot | None:
        """Return the snapshot that a pipeline's tag marks: its newest commit. None without such a tag."""
        ref = self.iceberg.metadata.refs.get(ledger.tag(pipeline))
        return self.snapshots.get(ref.snapshot_id) if ref is not None else None

    def newest(self, pipeline: str) -> Snapshot | None:
        """Return a pipeline's newest commit by the rule of `entries.entry`; None if there is none."""
        tagged = self.tagged(pipeline)
        if tagged is None or not tagged.belongs_to(pipeline):
            return next((s for s in reversed([*self.snapshots.values()]) if s.belongs_to(pipeline)), None)
        later: Snapshot | None = None
        for snapshot in self.ancestors(self.head):
            if snapshot.id == tagged.id:
                return later or tagged
            later = later or (snapshot if snapshot.belongs_to(pipeline) else None)
        return tagged

    def ancestors(self, snapshot: Snapshot | None) -> Iterator[Snapshot]:
        """Yield a snapshot and its ancestors, newest first, as far as the table still has them."""
        while snapshot is not None:
            yield snapshot
            snapshot = self.snapshots.get(snapshot.parent_id) if snapshot.parent_id is not None else None

    def commits(self, pipeline: str) -> tuple[Snapshot, ...]:
        """Return a pipeline's commits among the head and its ancestors, newest first, as far as the table still has them.

        Expiry may have removed snapshots between the head and the tagged one, which it keeps; that one is listed all the
        same.
        """
        found = tuple(s for s in self.ancestors(self.head) if s.belongs_to(pipeline))
        if found or not self.follows_tag(pipeline):
            return found
        return tuple(s for s in self.ancestors(self.newest(pipeline)) if s.belongs_to(pipeline))

    def follows_tag(self, pipeline: str) -> bool:
        """Return whether the head is the newest commit or descends from it; True for a table without one.

        Where expiry removed the snapshots in between, older metadata files name them. If none does, a rollback cannot be
        excluded, and the answer is False. Raises `CatalogUnavailable` if such a file cannot be read.
        """
        tagged = self.newest(pipeline)
        if tagged is None:
            return True
        with translated_errors(f"table {self.identifier}"):
            for snapshot in lineage(self.iceberg):
                if snapshot.snapshot_id == tagged.id:
                    return True
                if (snapshot.sequence_number or 0) <= tagged.sequence_number:
                    return False
        return False

    def read_text(self, location: str) -> str:
        """Return the text of a small file next to the table's own, such as a decision. Raises `FileNotFoundError`."""
        with translated_errors(location), self.iceberg.io.new_input(location).open() as stream:
            return stream.read().decode()


def lineage(table: IcebergTable) -> Iterator[IcebergSnapshot]:
    """Yield the head and its ancestors, newest first, also expired ones that older metadata files name.

    Raises what the table's `FileIO` raises if such a file exists and cannot be read.
    """
    known: list[Find[IcebergSnapshot]] = [{s.snapshot_id: s for s in table.metadata.snapshots}.get]
    ids = attrgetter("snapshot_id"), attrgetter("parent_snapshot_id")
    yield from walk(table.current_snapshot(), known, _older(table), *ids)


def _older(table: IcebergTable) -> Iterator[Find[IcebergSnapshot]]:
    from pyiceberg.serializers import FromInputFile

    for log in reversed(table.metadata.metadata_log):
        file = table.io.new_input(log.metadata_file)
        if not file.exists():
            return
        yield {snapshot.snapshot_id: snapshot for snapshot in FromInputFile.table_metadata(file).snapshots}.get


class Lake:
    """The tables of an environment's catalog; `resolve` gives the values of secrets."""

    def __init__(self, environment: Environment, resolve: Resolve) -> None:
        self._environment, self.resolve = environment, resolve

    def table(self, identifier: str) -> StoredTable | None:
        """Return the table as it is now; None if there is none. Raises `CatalogUnavailable`."""
        if not self._exists:
            return None
        with translated_errors(f"table {identifier}"):
            from pyiceberg.exceptions import NoSuchTableError

            try:
                return StoredTable(self._catalog.load_table(identifier), identifier)
            except NoSuchTableError:
                return None
            except FileNotFoundError as error:
                what = f"the catalog names a metadata file that does not exist: {error}"
            except damage() as error:
                what = f"the table's metadata file cannot be read: {(str(error).splitlines() or [''])[0]}"
        raise CatalogUnavailable(what, where=f"table {identifier}", do=_RESTORE)

    def tables(self, namespace: str) -> frozenset[str]:
        """Return the identifiers of a namespace's tables; none without the namespace. Raises `CatalogUnavailable`."""
        if not self.has_namespace(namespace):
            return frozenset()
        with translated_errors(f"catalog {self._environment.catalog.name}"):
            return frozenset(".".join(parts) for parts in self._catalog.list_tables(namespace))

    def has_namespace(self, namespace: str) -> bool:
        """Return whether the catalog has a namespace. Raises `CatalogUnavailable`."""
        if not self._exists:
            return False
        with translated_errors(f"catalog {self._environment.catalog.name}"):
            return self._catalog.namespace_exists(namespace)

    @property
    def _exists(self) -> bool:
        """Return whether there is a catalog to ask: connecting to a SQLite file that does not exist would create it."""
        catalog = self._environment.catalog
        return not isinstance(catalog, LocalCatalog) or Path(catalog.path).exists()

    @cached_property
    def _catalog(self) -> Catalog:
        # Not by `load_catalog`, which would mix in what the user's ~/.pyiceberg.yaml says of a catalog of this name.
        properties = {**pyiceberg_properties(self._environment, self.resolve), "py-io-impl": _FILES}
        name = self._environment.catalog.name
        match properties.pop("type"):
            case "sql":
                from pyiceberg.catalog.sql import SqlCatalog

                return SqlCatalog(name, **properties, init_catalog_tables="false")
            case "glue":
                from pyiceberg.catalog.glue import GlueCatalog

                # A number, as botocore compares it. It is 10 without: half a minute until Glue is said to be away.
                retries: Any = ATTEMPTS
                return GlueCatalog(name, **{**properties, "glue.max-retries": retries})
            case _:
                from frazil.lake.read.variant_metadata import VariantRestCatalog

                return VariantRestCatalog(name, **properties)


def _snapshot(snapshot: IcebergSnapshot) -> Snapshot:
    summary = snapshot.summary
    return Snapshot(
        id=snapshot.snapshot_id,
        parent_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number or 0,
        committed_at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
        operation=summary.operation.value if summary else "",
        summary=dict(summary.additional_properties) if summary else {},
        manifest_list=snapshot.manifest_list,
    )
