"""The metadata columns that Frazil adds next to the value's own: where a row came from."""

from __future__ import annotations

from dataclasses import replace

from frazil.schemas.types import Field, Kind, ListOf, Primitive, Struct, Type

_STRING, _LONG, _INT = Primitive(Kind.STRING), Primitive(Kind.LONG), Primitive(Kind.INT)
_BINARY, _INSTANT = Primitive(Kind.BINARY), Primitive(Kind.TIMESTAMPTZ)
HEADERS = ListOf(Struct((Field("key", _STRING), Field("value", _BINARY))))

COORDINATES = (
    Field("topic", _STRING, doc="Kafka topic"),
    Field("partition", _INT, doc="Kafka partition"),
    Field("offset", _LONG, doc="offset in the partition; unique with it"),
    Field("timestamp", _INSTANT, doc="the record's timestamp, by producer or broker"),
    Field("key", _BINARY, doc="the record's key, as Kafka holds it"),
    Field("headers", HEADERS, doc="the record's headers, as Kafka holds them"),
    Field("schema_id", _LONG, doc="writer schema id; null for formats without a registry"),
)
INGESTED_AT = Field("_ingested_at", _INSTANT, doc="when the batch that holds the row was staged")
DELETED_AT = Field(
    "_deleted_at",
    _INSTANT,
    doc="when the source deleted the row; if it does not say, time of the record, and without one 1970. Null: not deleted",
)
ORDER = "_order"
"""In an ordered upsert table, the column with the row's order: the value of its one field, or a struct of several."""
OF_STATES = (DELETED_AT.name, ORDER)
"""Columns that only upsert tables have, and the order of a changelog."""
NEWEST_ROW = (ORDER, INGESTED_AT.name, "_kafka_partition", "_kafka_offset")
"""Columns by which the newest row of a key is chosen where it has several, so that each driver chooses the same one."""
OP = Field("_op", _STRING, doc="c insert, u update, w one of both, r read by a snapshot, d delete, t truncate")
CHANGED_AT = Field(
    "_changed_at", _INSTANT, doc="when the source made the change; if it does not say, time of the record"
)
UNAVAILABLE = Field(
    "_unavailable", ListOf(_STRING), doc="columns whose value the source left out: their null says nothing"
)
OF_CHANGELOGS = (OP.name, CHANGED_AT.name, ORDER, UNAVAILABLE.name)
"""Columns that a changelog has next to those of its rows."""


def metadata_fields(*, struct: bool, key: Type | None = None) -> tuple[Field, ...]:
    """Return the metadata columns: `_kafka_<name>` each, or one struct `_kafka`. `key` is a decoded key's type."""
    found: tuple[Field, ...] = COORDINATES
    if key is not None:
        found = tuple(replace(f, type=key, doc="the record's key, decoded") if f.name == "key" else f for f in found)
    if struct:
        return (Field("_kafka", Struct(found), doc="the record's place in Kafka"), INGESTED_AT)
    return (*(Field(f"_kafka_{f.name}", f.type, doc=f.doc) for f in found), INGESTED_AT)
