"""Errors that stop a pipeline until an operator decides, with one template for each cause."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

from frazil.errors.failures import DecisionRequired, quoted


def of_reasons(counts: Mapping[str, int]) -> str:
    """Return the numbers of records by reason, the most frequent first."""
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(counts.items(), key=lambda pair: -pair[1]))


class RejectedRecords(DecisionRequired):
    """Error mode `suspend` found records that cannot be landed."""

    @classmethod
    def of(
        cls,
        pipeline: str,
        topic: str,
        *,
        counts: Mapping[str, int],
        first: tuple[int, int, str],
        detail: str = "",
        records: Mapping[int, Sequence[Sequence[int]]] = MappingProxyType({}),
        until: Mapping[int, int] = MappingProxyType({}),
        topic_id: str = "",
    ) -> Self:
        """Return the error; `counts` are by reason, `first` is a partition, an offset and the reason there, `detail` more of that.

        `records` are the places of all of them, as ranges of offsets by partition, in the offsets before `until`; of very many only
        the first ones.
        """
        partition, offset, reason = first
        number, named = sum(counts.values()), sum(b - a for ranges in records.values() for a, b in ranges)
        what = (
            f"cannot land {of_reasons(counts)}: record partition {partition} offset {offset}: "
            f"{', '.join(filter(None, (reason, detail)))}; "
            "nothing of the batch was committed"
        )
        do = 'Declare on_error="dead_letter" to keep such records as dead letters from now on'
        return cls(
            what,
            pipeline=pipeline,
            events=("rejected-records",),
            do=do,
            hint=f"it counts for the first {named:,} of them" if 0 < named < number else "",
            topic=topic,
            record=(topic, partition, offset),
            records=records,
            until=until,
            topic_id=topic_id,
        )


class TooManyRejected(DecisionRequired):
    """More of a batch is rejected than the pipeline allows; nothing of it was committed."""

    @classmethod
    def of(
        cls, pipeline: str, *, offsets: str, read: int, counts: Mapping[str, int], most_percent: int, is_unframed: bool
    ) -> Self:
        """Return the error; `counts` are by reason. `is_unframed`: a reason is that records have no schema id."""
        reasons = of_reasons(counts)
        unframed = " (they have no schema id: another format may be meant)" if is_unframed else ""
        what = (
            f"{sum(counts.values()):,} of {read:,} records cannot be landed: {reasons}{unframed}; "
            f"max_rejected_percent is {most_percent}, and nothing of the batch was committed"
        )
        do = "Correct the declaration or the producer and run again"
        return cls(what, pipeline=pipeline, place=f"offsets {offsets}", events=("rejected-share",), do=do)


class CountsDisagree(DecisionRequired):
    """Twice in a row, the rows staged and rejected were not the records read."""

    @classmethod
    def of_batch(cls, pipeline: str, *, offsets: str, number: int, counts: Mapping[str, Any]) -> Self:
        """Return the error for `number` offsets whose counts do not add up."""
        what = f"the counts of {number} offsets do not add up, so nothing was committed: " + ", ".join(
            f"{name} {count}" for name, count in counts.items()
        )
        do = "Run again; if it persists, report it with this message"
        return cls(what, pipeline=pipeline, place=f"offsets {offsets}", do=do)

    @classmethod
    def of_gaps(cls, pipeline: str, *, offsets: str, number: int, read: int, gaps: Mapping[int, int]) -> Self:
        """Return the error for offsets without a record on a topic that should have none; `gaps` are by partition."""
        what = (
            f"{number} offsets hold {read} records, missing {dict(gaps)} by partition, and the topic is "
            "neither compacted nor declared transactional"
        )
        do = "If producers use transactions, declare Topic(…, transactional=True)"
        return cls(what, pipeline=pipeline, place=f"offsets {offsets}", do=do)


class LedgerLost(DecisionRequired):
    """No snapshot of the table says which offsets it holds, or one says it in a damaged form."""

    @classmethod
    def of(cls, pipeline: str, table: str, *, is_state: bool) -> Self:
        """Return the error of a table. The rows of a state do not say which records have landed."""
        what = "the table has snapshots, and none says which offsets it holds"
        do = "Name another table: it is made from the declared start" if is_state else ""
        return cls(what, pipeline=pipeline, events=() if is_state else ("ledger-lost",), do=do, table=table)

    @classmethod
    def of_snapshot(cls, pipeline: str, snapshot_id: int, key: str) -> Self:
        """Return the error of a snapshot whose summary has a damaged value."""
        what, do = (
            f"{key} in the snapshot's summary is damaged",
            "Name another table: it is made from the declared start",
        )
        return cls(what, pipeline=pipeline, place=f"snapshot {snapshot_id}", do=do)


class OtherPipeline(DecisionRequired):
    """The table has offsets of a pipeline of another name, so that records would land twice; or those of another new type."""

    @classmethod
    def of(cls, pipeline: str, table: str, writers: Iterable[str]) -> Self:
        """Return the error of a table that has offsets of `writers`."""
        what, do = cls.said(writers)
        return cls(what, pipeline=pipeline, do=do, table=table)

    @staticmethod
    def said(writers: Iterable[str]) -> tuple[str, str]:
        """Return what is wrong with a table that has offsets of `writers`, and what to do."""
        names = sorted(writers)
        do = f'Declare name="{names[0]}" again, or name another table: it is made from the declared start'
        return f"the table is that of pipeline {' and '.join(names)}, which committed its offsets to it", do

    @classmethod
    def of_type(cls, pipeline: str, table: str, theirs: str, ours: str) -> Self:
        """Return the error of a table that has the records of another new type."""
        what, do = cls.said_of_type(theirs, ours)
        return cls(what, pipeline=pipeline, do=do, table=table)

    @staticmethod
    def said_of_type(theirs: str, ours: str) -> tuple[str, str]:
        """Return what is wrong with a table that has the records of the type `theirs`, and what to do."""
        return (
            f"the table is that of type {theirs}, and not of {ours}",
            f"Name {ours} in `to`, with another table",
        )


class ForeignTable(DecisionRequired):
    """Another engine made what has the name of the pipeline's table."""

    @classmethod
    def of(cls, pipeline: str, table: str, *, is_iceberg: bool = True) -> Self:
        """Return the error of a table; `is_iceberg` is false for a view, or a table of another format."""
        what = "Frazil did not make this table: another engine did, as it has no column of a record's place in Kafka"
        what = what if is_iceberg else "Frazil did not make what has this name: a view, or a table of another format"
        do = "Name another table in the declaration, or rename this one; then run again"
        return cls(what, pipeline=pipeline, do=do, table=table)


