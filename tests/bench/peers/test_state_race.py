"""The statements of the race of state tables, and the records that it is about."""

from __future__ import annotations

import pytest

from bench.fill import key
from bench.peers.state_topics import changes, loaded, produced
from bench.shapes import SHAPES
from bench.topics import Topic

SHAPE = SHAPES["keyed_avro"]


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
