"""Topics by a pattern: each is a table of its own, also one that is made while the run goes on."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from frazil.clients.kafka import Kafka
from frazil.clients.registry.schemas import SchemaType
from frazil.clients.secrets import Secrets
from frazil.declaration import Json, Pipeline, RecordName, Table, Topic, Upsert, canonical, each_topic, routes
from frazil.declaration.documents.document import document
from frazil.declaration.several.topic_pattern import TopicPattern
from frazil.errors import CatalogUnavailable, InvalidInput, KafkaUnavailable
from frazil.ingest import runner
from frazil.ingest.guard import Outcome
from frazil.job.matched_topics import MatchedTopics
from frazil.lake.read.stored_tables import Lake
from tests.scenarios.test_follow import Following
from tests.support import oracle
from tests.support.kafka_broker import KafkaBroker
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
COLUMNS = ("id long",)


class Topics:
    """Topics whose names begin with the shop's, and a pattern that matches them."""

    def __init__(self, shop: Shop, **shared: Any) -> None:
        self.shop, self.broker = shop, KafkaBroker(shop.world.bootstrap, log_level=0)
        options = {"value": Json(columns=COLUMNS), "exclude": r".*\.internal", **shared}
        self.pattern = each_topic(rf"{shop.topic}\.(?P<of>.*)", table=f"shop.{shop.topic}_{{of}}", **options)

    def produce(self, of: str, numbers: Sequence[int], *, partitions: int = 1) -> None:
        """Create a topic and produce these ids as JSON."""
        self.send(of, [json.dumps({"id": number}).encode() for number in numbers], partitions=partitions)

    def send(self, of: str, values: Sequence[bytes], *, partitions: int = 1) -> None:
        """Create a topic if there is none, and produce these values, each with its number as its key."""
        producer = Producer({"bootstrap.servers": self.shop.world.bootstrap, "log_level": 0})
        if f"{self.shop.topic}.{of}" not in producer.list_topics(timeout=10).topics:
            self.broker.create(f"{self.shop.topic}.{of}", partitions=partitions)
        for number, value in enumerate(values):
            producer.produce(f"{self.shop.topic}.{of}", value, key=str(number).encode())
        assert producer.flush(20) == 0

    def delete(self, of: str) -> None:
        self.broker.delete(f"{self.shop.topic}.{of}")

    def matched(self, *patterns: TopicPattern, names: Collection[str] | None = None, **options: Any) -> MatchedTopics:
        """Return the topics of the pattern; those that exist, or `names`."""
        kafka = Kafka(self.shop.environment.kafka, Secrets({}))
        lake = Lake(self.shop.lake, Secrets({}).read)
        declared = options.pop("declared", ())
        return MatchedTopics(
            patterns or (self.pattern,), declared, lake, kafka.names if names is None else lambda: names, **options
        )

    def drain(self, *patterns: TopicPattern, **options: Any) -> dict[str, Outcome]:
        """Land all topics that match."""
        shop = self.shop
        topics = self.matched(*patterns, **options)
        return runner.drain((), shop.job(), shop.registry(), shop.events.append, topics=topics, probe=False)

    def pipeline(self, of: str) -> Pipeline:
        return self.pattern.pipeline_of(f"{self.shop.topic}.{of}")

    def ids(self, of: str) -> list[int]:
        """Return the ids in the table of a topic, which is proven."""
        pipeline = self.pipeline(of)
        self.shop.assert_proven(pipeline)
        return sorted(row["id"] for row in oracle.rows(self.shop.lake, pipeline.table.identifier))


