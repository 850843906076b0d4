"""A peer's columns are those of the shape's schema, and Flink's source reads them as they are written."""

from __future__ import annotations

import json

from bench.peers.columns import selected, source_columns, table_row
from bench.peers.flink import without_instants
from bench.shapes import SHAPES


def test_flinks_source_has_the_types_and_nulls_of_an_avro_schema() -> None:
    found = source_columns(SHAPES["nested_avro"])
    assert found[:2] == ["`id` BIGINT NOT NULL", "`at` BIGINT NOT NULL"]
    assert found[2] == "`user` ROW<`id` BIGINT NOT NULL, `country` STRING NOT NULL, `tier` STRING NOT NULL> NOT NULL"
    assert found[4].startswith("`items` ARRAY<ROW<`sku` STRING NOT NULL, `quantity` INT NOT NULL")
    assert found[-1] == "`coupon` STRING"


def test_a_number_becomes_the_instant_that_it_means() -> None:
    assert list(selected(SHAPES["nested_avro"]))[:3] == ["`id`", "TO_TIMESTAMP_LTZ(`at`, 3)", "`user`"]
    assert list(selected(SHAPES["light_json"]))[:2] == ["`id`", "`at`"]
    schema = without_instants(json.loads(SHAPES["nested_avro"].schema))
    assert schema["fields"][1] == {"name": "at", "type": {"type": "long"}}


def test_json_has_instants_and_every_field_may_be_absent() -> None:
    assert source_columns(SHAPES["light_json"])[:3] == ["`id` BIGINT", "`at` TIMESTAMP_LTZ(3)", "`user` BIGINT"]


def test_a_peers_table_has_four_metadata_columns_or_none() -> None:
    names = [field.name for field in table_row(SHAPES["wide_avro"], coordinates=True).fields]
    assert names[-4:] == ["_kafka_topic", "_kafka_partition", "_kafka_offset", "_kafka_timestamp"]
    assert len(table_row(SHAPES["wide_avro"], coordinates=False).fields) == len(names) - 4
