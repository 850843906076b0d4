"""A declaration and a table that differ, in what was declared or by another engine: a run applies, says or refuses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Append, Changelog, ErrorMode, Pipeline, Upsert
from frazil.errors import ColumnsMissing, ForeignTable, InvalidInput, OtherPipeline
from frazil.ingest.preview.preview import preview
from frazil.ingest.setup import existing_table
from frazil.lake.read.stored_tables import Lake
from frazil.maintain.run import maintain
from frazil.maintain.target import MaintenanceRun, Status
from frazil.recovery.decisions import Accepted
from frazil.status.pipeline_status import State, status_of
from tests.support import oracle
from tests.support.jobs import once
from tests.support.shop import Shop, ShopOf
from tests.support.topics import bodies, varied

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
COLUMNS = ("id long", "day string")
JSON = {"value_format": "json", "columns": COLUMNS}
KEYED = {**JSON, "key_format": "text", "write": Upsert(key="id")}
FOREIGN = {
    "write.format.default": "orc",
    "write.delete.format.default": "avro",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
    "write.distribution-mode": "range",
    "write.target-file-size-bytes": "1",
    "write.object-storage.enabled": "true",
    "write.parquet.page-size-bytes": "2048",
    "write.parquet.compression-codec": "snappy",
    "write.avro.compression-codec": "snappy",
    "write.metadata.compression-codec": "none",
    "write.metadata.delete-after-commit.enabled": "false",
    "write.metadata.metrics.default": "none",
    "write.metadata.metrics.column._kafka_offset": "none",
    "write.spark.accept-any-schema": "true",
    "write.wap.enabled": "true",
    "write.fanout.enabled": "false",
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "false",
    "history.expire.max-snapshot-age-ms": "1",
    "gc.enabled": "false",
    "encryption.key-id": "k",
    "compatibility.snapshot-id-inheritance.enabled": "true",
}


def table(shop: Shop, **table: Any) -> Pipeline:
    return replace(shop.pipeline, table=replace(shop.pipeline.table, **table))


def said(shop: Shop) -> dict[str, bool]:
    """Return the fields that differ, and whether the run changed the table."""
    return {event["field"]: event["is_applied"] for event in shop.seen("table_differs")}


def changed_columns(shop: Shop, change: Callable[[Any], None], identifier: str = "") -> None:
    """Change the schema as another engine does."""
    with oracle.table(shop.lake, identifier or shop.pipeline.table.identifier).update_schema(
        allow_incompatible_changes=True
    ) as update:
        change(update)


def test_a_run_applies_what_a_table_can_follow_and_says_the_rest(shop_of: ShopOf) -> None:
    shop = shop_of(**JSON, table={"properties": {"write.parquet.page-size-bytes": "2048"}, "sort_by": ("id",)})
    shop.produce(bodies({"id": 2, "day": "a"}), partition=0)
    shop.drain()
    assert said(shop) == {}
    assert len(shop.stored.sort_order().fields) == 1, "a new table has its order"
    other = table(
        shop,
        properties={"write.parquet.dict-size-bytes": "4096"},
        sort_by=("day desc", "id"),
        partition_by=("day",),
        target_file_size_bytes=1 << 24,
    )
    shop.produce(bodies({"id": 3, "day": "b"}), partition=0)
    found = preview(other, shop.job(), None, count=5)
    assert any(note.startswith("table.partition_by: the table is partitioned by nothing") for note in found.notes)
    shop.drain(other)
    assert said(shop) == {
        "table.partition_by": False,
        "table.sort_by": True,
        "table.target_file_size_bytes": True,
        "table.properties": True,
    }
    now = shop.stored
    assert [str(field.direction) for field in now.sort_order().fields] == ["DESC", "ASC"]
    assert now.properties["write.parquet.dict-size-bytes"] == "4096"
    assert "write.parquet.page-size-bytes" not in now.properties
    (statement,) = [
        event["message"].partition("New files get it by ")[2].partition(". ")[0]
        for event in shop.seen("table_differs")
        if event["field"] == "table.partition_by"
    ]
    shop.spark.sql(statement.replace("shop.", f"{shop.lake.catalog.name}.shop.", 1))
    shop.events.clear()
    shop.produce(bodies({"id": 4, "day": "c"}), partition=0)
    shop.drain(other)
    assert said(shop) == {}
    shop.assert_proven(deep=False)


@pytest.mark.parametrize("write", [Append(), Upsert(key="id"), Changelog(key="id")], ids=lambda mode: mode.kind)
def test_properties_that_other_engines_set_change_no_format(shop_of: ShopOf, write: Any) -> None:
    more = {"table": {"format_version": 2}, "key_format": "text", "write": write, "on_error": ErrorMode.DEAD_LETTER}
    shop = shop_of(**JSON, **more)
    shop.produce(bodies({"id": 1, "day": "a"}, {"id": 2, "day": "b"}), partition=0)
    shop.drain()
    for identifier in (shop.pipeline.table.identifier, shop.pipeline.table.dead_letters):
        location = oracle.table(shop.lake, identifier).location()
        places = {"write.data.path": f"{location}/other", "write.metadata.path": f"{location}/metadata/other"}
        with oracle.table(shop.lake, identifier).transaction() as change:
            change.set_properties({**FOREIGN, **places})
    shop.produce([*bodies({"id": 1, "day": "c"}, {"id": 3, "day": "d"}), b"{"], partition=0)
    shop.drain()
    for identifier in (shop.pipeline.table.identifier, shop.pipeline.table.dead_letters):
        files = oracle.table(shop.lake, identifier).inspect.files()
        assert {*files["file_format"].to_pylist()} == {"PARQUET"}
        assert all(path.endswith(".parquet") for path in files["file_path"].to_pylist())
    assert shop.stored.properties["write.format.default"] == "parquet"
    messages = " ".join(event["message"] for event in shop.seen("table_differs"))
    for name in (
        "gc.enabled",
        "write.object-storage.enabled",
        "commit.retry.num-retries",
        "write.metadata.metrics.default",
    ):
        assert f"UNSET TBLPROPERTIES ('{name}')" in messages
    shop.assert_proven(deep=True)
    shop.assert_each_record_once() if isinstance(write, Append) else None


def test_a_dropped_column_comes_back_and_a_renamed_one_is_named(shop_of: ShopOf) -> None:
    shop = shop_of(**JSON)
    shop.produce(bodies({"id": 1, "day": "a"}), partition=0)
    shop.drain()
    changed_columns(shop, lambda update: update.delete_column("_kafka_headers"))
    shop.produce(bodies({"id": 2, "day": "b"}), partition=0, headers=[("h", b"x")])
    shop.drain()
    (evolved,) = shop.seen("schema_evolved")
    assert "column _kafka_headers added" in evolved["changes"][0]
    assert sorted((row["id"], bool(row["_kafka_headers"])) for row in shop.landed()) == [(1, False), (2, True)]
    shop.assert_proven(deep=False)

    changed_columns(shop, lambda update: update.rename_column("_kafka_offset", "off"))
    shop.produce(bodies({"id": 3, "day": "c"}), partition=0)
    with pytest.raises(ColumnsMissing, match="_kafka_offset was renamed to off") as stopped:
        shop.drain()
    with pytest.raises(ColumnsMissing, match="_kafka_offset was renamed to off"):
        shop.verified()
    with pytest.raises(ColumnsMissing):
        preview(shop.pipeline, shop.job(), None, count=5)
    statement = stopped.value.do.removeprefix("Run ")
    shop.spark.sql(statement.replace("shop.", f"{shop.lake.catalog.name}.shop.", 1))
    shop.drain()
    shop.assert_proven(deep=False)


def test_a_dropped_offset_stops_an_upsert_table(shop_of: ShopOf) -> None:
    shop = shop_of(**KEYED)
    shop.produce(bodies({"id": 1, "day": "a"}), partition=0)
    shop.drain()
    changed_columns(shop, lambda update: update.delete_column("_kafka_offset"))
    with pytest.raises(ColumnsMissing, match="_kafka_offset was dropped.*Name another table"):
        shop.drain()


@pytest.mark.parametrize("of", [JSON, KEYED], ids=["append", "upsert"])
@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_another_engine_is_named_as_such(shop_of: ShopOf, of: Mapping[str, Any], rows: int) -> None:
    shop = shop_of(**of)
    made = pa.schema([("id", pa.int64()), ("day", pa.string())])
    catalog = oracle.catalog(shop.lake)
    catalog.create_namespace_if_not_exists("shop")
    foreign = catalog.create_table(shop.pipeline.table.identifier, schema=made)
    if rows:
        foreign.append(pa.table({"id": [7], "day": ["old"]}, schema=made))
    before = shop.stored.metadata_location
    shop.produce(bodies({"id": 1, "day": "a"}), partition=0)
    for attempt in (shop.drain, lambda: preview(shop.pipeline, shop.job(), None, count=5)):
        with pytest.raises(ForeignTable, match="Frazil did not make this table"):
            attempt()
    with pytest.raises(InvalidInput, match="Frazil did not make this table"):
        shop.accept(Accepted.LEDGER_LOST)
    kept = maintain([shop.pipeline], MaintenanceRun(shop.job()), lambda _: None, orphans=False)[shop.pipeline.name]
    assert [one.ended for one in kept] == [Status.DECISION_REQUIRED] * rows
    assert all("did not make this table" in one.why for one in kept)
    assert "Frazil did not make this table" in str(shop.verified().findings)
    assert shop.stored.metadata_location == before


def test_a_changed_name_neither_lands_nor_decides_anything(shop_of: ShopOf) -> None:
    """By the new name the rows would be landed again, and again by the old one once it is declared again."""
    shop = shop_of(**JSON)
    shop.produce(bodies({"id": 1, "day": "a"}), partition=0)
    shop.drain()
    shop.produce(bodies({"id": 2, "day": "a"}), partition=0)
    renamed = replace(shop.pipeline, name="renamed")
    remedy = f'Declare name="{shop.pipeline.name}" again'
    with pytest.raises(OtherPipeline, match=remedy):
        shop.drain(renamed)
    for event in Accepted.LEDGER_LOST, Accepted.ROLLED_BACK_HOLD:
        with pytest.raises(InvalidInput, match=f"that of pipeline {shop.pipeline.name}"):
            shop.accept(event, renamed)
    lake = Lake(shop.environment, Secrets({}).read)
    table = lake.table(shop.pipeline.table.identifier)
    assert table is not None
    (found,) = existing_table.said(renamed, table.layout)
    shown = status_of(renamed, table)
    assert remedy in found
    assert remedy in shown.why
    assert shown.state is State.STOPPED
    proof = verify(renamed, lake)
    assert f"that of pipeline {shop.pipeline.name}" in str(proof.findings)
    assert shop.drain().written == 1
    shop.assert_each_record_once()


def test_two_names_that_begin_on_one_table_leave_one(shop_of: ShopOf) -> None:
    """The second one finds the first one's commit when it begins, or in its own transaction."""
    shop = shop_of(**JSON)
    shop.produce(bodies({"id": 1, "day": "a"}), partition=0)
    other = replace(shop.pipeline, name="other")
    begun = list[int]()
    with pytest.raises(OtherPipeline, match='name="other"'):
        shop.drain(failpoint=once("publish.filled", lambda: begun.append(shop.drain(other).written)))
    assert begun == [1]
    assert len(shop.landed()) == 1


