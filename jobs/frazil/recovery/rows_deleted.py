"""Take rows that another engine deleted as deleted: a term of the account, so that it holds again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from frazil.audit.accounts.state_rows import read_keys
from frazil.audit.files.count import files_of
from frazil.audit.files.manifests import undecided_commits
from frazil.audit.files.window import Role
from frazil.audit.finding import Flaw
from frazil.audit.verification import Verification
from frazil.audit.verify import FLAT, STRUCT, verify
from frazil.declaration import Pipeline
from frazil.declaration.options import MetadataColumns
from frazil.errors import InvalidInput
from frazil.job.context import JobContext
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.request import CommitRequest
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.next_offsets import Offsets, canonical
from frazil.lake.ledger.totals import Counts
from frazil.lake.read.stored_tables import Lake, Snapshot, StoredTable
from frazil.lake.row_offsets import quoted
from frazil.lake.stage import empty_commit

_DIGITS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_TIMES = {"timestampFormat": f"{_DIGITS}XXX", "timestampNTZFormat": _DIGITS}


@dataclass(frozen=True, slots=True)
class RowsDeleted:
    """The accepted rows: their number, and by partition where rows say theirs. The ledger's offsets stay as they are."""

    before: Offsets
    after: Offsets
    rows: int
    deleted: Mapping[int, int]
    lost: Mapping[int, int] = field(default_factory=dict)


def rows_deleted(pipeline: Pipeline, lake: Lake, reason: str, job: JobContext) -> RowsDeleted:
    """Read all keys, and count the rows that are missing as deleted, if other engines only deleted rows.

    The decision, its reason and the numbers are one commit without rows. Offsets stay as they are. Raises `InvalidInput` if no row
    is missing, if anything else is wrong, or if another engine added or changed rows; `Fenced` if anyone commits meanwhile: then
    nothing was changed.
    """
    return _Deciding(pipeline, lake, reason, job).decide()


