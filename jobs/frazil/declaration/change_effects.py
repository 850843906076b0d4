"""Field effects: for each field of a declaration, what a change of it does to a table that stands.

Each says what the jobs really do: what only counts when a table is made (`lake.tables.create`), what counts from the next
batch, what upkeep heeds. A field that is new in a declaration must get its row: a test compares this with its dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from frazil.declaration.options import ErrorMode, Isolation, KeyFormat, Tombstones


class Outcome(StrEnum):
    """What a change means for rows.

    `stops`: the pipeline stops, and waits for a person. `left`: a table stays, and nothing of ours writes it any more.
    `rebuild`: a table that stands does not follow; only one that is written anew has it. `from_now_on`: rows that are
    landed later have it, those that stand stay as they are. `made`: a table that is not there is made. `upkeep`: no row
    changes.
    """

    STOPS = "stops"
    LEFT = "left"
    REBUILD = "rebuild"
    FROM_NOW_ON = "from_now_on"
    MADE = "made"
    UPKEEP = "upkeep"


_ONLY_AT_BIRTH = "it counts when a table is made, so the one that stands keeps what it has"


def _never(before: Any, after: Any) -> bool:
    return False


def _always(before: Any, after: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class FieldEffect:
    """What a change of one field does; `is_dangerous` judges the old and the new value."""

    outcome: Outcome
    what: str
    is_dangerous: Callable[[Any, Any], bool] = _never


FIELDS: Mapping[str, FieldEffect] = MappingProxyType(
    {
        "write": FieldEffect(
            Outcome.STOPS,
            "the table is that of the old write mode, and no table changes its mode: only one that is written anew has the new one",
            _always,
        ),
        "envelope": FieldEffect(
            Outcome.FROM_NOW_ON, "records that are not landed yet are taken for something else", _always
        ),
        "engine": FieldEffect(
            Outcome.LEFT,
            "the other engine makes a table of its own; neither continues what the other has landed, and records may be "
            "in both tables or in none",
            _always,
        ),
        "topic.name": FieldEffect(
            Outcome.STOPS,
            "the table holds offsets of the old topic: the pipeline stops (TopicRecreated) until a person has it land the new "
            "topic from its beginning, and what the old one still holds is not landed",
            _always,
        ),
        "topic.value_format": FieldEffect(
            Outcome.FROM_NOW_ON,
            "all that is not landed yet is read in the new format: records in the old one are rejected. Columns that stand "
            "stay; a column whose type differs refuses the new versions",
            _always,
        ),
        "topic.key_format": FieldEffect(
            Outcome.STOPS,
            "the column of keys has the old format's type, and no column changes its type: nothing can be landed until the "
            "table is written anew. Between text and json the type is the same, and it goes on",
            lambda before, after: {before, after} != {KeyFormat.TEXT, KeyFormat.JSON},
        ),
        "topic.subject_strategy": FieldEffect(
            Outcome.FROM_NOW_ON,
            "schemas are looked for under other subjects: records of types that are found there only add columns, those of "
            "types that are no longer found are rejected",
            _always,
        ),
        "topic.record_name": FieldEffect(
            Outcome.FROM_NOW_ON, "records of this name are landed from now on, those of others are rejected", _always
        ),
        "start": FieldEffect(
            Outcome.REBUILD,
            f"{_ONLY_AT_BIRTH}: it goes on at its own offsets. Only a table that is written anew begins there",
        ),
        "isolation": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with read_uncommitted, rows of transactions that are later aborted land too, and stay",
            lambda before, after: after is Isolation.READ_UNCOMMITTED,
        ),
        "topic.transactional": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with true, gaps between offsets pass without a word; with false, a gap drops the batch",
            lambda before, after: bool(after),
        ),
        "on_error": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with log, what cannot be landed is kept in the dead-letter table, with suspend the pipeline stops at it, with skip "
            "it is only counted: its bytes are not kept anywhere",
            lambda before, after: after is ErrorMode.SKIP,
        ),
        "max_rejected_percent": FieldEffect(
            Outcome.FROM_NOW_ON,
            "the share of rejected records above which a batch is not committed and the pipeline stops; with 100 it never stops",
            lambda before, after: (after or 50) > (before or 50),
        ),
        "write.on_tombstone": FieldEffect(
            Outcome.FROM_NOW_ON,
            "a record without a value becomes a rejected record, a row of nulls, or, with skip, only a number",
            lambda before, after: after is Tombstones.SKIP,
        ),
        "headers": FieldEffect(
            Outcome.FROM_NOW_ON,
            "headers are kept, or their column stays null; rows that stand are not filled in",
            lambda before, after: not after,
        ),
        "kafka_options": FieldEffect(Outcome.FROM_NOW_ON, "the consumer's options; rows are the same"),
        "table.identifier": FieldEffect(
            Outcome.LEFT,
            "a new table is made and begins at the declared start; the old one stays, and nothing writes it. Records may be in "
            "both, or, where the start is later than what was landed, in none",
            _always,
        ),
        "table.partition_by": FieldEffect(
            Outcome.REBUILD,
            f"{_ONLY_AT_BIRTH}: its partition spec does not evolve by itself. ALTER TABLE … ADD PARTITION FIELD gives new "
            "files the new spec and leaves old files; a table that is written anew has it throughout",
        ),
        "table.sort_by": FieldEffect(
            Outcome.FROM_NOW_ON,
            "new files, and files that compaction writes, are sorted so; the others keep their order",
        ),
        "table.format_version": FieldEffect(Outcome.REBUILD, f"{_ONLY_AT_BIRTH}. Athena cannot read version 3"),
        "table.target_file_size_bytes": FieldEffect(
            Outcome.UPKEEP,
            "compaction takes files as full from this size on; the size that writers aim at stays the table's own",
        ),
        "table.metadata_columns": FieldEffect(
            Outcome.STOPS,
            "the table that stands lacks the columns of the new layout, and gets none: nothing can be landed until it is "
            "written anew",
            _always,
        ),
        "table.properties": FieldEffect(
            Outcome.REBUILD, f"{_ONLY_AT_BIRTH}. ALTER TABLE … SET TBLPROPERTIES changes it without writing rows anew"
        ),
        "table.schema_evolution": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with freeze the table takes no change of the schema, with add_columns new columns, with widen wider types too; "
            "records of a version that needs more than that are rejected. Columns that stand stay",
        ),
        "table.keep_snapshots": FieldEffect(
            Outcome.UPKEEP,
            "the next expiry keeps that many: reading the table as it was before them is no longer possible",
        ),
        "table.keep_days": FieldEffect(
            Outcome.UPKEEP,
            "the next expiry keeps what is younger: reading the table as it was before that is no longer possible",
        ),
        "engine.limits.target_seconds": FieldEffect(
            Outcome.UPKEEP, "batches become longer or shorter, so commits rarer or more"
        ),
        "engine.limits.first_rows": FieldEffect(Outcome.UPKEEP, "the size of a run's first batch"),
        "engine.limits.max_rows": FieldEffect(Outcome.UPKEEP, "the most records of a batch"),
        "engine.limits.max_bytes": FieldEffect(Outcome.UPKEEP, "the most bytes of a batch"),
    }
)
"""Path in a pipeline -> what a change of it does. `name` is not among them: another name is another pipeline."""