def _renamed_back(name: str, now: str) -> str:
    """Return `now TO name` in SQL: of a struct if it is the struct that was renamed, else of the column, by its path."""
    inside, _, column = name.rpartition(".")
    if inside and now.endswith(f".{column}"):
        return f"{quoted(now.removesuffix(f'.{column}'))} TO {quoted(inside)}"
    path = f"{quoted(inside)}.{quoted(now.removeprefix(f'{inside}.'))}" if inside else quoted(now)
    return f"{path} TO {quoted(column)}"


class ColumnsMissing(DecisionRequired):
    """Another engine dropped or renamed columns that Frazil writes."""

    @classmethod
    def of(cls, pipeline: str, table: str, missing: Mapping[str, str | None]) -> Self:
        """Return the error of a table; `missing` are the columns with their present names, None for one that was dropped."""
        what = ", ".join(
            f"{name} was renamed to {now}" if now else f"{name} was dropped" for name, now in missing.items()
        )
        do = "Name another table: it is made from the declared start. The rows of this one lost a part of what Frazil needs"
        if all(missing.values()):
            steps = dict.fromkeys(_renamed_back(name, str(now)) for name, now in missing.items())
            do = f"Run {'; '.join(f'ALTER TABLE {table} RENAME COLUMN {step}' for step in steps)}"
        what = f"the table lacks columns that Frazil writes: {what}"
        return cls(what, pipeline=pipeline, do=do, table=table)

    @classmethod
    def of_layout(cls, pipeline: str, table: str, *, made_with: str) -> Self:
        """Return the error of a table whose columns of a record's place have the other layout."""
        what = f"the table was made with metadata_columns={made_with}, and no table changes that"
        do = f"Declare metadata_columns={made_with} again, or name another table: it is made from the declared start"
        return cls(what, pipeline=pipeline, do=do, table=table)