@dataclass(frozen=True, slots=True)
class _Deciding:
    pipeline: Pipeline
    lake: Lake
    reason: str
    job: JobContext

    def decide(self) -> RowsDeleted:
        identifier, name = self.pipeline.table.identifier, self.pipeline.name
        java = self.job.iceberg.load(identifier)  # before the count, which is of this head
        last, head = entry(java, name), java.currentSnapshot()
        found = verify(self.pipeline, self.lake, keys=True)
        table = self.lake.table(identifier)
        if last is None or last.end is None or head is None or table is None:
            raise self._refused("the table has no ledger", "Run the pipeline first")
        deleted, keys = self._missing(found, last.keys)
        rows = sum(deleted.values()) if last.keys is None else last.keys.rows - (keys or last.keys).rows
        self._check_evidence(table, last, keys, rows)
        at = datetime.fromtimestamp(self.job.clock(), UTC).isoformat()
        by_partition = {"deleted": {str(p): n for p, n in deleted.items()}} if deleted else {}
        decision = {"event": ledger.ROWS_DELETED, "reason": self.reason, "at": at, "rows": rows, **by_partition}
        batch = CommitRequest(
            pipeline=name,
            run=self.job.run,
            version=self.job.version,
            start=last.end,
            end=last.end,
            committed=last.end,
            topic_id=last.end.topic_id,
            schema_ids=last.schema_ids,
            valid_through=last.valid_through,
            counts=Counts(deleted_at=deleted),
            accepted=canonical(decision),
            on=last.snapshot_id,
            on_head=int(head.snapshotId()),
            keys=keys,
        )
        staged = empty_commit(self.job.iceberg, identifier, at=self.job.clock())
        self.job.failpoint("accept.decided")
        commit(self.job, staged, batch)
        return RowsDeleted(last.end, last.end, rows, deleted)

    def _missing(self, found: Verification, keys: KeyAccount | None) -> tuple[dict[int, int], KeyAccount | None]:
        """Return the rows that are missing by partition, or the account of an upsert table without them."""
        do = f"`frazil verify {self.pipeline.name} --deep` says what is wrong, if anything is"
        if not found.findings:
            raise self._refused(
                f"there is nothing to accept: {ledger.ROWS_DELETED} has not happened: no row is missing", do
            )
        others = [str(one) for one in found.findings if one.flaw is not Flaw.MISSING]
        live = found.live
        if keys is not None and not others and (live is None or live.hash is None or live.rows >= keys.rows):
            others = [
                f"dead letters are missing: {found.findings[0]}"
            ]  # whose partitions no row of an upsert table shows
        if keys is not None and len(found.findings) > 1:
            others = others or [str(one) for one in found.findings]
        if others:
            raise self._refused(
                f"{ledger.ROWS_DELETED} is for missing rows only: {'; '.join(others[:3])}", "Solve that first"
            )
        if keys is None:
            return {f.partition: f.count for f in found.findings if f.partition is not None and f.count}, None
        assert live is not None
        assert live.hash is not None
        gone = keys.rows - live.rows
        return {}, replace(keys.unchanged, rows=live.rows, hash=live.hash, removed=keys.removed + gone)

    def _check_evidence(self, table: StoredTable, last: Entry, keys: KeyAccount | None, rows: int) -> None:
        """Compare the rows before and after each commit of another engine since the last such decision, as far as they are kept.

        In an upsert table, what these commits deleted must be what is missing. In other tables the offsets of rows say that.
        """
        side = self.lake.table(self.pipeline.table.dead_letters)
        commits = [(one, foreign) for one in (table, side) if one is not None for foreign in undecided_commits(one)]
        gone = total = 0
        is_known = bool(commits)
        for stored, foreign in commits:
            before = stored.snapshots.get(foreign.parent_id or -1)
            if before is None and foreign.parent_id is not None:
                is_known = False
                continue
            added = self._added(stored, before, foreign)
            if added:
                raise self._refused(
                    f"snapshot {foreign.id} of table {stored.identifier}, of another engine, added or changed {added} rows: "
                    f"{ledger.ROWS_DELETED} is for deleted rows only",
                    "Undo that commit, or land the topic into a new table",
                )
            if keys is not None and before is not None and stored is table:
                gone, total = (a + b for a, b in zip((gone, total), self._gone(table, before, foreign), strict=True))
        if keys is not None:
            assert last.keys is not None
            is_known = is_known and (gone, total % 2**64) == (rows, (last.keys.hash - keys.hash) % 2**64)
        elif not is_known:  # rows say themselves which they are: a commit that has expired may have deleted them
            oldest = [*table.ancestors(table.head)][-1]
            is_known = bool(commits) or oldest.parent_id is not None or oldest.sequence_number > 1
        if not is_known:
            raise self._refused(
                f"{rows} rows are missing, and no commits of other engines that the table keeps deleted exactly these",
                "If snapshots have expired, or files were damaged, land the topic into a new table",
            )

    def _added(self, table: StoredTable, before: Snapshot | None, after: Snapshot) -> int:
        """Return how many rows of a snapshot are not rows of the one before it, by a hash of all their columns."""
        named = quoted(f"{self.job.iceberg.name}.{table.identifier}")

        def rows(snapshot: Snapshot) -> DataFrame:
            return self.job.spark.read.option("versionAsOf", str(snapshot.id)).table(named)

        later = rows(after)
        if before is None:
            return later.count()
        earlier = rows(before)
        names, former = _names(table, after), _names(table, before)

        def hashed(of: DataFrame, named: Mapping[int, str]) -> DataFrame:
            present = {number: name for number, name in named.items() if name in of.columns}
            columns = [
                filled(of[quoted_column(name)], of.schema[name].dataType).alias(str(number))
                for number, name in sorted(present.items())
                if number in names  # of a column that was dropped, no reader sees a value
            ]
            return of.select(F.xxhash64(F.to_json(F.struct(*columns), _TIMES)))

        return hashed(later, names).exceptAll(hashed(earlier, former)).count()

    def _gone(self, table: StoredTable, before: Snapshot, after: Snapshot) -> tuple[int, int]:
        """Return how many rows of an upsert table a commit deleted, and the sum of their keys' hashes."""
        columns = STRUCT if self.pipeline.table.metadata_columns is MetadataColumns.STRUCT else FLAT
        schema = table.iceberg.schema()
        key = [schema.find_field(number).name for number in sorted(schema.identifier_field_ids)]
        read = []
        for snapshot in (before, after):
            source, problems = files_of(Role.TABLE, table, snapshot, columns)
            read.append(read_keys(source, key, problems))
            if problems:
                raise self._refused(f"snapshot {snapshot.id} cannot be read: {problems[0]}", "Restore its files")
        earlier, later = read
        return earlier.rows - later.rows, (earlier.hash or 0) - (later.hash or 0)

    def _refused(self, what: str, do: str) -> InvalidInput:
        return InvalidInput(what, where=f"table {self.pipeline.table.identifier}", do=do)


def _names(table: StoredTable, snapshot: Snapshot) -> dict[int, str]:
    """Return the names of a snapshot's columns by their ids: another engine may have renamed some since."""
    found = table.iceberg.snapshot_by_id(snapshot.id)
    schemas = table.iceberg.schemas()
    schema = schemas.get(found.schema_id) if found is not None and found.schema_id is not None else None
    return {field.field_id: field.name for field in (schema or table.iceberg.schema()).fields}


def filled(value: Column, of: DataType) -> Column:
    """Return a value to compare, structs as JSON text. Empty lists, maps and structs are null, as PyIceberg writes null ones."""
    match of:
        case StructType():
            inner = F.struct(*(filled(value.getField(one.name), one.dataType).alias(one.name) for one in of))
            # Each value is named once: an expression that is named twice at each level doubles with each.
            return F.get(F.filter(F.array(F.to_json(inner, _TIMES)), lambda text: text != "{}"), F.lit(0))
        case ArrayType():
            return F.when(F.size(value) > 0, F.transform(value, lambda one: filled(one, of.elementType)))
        case MapType():
            return F.when(F.size(value) > 0, F.transform_values(value, lambda _, one: filled(one, of.valueType)))
    return value


def quoted_column(name: str) -> str:
    """Return the name of a column in backticks."""
    return f"`{name.replace('`', '``')}`"
