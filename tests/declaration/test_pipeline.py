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


def test_a_source_that_the_topic_cannot_give_is_refused():
    topic = Topic("logs", value="text", key="avro")
    table = Table("a.b", partition_by=("days(event_time)", "_kafka_key", "truncate(1, value)"), sort_by=("user_id",))
    assert list(problems_of(lambda: Pipeline(topic=topic, table=table))) == [
        "pipeline.table.partition_by[0]",
        "pipeline.table.partition_by[1]",
        "pipeline.table.sort_by[0]",
    ]


def test_choices_are_named_by_their_text():
    assert pipeline(
        start="latest", on_error="skip", kafka=Reading(isolation="read_uncommitted"), write="append"
    ) == pipeline(
        start=Latest(),
        on_error=ErrorMode.SKIP,
        kafka=Reading(isolation=Isolation.READ_UNCOMMITTED),
        write=Append(),
    )


@given(pipelines)
def test_a_pipeline_is_a_value_that_is_hashed_copied_and_pickled(pipeline):
    assert hash(copy.deepcopy(pipeline)) == hash(pipeline)
    assert pickle.loads(pickle.dumps(pipeline)) == pipeline


@pytest.mark.parametrize("name", [0, False, [], b"", None])
def test_what_is_no_text_is_no_name_that_was_left_out(name):
    topic, table = Topic("orders", value="avro"), Table("a.b")
    [said] = problems_of(lambda: Pipeline(topic=topic, table=table, name=name)).values()
    assert said.endswith("Write text")
