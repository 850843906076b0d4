"""One look at the offsets of all topics of a run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from frazil.clients.kafka import Asked, Span, TopicOffsets
from frazil.declaration.options import Isolation
from frazil.errors import KafkaUnavailable
from frazil.job.offset_looks import OffsetLooks

LEVEL = Isolation.READ_COMMITTED


class Cluster:
    """Topics with one partition each, and how often their offsets were asked for."""

    def __init__(self) -> None:
        self.ends, self.asked, self.is_down = {"a": 5, "b": 7}, list[set[str]](), False
        self.epoch = 1

    def offsets_of(self, topics: Collection[tuple[str, Isolation]]) -> Asked:
        self.asked.append({name for name, _ in topics})
        if self.is_down:
            raise KafkaUnavailable("it is down")
        return {
            key: TopicOffsets(topic_id="x", spans={0: Span(0, self.ends[key[0]], self.epoch)})
            if key[0] in self.ends
            else KafkaUnavailable("there is no such topic")
            for key in topics
        }


def looking(cluster: Cluster, now: list[float]) -> OffsetLooks:
    kafka: Any = cluster
    return OffsetLooks(kafka, 2.0, clock=lambda: now[0])


def test_pipelines_share_a_look_and_a_new_one_has_its_own() -> None:
    cluster, now = Cluster(), [0.0]
    looks = looking(cluster, now)
    first = looks.of("a", LEVEL)
    assert first == ("x", ((0, 0, 5, 1),))
    assert looks.of("b", LEVEL) == ("x", ((0, 0, 7, 1),))
    cluster.ends["a"] = 6
    now[0] = 0.9
    assert looks.of("a", LEVEL) == first
    assert cluster.asked == [{"a"}, {"a", "b"}]
    now[0] = 1.9
    assert looks.of("a", LEVEL) == ("x", ((0, 0, 6, 1),))
    assert looks.of("b", LEVEL) == ("x", ((0, 0, 7, 1),))
    assert cluster.asked == [{"a"}, {"a", "b"}, {"a", "b"}]


def test_a_new_leader_is_another_answer() -> None:
    cluster, now = Cluster(), [0.0]
    looks = looking(cluster, now)
    first = looks.of("a", LEVEL)
    cluster.epoch, now[0] = 2, 5.0
    assert looks.of("a", LEVEL) != first


def test_what_is_not_known_is_no_answer_and_is_asked_again() -> None:
    cluster, now = Cluster(), [0.0]
    looks = looking(cluster, now)
    assert looks.of("gone", LEVEL) is None
    cluster.is_down, now[0] = True, 5.0
    assert looks.of("a", LEVEL) is None
    cluster.is_down, now[0] = False, 10.0
    assert looks.of("a", LEVEL) is not None
