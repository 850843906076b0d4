"""Count all rows and dead letters again, and correct the account: gaps that are rows, and rows that another engine deleted.

The decision, its reason and the numbers are one commit without rows; the ledger's offsets stay as they are. If anyone commits
meanwhile, `Fenced` is raised, and nothing was changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from frazil.audit.accounts.state_rows import read_keys
from frazil.audit.files.count import files_of
from frazil.audit.files.manifests import undecided_commits
from frazil.audit.files.window import Role
from frazil.audit.finding import Flaw
from frazil.audit.verification import Verification
from frazil.audit.verify import place_columns, verify
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.job.context import JobContext
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.request import CommitRequest
from frazil.lake.java_classes import items
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.next_offsets import canonical
from frazil.lake.ledger.totals import Counts
from frazil.lake.read.stored_tables import Lake, Snapshot, StoredTable
from frazil.lake.row_offsets import quoted, quoted_part, snapshot_rows
from frazil.lake.stage import empty_commit
from frazil.recovery.decisions import Acceptance
from frazil.recovery.two_logs import check_is_one_topic

_DIGITS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_TIMES = {"timestampFormat": f"{_DIGITS}XXX", "timestampNTZFormat": _DIGITS}


def recount(pipeline: Pipeline, lake: Lake, reason: str, job: JobContext) -> Acceptance:
    """Take from the ledger's gaps what has a row after all.

    Gaps only become fewer: records that are missing are never explained away. Raises `InvalidInput` if the gaps are right, or if
    anything else is wrong with the pipeline's tables.
    """
    return _Recount(pipeline, lake, reason, job).gaps()


def rows_deleted(pipeline: Pipeline, lake: Lake, reason: str, job: JobContext) -> Acceptance:
    """Count the rows that are missing as deleted, if other engines only deleted rows.

    Raises `InvalidInput` if no row is missing, if anything else is wrong, or if another engine added or changed rows.
    """
    return _Recount(pipeline, lake, reason, job).rows()


@dataclass(frozen=True, slots=True)
class _Recount:
    pipeline: Pipeline
    lake: Lake
    reason: str
    job: JobContext

    def gaps(self) -> Acceptance:
        last = entry(
            self.job.iceberg.load(self.pipeline.table.identifier), self.pipeline.name
        )  # the count is of this entry
        found = verify(self.pipeline, self.lake, keys=True).findings
        others = [str(one) for one in found if one.flaw not in (Flaw.EXCESS, Flaw.MISCOUNTED)]
        if others:
            raise self._refused(f"more is wrong than the number of gaps: {'; '.join(others[:3])}", "Solve that first")
        fewer = {f.partition: f.count for f in found if f.flaw is Flaw.EXCESS and f.partition is not None and f.count}
        if not fewer or last is None or last.end is None:
            raise self._not_happened(ledger.RECOUNT, "no record was counted as a gap and has a row")
        check_is_one_topic(self.pipeline, last)
        # A row that another engine deleted may have been put back: then it is no gap that is too many.
        now = last.totals.at if last.totals is not None else {}
        back = {p: m for p, n in fewer.items() if (m := min(n, now[p].deleted if p in now else 0))}
        gaps = {p: back.get(p, 0) - n for p, n in fewer.items()}
        if any(now[p].gaps + n < 0 for p, n in gaps.items() if p in now):
            raise self._refused(
                "the gaps were counted before the topic was re-created or truncated: that account is closed",
                "Land the topic into a new table",
            )
        counts = Counts(gaps=gaps, deleted_at={p: -n for p, n in back.items()})
        return self._committed(last, ledger.RECOUNT, {"gaps": {str(p): -n for p, n in fewer.items()}}, counts)

    def rows(self) -> Acceptance:
        java = self.job.iceberg.load(self.pipeline.table.identifier)  # before the count, which is of this head
        last, head = entry(java, self.pipeline.name), java.currentSnapshot()
        found = verify(self.pipeline, self.lake, keys=True)
        table = self.lake.table(self.pipeline.table.identifier)
        if last is None or last.end is None or head is None or table is None:
            raise self._refused("the table has no ledger", "Run the pipeline first")
        check_is_one_topic(self.pipeline, last)
        deleted, keys = self._missing(found, last.keys)
        rows = sum(deleted.values()) if last.keys is None else last.keys.rows - (keys or last.keys).rows
        self._check_evidence(table, last, keys, rows)
        numbers = {"rows": rows, **({"deleted": {str(p): n for p, n in deleted.items()}} if deleted else {})}
        counts, on_head = Counts(deleted_at=deleted), int(head.snapshotId())
        return replace(
            self._committed(last, ledger.ROWS_DELETED, numbers, counts, keys=keys, on_head=on_head), rows=rows
        )

    def _committed(
        self, last: Entry, event: str, numbers: Mapping[str, Any], counts: Counts, **more: Any
    ) -> Acceptance:
        """Commit a decision on the entry `last`, with its offsets."""
        assert last.end is not None
        at = datetime.fromtimestamp(self.job.clock(), UTC).isoformat()
        request = CommitRequest(
            pipeline=self.pipeline.name,
            run=self.job.run,
            version=self.job.version,
            start=last.end,
            end=last.end,
            committed=last.end,
            topic_id=last.end.topic_id,
            schema_ids=last.schema_ids,
            valid_through=last.valid_through,
            counts=counts,
            accepted=canonical({"event": event, "reason": self.reason, "at": at, **numbers}),
            on=last.snapshot_id,
            **more,
        )
        staged = empty_commit(self.job.iceberg, self.pipeline.table.identifier, at=self.job.clock())
        self.job.failpoint("accept.decided")
        commit(self.job, staged, request)
        return Acceptance(event, last.end, last.end)

    def _missing(self, found: Verification, keys: KeyAccount | None) -> tuple[dict[int, int], KeyAccount | None]:
        """Return the rows that are missing by partition, or the account of an upsert table without them."""
        if not found.findings:
            raise self._not_happened(ledger.ROWS_DELETED, "no row is missing")
        others = [str(one) for one in found.findings if one.flaw is not Flaw.MISSING]
        live = found.live
        if keys is not None and not others and (live is None or live.hash is None or live.rows >= keys.rows):
            # No row of an upsert table shows their partitions.
            others = [f"dead letters are missing: {found.findings[0]}"]
        elif keys is not None and not others and len(found.findings) > 1:
            others = [str(one) for one in found.findings]
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
        named, java = quoted(f"{self.job.iceberg.name}.{table.identifier}"), self.job.iceberg.load(table.identifier)

        def rows(snapshot: Snapshot) -> tuple[DataFrame, dict[int, str]]:
            found, schema = snapshot_rows(self.job.iceberg, named, java, snapshot.id)
            return found, {int(of.fieldId()): str(of.name()) for of in items(schema.columns())}

        later, names = rows(after)
        if before is None:
            return later.count()
        earlier, former = rows(before)

        def hashed(of: DataFrame, named: Mapping[int, str]) -> DataFrame:
            present = {number: name for number, name in named.items() if name in of.columns}
            columns = [
                filled(of[quoted_part(name)], of.schema[name].dataType).alias(str(number))
                for number, name in sorted(present.items())
                if number in names  # of a column that was dropped, no reader sees a value
            ]
            return of.select(F.xxhash64(F.to_json(F.struct(*columns), _TIMES)))

        return hashed(later, names).exceptAll(hashed(earlier, former)).count()

    def _gone(self, table: StoredTable, before: Snapshot, after: Snapshot) -> tuple[int, int]:
        """Return how many rows of an upsert table a commit deleted, and the sum of their keys' hashes."""
        schema = table.iceberg.schema()
        key = [schema.find_field(number).name for number in sorted(schema.identifier_field_ids)]
        read = []
        for snapshot in (before, after):
            source, problems = files_of(Role.TABLE, table, snapshot, place_columns(self.pipeline))
            read.append(read_keys(source, key, problems))
            if problems:
                raise self._refused(f"snapshot {snapshot.id} cannot be read: {problems[0]}", "Restore its files")
        earlier, later = read
        return earlier.rows - later.rows, (earlier.hash or 0) - (later.hash or 0)

    def _not_happened(self, event: str, why: str) -> InvalidInput:
        do = f"`frazil verify {self.pipeline.name} --deep` says what is wrong, if anything is"
        return self._refused(f"there is nothing to accept: {event} has not happened: {why}", do)

    def _refused(self, what: str, do: str) -> InvalidInput:
        return InvalidInput(what, where=f"table {self.pipeline.table.identifier}", do=do)


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
