"""Columns that hold JSON are variants, in tables of format version 3, from the record to the readers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.exceptions import ValidationError

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import KeyFormat, Pipeline, Upsert, ValueFormat
from frazil.lake.read.stored_tables import Lake, StoredTable
from frazil.local.duckdb_query import ask
from frazil.maintain.compact import compact
from frazil.maintain.lease import Lease
from frazil.maintain.result import Status
from frazil.maintain.target import MaintenanceRun, Target
from tests.support.committed_table import EAGER
from tests.support.shop import Shop, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]
VARIANTS = {"format_version": 3, "json_columns": "variant"}


def bodies(*values: Any) -> list[bytes | None]:
    return [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]


def stored(shop: Shop) -> StoredTable:
    found = Lake(shop.lake, Secrets({}).read).table(shop.pipeline.table.identifier)
    assert found is not None
    return found


def types(shop: Shop) -> dict[str, str]:
    return {f.name: str(f.type) for f in stored(shop).columns.fields if not f.name.startswith(("_kafka", "_ing"))}


def in_spark(shop: Shop, *columns: str) -> list[tuple[Any, ...]]:
    """Return these expressions of all rows, in the order of the records."""
    table = f"{shop.lake.catalog.name}.{shop.pipeline.table.identifier}"
    order = "ORDER BY _kafka_partition, _kafka_offset"
    return [tuple(row) for row in shop.spark.sql(f"SELECT {', '.join(columns)} FROM {table} {order}").collect()]


def in_duckdb(shop: Shop, *columns: str) -> list[tuple[Any, ...]]:
    order = "ORDER BY _kafka_partition, _kafka_offset"
    return ask(stored(shop).version, f"SELECT {', '.join(columns)} FROM lake_table {order}")[1]


def redeclared(pipeline: Pipeline, **topic: Any) -> Pipeline:
    return replace(pipeline, topic=replace(pipeline.topic, **topic))


def assert_verified(shop: Shop) -> None:
    for deep in (False, True):
        found = verify(shop.pipeline, Lake(shop.lake, Secrets({}).read), deep=deep)
        assert found.findings == (), found


def test_unknown_fields_and_json_columns_land_as_variants(shop_of: ShopOf) -> None:
    """A column that is declared later is a variant, too; numbers keep their digits, or their record is rejected."""
    shop = shop_of(value_format="json", columns=("id long", "extra json"), unknown_fields="keep", table=VARIANTS)
    shop.produce(bodies({"id": 1, "extra": {"b": [1.50, None], "a": "é"}, "more": 2**100}), partition=0)
    shop.produce(bodies({"id": 2, "extra": None}, {"id": 3, "extra": [10**38]}, {"id": 4, "x": 10**38}), partition=0)
    assert shop.drain().rejected == {"undecodable": 2}
    later = redeclared(shop.pipeline, columns=("id long", "extra json", "late json"))
    shop.produce(bodies({"id": 5, "late": "text", "more": {"k": 1}}), partition=0)
    shop.drain(later)
    assert types(shop) == {"id": "long", "extra": "variant", "_unknown": "variant", "late": "variant"}
    assert in_spark(shop, "id", "to_json(extra)", "to_json(_unknown)", "to_json(late)") == [
        (1, '{"a":"é","b":[1.5,null]}', '{"more":1267650600228229401496703205376}', None),
        (2, None, None, None),
        (5, None, '{"more":{"k":1}}', '"text"'),
    ]
    assert in_duckdb(shop, "id", "extra::JSON->>'a'", "extra IS NULL", "late::VARCHAR") == [
        (1, "é", False, None),
        (2, None, True, None),
        (5, None, True, "text"),
    ]
    assert in_spark(shop, "_kafka_partition", "_kafka_offset") == [(0, 0), (0, 1), (0, 4)]
    assert_verified(shop)


@pytest.mark.long
def test_pyiceberg_itself_refuses_such_a_table(shop_of: ShopOf) -> None:
    """If this test fails, PyIceberg reads variants, and `variant_metadata` can be removed."""
    shop = shop_of(value_format="json", columns=("extra json",), table=VARIANTS)
    shop.produce(bodies({"extra": 1}), partition=0)
    shop.drain()
    with pytest.raises(ValidationError, match="Unsupported field type: 'variant'"):
        shop.landed()


@pytest.mark.long
@pytest.mark.parametrize("deletes", ["merge_on_read", "copy_on_write"])
def test_a_state_with_variants_is_updated_compacted_and_verified(shop_of: ShopOf, deletes: str) -> None:
    write = Upsert(deletes=deletes)
    shop = shop_of(value_format="json", columns=("a json",), key_format=KeyFormat.TEXT, write=write, table=VARIANTS)
    for number in range(8):
        shop.produce(bodies({"a": {"n": number}}), key=b"%d" % number, partition=0)
    shop.drain()
    for number in range(3):
        shop.produce(bodies({"a": [number, None]}), key=b"%d" % number, partition=0)
    shop.produce([None], key=b"7", partition=0)
    shop.drain(redeclared(shop.pipeline, columns=("a json", "b json")))
    rows = {key: a for key, a in in_spark(shop, "_kafka_key", "to_json(a)")}
    wanted = {**{str(n): f"[{n},null]" for n in range(3)}, **{str(n): f'{{"n":{n}}}' for n in range(3, 7)}}
    assert rows == wanted
    assert_verified(shop)
    assert {r[0]: json.dumps(json.loads(r[1]), separators=(",", ":")) for r in in_duckdb(shop, "_kafka_key", "a::JSON")} == wanted
    compacted = compact(MaintenanceRun(shop.job(), EAGER), Target(shop.pipeline, is_dead_letter_table=False), Lease())
    assert (compacted.ended, compacted.files_added) == (Status.DONE, 1)
    assert {key: a for key, a in in_spark(shop, "_kafka_key", "to_json(a)")} == wanted
    assert_verified(shop)


@pytest.mark.long
def test_json_inside_avro_and_its_lists_lands_as_variants(shop_of: ShopOf) -> None:
    """A recursive type is columns down to a level, and then JSON."""
    tree = {"type": "record", "name": "Tree", "fields": [
        {"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Tree"], "default": None}
    ]}
    schema = {"type": "record", "name": "R", "fields": [
        {"name": "trees", "type": {"type": "array", "items": tree}},
        {"name": "by_name", "type": {"type": "map", "values": "Tree"}},
        {"name": "nothing", "type": {"type": "record", "name": "Nothing", "fields": []}},
    ]}
    shop = shop_of(table=VARIANTS)
    number = shop.register(schema)
    deep: dict[str, Any] = {"v": 5, "next": None}
    for level in range(4, 0, -1):
        deep = {"v": level, "next": deep}
    value = {"trees": [{"v": 0, "next": None}, deep], "by_name": {"x": deep}, "nothing": {}}
    shop.produce([frame(number, avro(schema, value))], partition=0)
    assert not shop.drain().rejected
    assert "variant" in types(shop)["trees"]
    assert in_spark(shop, "to_json(nothing)", "to_json(trees[0].next)", "to_json(trees[1].next.next.next)") == [
        ("{}", None, '{"next":{"v":5},"v":4}')
    ]
    assert in_spark(shop, "to_json(by_name['x'].next.next.next)") == [('{"next":{"v":5},"v":4}',)]
    assert in_duckdb(shop, "nothing::VARCHAR", "by_name['x'].next.next.next::JSON->>'v'") == [("{}", "4")]
    assert_verified(shop)
