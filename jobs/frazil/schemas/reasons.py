"""Why a record is not a row."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reason codes of rejected records; public, as dead-letter tables hold them.

    The frame: `TOMBSTONE` has no value at all, where the declaration wants rows; `TOO_SHORT` cannot hold magic byte and schema
    id; `WRONG_MAGIC` begins with another byte. The schema: `UNKNOWN_SCHEMA` names an id that the registry does not have,
    `FOREIGN_SCHEMA` one that is not of the topic's subject, `INCOMPATIBLE_SCHEMA` one whose records do not fit the table,
    `UNREADABLE_SCHEMA` one that has no row type. The body: `UNDECODABLE` is not a value of its schema, `TOO_LARGE` is past a limit.
    """

    TOMBSTONE = "tombstone"
    TOO_SHORT = "too_short"
    WRONG_MAGIC = "wrong_magic"
    UNKNOWN_SCHEMA = "unknown_schema"
    FOREIGN_SCHEMA = "foreign_schema"
    INCOMPATIBLE_SCHEMA = "incompatible_schema"
    UNREADABLE_SCHEMA = "unreadable_schema"
    UNDECODABLE = "undecodable"
    TOO_LARGE = "too_large"


MESSAGES = {
    Reason.TOMBSTONE: "the record has no value, and the table keeps none for it",
    Reason.TOO_SHORT: "the value is shorter than magic byte and schema id",
    Reason.WRONG_MAGIC: "the value does not begin with magic byte 0",
    Reason.UNKNOWN_SCHEMA: "the registry has no schema with this id",
    Reason.FOREIGN_SCHEMA: "the schema is not one of the topic's subject",
    Reason.INCOMPATIBLE_SCHEMA: "records of this schema do not fit the table",
    Reason.UNREADABLE_SCHEMA: "the schema cannot be understood",
    Reason.UNDECODABLE: "the value is not one of its schema",
    Reason.TOO_LARGE: "the value is past a limit of decoding",
}