class RolledBack(DecisionRequired):
    """The head of a table is not the snapshot that its ledger names, nor a descendant of it."""

    @classmethod
    def of_table(cls, pipeline: str, table: str) -> Self:
        """Return the error of a table whose head does not descend from the pipeline's last commit."""
        what = (
            "the table's head does not descend from the last commit, or another tool expired the snapshots between them: "
            "the table was rolled back or replaced by hand"
        )
        return cls(
            what,
            pipeline=pipeline,
            events=("rolled-back-replay", "rolled-back-hold"),
            hint=f"`frazil verify {pipeline} --deep` counts the missing rows",
            table=table,
        )

    @classmethod
    def of_replaced(cls, pipeline: str, table: str, snapshot_id: int) -> Self:
        """Return the error of an upsert table of whose history no commit is left; `snapshot_id` is the last commit's."""
        what = "no commit of the pipeline is in the table's history: the table was replaced by hand"
        do = f"Set the head to snapshot {snapshot_id} again, or name another table"
        return cls(what, pipeline=pipeline, do=do, table=table)

    @classmethod
    def of_dead_letters(cls, pipeline: str, side_table: str) -> Self:
        """Return the error of a dead-letter table whose head is behind its last commit."""
        what = "the dead-letter table's head is behind its last commit: it was rolled back by hand"
        return cls(what, pipeline=pipeline, events=("rolled-back-replay", "rolled-back-hold"), table=side_table)

    @classmethod
    def behind_dead_letters(cls, pipeline: str, table: str, side_table: str) -> Self:
        """Return the error of a table that lacks commits whose dead letters exist."""
        what = (
            f"{side_table} has dead letters of commits that the table does not have: "
            "the table was set back to an earlier state"
        )
        return cls(what, pipeline=pipeline, events=("rolled-back-replay",), table=table)


class DeadLetterTableMismatch(DecisionRequired):
    """The dead-letter table was dropped, replaced or restored, or belongs to another table, or cannot get what was decided."""

    @classmethod
    def of(cls, pipeline: str, side_table: str, cause: str) -> Self:
        """Return the error of a dead-letter table that lacks what was decided, for that cause."""
        return cls(cause, pipeline=pipeline, events=("side-table-replaced",), do="Restore it", table=side_table)

    @classmethod
    def of_earlier_table(cls, pipeline: str, side_table: str) -> Self:
        """Return the error of a new table whose dead-letter table is of an earlier one."""
        what = "the table is new, and dead letters of an earlier one exist, whose records may not be landed again"
        do = "Rename the dead-letter table to keep them, or drop it; then run again"
        return cls(what, pipeline=pipeline, do=do, table=side_table)


class TopicRecreated(DecisionRequired):
    """The topic was deleted and created again: its offsets mean other records now."""

    @classmethod
    def of(cls, pipeline: str, topic: str, *, topic_id: str, committed_id: str, moved_to: str | None = None) -> Self:
        """Return the error of a topic that has another id than the ledger; `moved_to` is another declared topic."""
        cause, do = "the topic was deleted and created again", ""
        if moved_to is not None:
            cause = f"the table is that of topic {topic}, and the pipeline has topic {moved_to}"
            do = f"If a pattern has both topics, exclude {moved_to}, and declare it with another table"
        what = f"{cause}: its id is {topic_id}, the table holds records of {committed_id}"
        return cls(what, pipeline=pipeline, events=("topic-recreated",), do=do, topic=topic)


class LogTruncated(DecisionRequired):
    """The topic ends before an offset that the table already holds, or its records were replaced."""

    @classmethod
    def missing(cls, pipeline: str, topic: str, partitions: Collection[int]) -> Self:
        """Return the error of partitions that the topic does not have."""
        what = f"the table holds offsets of partitions {sorted(partitions)}, which the topic does not have"
        do = "Check that the environment names the right cluster"
        return cls(what, pipeline=pipeline, do=do, topic=topic)

    @classmethod
    def at_end(cls, pipeline: str, topic: str, *, partition: int, committed: int, end: int) -> Self:
        """Return the error of a partition that ends before its committed offset."""
        what = f"the table holds partition {partition} up to offset {committed}, the topic ends at {end}"
        return cls(what, pipeline=pipeline, events=("log-truncated", "log-truncated-replay"), topic=topic)

    @classmethod
    def replaced(
        cls, pipeline: str, topic: str, *, partitions: Collection[int], offset: int | None, may_compare: bool = True
    ) -> Self:
        """Return the error of partitions whose last record is another one now; `offset` is that of the first partition.

        Rows with masks cannot be compared with the log.
        """
        what = (
            f"the record at offset {offset} of partition {min(partitions)} is not the one that was read there; "
            f"so in {len(partitions)} partitions: the log was truncated and has grown again"
        )
        events = ("log-truncated-replay", "log-truncated") if may_compare else ("log-truncated",)
        return cls(what, pipeline=pipeline, events=events, topic=topic)


class OffsetsLost(DecisionRequired):
    """Retention removed records that the table does not hold yet."""

    @classmethod
    def of(cls, pipeline: str, topic: str, *, partition: int, first: int, earliest: int) -> Self:
        """Return the error of a partition whose records from `first` up to `earliest` were deleted unread."""
        what = f"records {first} to {earliest - 1} of partition {partition} were deleted before they were read"
        return cls(what, pipeline=pipeline, events=("offsets-lost",), topic=topic)
