"""A document of version 1 says the same in version 2, and its problems keep their places."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from frazil.declaration import Append, At, ErrorMode, Limits, Spark, Tableflow, Tombstones, parse
from frazil.declaration.upgrade import upgraded
from tests.declaration.problems_of import problems_of

ORDERS: dict[str, Any] = {
    "topic": {
        "name": "orders",
        "value_format": "avro",
        "start": {"type": "timestamp", "timestamp": "2026-01-31T00:00:00.000Z"},
        "isolation": "read_uncommitted",
        "on_error": "skip",
        "tombstones": "null_row",
        "headers": False,
        "max_rejected_percent": 7,
        "kafka_options": {"client.rack": "a"},
        "transactional": True,
    },
    "table": {"identifier": "shop.orders"},
    "limits": {"max_rows": 30000},
    "engine": "spark",
}


def version_1(topic: Any = None, **members: Any) -> dict[str, Any]:
    part = ORDERS["topic"] if topic is None else topic
    return {"version": 1, "pipelines": [{**ORDERS, "topic": part, **members}]}


def test_all_that_has_moved_is_read():
    [pipeline] = parse(version_1())
    assert (pipeline.isolation, pipeline.on_error, pipeline.headers) == ("read_uncommitted", ErrorMode.SKIP, False)
    assert (pipeline.max_rejected_percent, pipeline.kafka_options) == (7, {"client.rack": "a"})
    assert isinstance(pipeline.start, At)
    assert pipeline.write == Append(on_tombstone=Tombstones.NULL_ROW)
    assert pipeline.engine == Spark(limits=Limits(max_rows=30000))
    assert pipeline.topic.transactional


def test_what_is_left_out_stays_left_out():
    bare = {"topic": {"name": "a", "value_format": "text"}, "table": {"identifier": "s.a"}}
    assert upgraded({"pipelines": [bare]}).members == {"pipelines": [bare]}


def test_the_source_is_not_changed():
    before = version_1()
    source = copy.deepcopy(before)
    upgraded(source)
    assert source == before


def test_each_change_is_listed():
    found = upgraded(version_1())
    assert [(before.partition(".")[2], after.partition(".")[2]) for before, after in found.changes] == [
        ("topic.start", "start"),
        ("topic.on_error", "on_error"),
        ("topic.max_rejected_percent", "max_rejected_percent"),
        ("topic.headers", "headers"),
        ("topic.isolation", "isolation"),
        ("topic.kafka_options", "kafka_options"),
        ("topic.tombstones", "write.on_tombstone"),
        ("engine", "engine.type"),
        ("limits", "engine.limits"),
    ]


@pytest.mark.parametrize("limits", [None, {}, {"max_rows": 1_000_000}])
def test_a_tableflow_pipeline_may_have_the_default_limits_written_out(limits):
    flowing = {"topic": {"name": "orders", "value_format": "avro"}, "table": {"identifier": "shop.orders"}}
    written = {} if limits is None else {"limits": limits}
    [pipeline] = parse({"version": 1, "pipelines": [{**flowing, "engine": "tableflow", **written}]})
    assert pipeline.engine == Tableflow()


@pytest.mark.parametrize(
    ("document", "found"),
    [
        (version_1(start={"type": "latest"}), {"start": "version 1 has no such field here. Write topic.start"}),
        (version_1(write={"type": "append"}), {"write": "version 1 has no such field here. Write topic.tombstones"}),
        (version_1(envelope=None), {"envelope": "version 1 has no such field here. Remove it"}),
        (version_1(engine="flink"), {"engine": "'flink' is not one of its values. Write one of spark, tableflow"}),
        (version_1(engine=None), {"engine": "None is not one of its values. Write one of spark, tableflow"}),
        (
            version_1(limits={"max_rows": 0}),
            {"limits.max_rows": "0 is out of bounds", "limits.first_rows": "it is more"},
        ),
        (version_1(limits=None), {"limits": "this is nothing. Write an object"}),
        (version_1(limits={"x": 1}), {"limits.x": "there is no such field"}),
        (version_1({**ORDERS["topic"], "tombstones": "x"}), {"topic.tombstones": "'x' is not one of its values"}),
        (version_1({**ORDERS["topic"], "start": None}), {"topic.start": "this is nothing"}),
        (version_1({**ORDERS["topic"], "start": {"type": "x"}}), {"topic.start.type": "'x' is not one of"}),
        (
            version_1({**ORDERS["topic"], "kafka_options": {"client.rack": 1}}),
            {"topic.kafka_options['client.rack']": "1 is a number"},
        ),
        (
            version_1({**ORDERS["topic"], "on_eror": 1}),
            {"topic.on_eror": "there is no such field. Did you mean on_error?"},
        ),
        (version_1([]), {"topic": "this is a list"}),
        (
            version_1(
                table={"identifier": "shop.orders"},
                engine="tableflow",
                limits={"max_rows": 3},
                topic={
                    "name": "orders",
                    "value_format": "avro",
                    "tombstones": "skip",
                    "headers": False,
                },
            ),
            {
                "limits": "Tableflow decides",
                "topic.tombstones": "Tableflow decides",
                "topic.headers": "Tableflow decides",
            },
        ),
    ],
)
def test_problems_have_their_place_in_version_1(document, found):
    told = problems_of(lambda: parse(document))
    assert {path.removeprefix("pipelines[0]."): None for path in told} == dict.fromkeys(found)
    for path, begins in found.items():
        assert told[f"pipelines[0].{path}"].startswith(begins)


@pytest.mark.parametrize(
    ("document", "path", "listed"),
    [
        (version_1(zzz=1), ".zzz", ("topic", "table", "name", "engine", "limits")),
        (
            version_1({**ORDERS["topic"], "zzz": 1}),
            ".topic.zzz",
            (
                *("name", "value_format", "key_format", "subject_strategy", "record_name", "transactional", "start"),
                *("on_error", "max_rejected_percent", "headers", "isolation", "kafka_options", "tombstones"),
            ),
        ),
        ({"version": 1, "pipelines": [3]}, "", ("topic", "table", "name", "engine", "limits")),
    ],
)
def test_the_fields_that_a_message_lists_are_those_of_version_1(document, path, listed):
    said = problems_of(lambda: parse(document))[f"pipelines[0]{path}"]
    assert said.partition("fields ")[2].removeprefix("are ") == ", ".join(listed)


@pytest.mark.parametrize(("name", "near"), [("limts", "limits"), ("strat", None), ("on_eror", None)])
def test_a_misspelt_field_of_version_1_is_compared_with_its_fields_alone(name, near):
    said = problems_of(lambda: parse(version_1(**{name: 1})))[f"pipelines[0].{name}"]
    assert said.partition(". ")[2].startswith(f"Did you mean {near}?" if near else "Remove it; the fields are topic")


def test_another_pipelines_problem_is_not_hidden_by_one_of_the_upgrade():
    document = version_1(engine="flink")
    document["pipelines"] += [{**ORDERS, "table": {"identifier": "Bad"}, "name": "other"}, 3]
    assert list(problems_of(lambda: parse(document))) == [
        "pipelines[0].engine",
        "pipelines[1].table.identifier",
        "pipelines[2]",
    ]


@pytest.mark.parametrize("members", [{}, {"pipelines": None}, {"pipelines": {}}, {"pipelines": [None, 1, []]}])
def test_what_is_no_list_of_pipelines_is_left_to_the_reader(members):
    assert upgraded(members).members == members


@pytest.mark.parametrize("version", [0, 3, "1", 1.0, True, None, 10**30])
def test_a_job_refuses_a_version_that_it_does_not_know_and_says_what_to_use(version):
    told = problems_of(lambda: parse({"version": version, "pipelines": []}))["version"]
    assert "is not a version that this release reads (1 and 2)" in told
    assert told.endswith("or use the release that wrote the document or a newer one")


@pytest.mark.parametrize("name", ["columns", "key_columns"])
def test_declared_columns_are_of_version_2(name):
    document = version_1({**ORDERS["topic"], "value_format": "json", name: ["id long"]})
    assert "version 1 has no such field" in problems_of(lambda: parse(document))[f"pipelines[0].topic.{name}"]
