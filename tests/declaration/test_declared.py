"""What a constructor says to arguments that it does not have, and how the problems of a file are collected."""

import copy
import inspect
import pickle
from dataclasses import replace

import pytest

from frazil.declaration import Pipeline, Table, Topic, ValueFormat
from frazil.declaration.declared import Invalid, collected, collecting
from tests.declaration.problems_of import problems_of

ORDERS = Topic("orders", value_format="avro")


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (
            lambda: Topic("orders", value_fromat="avro"),
            {
                "topic.value_fromat": "there is no such field. Did you mean value_format?",
                "topic.value_format": "the field is missing. Write one of avro, json_schema, protobuf, json, connect_json, text, bytes",
            },
        ),
        (
            lambda: Topic(),
            {
                "topic.name": "the field is missing. Write text",
                "topic.value_format": "the field is missing. Write one of avro, json_schema, protobuf, json, connect_json, text, bytes",
            },
        ),
        (
            lambda: Topic("a", "avro"),
            {"topic": "Topic takes one value without a name, not 2. Name what follows: value_format=…"},
        ),
        (
            lambda: Pipeline(ORDERS, Table("a.b")),
            {"pipeline": "Pipeline takes no value without a name, not 2. Name what follows: topic=…, table=…"},
        ),
        (
            lambda: Topic("a", name="b", value_format="avro"),
            {"topic.name": "the value is given twice. Keep one of the two"},
        ),
        (
            lambda: replace(ORDERS, nam="x"),
            {"topic.nam": "there is no such field. Did you mean name?"},
        ),
    ],
)
def test_arguments_that_do_not_fit_are_problems_with_a_remedy(make, found):
    assert problems_of(make) == found


def test_the_other_fields_are_judged_too():
    assert list(problems_of(lambda: Table("Bad", partition_by=("dayz(x)",), keep_dys=1))) == [
        "table.keep_dys",
        "table.identifier",
        "table.partition_by[0]",
    ]


def wrong() -> object:
    return Pipeline(
        topic=Topic("a b", value_format=ValueFormat.TEXT),
        table=Table("Bad"),
        limts=1,  # type: ignore[call-arg]
    )


def test_a_constructor_raises_the_first_parts_problems_where_nothing_is_collected():
    assert collected() is None
    assert list(problems_of(wrong)) == ["topic.name"]


def test_where_problems_are_collected_no_part_hides_the_next():
    first = wrong.__code__.co_firstlineno
    with collecting(__file__) as notes:
        assert isinstance(wrong(), Invalid)
    assert [(line - first, problem.path) for _, line, problem in notes.taken()] == [
        (1, "pipeline.limts"),
        (2, "pipeline.topic.name"),
        (3, "pipeline.table.identifier"),
    ]
    assert notes.taken() == []
    assert collected() is None


def test_valid_instances_are_made_while_problems_are_collected():
    with collecting(__file__) as notes:
        assert Topic("orders", value_format="avro") == ORDERS
    assert notes.taken() == []


def test_a_part_that_is_used_twice_is_told_once():
    with collecting(__file__) as notes:
        topic = Topic("a b", value_format="avro")
        one, two = Pipeline(topic=topic, table=Table("a.b")), Pipeline(topic=topic, table=Table("a.c"))
        assert (type(one), type(two)) == (Invalid, Invalid)
    assert [problem.path for _, _, problem in notes.taken()] == ["pipeline.topic.name"]


def test_an_invalid_value_in_a_tuple_or_mapping_is_no_second_problem():
    with collecting(__file__) as notes:
        topic = Topic("a b", value_format="avro")
        Table("a.b", partition_by=(topic.name,), properties={topic.name: "x"}, sort_by=[topic.name])
        Table("a.b", properties={"a": ValueFormat.AVOR, topic.name: ValueFormat.BYTE}, keep_days=0)
        Pipeline(topic=topic, table=Table("a.b"), kafka_options={"client.rack": topic.name})
    assert [str(problem) for _, _, problem in notes.taken()] == [
        "pipeline.topic.name: 'a b' is not a name that Kafka allows for a topic. "
        "Use 1 to 249 of a-z, A-Z, 0-9, . _ and -, and not . or .. alone",
        "table.sort_by: this is of type list. Write a tuple: it cannot change afterwards",
        "table.properties['a'].AVOR: there is no such member. Did you mean AVRO?",
        "table.properties.BYTE: there is no such member. Did you mean BYTES?",
        "table.keep_days: 0 is out of bounds. Write a whole number from 1 to 36500",
    ]


def test_the_place_of_each_valid_value_is_kept():
    with collecting(__file__) as notes:
        topic = Topic("orders", value_format="avro")
        line = collecting_line()
    assert notes.made[id(topic)] == (topic, __file__, line - 1)


def collecting_line() -> int:
    return inspect.stack()[1].lineno


def test_a_declared_value_is_copied_and_pickled():
    assert pickle.loads(pickle.dumps(ORDERS)) == copy.deepcopy(ORDERS) == ORDERS
