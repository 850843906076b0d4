import copy
import pickle
from typing import Any

import pytest
from hypothesis import given

from frazil.declaration import (
    Append,
    ErrorMode,
    Isolation,
    Latest,
    Offsets,
    Pipeline,
    Reading,
    Table,
    Topic,
)
from tests.declaration.problems_of import problems_of
from tests.declaration.strategies import pipelines

ORDERS = Topic("orders", value="avro")


def pipeline(**more: Any) -> Pipeline:
    return Pipeline(topic=ORDERS, table=Table("a.b"), **more)


@pytest.mark.parametrize("name", ["orders", "shop_orders_v1", "x" * 100])
def test_the_default_name_is_the_tables(name):
    pipeline = Pipeline(topic=ORDERS, table=Table(f"shop.{name}"))
    assert (pipeline.name, pipeline.tag) == (name, f"frazil_{name}")


@pytest.mark.parametrize("table", ["9orders", "_orders", "x" * 101])
def test_a_pipeline_needs_a_name_if_the_tables_is_no_tag(table):
    found = problems_of(lambda: Pipeline(topic=ORDERS, table=Table(f"a.{table}")))
    assert "Give the pipeline a name" in found["pipeline.name"]
    assert Pipeline(topic=ORDERS, table=Table(f"a.{table}"), name="orders").name == "orders"


@pytest.mark.parametrize("name", ["Orders", "9", "a-b", "a.b", "x" * 101, " "])
def test_a_name_that_is_no_tag_is_refused(name):
    assert list(problems_of(lambda: Pipeline(topic=ORDERS, table=Table("a.b"), name=name))) == ["pipeline.name"]


def test_parts_of_the_wrong_type_are_refused():
    found = problems_of(lambda: Pipeline(topic="orders", table=None))  # type: ignore[arg-type]
    assert found == {
        "pipeline.topic": "this is of type str. Write Topic(…)",
        "pipeline.table": "this is nothing (None). Write Table(…)",
    }


def test_a_source_that_the_topic_cannot_give_is_refused():
    topic = Topic("logs", value="text", key="avro")
    table = Table("a.b", partition_by=("days(event_time)", "_kafka_key", "truncate(1, value)"), sort_by=("user_id",))
    assert list(problems_of(lambda: Pipeline(topic=topic, table=table))) == [
        "pipeline.table.partition_by[0]",
        "pipeline.table.partition_by[1]",
        "pipeline.table.sort_by[0]",
    ]


def test_equal_pipelines_are_one_key_however_their_options_were_ordered():
    one = pipeline(kafka=Reading(options={"client.rack": "a", "check.crcs": "true"}), start=Offsets({1: 2}))
    other = pipeline(kafka=Reading(options={"check.crcs": "true", "client.rack": "a"}), start=Offsets({1: 2}))
    assert {one: 1}[other] == 1


def test_options_that_a_consumer_may_not_have_are_refused():
    found = problems_of(lambda: pipeline(kafka=Reading(options={"group.id": "x", "fetch.min.bytes": "-1"})))
    assert list(found) == ["reading.options['fetch.min.bytes']", "reading.options['group.id']"]


def test_choices_are_named_by_their_text():
    assert pipeline(
        start="latest", on_error="skip", kafka=Reading(isolation="read_uncommitted"), write="append"
    ) == pipeline(
        start=Latest(),
        on_error=ErrorMode.SKIP,
        kafka=Reading(isolation=Isolation.READ_UNCOMMITTED),
        write=Append(),
    )


@pytest.mark.parametrize("envelope", ["maxwell", {}, {"type": "debezium"}, ()])
def test_an_envelope_is_one_of_a_closed_set(envelope):
    [(path, told)] = problems_of(lambda: pipeline(envelope=envelope)).items()
    assert path == "pipeline.envelope"
    assert told.endswith("Write Debezium(…), or None")


@given(pipelines)
def test_a_pipeline_is_a_value_that_is_hashed_copied_and_pickled(pipeline):
    assert hash(copy.deepcopy(pipeline)) == hash(pipeline)
    assert pickle.loads(pickle.dumps(pipeline)) == pipeline


@pytest.mark.parametrize("name", [0, False, [], b"", None])
def test_what_is_no_text_is_no_name_that_was_left_out(name):
    topic, table = Topic("orders", value="avro"), Table("a.b")
    [said] = problems_of(lambda: Pipeline(topic=topic, table=table, name=name)).values()
    assert said.endswith("Write text")
