"""Pipelines that another engine lands."""

import pytest

from frazil.declaration import Earliest, Engine, ErrorMode, Latest, Limits, Pipeline, Table, Topic, ValueFormat, check
from frazil.declaration.engines import refuse_foreign
from frazil.errors import FrazilError
from tests.declaration.problems_of import problems_of

CLICKS = Topic("clicks", value_format=ValueFormat.AVRO, on_error=ErrorMode.SKIP)


def flowing(identifier: str = "flow.clicks", topic: Topic = CLICKS, **more: object) -> Pipeline:
    return Pipeline(topic=topic, table=Table(identifier), engine=Engine.TABLEFLOW, **more)  # type: ignore[arg-type]


def test_tableflow_takes_a_topic_with_a_schema_and_names_the_table_after_it():
    assert flowing().engine is Engine.TABLEFLOW
    assert check([flowing()]) == ()


def test_a_pipeline_is_ours_unless_it_says_otherwise():
    assert Pipeline(topic=CLICKS, table=Table("a.b")).engine is Engine.SPARK


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("topic.value_format", {"topic": Topic("clicks", value_format=ValueFormat.TEXT)}),
        ("topic.start", {"topic": Topic("clicks", value_format=ValueFormat.AVRO, start=Latest())}),
        ("topic.headers", {"topic": Topic("clicks", value_format=ValueFormat.AVRO, headers=False)}),
        ("table.identifier", {"table": Table("flow.other")}),
        ("table.partition_by", {"table": Table("flow.clicks", partition_by=("days(at)",))}),
        ("table.keep_snapshots", {"table": Table("flow.clicks", keep_snapshots=3)}),
        ("limits.max_rows", {"limits": Limits(max_rows=30_000)}),
    ],
)
def test_what_tableflow_would_not_do_as_declared_is_refused(what, change):
    parts = {"topic": CLICKS, "table": Table("flow.clicks"), **change}
    assert list(problems_of(lambda: Pipeline(engine=Engine.TABLEFLOW, **parts))) == [f"pipeline.{what}"]


def test_all_that_tableflow_decides_itself_is_told_at_once():
    topic = Topic("clicks", value_format=ValueFormat.AVRO, start=Latest(), headers=False)
    found = problems_of(lambda: flowing(topic=topic, limits=Limits(target_seconds=1)))
    assert list(found) == ["pipeline.topic.start", "pipeline.topic.headers", "pipeline.limits.target_seconds"]


def test_the_default_may_be_written_out():
    assert flowing(topic=Topic("clicks", value_format=ValueFormat.AVRO, start=Earliest()))


def test_tableflow_publishes_in_one_namespace():
    other = Topic("views", value_format=ValueFormat.AVRO)
    [problem] = check([flowing(), flowing("elsewhere.views", other)])
    assert (problem.path, "flow" in problem.what) == ("pipelines[1].table.identifier", True)


def test_tableflow_has_a_namespace_for_itself():
    ours = Pipeline(topic=Topic("orders", value_format=ValueFormat.AVRO), table=Table("flow.orders"))
    [problem] = check([ours, flowing()])
    assert problem.path == "pipelines[1].table.identifier"


def test_a_run_refuses_what_is_not_its_own():
    ours = Pipeline(topic=CLICKS, table=Table("a.b"))
    refuse_foreign([ours])
    with pytest.raises(FrazilError, match="landed by tableflow"):
        refuse_foreign([ours, flowing()])
