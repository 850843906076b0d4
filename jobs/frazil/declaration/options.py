"""The closed sets of a declaration: how bytes are understood, and what happens to what cannot be landed."""

from __future__ import annotations

from enum import StrEnum


class Framing(StrEnum):
    """The name of the schema in a record in Avro without a registry. Without a framing its bytes are the body alone.

    `single_object`: by Avro's single-object encoding, `C3 01` and the schema's fingerprint before the body. So the records may be
    of several declared versions.
    """

    SINGLE_OBJECT = "single_object"


class UnknownFields(StrEnum):
    """The treatment of fields of a JSON record that are no column: `keep` has them as JSON text in the column `_unknown`."""

    KEEP = "keep"


class SubjectStrategy(StrEnum):
    """Under which subject the producers register their schemas, by Confluent's naming strategies.

    `topic`: `<topic>-value`, one type of record a topic. `record`: the record's full name, shared by all topics that
    have it. `topic_record`: `<topic>-<record's full name>`, several types in one topic, each with its own versions.
    """

    TOPIC = "topic"
    RECORD = "record"
    TOPIC_RECORD = "topic_record"


class Isolation(StrEnum):
    """The records of transactions that are read.

    `read_committed`: those of committed transactions, up to the last stable offset. `read_uncommitted`: all, up to the
    high watermark, those of aborted transactions too.
    """

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class ErrorMode(StrEnum):
    """The treatment of a record that cannot land.

    `dead_letter`: it goes to the dead-letter table and is counted by reason; the rest flows. `suspend`: nothing of its batch is
    published and the pipeline waits for a person. `skip`: it is counted by reason and not kept.
    """

    SUSPEND = "suspend"
    SKIP = "skip"
    DEAD_LETTER = "dead_letter"


class Tombstones(StrEnum):
    """The effect of a record without a value on a table that only grows.

    `dead_letter`: a rejected record, treated as the error mode says. `null_row`: a row whose own columns are all null,
    with key and coordinates. `skip`: nothing; it is counted.
    """

    DEAD_LETTER = "dead_letter"
    NULL_ROW = "null_row"
    SKIP = "skip"


class Deletion(StrEnum):
    """The effect of a record without a value on the row of its key in an upsert table.

    `delete`: the row goes. `soft_delete`: the row stays with its last values, and `_deleted_at` holds the record's time.
    """

    DELETE = "delete"
    SOFT_DELETE = "soft_delete"


class Truncation(StrEnum):
    """The effect of a truncate of the source's table on an upsert table.

    `refuse`: the pipeline stops (`SourceTruncated`) until an operator decides. `delete_all`: all rows go, in the commit of the
    batch that has the truncate. The topic must have one partition: nothing orders a truncate among records of others.
    """

    REFUSE = "refuse"
    DELETE_ALL = "delete_all"


class ReplicaIdentity(StrEnum):
    """The facts of a row before a change, as PostgreSQL's `REPLICA IDENTITY` or MySQL's `binlog_row_image`.

    `default`: its key at most, and what events have besides is invented. `full`: all its values.
    """

    DEFAULT = "default"
    FULL = "full"


class SchemaEvolution(StrEnum):
    """The changes of the table that a new schema version may make by itself.

    `freeze`: not at all. `add_columns`: new columns appear, types stay. `widen`: new columns appear and types widen as
    Iceberg allows (int to long, float to double, more digits in a decimal). Records of a version that needs more are
    rejected. No mode narrows or removes a column.
    """

    FREEZE = "freeze"
    ADD_COLUMNS = "add_columns"
    WIDEN = "widen"


class MetadataColumns(StrEnum):
    """The columns with the coordinates of a row's record.

    `flat`: one column for each fact (`FLAT_COLUMNS`), which any catalog can partition and prune by. `struct`: one
    struct column `_kafka` with the facts as its fields (`STRUCT_FIELDS`), and `_ingested_at` next to it; a nested field
    is no partition source on Glue, and few engines prune by it.
    """

    FLAT = "flat"
    STRUCT = "struct"

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns of the layout, in their order."""
        return FLAT_COLUMNS if self is MetadataColumns.FLAT else STRUCT_COLUMNS


class JsonColumns(StrEnum):
    """The type of columns that hold JSON, if not its text: values without columns of their own, and unknown fields.

    `variant`: Iceberg's type for such values, in tables of format version 3. Few engines read it.
    """

    VARIANT = "variant"


STRUCT_COLUMN = "_kafka"
INGESTED_AT = "_ingested_at"
STRUCT_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "headers", "schema_id")
STRUCT_COLUMNS = (STRUCT_COLUMN, INGESTED_AT)
FLAT_COLUMNS = (*(f"{STRUCT_COLUMN}_{field}" for field in STRUCT_FIELDS), INGESTED_AT)
VALUE_COLUMN = "value"
"""The one column of the formats without a schema."""
