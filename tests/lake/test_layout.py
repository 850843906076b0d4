"""What a declaration says and what a table has never differ in silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import LongType, NestedField, StringType, StructType, TimestamptzType

from frazil.declaration import Append, At, Changelog, Debezium, Keep, Latest, Nullify, Pipeline, Shape, Table, Upsert
from frazil.declaration.checks.change_effects import FIELDS, Outcome
from frazil.errors import ColumnsMissing, ForeignTable
from frazil.ingest.setup import existing_table
from frazil.lake import layout
from frazil.lake.layout import Layout, changed, differences
from frazil.lake.ledger import entry as ledger
from frazil.lake.read.stored_tables import StoredTable
from frazil.schemas.evolution.column_names import suffixed
from frazil.schemas.iceberg import field_ids, schema_json
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.types import Field, Kind, ListOf, Primitive, Struct
from tests.declaration.checks.test_change_effects import declared_fields
from tests.support.topics import topic_of


def declared(table: dict[str, Any] | None = None, topic: dict[str, Any] | None = None, **more: Any) -> Pipeline:
    of_topic = {"value_format": "json", "columns": ("id long", "day string"), **(topic or {})}
    return Pipeline(topic=topic_of("orders", **of_topic), table=Table("shop.orders", **(table or {})), **more)


def key_of(pipeline: Pipeline) -> tuple[str, ...]:
    return () if not pipeline.write.has_key else pipeline.write.key or ()


def made(pipeline: Pipeline, *, without: tuple[str, ...] = (), renamed: dict[str, str] | None = None) -> Layout:
    """Return the layout of a table that was made for a pipeline; another engine dropped and renamed some columns."""
    is_struct = pipeline.table.metadata_columns.value == "struct"
    key = None if pipeline.topic.key.kind == "bytes" else Primitive(Kind.STRING)
    fields = (Field("id", Primitive(Kind.LONG)), *metadata_fields(struct=is_struct, key=key))
    ids = field_ids(schema_json(Struct(fields)))
    now = {(renamed or {}).get(name, name): number for name, number in ids.items() if name not in without}
    return Layout(
        uuid="0a",
        format_version=pipeline.table.format_version,
        partition_by=frozenset(pipeline.table.partition_by),
        sort_by=pipeline.table.sort_by,
        properties={
            **layout.declared_properties(pipeline),
            layout.START: layout.start_property(pipeline),
            **ledger.mode_properties(
                pipeline.write.kind,
                pipeline.write.order_columns,
                pipeline.envelope.kind if pipeline.is_change_data else None,
                [ids[name] for name in key_of(pipeline)] if pipeline.write.keeps_changes else (),
            ),
        },
        identifiers=key_of(pipeline),
        row=Struct(fields),
        columns=now,
        required=frozenset(),
        former=ids,
    )


KEYED = {"key_format": "text"}
AVRO_KEYS = {"key_format": "avro"}
SAID: dict[str, tuple[Pipeline, Pipeline]] = {
    "table.partition_by": (declared(), declared({"partition_by": ("day", "bucket(8, id)")})),
    "table.format_version": (declared(), declared({"format_version": 3})),
    "start": (declared(), declared(start=Latest())),
}
"""Before and after: an existing table stays as it is, and each command says so."""
APPLIED: dict[str, tuple[Pipeline, Pipeline]] = {
    "table.sort_by": (declared(), declared({"sort_by": ("id desc",)})),
    "table.properties": (declared(), declared({"properties": {"write.parquet.row-group-size-bytes": "1048576"}})),
    "table.target_file_size_bytes": (declared(), declared({"target_file_size_bytes": 1 << 24})),
    "table.snapshots.newest": (declared(), declared({"snapshots": Keep(7)})),
}
"""The next run changes the table."""


def _refused(before: Pipeline, after: Pipeline, path: str = "write") -> bool:
    """Whether the change is said alone, and neither columns nor properties of the other table are."""
    (found,) = differences(after, made(before))
    assert not differences(before, made(before))
    assert existing_table.said(after, made(before)) == (str(found),)
    return (found.field, found.is_refused, found.is_applied) == (path, True, False)


REFUSED: dict[str, Callable[[], bool]] = {
    "write": lambda: _refused(declared(), declared(write=Changelog(), topic=KEYED)),
    "envelope": lambda: _refused(
        declared(write=Upsert(), topic=AVRO_KEYS), declared(write=Upsert(), envelope=Debezium(), topic=AVRO_KEYS)
    ),
    "write.order_by": lambda: _refused(
        declared(write=Upsert(key="id"), topic=KEYED), declared(write=Upsert(key="id", order_by="id"), topic=KEYED)
    ),
    "write.order_by.columns": lambda: _refused(
        declared(write=Upsert(key="id", order_by="id"), topic=KEYED),
        declared(write=Upsert(key="id", order_by="day"), topic=KEYED),
    ),
    "table.metadata_columns": lambda: _refused(
        declared(), declared({"metadata_columns": "struct"}), "table.metadata_columns"
    ),
    "shape.mask": lambda: _refused(declared(), declared(shape=Shape(mask={"id": Nullify()})), "shape.mask"),
    "write.key": lambda: (
        _refused(declared(write=Upsert(key="id")), declared(write=Upsert(key=("id", "day"))), "write.key")
        and _refused(declared(write=Changelog(key="id")), declared(write=Changelog(key="day")), "write.key")
    ),
}
"""A run refuses by a comparison."""
ELSEWHERE = {"table.json_columns", "topic.name", "topic.key"}
"""A run refuses: test_variants.py and test_keys.py of the scenarios show it, and tests/ingest/plan/test_plan.py."""


def test_every_field_of_a_declaration_is_applied_refused_or_said() -> None:
    """Fields without a copy in a table (`FROM_NOW_ON`, `UPKEEP`) are read by each batch, or each maintenance."""
    by_outcome = {path: effect.outcome for path, effect in FIELDS.items()}
    assert (
        by_outcome.keys() | {"name", "topic", "table", "table.snapshots", "kafka", "shape", "engine.limits"}
        == declared_fields()
    )
    assert {path for path, outcome in by_outcome.items() if outcome is Outcome.REBUILD} == SAID.keys()
    assert {path for path, outcome in by_outcome.items() if outcome is Outcome.STOPS} == REFUSED.keys() | ELSEWHERE
    read = {path for path, outcome in by_outcome.items() if outcome in (Outcome.FROM_NOW_ON, Outcome.UPKEEP)}
    assert APPLIED.keys() <= read
    left = {path for path, outcome in by_outcome.items() if outcome is Outcome.LEFT}
    assert left == {"engine", "table.identifier"}, "another table is made"


@pytest.mark.parametrize("path", SAID)
def test_what_a_table_cannot_follow_is_said(path: str) -> None:
    before, after = SAID[path]
    assert differences(before, made(before)) == ()
    (found,) = differences(after, made(before))
    assert (found.field, found.is_applied) == (path, False)


@pytest.mark.parametrize("path", APPLIED)
def test_what_a_table_can_follow_a_run_applies(path: str) -> None:
    before, after = APPLIED[path]
    (found,) = differences(after, made(before))
    assert (found.field, found.is_applied) == (path, True)
    sets, removes, sorts = changed(after, made(before))
    actual = made(before)
    there = {name: value for name, value in {**actual.properties, **sets}.items() if name not in removes}
    followed = replace(actual, properties=there, sort_by=after.table.sort_by if sorts else actual.sort_by)
    assert differences(after, followed) == ()
    assert changed(after, followed) == ({}, [], False)


@pytest.mark.parametrize("path", REFUSED)
def test_what_no_table_can_become_is_refused(path: str) -> None:
    assert REFUSED[path]()


COLUMNS, LACKS_ID = "topic.value.columns", "the table has id, which the declaration does not have"
STRUCT = {"metadata_columns": "struct"}
LATER = declared(start=At(datetime(2026, 1, 31, tzinfo=UTC)))
BY_DAY, BY_ID = (declared({"partition_by": (by,)}) for by in ("day", "bucket(8, id)"))
OTHER_COLUMNS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"columns": ("id string", "day string")}, "id: long cannot become string. Declare id as it was"),
    ({"columns": ("id long required",)}, "id"),
    ({"columns": ("day string",)}, LACKS_ID),
    ({"columns": None}, LACKS_ID),
    ({"columns": None, "value_format": "text"}, LACKS_ID),
    ({"columns": None, "value_format": "bytes"}, LACKS_ID),
)


@pytest.mark.parametrize(
    ("before", "after", "field", "text"),
    [
        *((declared(), declared(topic=now), COLUMNS, text) for now, text in OTHER_COLUMNS),
        (declared(), declared(topic=KEYED), "topic.key", "the table has keys as binary"),
        (declared(STRUCT, AVRO_KEYS), declared(STRUCT), "topic.key", "the table has keys as string"),
        (LATER, declared(), "start", 'the table began at timestamp "2026-01-31T00:00:00.000Z"'),
        (BY_DAY, BY_ID, "table.partition_by", "ALTER TABLE shop.orders ADD PARTITION FIELD bucket(8, id)"),
        (BY_DAY, BY_ID, "table.partition_by", "ALTER TABLE shop.orders DROP PARTITION FIELD day"),
    ],
)
def test_a_difference_is_said_with_what_the_table_has(before: Pipeline, after: Pipeline, field: str, text: str) -> None:
    (found,) = differences(after, made(before))
    assert (found.field, found.is_applied) == (field, False)
    assert text in str(found)


@pytest.mark.parametrize(
    "pipeline",
    [
        declared(topic={"columns": ("ID long", "`x y` int")}),
        declared(write=Upsert(), topic={"key_format": "json", "key_columns": ("id long",), "columns": ("day string",)}),
        declared(write=Upsert(), topic={"key_format": "avro", "columns": ("day string",)}),
        declared(write=Upsert(key="id"), topic={"columns": ("id long required", "day string")}),
    ],
    ids=["case", "columns of the key", "columns of unknown keys", "a required key"],
)
def test_columns_that_differ_in_nothing_are_not_said(pipeline: Pipeline) -> None:
    assert differences(pipeline, made(pipeline)) == ()


def test_a_column_with_a_hash_is_the_declared_one_and_a_partition_field_gets_a_free_name() -> None:
    there = made(declared())
    column = suffixed("day")
    row, columns = Struct((Field(column, Primitive(Kind.STRING)),)), {**there.columns, column: 99, "id_bucket_8": 98}
    there = replace(there, row=row, columns=columns)
    assert not [one for one in differences(declared(), there) if column in str(one)]
    (found,) = differences(
        declared({"partition_by": ("bucket(8, id)",)}, {"columns": ("id long", "day string", "id_bucket_8 int")}), there
    )
    assert "ADD PARTITION FIELD bucket(8, id) AS `id_bucket_8_`" in str(found)
    again = differences(declared(topic={"columns": ("id long", "day boolean", "id_bucket_8 int")}), there)
    assert "day: string cannot become boolean" in str(again)


def test_a_property_that_is_no_longer_declared_is_removed() -> None:
    before = declared({"properties": {"write.parquet.row-group-size-bytes": "1048576", "team": "shop"}})
    sets, removes, _ = changed(declared({"properties": {"team": "shop"}}), made(before))
    assert (sets, removes) == ({layout.DECLARED: "team"}, ["write.parquet.row-group-size-bytes"])


def test_a_default_that_is_no_longer_overridden_comes_back() -> None:
    before = declared({"properties": {"write.parquet.compression-codec": "snappy"}})
    sets, removes, _ = changed(declared(), made(before))
    assert (sets, removes) == ({"write.parquet.compression-codec": "zstd"}, [layout.DECLARED])


@pytest.mark.parametrize("text", ["junk", "7", "[]", '"x"'])
def test_a_start_that_somebody_changed_is_said_as_it_is(text: str) -> None:
    there = made(declared())
    (found,) = differences(declared(), replace(there, properties={**there.properties, layout.START: text}))
    assert "the table began at" in str(found)


def test_columns_whose_type_the_key_contradicts_are_declared_all_the_same() -> None:
    topic = {"key_format": "json", "key_columns": ("id string",), "columns": ("id long", "day string")}
    assert differences(declared(write=Upsert(), topic=topic), made(declared(write=Upsert(), topic=topic))) == ()


@pytest.mark.parametrize(
    ("declared_as", "column"),
    [
        ("json", Kind.STRING),
        ("json", Kind.VARIANT),
        ("io.debezium.time.Timestamp", Kind.TIMESTAMP),
        ("io.debezium.time.Date", Kind.DATE),
        ("io.debezium.time.ZonedTimestamp", Kind.TIMESTAMPTZ),
        ("io.debezium.data.VariableScaleDecimal", Kind.STRING),
        ("list<io.debezium.time.Date>", ListOf(Primitive(Kind.DATE))),
    ],
)
def test_a_declared_type_is_compared_as_the_column_that_it_makes(declared_as: str, column: Any) -> None:
    of = column if isinstance(column, ListOf) else Primitive(column)
    there = replace(made(declared()), row=Struct((Field("x", of),)))
    found = differences(declared(topic={"columns": ("id long", f"x {declared_as}")}), there)
    assert [one for one in found if "cannot become" in str(one)] == []
    again = differences(declared(topic={"columns": ("id long", "x boolean")}), there)
    assert [one for one in again if "cannot become boolean" in str(one)]


FOREIGN = {
    "write.data.path": "s3://elsewhere",
    "write.object-storage.enabled": "true",
    "write.parquet.row-group-size-bytes": "1",
    "write.metadata.path": "s3://elsewhere",
    "write.spark.accept-any-schema": "true",
    "write.wap.enabled": "true",
    "commit.retry.num-retries": "0",
    "gc.enabled": "false",
    "history.expire.max-ref-age-ms": "1",
    "encryption.key-id": "k",
}
HARMLESS = {
    "write.delete.mode": "copy-on-write",
    "write.delete.format.default": "avro",
    "write.avro.compression-codec": "x",
}


def test_properties_of_other_engines_are_set_back_or_said_or_harmless() -> None:
    pipeline = declared()
    own = {"write.format.default": "orc", "write.distribution-mode": "hash", "write.target-file-size-bytes": "1"}
    actual = made(pipeline)
    actual = replace(actual, properties={**actual.properties, **FOREIGN, **HARMLESS, **own, "comment": "x"})
    found = differences(pipeline, actual)
    assert {name for one in found if one.is_applied for name in one.set or {}} == own.keys()
    said = [str(one) for one in found if not one.is_applied]
    assert len(said) == len(FOREIGN)
    assert all(any(f"UNSET TBLPROPERTIES ('{name}')" in one for one in said) for name in FOREIGN)


def test_data_files_that_a_catalog_places_elsewhere_are_no_difference() -> None:
    actual = made(declared())
    actual = replace(actual, properties={**actual.properties, "write.data.path": "s3://data/shop/orders-0a"})
    assert differences(declared(), actual) == ()


def test_a_declared_property_wins_in_a_new_table() -> None:
    merged_from = "commit.manifest.min-count-to-merge"

    def of(**declared: str) -> dict[str, str]:
        return layout.properties(
            format_version=2, target_file_size_bytes=1 << 27, keep_snapshots=9, offset_columns=("o",), declared=declared
        )

    assert (of()[merged_from], of()["write.metadata.metrics.column.o"]) == (str(layout.FEW_MANIFESTS), "full")
    found = of(team="checkout", **{merged_from: "100"})
    assert (found["team"], found[merged_from]) == ("checkout", "100")


# ── Columns of Frazil's that another engine dropped or renamed ──────────────────────────────────
@pytest.mark.parametrize("style", ["flat", "struct"])
def test_a_dropped_column_that_rows_may_lack_is_added_again(style: str) -> None:
    pipeline = declared({"metadata_columns": style})
    mark = "_kafka_" if style == "flat" else "_kafka."
    for name in (f"{mark}headers", f"{mark}timestamp", f"{mark}key", f"{mark}schema_id", "_ingested_at"):
        (added,) = existing_table.columns_to_add(pipeline, made(pipeline, without=(name,)))
        assert ".".join(added.path) == name


@pytest.mark.parametrize("style", ["flat", "struct"])
def test_a_row_without_its_place_is_refused(style: str) -> None:
    pipeline = declared({"metadata_columns": style})
    mark = "_kafka_" if style == "flat" else "_kafka."
    for name in (f"{mark}topic", f"{mark}partition", f"{mark}offset"):
        with pytest.raises(ColumnsMissing, match=f"{name} was dropped.*Name another table"):
            existing_table.columns_to_add(pipeline, made(pipeline, without=(name,)))


def test_a_renamed_column_is_renamed_back() -> None:
    with pytest.raises(ColumnsMissing, match="ALTER TABLE shop.orders RENAME COLUMN off TO _kafka_offset"):
        existing_table.columns_to_add(declared(), made(declared(), renamed={"_kafka_offset": "off"}))
    pipeline = declared({"metadata_columns": "struct"})
    with pytest.raises(ColumnsMissing, match=r"RENAME COLUMN _kafka\.h TO headers"):
        existing_table.columns_to_add(pipeline, made(pipeline, renamed={"_kafka.headers": "_kafka.h"}))


@pytest.mark.parametrize(
    ("renamed", "steps"),
    [
        ({"_kafka_offset": "kafka-offset"}, ["`kafka-offset` TO _kafka_offset"]),
        ({"_kafka_offset": "a.b`c"}, ["`a.b``c` TO _kafka_offset"]),
        ({"_kafka.headers": "_kafka.the headers"}, ["_kafka.`the headers` TO headers"]),
        ({"_kafka.offset": "of kafka.offset", "_kafka.topic": "of kafka.topic"}, ["`of kafka` TO _kafka"]),
    ],
)
def test_sql_that_renames_a_column_back_quotes_it(renamed: dict[str, str], steps: list[str]) -> None:
    error = ColumnsMissing.of("orders", "shop.orders", renamed)
    assert error.do == "Run " + "; ".join(f"ALTER TABLE shop.orders RENAME COLUMN {step}" for step in steps)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (Upsert(key="id", order_by="id"), "_order"),
        (Upsert(key="id", on_tombstone="soft_delete"), "_deleted_at"),
        (Changelog(key="id"), "_op"),
        (Changelog(key="id"), "_changed_at"),
    ],
)
def test_a_column_of_the_write_mode_is_not_made_anew(write: Any, name: str) -> None:
    pipeline = declared(write=write, topic=KEYED)
    own = {"_order": 90, "_deleted_at": 91, "_op": 92, "_changed_at": 93}
    actual = made(pipeline)
    whole = replace(actual, columns={**actual.columns, **own}, former={**actual.former, **own})
    assert existing_table.columns_to_add(pipeline, whole) == ()
    lost = replace(whole, columns={column: number for column, number in whole.columns.items() if column != name})
    with pytest.raises(ColumnsMissing, match=name):
        existing_table.columns_to_add(pipeline, lost)


def test_a_soft_delete_that_is_declared_later_needs_no_column_yet() -> None:
    pipeline = declared(write=Upsert(key="id", on_tombstone="soft_delete"), topic=KEYED)
    assert existing_table.columns_to_add(pipeline, made(pipeline)) == ()


def test_what_is_said_names_the_columns_too() -> None:
    dropped, renamed = made(declared(), without=("_kafka_headers",)), made(declared(), renamed={"_kafka_offset": "off"})
    assert existing_table.said(declared(), dropped) == ("column _kafka_headers was dropped. A run adds it again",)
    (found,) = existing_table.said(declared(), renamed)
    assert found.endswith(
        "_kafka_offset was renamed to off. Run ALTER TABLE shop.orders RENAME COLUMN off TO _kafka_offset"
    )


# ── Tables as PyIceberg reads them ──────────────────────────────────────────────────────────────
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "at", TimestamptzType()),
    NestedField(3, "odd name", StringType()),
    NestedField(4, "place", StructType(NestedField(5, "zip", StringType()))),
    identifier_field_ids=[1],
)


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("shop")
    return catalog


def test_a_layout_is_read_in_the_notation_of_declarations(catalog: SqlCatalog) -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "at_day"),
        PartitionField(1, 1001, BucketTransform(8), "id_bucket"),
        PartitionField(3, 1002, IdentityTransform(), "odd"),
        PartitionField(5, 1003, TruncateTransform(4), "zip_trunc"),
    )
    order = SortOrder(
        SortField(1, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_FIRST),
        SortField(5, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST),
    )
    table = catalog.create_table("shop.orders", SCHEMA, partition_spec=spec, sort_order=order)
    with table.update_schema() as change:
        change.rename_column("at", "moment")
    found = StoredTable(catalog.load_table("shop.orders"), "shop.orders").layout
    by = {"days(moment)", "bucket(8, id)", "`odd name`", "truncate(4, place.zip)"}
    assert found.partition_by == by == frozenset(Table("shop.orders", partition_by=tuple(by)).partition_by)
    assert found.sort_by == ("id desc nulls first", "place.zip")
    assert found.required == {"id"}
    assert found.name_now("at") == "moment"
    assert found.name_now("never") is None


def test_a_table_of_another_engine_is_not_ours(catalog: SqlCatalog) -> None:
    catalog.create_table("shop.orders", SCHEMA)
    actual = StoredTable(catalog.load_table("shop.orders"), "shop.orders").layout
    (found,) = differences(declared(), actual)
    assert found.field == "table.identifier"
    with pytest.raises(ForeignTable, match="Frazil did not make this table"):
        existing_table.check_ours(declared(), actual)
    existing_table.check_ours(declared(write=Append()), made(declared()))
