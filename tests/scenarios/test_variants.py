"""Columns that hold JSON are variants, in tables of format version 3, from the record to the readers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from pyiceberg.exceptions import ValidationError
from pyspark.sql import SparkSession

from frazil.clients.secrets import Secrets
from frazil.declaration import Changelog, Debezium, Json, Pipeline, Table, Topic, Upsert
from frazil.declaration.catalogs import LocalCatalog
from frazil.errors import InvalidInput
from frazil.ingest.proof_landing import replay
from frazil.ingest.setup.table_setup import make_tables
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.read.scan import rows
from frazil.lake.read.stored_tables import Lake, StoredTable, lineage
from frazil.local.query.answer import answer
from frazil.maintain.target import Status
from frazil.schemas.declared_columns import declared_type
from frazil.schemas.json_columns import with_variants
from tests.cli.pipelines.test_query_page import needs_trino
from tests.scenarios.test_changelog_views import create_views
from tests.support import trino_server
from tests.support.debezium_events import PLACEHOLDER
from tests.support.declared_schemas import json_file
from tests.support.duckdb_reader import ask
from tests.support.jobs import job
from tests.support.keyed_topic import record
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.topics import bodies, redeclared

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
VARIANTS = {"format_version": 3, "json_columns": "variant"}


def stored(shop: Shop) -> StoredTable:
    found = Lake(shop.lake, Secrets({}).read).table(shop.pipeline.table.identifier)
    assert found is not None
    return found


def types(shop: Shop) -> dict[str, str]:
    return {f.name: str(f.type) for f in stored(shop).columns.fields if not f.name.startswith(("_kafka", "_ing"))}


def in_spark(shop: Shop, *columns: str) -> list[tuple[Any, ...]]:
    """Return these expressions of all rows, in the order of the records."""
    order = "ORDER BY _kafka_partition, _kafka_offset"
    return [tuple(row) for row in shop.sql(f"SELECT {', '.join(columns)} FROM {{}} {order}").collect()]


def in_duckdb(shop: Shop, *columns: str) -> list[tuple[Any, ...]]:
    order = "ORDER BY _kafka_partition, _kafka_offset"
    return ask(stored(shop).version, f"SELECT {', '.join(columns)} FROM lake_table {order}")[1]


@pytest.mark.long
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
    shop.assert_proven()


@pytest.mark.long
def test_pyiceberg_itself_refuses_such_a_table(shop_of: ShopOf) -> None:
    """If this test fails, PyIceberg reads variants, and `variant_metadata` can be removed."""
    shop = shop_of(value_format="json", columns=("extra json",), table=VARIANTS)
    shop.produce(bodies({"extra": 1}), partition=0)
    shop.drain()
    with pytest.raises(ValidationError, match="Unsupported field type: 'variant'"):
        shop.landed()
    with pytest.raises(ValueError, match="field-ids"):  # nor does its scan read a variant as another value
        list(rows(stored(shop), ["extra"]))


@pytest.mark.long
def test_a_state_with_variants_is_updated_compacted_and_verified(shop_of: ShopOf) -> None:
    shop = shop_of(value_format="json", columns=("a json",), key_format="text", write=Upsert(), table=VARIANTS)
    for number in range(8):
        shop.produce(bodies({"a": {"n": number}}), key=b"%d" % number, partition=0)
    shop.drain()
    for number in range(3):
        shop.produce(bodies({"a": [number, None]}), key=b"%d" % number, partition=0)
    shop.produce([None], key=b"7", partition=0)
    shop.drain(redeclared(shop.pipeline, columns=("a json", "b json")))
    found = dict(in_spark(shop, "_kafka_key", "to_json(a)"))
    wanted = {**{str(n): f"[{n},null]" for n in range(3)}, **{str(n): f'{{"n":{n}}}' for n in range(3, 7)}}
    assert found == wanted
    shop.assert_proven()
    assert {
        r[0]: json.dumps(json.loads(r[1]), separators=(",", ":")) for r in in_duckdb(shop, "_kafka_key", "a::JSON")
    } == wanted
    compacted = shop.compact()
    assert (compacted.ended, compacted.files_added) == (Status.DONE, 1)
    assert dict(in_spark(shop, "_kafka_key", "to_json(a)")) == wanted
    shop.assert_proven()


@pytest.mark.long
def test_json_inside_avro_and_its_lists_lands_as_variants(shop_of: ShopOf) -> None:
    """A recursive type is columns down to a level, and then JSON."""
    trees = {"type": "array", "items": record("Tree", v="int", next=["null", "Tree"])}
    by_name = {"type": "map", "values": "Tree"}
    schema = record("R", trees=trees, by_name=by_name, nothing=record("Nothing"))
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
    shop.assert_proven()


@pytest.mark.long
def test_a_state_with_soft_deletes_keeps_variants_and_is_what_its_topic_comes_to(
    shop_of: ShopOf, tmp_path: Path
) -> None:
    columns = {"columns": ("n long", "a json"), "key_columns": ("id long", "n long")}
    shop = shop_of(value_format="json", key_format="json", write=Upsert(), table=VARIANTS, **columns)
    for number in range(4):
        shop.produce(bodies({"n": 1, "a": [number]}), key=f'{{"id": {number}, "n": 1}}'.encode(), partition=0)
    shop.drain()
    soft = replace(shop.pipeline, write=Upsert(on_tombstone="soft_delete"))
    shop.produce([None], key=b'{"id": 1, "n": 1}', partition=0)
    shop.produce(bodies({"n": 1, "a": {"k": None}}), key=b'{"id": 2, "n": 1}', partition=0)
    shop.drain(soft)
    found = {key: (a, gone) for key, a, gone in in_spark(shop, "id", "to_json(a)", "_deleted_at IS NOT NULL")}
    assert found == {0: ("[0]", False), 1: ("[1]", True), 2: ('{"k":null}', False), 3: ("[3]", False)}
    shop.assert_proven()
    replayed = replay(soft, shop.job(), shop.registry(), shop.environment, tmp_path)
    assert (replayed.findings, replayed.rows) == ((), 3)


@pytest.mark.long
def test_a_variant_that_a_change_leaves_out_comes_from_the_row(shop_of: ShopOf) -> None:
    """Debezium writes an object of its placeholder for an hstore that the change did not touch."""

    def event(op: str, number: int, attrs: Any) -> list[bytes | None]:
        source = {"lsn": number, "ts_ms": 1_700_000_000_000 + number}
        return bodies({"op": op, "before": None, "after": {"id": 1, "attrs": attrs}, "source": source, "ts_ms": 1})

    long, text = {"type": "integer"}, {"type": "string"}
    row = {"type": "object", "properties": {"id": long, "attrs": {"type": "object"}}}
    source = {"type": "object", "properties": {"lsn": long, "ts_ms": long}}
    value = {"type": "object", "properties": {"op": text, "before": row, "after": row, "source": source, "ts_ms": long}}
    key = {"type": "object", "properties": {"id": long}}
    shop = shop_of(
        value_format="json_schema",
        key_format="json_schema",
        schema=(json_file(value),),
        key_schema=(json_file(key, "key.json"),),
        envelope=Debezium(),
        write=Upsert(),
        table=VARIANTS,
    )
    shop.produce(event("c", 1, {"a": "b"}), key=b'{"id": 1}', partition=0)
    shop.drain()
    shop.produce(event("u", 2, {PLACEHOLDER: PLACEHOLDER}), key=b'{"id": 1}', partition=0)
    shop.drain()
    assert in_spark(shop, "to_json(attrs)") == [('{"a":"b"}',)]
    shop.produce(event("u", 3, {"c": 1}), key=b'{"id": 1}', partition=0)
    shop.produce(event("u", 4, {PLACEHOLDER: PLACEHOLDER}), key=b'{"id": 1}', partition=0)
    shop.drain()
    assert in_spark(shop, "to_json(attrs)") == [('{"c":1}',)]


@pytest.mark.long
def test_a_changelog_and_its_views_have_variants(shop_of: ShopOf) -> None:
    shop = shop_of(value_format="json", columns=("a json",), key_format="text", write=Changelog(), table=VARIANTS)
    for value in ([1], {"b": 2}):
        shop.produce(bodies({"a": value}), key=b"k", partition=0)
        shop.drain()
    assert in_spark(shop, "to_json(a)", "_op") == [("[1]", "w"), ('{"b":2}', "w")]
    shop.assert_proven()
    view = create_views(shop)
    found = shop.spark.sql(f"SELECT to_json(a) AS a FROM {view}__state").collect()
    assert [row["a"] for row in found] == ['{"b":2}']


@pytest.mark.long
@pytest.mark.parametrize("catalog", ["rest_lake", "glue_lake"])
def test_other_catalogs_have_such_tables_too(shop_of: ShopOf, request: pytest.FixtureRequest, catalog: str) -> None:
    """Older metadata files are read as well: expiry removed the snapshots between."""
    shop = shop_of(value_format="json", columns=("a json",), table=VARIANTS)
    shop.lake = request.getfixturevalue(catalog)
    for number in range(3):
        shop.produce(bodies({"a": {"n": number}}), partition=0)
        shop.drain()
    assert types(shop) == {"a": "variant"}
    assert in_spark(shop, "to_json(a)") == [(f'{{"n":{number}}}',) for number in range(3)]
    assert len(list(lineage(stored(shop).iceberg))) == 4
    shop.assert_proven()


@pytest.mark.parametrize("field", ["partition_by", "sort_by"])
def test_rows_are_not_partitioned_or_sorted_by_variants(spark: SparkSession, iceberg: Iceberg, field: str) -> None:
    pipeline = Pipeline(
        topic=Topic("t", value=Json(columns=("a json",))), table=Table("x.refused", **VARIANTS, **{field: ("a",)})
    )
    with pytest.raises(InvalidInput, match="a is a variant") as refused:
        make_tables(job(iceberg), pipeline, with_variants(declared_type(("a json",))))
    assert field in refused.value.where
    assert not iceberg.exists("x.refused")


PAGE = Path(__file__).parents[2] / "docs" / "query.md"


def expressions(engine: str) -> list[str]:
    """Return what docs/query.md has for an engine: of a column that is text, and of one that is a variant."""
    (line,) = [line for line in PAGE.read_text().splitlines() if re.match(rf"\| {engine}.*\bextra\b", line)]
    return re.findall(r"`([^`]*extra[^`]*)`", line)


@pytest.mark.long
@pytest.mark.parametrize(("place", "table"), enumerate(({}, VARIANTS)))
def test_the_expressions_of_the_page_read_text_and_variants(shop_of: ShopOf, place: int, table: dict[str, Any]) -> None:
    shop = shop_of(value_format="json", columns=("extra json",), table=table)
    shop.produce(bodies({"extra": {"a": "é"}}, {"extra": {"a": 7}}), partition=0)
    shop.drain()
    assert in_spark(shop, expressions("Spark SQL")[place]) == [("é",), ("7",)]
    assert in_duckdb(shop, expressions("DuckDB")[place]) == [("é",), ("7",)]
    (in_trino,) = expressions("Trino")
    sqlglot.parse_one(f"SELECT {in_trino} FROM t", read="trino")


@pytest.mark.long
def test_frazil_query_shows_a_table_by_its_name_with_json_in_place_of_variants(shop_of: ShopOf) -> None:
    shop = shop_of(value_format="json", columns=("id long", "extra json"), table=VARIANTS)
    shop.produce(bodies({"id": 1, "extra": {"a": "é", "n": None}}, {"id": 2}), partition=0)
    shop.drain()
    lake, name = Lake(shop.lake, Secrets({}).read), shop.pipeline.name
    shown = answer(name, [shop.pipeline], lake)
    assert [(column.name, column.type) for column in shown.columns[:2]] == [("id", "BIGINT"), ("extra", "JSON")]
    assert sorted(row[:2] for row in shown.rows) == [(1, '{"a":"é","n":null}'), (2, None)]
    assert answer(f"SELECT extra::JSON->>'$.a' FROM {name} WHERE id = 1", [shop.pipeline], lake).rows == (("é",),)
    with pytest.raises(InvalidInput, match="VARIANT") as refused:
        answer(f"SELECT extra FROM {name}", [shop.pipeline], lake)
    assert refused.value.do == "Cast it to JSON"


@needs_trino
def test_trino_does_not_read_such_a_table(shop_of: ShopOf, tmp_path: Path) -> None:
    shop = shop_of(value_format="json", columns=("id long", "extra json"), table=VARIANTS)
    shop.produce(bodies({"id": 1}), partition=0)
    shop.drain()
    assert isinstance(shop.lake.catalog, LocalCatalog)
    with trino_server.trino(tmp_path, shop.lake.catalog, {}) as running, pytest.raises(AssertionError, match="variant"):
        running.ask(f"SELECT id FROM lake.{shop.pipeline.table.identifier}")
