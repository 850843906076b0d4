"""A pipeline's two tables as the ingest leaves them, made by PyIceberg in milliseconds, and ways to spoil them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable

from frazil.audit.verification import Verification
from frazil.audit.verify import verify
from frazil.dead_letters.rejected_rows import COLUMNS as DEAD_LETTER_COLUMNS
from frazil.declaration import Pipeline, Table, Topic
from frazil.declaration.options import MetadataColumns
from frazil.lake import layout
from frazil.lake.commit.request import CommitRequest
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts, Totals
from frazil.lake.read.stored_tables import Lake
from frazil.schemas.iceberg import schema_json
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.support.documents import environment_in

Place = tuple[int, int]
AT = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Landed:
    """A pipeline that has landed batches. Partitions go from offset 0, unless `begin` says otherwise.

    `key` are the columns that identify a row of the table; an append table has none.
    """

    key: tuple[str, ...] = ()

    def __init__(
        self,
        folder: Path,
        *,
        topic: str = "orders",
        partitions: int = 2,
        begin: Mapping[int, int] | None = None,
        metadata_columns: MetadataColumns = MetadataColumns.FLAT,
        value_format: str = "avro",
        full: tuple[str, ...] = ("topic", "partition", "offset"),
    ) -> None:
        (folder / "warehouse").mkdir()
        self.environment = environment_in(folder, "test")
        self.pipeline = Pipeline(
            topic=Topic(topic, value=value_format),
            table=Table("shop.orders", metadata_columns=metadata_columns),
            name="orders",
        )
        self.topic_id = "T1"
        self.decided: dict[str, int] = {}
        """The number of each table's newest decision, by its uuid."""
        self.held = dict(begin or dict.fromkeys(range(partitions), 0))
        self.totals: Totals | None = Totals()
        self.catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
        self.catalog.create_namespace("shop")
        self.struct = metadata_columns is MetadataColumns.STRUCT
        row = Struct((Field("order_id", Primitive(Kind.LONG)), *metadata_fields(struct=self.struct)))
        prefix = "_kafka." if self.struct else "_kafka_"
        self._create(self.pipeline.table.identifier, row, tuple(f"{prefix}{name}" for name in full))
        self._create(self.pipeline.table.dead_letters, DEAD_LETTER_COLUMNS, full)
        self.commit({}, Counts(), {})

    # ── What the ingest does ────────────────────────────────────────────────────────────────────
    def land(
        self,
        end: Mapping[int, int],
        *,
        rejected: Mapping[Place, bytes | None] | Collection[Place] = (),
        skipped: Collection[Place] = (),
        gaps: Collection[Place] = (),
        finish: bool = True,
        per_file: int = 1,
        reason: str = "too_short",
    ) -> None:
        """Land one batch up to `end`; `per_file` partitions share a file. Without `finish`, the dead letters stay decided."""
        places = [(p, o) for p, upto in end.items() for o in range(self.held.get(p, 0), upto)]
        gone = {*rejected, *skipped, *gaps}
        written = [place for place in places if place not in gone]
        values = rejected if isinstance(rejected, Mapping) else dict.fromkeys(rejected, b"\x00bad")
        counts = Counts(
            read=len(places) - len(gaps),
            written=len(written),
            rejected={reason: len(rejected)} if rejected else {},
            skipped={"tombstone": len(skipped)} if skipped else {},
            skipped_at=_by_partition(skipped),
            gaps=_by_partition(gaps),
        )
        partitions = sorted(end)
        groups = [set(partitions[i : i + per_file]) for i in range(0, len(partitions), per_file)]
        files = [self.files([p for p in written if p[0] in group]) for group in groups]
        self.commit(end, counts, values, [f for some in files for f in some], finish=finish, reason=reason)

    def commit(
        self,
        end: Mapping[int, int],
        counts: Counts,
        rejected: Mapping[Place, bytes | None],
        files: Iterable[DataFile] = (),
        *,
        finish: bool = True,
        reason: str = "too_short",
        accepted: str | None = None,
        topic_id: str | None = None,
    ) -> None:
        """Commit files as `lake/commit/commit_rows_and_offsets.py` does, and their dead letters as `lake/commit/dead_letters/decide.py` does."""
        start = Offsets(self.pipeline.topic.name, self.topic_id, dict(self.held))
        self.topic_id = topic_id or self.topic_id
        self.held = {**({} if topic_id else self.held), **end}
        after = Offsets(self.pipeline.topic.name, self.topic_id, dict(sorted(self.held.items())))
        start = Offsets(
            self.pipeline.topic.name,
            start.topic_id,
            {p: start.at.get(p, 0) for p in ({*start.at} if topic_id else self.held)},
        )
        batch = CommitRequest(
            pipeline="orders",
            run="run",
            version="test",
            start=start,
            end=after,
            committed=None,
            topic_id=self.topic_id,
            counts=counts,
            accepted=accepted,
        )
        uuid = str(self.table.metadata.table_uuid)
        summary = batch.summary(uuid)
        if self.totals is not None:
            self.totals = self.totals.after(start, after, counts)
            summary[ledger.TOTALS] = str(self.totals)
            summary[ledger.CLOSED_TOPICS] = self.totals.closed_topics or "[]"
        dead = self.dead_files(rejected, reason) if rejected else []
        self.decided[uuid] = self.decided.get(uuid, 0) + bool(dead)
        summary[ledger.DECISION] = str(self.decided[uuid])
        if dead:
            summary[ledger.SIDE] = f"{self.table.location()}/metadata/frazil-side-{summary[ledger.COMMIT_ID]}.json"
            if not finish:
                self._decide(summary[ledger.SIDE], dead)
        self.append(self.pipeline.table.identifier, files, summary)
        if dead and finish:
            drop = (ledger.TOTALS, ledger.SIDE)
            side = {key: value for key, value in summary.items() if key not in drop} | {ledger.TABLE: uuid}
            self.append(self.pipeline.table.dead_letters, dead, side)

    def append(
        self, identifier: str, files: Iterable[DataFile], summary: Mapping[str, str], *, tag: bool = True
    ) -> None:
        """One snapshot with these files; it takes the tag, as the pipeline's own do."""
        table = self.catalog.load_table(identifier)
        with (
            table.transaction() as transaction,
            transaction.update_snapshot(snapshot_properties=dict(summary)).fast_append() as update,
        ):
            for file in files:
                update.append_data_file(file)
        if tag:
            self.mark(identifier)

    def mark(self, identifier: str) -> None:
        """Move the pipeline's tag to the head."""
        table = self.catalog.load_table(identifier)
        head = table.current_snapshot()
        assert head is not None
        table.manage_snapshots().create_tag(head.snapshot_id, ledger.tag("orders")).commit()

    def expire(self, *, keep: int, identifier: str = "") -> None:
        """Expire all but the newest snapshots, as the ingest does now and then."""
        table = self.catalog.load_table(identifier or self.pipeline.table.identifier)
        old = sorted(table.metadata.snapshots, key=lambda s: s.sequence_number or 0)[:-keep]
        table.maintenance.expire_snapshots().by_ids([s.snapshot_id for s in old]).commit()

    def edit_metadata(self, edit: Callable[[dict[str, Any]], object]) -> None:
        """Edit the table's metadata file by hand."""
        file = path(self.table.metadata_location)
        packed = file.read_bytes()
        is_packed = packed[:2] == b"\x1f\x8b"
        document = json.loads(gzip.decompress(packed) if is_packed else packed)
        edit(document)
        text = json.dumps(document).encode()
        file.write_bytes(gzip.compress(text) if is_packed else text)

    # ── What is seen ────────────────────────────────────────────────────────────────────────────
    @property
    def lake(self) -> Lake:
        """The lake as the reader sees it."""
        return Lake(self.environment, lambda secret: "")

    @property
    def table(self) -> IcebergTable:
        """The table."""
        return self.catalog.load_table(self.pipeline.table.identifier)

    @property
    def dead(self) -> IcebergTable:
        """The dead-letter table."""
        return self.catalog.load_table(self.pipeline.table.dead_letters)

    def verify(self, *, deep: bool = False) -> Verification:
        """Verify, without waiting for a driver that is not there."""
        return verify(self.pipeline, self.lake, deep=deep, wait=lambda seconds: None)

    def paths(self, table: IcebergTable | None = None) -> list[Path]:
        """The data files of the table, in the order of their names' making: oldest snapshot first."""
        tasks = (table or self.table).scan().plan_files()
        return sorted((path(t.file.file_path) for t in tasks), key=lambda p: p.stat().st_mtime_ns)

    # ── Files ───────────────────────────────────────────────────────────────────────────────────
    def files(self, places: Iterable[Place], topic: str | None = None) -> list[DataFile]:
        """Rows of these records as one data file that is in no snapshot."""
        rows = [self.row(p, o, topic or self.pipeline.topic.name) for p, o in places]
        return self.written(self.table, rows) if rows else []

    def row(self, partition: int | None, offset: int | None, topic: str = "orders") -> dict[str, Any]:
        """One row."""
        facts = {"topic": topic, "partition": partition, "offset": offset, "timestamp": AT, "key": b"k"}
        order = {"order_id": offset, "_ingested_at": AT}
        return {**order, "_kafka": facts} if self.struct else {**order, **{f"_kafka_{k}": v for k, v in facts.items()}}

    def dead_files(self, values: Mapping[Place, bytes | None], reason: str = "too_short") -> list[DataFile]:
        """Dead letters of these records as one data file."""
        rows = [
            {
                "reason": reason,
                "stage": "decode",
                "pipeline": "orders",
                "run": "run",
                "topic": self.pipeline.topic.name,
                "partition": p,
                "offset": o,
                "timestamp": AT,
                "headers": [{"key": "trace", "value": b"\x01"}],
                "key": b"k",
                "value": value,
                "rejected_at": AT,
            }
            for (p, o), value in values.items()
        ]
        return self.written(self.dead, rows)

    def written(self, table: IcebergTable, rows: list[dict[str, Any]]) -> list[DataFile]:
        """Rows as data files with metrics."""
        schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        return list(_dataframe_to_data_files(table.metadata, pa.Table.from_pylist(rows, schema), table.io))

    def _create(self, identifier: str, row: Struct, full: Iterable[str]) -> None:
        metrics = "write.metadata.metrics.column."
        declared = {k: v for k, v in layout.declared_properties(self.pipeline).items() if not k.startswith(metrics)}
        properties = {**declared, **{f"{metrics}{name}": "full" for name in full}}
        self.catalog.create_table(
            identifier, Schema.model_validate(schema_json(row, key=self.key)), properties=properties
        )

    def _decide(self, location: str, files: Iterable[DataFile]) -> None:
        named = [
            {
                "spec-id": 0,
                "file-path": file.file_path,
                "file-format": "parquet",
                "record-count": file.record_count,
                "file-size-in-bytes": file.file_size_in_bytes,
            }
            for file in files
        ]
        document = {"version": 1, "tables": [{"table": self.pipeline.table.dead_letters, "files": named}]}
        path(location).write_text(json.dumps(document))


def path(location: str) -> Path:
    """A location of the local file system as a path."""
    return Path(location.removeprefix("file://").removeprefix("file:"))


def rewrite(file: Path, keep: Any) -> None:
    """Write a data file anew under its name, with those of its rows that `keep` is true for."""
    table = pq.read_table(file)
    mask = [bool(keep(row)) for row in table.to_pylist()]
    pq.write_table(table.filter(pa.array(mask)), file)


def _by_partition(places: Iterable[Place]) -> dict[int, int]:
    found: dict[int, int] = {}
    for partition, _ in places:
        found[partition] = found.get(partition, 0) + 1
    return found
