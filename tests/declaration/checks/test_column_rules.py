import pytest

from frazil.declaration import FLAT_COLUMNS, STRUCT_FIELDS, Avro, Bytes, Json, MetadataColumns, Protobuf, Text
from frazil.declaration.checks.column_rules import (
    is_reserved,
    key_refusal,
    metadata_type,
    schemaless_refusal,
    source_refusal,
)
from frazil.declaration.partitioning import partition_field, sort_field

FLAT, STRUCT = MetadataColumns.FLAT, MetadataColumns.STRUCT


def test_frazils_and_icebergs_names_are_reserved_and_others_are_not():
    assert all(is_reserved(name) for name in (*FLAT_COLUMNS, "_kafka", "_kafka_new", "_decoded", "_file", "_row_id"))
    assert not any(is_reserved(name) for name in ("kafka", "_kafkaesque", "value", "_id", "offset"))


def test_each_layout_knows_the_type_of_its_own_columns_only():
    assert all(metadata_type(column, FLAT) for column in FLAT_COLUMNS)
    assert all(metadata_type(f"_kafka.{field}", STRUCT) for field in STRUCT_FIELDS)
    assert metadata_type("_kafka_offset", STRUCT) is None
    assert metadata_type("_kafka.offset", FLAT) is None
    assert metadata_type("_ingested_at", FLAT) == metadata_type("_ingested_at", STRUCT) == "timestamptz"


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("_kafka_partition", FLAT),
        ("_kafka_topic", FLAT),
        ("days(_kafka_timestamp)", FLAT),
        ("hours(_ingested_at)", STRUCT),
        ("bucket(4, _kafka_key)", FLAT),
        ("truncate(1000000, _kafka_offset)", FLAT),
        ("days(_kafka.timestamp)", STRUCT),
        ("event_time", STRUCT),
    ],
)
def test_metadata_columns_are_partition_sources(text, layout):
    assert source_refusal(partition_field(text), layout) is None


@pytest.mark.parametrize(
    ("text", "layout", "told"),
    [
        ("days(_kafka.timestamp)", FLAT, "Write _kafka_timestamp"),
        ("days(_kafka_timestamp)", STRUCT, "Write _kafka.timestamp"),
        ("_kafka_foo", FLAT, "use one of _kafka_topic, _kafka_partition"),
        ("_kafka", STRUCT, "needs a single value"),
        ("_kafka_headers", FLAT, "needs a single value"),
        ("_decoded", FLAT, "not a column of the layout flat"),
        ("_file", STRUCT, "use one of _kafka.topic"),
        ("days(_kafka_offset)", FLAT, "is of type long"),
        ("months(_kafka_topic)", FLAT, "is of type string"),
        ("truncate(4, _ingested_at)", FLAT, "Write days(_ingested_at)"),
        ("_kafka_offset", FLAT, "a partition of each record"),
        ("_kafka_timestamp", FLAT, "a partition of each instant"),
    ],
)
def test_a_source_that_the_layout_does_not_have_or_cannot_take_is_refused(text, layout, told):
    refusal = source_refusal(partition_field(text), layout)
    assert refusal
    assert told in f"{refusal.what}. {refusal.do}"


def test_rows_are_sorted_by_single_values():
    assert source_refusal(sort_field("_kafka_offset desc"), FLAT) is None
    assert source_refusal(sort_field("_kafka_headers"), FLAT)
    assert source_refusal(sort_field("_kafka"), STRUCT)


def test_a_key_with_a_schema_is_no_source_since_it_may_be_a_struct():
    assert key_refusal("_kafka_key", Avro())
    assert key_refusal("_kafka.key", Protobuf())
    assert key_refusal("_kafka_key", Text()) is None
    assert key_refusal("user_id", Avro()) is None


def test_a_value_without_a_schema_has_one_column():
    assert schemaless_refusal(partition_field("truncate(2, value)"), Text()) is None
    assert schemaless_refusal(partition_field("days(_kafka_timestamp)"), Bytes()) is None
    assert schemaless_refusal(partition_field("days(event_time)"), Json())
    assert schemaless_refusal(partition_field("days(value)"), Json())
    assert schemaless_refusal(sort_field("user_id"), Bytes())
    assert schemaless_refusal(sort_field("user_id"), Avro()) is None