def test_a_dead_letter_table_of_another_engine_is_named_as_such(shop_of: ShopOf) -> None:
    shop = shop_of(**JSON)
    catalog = oracle.catalog(shop.lake)
    catalog.create_namespace_if_not_exists("shop")
    catalog.create_table(shop.pipeline.table.dead_letters, schema=pa.schema([("id", pa.int64())]))
    with pytest.raises(ForeignTable, match="dead_letters: Frazil did not make"):
        shop.drain()


def test_a_renamed_column_of_dead_letters_is_named(shop_of: ShopOf) -> None:
    shop = shop_of(**JSON)
    shop.produce([b"{"], partition=0)
    shop.drain()
    changed_columns(shop, lambda update: update.rename_column("offset", "off"), shop.pipeline.table.dead_letters)
    shop.produce([b"{"], partition=0)
    for run in (shop.drain, lambda: shop.verified()):
        with pytest.raises(ColumnsMissing, match="dead_letters.*RENAME COLUMN off TO offset"):
            run()


def test_a_view_of_the_name_is_no_table(shop_of: ShopOf) -> None:
    shop = shop_of(**JSON)
    shop.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    shop.sql("CREATE VIEW {} AS SELECT 1 AS id")
    shop.produce(bodies({"id": 1, "day": "a"}), partition=0)
    with pytest.raises(ForeignTable, match="a view, or a table of another format"):
        shop.drain()
    with pytest.raises(InvalidInput, match="no Iceberg table of this name, or it is a view"):
        shop.accept(Accepted.LEDGER_LOST)


