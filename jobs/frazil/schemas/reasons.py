"""Why a record is not a row."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reason codes of rejected records; public, as dead-letter tables hold them. `MESSAGES` explains each.

    They are in the order in which a record is looked at: its frame, the schema, the body, its route, the key of a record whose
    value is valid, the key and order of an upsert table, the change of an envelope, the table. `NO_CHANGE` is always skipped.
    `ROUTE` is no rejection: the record is another table's.
    """

    TOMBSTONE = "tombstone"
    TOO_SHORT = "too_short"
    WRONG_MAGIC = "wrong_magic"
    HEADER_TOO_SHORT = "header_too_short"
    HEADER_WRONG_MAGIC = "header_wrong_magic"
    BAD_MESSAGE_INDEX = "bad_message_index"
    UNKNOWN_SCHEMA = "unknown_schema"
    FOREIGN_SCHEMA = "foreign_schema"
    INCOMPATIBLE_SCHEMA = "incompatible_schema"
    UNREADABLE_SCHEMA = "unreadable_schema"
    REGISTRY_FRAME = "registry_frame"
    SINGLE_OBJECT = "single_object"
    NO_FINGERPRINT = "no_fingerprint"
    UNKNOWN_FINGERPRINT = "unknown_fingerprint"
    UNDECODABLE = "undecodable"
    EMPTY_VALUE = "empty_value"
    ROUTE = "route"
    UNROUTED = "unrouted"
    REQUIRED_NULL = "required_null"
    KEY_UNDECODABLE = "key_undecodable"
    KEY_SCHEMA = "key_schema"
    KEY_MISSING = "key_missing"
    KEY_REGISTRY_FRAME = "key_registry_frame"
    KEY_NULL = "key_null"
    KEY_MISMATCH = "key_mismatch"
    TOMBSTONE_NAMES_NO_ROW = "tombstone_names_no_row"
    ORDER_MISSING = "order_missing"
    OPERATION_UNKNOWN = "operation_unknown"
    NO_CHANGE = "no_change"
    TRUNCATED = "truncated"
    VALUE_UNAVAILABLE = "value_unavailable"
    OMITTED_VALUE = "omitted_value"
    TRANSFORM_FAILED = "transform_failed"
    EVENT_TIME = "event_time"
    BEFORE_MISSING = "before_missing"
    PARTITION_VALUE = "partition_value"


MESSAGES = {
    Reason.TOMBSTONE: "the record has no value, and the table keeps none for it",
    Reason.TOO_SHORT: "the value is shorter than magic byte and schema id",
    Reason.WRONG_MAGIC: "the value does not begin with magic byte 0",
    Reason.HEADER_TOO_SHORT: "the header that names the schema is shorter than an id, or a GUID",
    Reason.HEADER_WRONG_MAGIC: "the header that names the schema begins with neither 0 nor 1",
    Reason.BAD_MESSAGE_INDEX: "the message index names no message type of the schema",
    Reason.UNKNOWN_SCHEMA: "the registry has no schema with this id",
    Reason.FOREIGN_SCHEMA: "the schema is not one of the topic's subject, or of another type of record than the declared one",
    Reason.INCOMPATIBLE_SCHEMA: "records of this schema do not fit the table",
    Reason.UNREADABLE_SCHEMA: "the schema cannot be understood",
    Reason.REGISTRY_FRAME: "the value begins as a registry's serialiser writes, or has its header: if producers use a registry, "
    "remove schema",
    Reason.SINGLE_OBJECT: "the value is no body of the declared schema, and begins as Avro's single-object encoding: if producers "
    "use it, declare framing single_object",
    Reason.NO_FINGERPRINT: "the value does not begin with C3 01 and a fingerprint: if producers write plain bodies, remove framing",
    Reason.UNKNOWN_FINGERPRINT: "the fingerprint is of no declared schema: add the version that its producers use",
    Reason.UNDECODABLE: "the value does not match its schema or format",
    Reason.EMPTY_VALUE: "the value has no bytes, so it is no value of its format, and no delete: producers delete by a null value",
    Reason.ROUTE: "the record is of a type of another table",
    Reason.UNROUTED: "the record is of none of the types that are declared for the topic's tables",
    Reason.REQUIRED_NULL: "a required column is null, or the record does not have it",
    Reason.KEY_UNDECODABLE: "the key does not match its schema or format",
    Reason.KEY_SCHEMA: "the key's schema is unknown, of another subject, unreadable, or does not fit the key's column",
    Reason.KEY_MISSING: "the record has no key, and each row of the table has one",
    Reason.TOMBSTONE_NAMES_NO_ROW: "the record has no value, and its key lacks a column of the table's key",
    Reason.KEY_REGISTRY_FRAME: "the key begins as a registry's serialiser writes, so two versions of one key differ: declare "
    "the key's format with its schema, for a new table",
    Reason.KEY_NULL: "a field of the key is null, and no row of the table has such a key",
    Reason.KEY_MISMATCH: "the value's key columns differ from the record's key",
    Reason.ORDER_MISSING: "a field of the record's order is null, or the record has no value and so lacks it",
    Reason.OPERATION_UNKNOWN: "the change event has an unknown operation, or writes a row and has none",
    Reason.NO_CHANGE: "the event changes no row, such as a logical decoding message",
    Reason.TRUNCATED: "the source's table was truncated",
    Reason.VALUE_UNAVAILABLE: "the change omits a value, and neither the table nor an earlier change of a row that matches has it",
    Reason.OMITTED_VALUE: "the source leaves out a value that the declared shape reads; with REPLICA IDENTITY FULL it has all",
    Reason.TRANSFORM_FAILED: "a declared expression fails for the record",
    Reason.EVENT_TIME: "the time of the event is beyond the declared bounds",
    Reason.PARTITION_VALUE: "no partition of the table can hold a value of the row",
    Reason.BEFORE_MISSING: "the update or delete lacks the row before it: the source's replica identity was not full",
}
