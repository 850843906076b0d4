"""What `frazil preview` shows is what a run then lands and rejects; it writes nothing itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.clients.secrets import Secrets
from frazil.declaration import Debezium, ErrorMode, Upsert
from frazil.errors import InvalidInput, WriteModeDiffers
from frazil.ingest.preview.preview import Preview, preview
from tests.support.debezium_events import Source
from tests.support.documents import written
from tests.support.shop import ORDER, Shop, ShopOf, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
WIDER = {**ORDER, "fields": [*ORDER["fields"], {"name": "coupon", "type": ["null", "string"], "default": None}]}


def previewed(shop: Shop, count: int = 50, **more: Any) -> Preview:
    return preview(more.pop("pipeline", shop.pipeline), shop.job(), shop.registry(), count=count, **more)


def columns(shop: Shop) -> list[str]:
    """The table's columns without those of a record's place."""
    names = [field.name for field in shop.stored.schema().fields]
    return [name for name in names if not name.startswith("_kafka") and name != "_ingested_at"]


def check(shop: Shop, found: Preview) -> None:
    """Check that a run makes of each record what was shown."""
    assert [name for name, _ in found.columns] == columns(shop)
    landed = {(row["_kafka_partition"], row["_kafka_offset"]): row for row in shop.landed()}
    shown = {(row.partition, row.offset): row.values for row in found.rows}
    assert landed.keys() == shown.keys()
    for place, values in shown.items():
        assert {name: landed[place][name] for name in values} == dict(values)
    dead = {(row["partition"], row["offset"]): (row["reason"], row["schema_id"]) for row in shop.dead()}
    assert {(r.partition, r.offset): (r.reason, r.schema_id) for r in found.rejected} == dead
    assert all(r.message for r in found.rejected)


def test_the_records_key_is_shown_where_it_is_the_rows_key(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    shop.produce(shop.orders(1, shop.register()), key=b"k1", partition=0)
    shop.produce([None], key=b"k2", partition=0)
    found = previewed(shop)
    assert [(row.operation, row.values["_kafka_key"]) for row in found.rows] == [("write", "k1"), ("delete", "k2")]


@pytest.mark.long
def test_rows_and_reasons_are_those_of_a_run_and_nothing_is_written(shop: Shop) -> None:
    schema_id = shop.register(ORDER)
    bad = [b"hello", None, b"\0\0", frame(2_000_000_001, b"x"), frame(schema_id, b"\x02")]
    shop.produce([*shop.orders(4, schema_id), *bad])
    found = previewed(shop)
    assert not found.table_exists
    assert not any(shop.job().iceberg.exists(table) for table in shop.pipeline.tables)
    admin = AdminClient({"bootstrap.servers": shop.world.bootstrap})  # a collected client never answers
    groups = admin.list_consumer_groups().result(timeout=60).valid
    assert f"frazil-{shop.pipeline.name}" not in {group.group_id for group in groups}
    assert found.columns == (("order_id", "long"), ("user", "string"), ("amount", "double"))
    assert {one.reason for one in found.rejected} >= {"wrong_magic", "tombstone", "too_short", "unknown_schema"}
    shop.drain()
    check(shop, found)

    shop.register(WIDER)
    again = previewed(shop)
    assert again.changes == ("column coupon added, string",)
    assert again.table_exists
    assert "coupon" not in columns(shop)  # the table is as it was
    keyed = Upsert(key=("order_id",))
    with pytest.raises(WriteModeDiffers):
        previewed(shop, pipeline=replace(shop.pipeline, write=keyed, on_error=ErrorMode.DEAD_LETTER))


@pytest.mark.long
def test_changes_of_a_source_show_their_key_and_operation(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="avro", envelope=Debezium(), on_error=ErrorMode.DEAD_LETTER)
    source = Source(shop, partitions=1)
    source.write("r", 1, customer="a")
    source.write("u", 1, customer="b")
    source.write("c", 2, customer="c")
    source.delete(2)
    shop.produce([b"no change"], partition=0, key=b"no key")
    found = previewed(shop)
    assert found.key == ("id",)
    shown = [(row.operation, row.values["id"], row.values["customer"]) for row in found.rows]
    assert shown == [
        ("write", 1, "a"),
        ("write", 1, "b"),
        ("write", 2, "c"),
        ("delete", 2, None),
        ("delete", 2, None),  # the tombstone behind it
    ]
    shop.drain()
    assert [(row["id"], row["customer"]) for row in shop.landed()] == [(1, "b")]
    (dead,) = shop.dead()
    assert [(one.offset, one.reason) for one in found.rejected] == [(dead["offset"], dead["reason"])]


def test_a_topic_without_a_schema_says_what_it_waits_for(shop: Shop) -> None:
    shop.produce([b'{"a": 1}'])
    found = previewed(shop)
    assert (found.rows, found.columns) == ((), ())
    assert f"waiting for a schema in subject {shop.topic}-value" in found.waiting
    assert "declare the format json" in found.waiting


def test_a_partition_field_without_a_column_is_refused_as_by_a_run(shop_of: ShopOf) -> None:
    shop = shop_of(table={"partition_by": ("days(nowhere)",)})
    shop.register(ORDER)
    with pytest.raises(InvalidInput, match="nowhere is not a column"):
        previewed(shop)


@pytest.mark.long
def test_the_command_prints_rows_and_reasons(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def local_job(*_: Any, **__: Any) -> Iterator[Any]:
        yield shop.job()

    monkeypatch.setattr("frazil.cli.pipelines.preview.local_job", local_job)  # Spark's session is that of the tests
    schema_id = shop.register(ORDER)
    shop.produce([*shop.orders(2, schema_id), b"hello"], partition=0)
    chosen = written(tmp_path, [shop.pipeline], shop.environment)
    ended = CliRunner().invoke(app, ["preview", shop.pipeline.name, *chosen], obj=Secrets({}))
    assert ended.exit_code == 0, ended.output
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert ["0", "1", "1", "u1", "0.25"] in lines
    assert any(line[:3] == ["0", "2", "wrong_magic"] for line in lines)
    assert f"A run keeps rejected records in {shop.pipeline.table.dead_letters}" in ended.stdout
    ended = CliRunner().invoke(
        app, ["preview", shop.pipeline.name, "--json", "--records", "1", *chosen], obj=Secrets({})
    )
    shown = json.loads(ended.stdout)
    assert (shown["table_exists"], shown["rows"], len(shown["rejected"])) == (False, [], 1)