# ── Required columns ────────────────────────────────────────────────────────────────────────────
REQUIRED = ("id long required", "`Order Day` string required", "extra json")
GOOD = {"id": 1, "Order Day": "a"}


@pytest.mark.parametrize("write", [Append(), Upsert(), Changelog()], ids=lambda mode: mode.kind)
def test_a_record_without_a_required_column_is_a_dead_letter_that_names_it(shop_of: ShopOf, write: Any) -> None:
    topic = {"value_format": "json", "columns": REQUIRED, "key_format": "text", "on_error": ErrorMode.DEAD_LETTER}
    shop = shop_of(**topic, write=write)
    bad = ({"hello": "x"}, {"id": 2}, {"id": None, "Order Day": "c"}, {"ID": 4, "Order Day": "d"})
    shop.produce(bodies(GOOD, *bad), partition=0)
    found = preview(shop.pipeline, shop.job(), None, count=10)
    assert shop.drain().rejected == {"required_null": 4}
    message = "a required column is null, or the record does not have it: "
    names = ["id, order_day", "order_day", "id", "id"]
    assert [row["message"] for row in sorted(shop.dead(), key=lambda row: row["offset"])] == [
        message + n for n in names
    ]
    assert [one.message for one in found.rejected] == [message + n for n in names]
    assert [(row["id"], row["order_day"]) for row in shop.landed()] == [(1, "a")]
    required = {field.name for field in shop.stored.schema().fields if field.required}
    assert required >= {"id", "order_day"} if isinstance(write, Append) else "id" not in required
    if not isinstance(write, Append):
        shop.produce([None], partition=0, key=b"0")  # a delete has no columns
        assert shop.drain().rejected == {}
    optional = replace(shop.pipeline, topic=varied(shop.pipeline.topic, columns=("id long", "`Order Day` string")))
    shop.produce(bodies({"id": 5}), partition=0, key=b"k")
    assert shop.drain(optional).rejected == {}
    assert {row["id"]: row["order_day"] for row in shop.landed()}[5] is None
    shop.produce(bodies({"id": 6}), partition=0, key=b"l")
    assert shop.drain().rejected == {"required_null": 1}
    shop.assert_proven(deep=False)


def test_a_batch_of_many_partitions_is_warned_about_once(shop_of: ShopOf) -> None:
    shop = shop_of(value_format="json", columns=("id long", "at timestamptz"), table={"partition_by": ("days(at)",)})
    days = [{"id": n, "at": f"2026-{n % 12 + 1:02}-{n // 12 % 28 + 1:02}T00:00:00Z"} for n in range(400)]
    for _ in range(2):
        shop.produce(bodies(*days), partition=0)
        found = preview(shop.pipeline, shop.job(), None, count=50)
        assert any(note.startswith("50 records are in 50 partitions") for note in found.notes)
    shop.drain()
    (warned,) = shop.seen("many_files")
    assert warned["message"].startswith(
        f"a batch of 800 rows made {warned['files']} data files: the table is partitioned"
    )