def test_each_matching_topic_lands_in_its_table_and_no_other(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("orders", range(5), partitions=2)
    topics.produce("pay-ments", range(3))
    topics.produce("x.internal", range(2))
    ended = topics.drain()
    assert sorted(ended) == sorted(f"{topics.shop.topic}_{of}" for of in ("orders", "pay_ments"))
    assert not any(outcome.error for outcome in ended.values())
    assert (topics.ids("orders"), topics.ids("pay-ments")) == ([0, 1, 2, 3, 4], [0, 1, 2])
    (matched,) = topics.shop.seen("topics_matched")
    assert matched["topics"] == 2
    topics.produce("orders", [7])
    topics.produce("new", [9])
    topics.drain()
    assert (topics.ids("orders"), topics.ids("new")) == ([0, 1, 2, 3, 4, 7], [9])


@pytest.mark.parametrize("mode", first_short(["append", "upsert"]))
@pytest.mark.parametrize("form", first_short(["avro", "json_schema", "protobuf"]))
def test_topics_with_schemas_of_their_own_become_tables_of_their_own(shop_of: ShopOf, form: str, mode: str) -> None:
    shop = shop_of()
    topics = Topics(shop, value=form, **({"write": Upsert(key=("id",))} if mode == "upsert" else {}))
    for of in ("a", "b"):
        extra = f"only_in_{of}"
        subject = f"{shop.topic}.{of}-value"
        if form == "avro":
            fields = [{"name": "id", "type": "long"}, {"name": extra, "type": "string"}]
            schema = {"type": "record", "name": "R", "fields": fields}
            schema_id = shop.registry_admin.register(subject, json.dumps(schema))
            values = [frame(schema_id, avro(schema, {"id": n % 3, extra: of})) for n in range(5)]
        elif form == "json_schema":
            of_json = {"type": "object", "properties": {"id": {"type": "integer"}, extra: {"type": "string"}}}
            schema_id = shop.registry_admin.register(subject, json.dumps(of_json), SchemaType.JSON)
            values = [frame(schema_id, json.dumps({"id": n % 3, extra: of}).encode()) for n in range(5)]
        else:
            text = f'syntax = "proto3"; message R {{ int64 id = 1; string {extra} = 2; }}'
            schema_id = shop.registry_admin.register(subject, text, SchemaType.PROTOBUF)
            values = [frame(schema_id, b"\x00" + bytes([8, n % 3]) + b"\x12\x01" + of.encode()) for n in range(5)]
        topics.send(of, values)
    ended = topics.drain()
    assert not any(outcome.error for outcome in ended.values()), [str(o.error) for o in ended.values()]
    wanted = [0, 1, 2] if mode == "upsert" else [0, 0, 1, 1, 2]
    for of in ("a", "b"):
        assert topics.ids(of) == wanted
        rows = oracle.rows(shop.lake, topics.pipeline(of).table.identifier)
        assert {row[f"only_in_{of}"] for row in rows} == {of}
        assert not any("only_in" in name and name != f"only_in_{of}" for name in rows[0])


def test_a_topic_that_is_made_while_the_run_goes_on_joins_from_its_first_record(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    with Following(topics.shop, topics=topics.matched()) as run:
        run.until("topics_matched", topics=0)
        topics.produce("late", range(4))
        run.until("batch_committed", pipeline=topics.pipeline("late").name)
        topics.produce("later", range(3))
        run.until("batch_committed", pipeline=topics.pipeline("later").name)
        topics.produce("late", [8])
        run.until("batch_committed", 2, pipeline=topics.pipeline("late").name)
    assert (topics.ids("late"), topics.ids("later")) == ([0, 1, 2, 3, 8], [0, 1, 2])
    assert sorted(run.outcomes) == sorted(topics.pipeline(of).name for of in ("late", "later"))
    assert runner.TOPICS_SECONDS <= 30


def test_a_topic_that_disappears_is_reported_and_its_table_stays(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("kept", range(2))
    topics.produce("gone", range(3))
    topics.drain()
    topics.delete("gone")
    ended = topics.drain()
    assert [*ended] == [topics.pipeline("kept").name]
    (gone,) = topics.shop.seen("topic_gone")
    assert gone["topic"] == f"{topics.shop.topic}.gone"
    assert "does not exist any more" in gone["message"]
    assert topics.ids("gone") == [0, 1, 2]
    assert [one.topic.name for one in topics.matched(names=()).look().gone] == [
        f"{topics.shop.topic}.{of}" for of in ("gone", "kept")
    ]


def test_a_topic_that_disappears_while_the_run_goes_on_holds_up_no_other(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    for of in ("kept", "gone"):
        topics.produce(of, range(2))
    with Following(topics.shop, topics=topics.matched()) as run:
        for of in ("kept", "gone"):
            run.until("batch_committed", pipeline=topics.pipeline(of).name)
        topics.delete("gone")
        run.until("service_unavailable", pipeline=topics.pipeline("gone").name)
        run.until("topic_gone", pipeline=topics.pipeline("gone").name)
        topics.produce("kept", [5])
        run.until("batch_committed", 2, pipeline=topics.pipeline("kept").name)
    assert topics.ids("kept") == [0, 1, 5]


def test_a_topic_whose_table_is_anothers_stops_alone(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("a_b", range(2))
    topics.drain()
    topics.produce("a-b", range(5))
    topics.produce("a_b", [7])
    topics.produce("c", range(3))
    for _ in range(2):
        ended = topics.drain()
        refused = f"topic {topics.shop.topic}.a-b"
        assert isinstance(ended[refused].error, InvalidInput)
        assert f"the topics {topics.shop.topic}.a-b and {topics.shop.topic}.a_b would both have" in str(
            ended[refused].error
        )
        assert [name for name, outcome in ended.items() if outcome.error] == [refused]
        assert (topics.ids("a_b"), topics.ids("c")) == ([0, 1, 7], [0, 1, 2])
    assert topics.shop.seen("pipeline_failed")[0]["pipeline"] == refused


def test_the_table_stays_its_topics_after_the_topic_is_gone(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("a_b", range(2))
    topics.drain()
    topics.delete("a_b")
    topics.produce("a-b", range(5))
    for of in ("a.b", "c"):
        topics.produce(of, range(3))
    ended = topics.drain()
    failed = {name for name, outcome in ended.items() if outcome.error}
    assert failed == {f"topic {topics.shop.topic}.{of}" for of in ("a-b", "a.b")}
    assert (topics.ids("a_b"), topics.ids("c")) == ([0, 1], [0, 1, 2])


def test_a_bound_stops_new_topics_only(shop_of: ShopOf) -> None:
    topics = Topics(shop_of(), most=2)
    for of in ("x", "y"):
        topics.produce(of, range(2))
    assert len(topics.drain()) == 2
    topics.produce("a", range(9))
    topics.produce("x", [5])
    ended = topics.drain()
    assert [name for name, outcome in ended.items() if outcome.error] == [f"topic {topics.shop.topic}.a"]
    assert topics.ids("x") == [0, 1, 5]


def test_a_run_waits_for_a_broker_that_does_not_answer(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("a", range(2))
    matched = topics.matched()
    answers = iter([KafkaUnavailable("it does not answer", where="all topics", do="Start it")])

    def names() -> Collection[str]:
        if error := next(answers, None):
            raise error
        return Kafka(topics.shop.environment.kafka, Secrets({})).names()

    matched._names = names
    with Following(topics.shop, topics=matched) as run:
        run.until("service_unavailable", pipeline="patterns[0]")
        run.until("batch_committed")
    assert topics.ids("a") == [0, 1]


def test_an_unexpected_error_of_a_look_is_reported_and_ends_no_pipeline(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("a", range(2))
    matched = topics.matched()
    looks, all_names = [0], matched._names

    def names() -> Collection[str]:
        looks[0] += 1
        if looks[0] == 2:
            raise ValueError("a defect")
        return all_names()

    matched._names = names
    with Following(topics.shop, topics=matched) as run:
        (failed, *_) = run.until("pipeline_failed", pipeline="patterns[0]")
        assert failed["error"] == "Fault"
        run.until("topics_matched", 2, topics=1)
        topics.produce("b", range(3))
        run.until("batch_committed", pipeline=topics.pipeline("b").name)
    assert (topics.ids("a"), topics.ids("b")) == ([0, 1], [0, 1, 2])


def test_a_declared_topic_is_left_to_its_pipeline(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("own", range(2))
    topics.produce("other", range(3))
    own = Pipeline(
        topic=Topic(f"{topics.shop.topic}.own", value=Json(columns=COLUMNS)),
        table=Table(f"shop.{topics.shop.topic}_mine"),
    )
    ended = topics.drain(declared=[own])
    assert [*ended] == [topics.pipeline("other").name]


@pytest.mark.parametrize("step", first_short(["publish.committed", "stage.done", "begin.resolved"]))
def test_a_killed_driver_of_a_pattern_loses_and_doubles_nothing(shop_of: ShopOf, tmp_path: Path, step: str) -> None:
    topics = Topics(shop_of())
    for of in ("a", "b"):
        topics.produce(of, range(6))
    declared = canonical(document([], [topics.pattern]))
    process = topics.shop.process(tmp_path, failpoints=f"{step}=kill", declared=declared)
    _, said = process.communicate(timeout=300)
    assert process.returncode != 0, said[-2000:]
    topics.produce("c", range(3))
    process = topics.shop.process(tmp_path, declared=declared)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said[-2000:]
    assert [topics.ids(of) for of in ("a", "b", "c")] == [[*range(6)], [*range(6)], [*range(3)]]


def test_a_pipeline_of_a_pattern_runs_alone_and_is_left_out_by_its_name(shop_of: ShopOf, tmp_path: Path) -> None:
    topics = Topics(shop_of())
    for of in ("a", "b", "c"):
        topics.produce(of, range(2))
    declared = canonical(document([], [topics.pattern]))
    names = [topics.pipeline(of).name for of in ("a", "b")]
    for mode in (["--pipeline", names[0]], ["--without", names[0], "--without", names[1]]):
        process = topics.shop.process(tmp_path, mode=["--once", *mode], declared=declared)
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said[-2000:]
    process = topics.shop.process(tmp_path, mode=["--once", "--pipeline", "no_such"], declared=declared)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "neither a pipeline nor a topic of a pattern has the name no_such" in said
    assert (topics.ids("a"), topics.ids("c")) == ([0, 1], [0, 1])
    assert Lake(topics.shop.lake, Secrets({}).read).table(topics.pipeline("b").table.identifier) is None


def test_a_route_takes_one_topic(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    mistaken: Any = topics.pattern
    with pytest.raises(InvalidInput, match="is not a Topic"):
        routes(mistaken, by=RecordName(), to={"A": Table("shop.a")})


def test_a_run_of_which_all_topics_have_ended_ends_as_one_without_a_pattern(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("a", range(2))
    topics.drain()
    error = InvalidInput("it cannot go on")

    def failpoint(step: str) -> None:
        if step == "plan.done":
            raise error

    with Following(topics.shop, topics=topics.matched(), failpoint=failpoint) as run:
        run.join()
    (outcome,) = run.outcomes.values()
    assert outcome.error is error


def test_a_topic_that_takes_the_name_of_one_that_is_gone_gets_no_part_of_its_table(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("a-b", range(2))
    with Following(topics.shop, topics=topics.matched()) as run:
        run.until("batch_committed", pipeline=topics.pipeline("a-b").name)
        topics.delete("a-b")
        topics.produce("a_b", range(5))
        (refused, *_) = run.until("pipeline_failed", pipeline=f"topic {topics.shop.topic}.a_b")
        assert f"{topics.shop.topic}.a-b" in refused["message"]
    assert topics.ids("a-b") == [0, 1]
    ended = topics.drain()
    assert [*ended] == [f"topic {topics.shop.topic}.a_b"]


def test_a_table_whose_metadata_are_lost_is_known_to_commands_about_tables(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    for of in ("lost", "kept"):
        topics.produce(of, range(2))
    topics.drain()
    stored = Lake(topics.shop.lake, Secrets({}).read).table(topics.pipeline("lost").table.identifier)
    assert stored is not None
    Path(stored.version.removeprefix("file:")).unlink()
    found = topics.matched(names=()).look()
    assert [one.name for one in found.with_tables] == [topics.pipeline(of).name for of in ("kept", "lost")]
    with pytest.raises(CatalogUnavailable, match="metadata file that does not exist"):
        topics.shop.verified(found.unread[0])
    ended = topics.drain()
    assert {name for name, outcome in ended.items() if outcome.error} == {topics.pipeline("lost").name}


def test_a_topic_named_as_dead_letters_are_is_refused(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("x__dead_letters", range(2))
    topics.produce("x", range(3))
    ended = topics.drain()
    assert [name for name, outcome in ended.items() if outcome.error] == [f"topic {topics.shop.topic}.x__dead_letters"]
    assert topics.ids("x") == [0, 1, 2]


def test_a_run_of_chosen_pipelines_has_their_outcomes_only(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    for of in ("good", "a-b", "a_b"):
        topics.produce(of, range(2))
    name = topics.pipeline("good").name
    assert [*topics.drain(is_wanted=lambda one: one == name)] == [name]
