"""The statements of the race of state tables, and the records that it is about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.contenders.merge_text import merge_statement
from bench.fill import key
from bench.peers.flink_state import insert, optional, source, state_row
from bench.peers.state_topics import KEY, changes, loaded, produced
from bench.shapes import SHAPES
from bench.topics import Job, Topic
from frazil.declaration import Environment, Kafka, LocalCatalog, Registry, canonical, environment_document

SHAPE = SHAPES["keyed_avro"]
TOPIC = Topic(name="orders", shape=SHAPE.name, rows=0, partitions=4, schema_id=1, keys=300_000, is_scattered=True)
LAKE = Environment(
    name="local",
    kafka=Kafka(bootstrap="broker:9092"),
    registry=Registry(url="http://registry:8081"),
    catalog=LocalCatalog(path="/lake.db", warehouse="/lake"),
)


def test_flink_follows_a_topic_as_the_changes_of_a_table_with_a_key(tmp_path: Path) -> None:
    file = tmp_path / "environment.json"
    file.write_bytes(canonical(environment_document(LAKE)))
    job = Job(
        contender="flink_state", environment_file=str(file), broker_pid=1, timed=TOPIC, table="bench.t", folder=""
    )
    declared = source(job, TOPIC)
    assert declared.startswith(
        "CREATE TEMPORARY TABLE IF NOT EXISTS `orders` (`id` BIGINT, `at` BIGINT, `user` ROW<`id` BIGINT, "
    )
    assert (
        f"`{KEY}` STRING NOT NULL, PRIMARY KEY (`{KEY}`) NOT ENFORCED) WITH ('connector' = 'upsert-kafka'" in declared
    )
    assert "'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://registry:8081'" in declared
    assert "scan." not in declared  # it begins at the first record, and does not end
    inserted = insert(SHAPE, TOPIC, "bench.t")
    assert inserted.startswith("INSERT INTO lake.bench.t SELECT `id`, TO_TIMESTAMP_LTZ(`at`, 3), `user`, ")
    assert inserted.endswith("`_kafka_timestamp`, `_kafka_key` FROM `orders`")
    assert inserted.count(", `") + 1 >= len(state_row(SHAPE).fields) - 1


def test_a_record_without_a_value_leaves_every_column_null() -> None:
    schema = optional(json.loads(SHAPE.schema))
    assert all("null" in field["type"] for field in schema["fields"])
    user = schema["fields"][2]["type"][1]
    assert user["fields"][0] == {"name": "id", "type": ["null", "long"], "default": None}
    items = schema["fields"][4]["type"][1]["items"]
    assert items["fields"][0] == {"name": "sku", "type": "string"}


def test_a_merge_updates_inserts_and_deletes_by_key() -> None:
    assert merge_statement("lake.t", "batch", ["k", "v"], key="k", is_delete="gone") == (
        "MERGE INTO lake.t t USING batch s ON t.k = s.k WHEN MATCHED AND s.gone THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.k = s.k, t.v = s.v "
        "WHEN NOT MATCHED AND NOT s.gone THEN INSERT (k, v) VALUES (s.k, s.v)"
    )


@pytest.mark.parametrize("keys", [6_000, 300_000])
def test_a_batch_is_a_tenth_of_the_keys_and_mostly_updates_of_rows_everywhere(keys: int) -> None:
    topic = Topic(name="orders", shape=SHAPE.name, rows=0, partitions=4, schema_id=1, keys=keys, is_scattered=True)
    found = changes(topic)
    assert (found.load, found.load + found.batch) == (loaded(topic), produced(topic))
    assert loaded(topic) % topic.partitions == produced(topic) % topic.partitions == 0
    assert abs(found.batch - keys // 10) < topic.partitions
    assert abs(found.updates / found.batch - 0.8) < 0.02
    assert abs(found.deletes / found.batch - 0.1) < 0.02
    assert found.live == keys - found.deletes
    places = {key(topic, number)[0]: number for number in range(keys)}
    touched = [places[key(topic, number)[0]] * 10 // keys for number in range(keys, produced(topic))]
    assert min(touched.count(part) for part in range(10)) > len(touched) / 20
