"""Pipelines that another engine lands."""

import pytest

from frazil.declaration import (
    Append,
    Earliest,
    ErrorMode,
    Isolation,
    Keep,
    Latest,
    Limits,
    Pipeline,
    Reading,
    Table,
    Tableflow,
    Tombstones,
    Topic,
    Upsert,
    check,
)
from frazil.declaration.engines import refuse_foreign
from frazil.errors import FrazilError
from tests.declaration.problems_of import problems_of

CLICKS = Topic("clicks", value="avro")


def flowing(identifier: str = "flow.clicks", topic: Topic = CLICKS, **more: object) -> Pipeline:
    return Pipeline(topic=topic, table=Table(identifier), engine=Tableflow(), **more)  # type: ignore[arg-type]


def test_tableflow_takes_a_topic_with_a_schema_and_names_the_table_after_it():
    assert flowing(on_error=ErrorMode.SKIP).engine == Tableflow()
    assert check([flowing()]) == ()


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("topic.value", {"topic": Topic("clicks", value="text")}),
        ("topic.key", {"topic": Topic("clicks", value="avro", key="text")}),
        ("start", {"start": Latest()}),
        ("headers", {"headers": False}),
        ("write", {"write": Append(on_tombstone=Tombstones.SKIP)}),
        ("kafka", {"kafka": Reading(isolation=Isolation.READ_UNCOMMITTED)}),
        ("max_rejected_percent", {"max_rejected_percent": 3}),
        ("kafka", {"kafka": Reading(options={"client.rack": "a"})}),
        ("table.identifier", {"table": Table("flow.other")}),
        ("table.partition_by", {"table": Table("flow.clicks", partition_by=("days(at)",))}),
        ("table.snapshots", {"table": Table("flow.clicks", snapshots=Keep(3))}),
    ],
)
def test_what_tableflow_would_not_do_as_declared_is_refused(what, change):
    parts = {"topic": CLICKS, "table": Table("flow.clicks"), **change}
    assert list(problems_of(lambda: Pipeline(engine=Tableflow(), **parts))) == [f"pipeline.{what}"]


def test_tableflow_makes_no_variants():
    variants = Table("flow.clicks", format_version=3, json_columns="variant")
    found = problems_of(lambda: Pipeline(engine=Tableflow(), topic=CLICKS, table=variants))
    assert list(found) == ["pipeline.table.format_version", "pipeline.table.json_columns"]


def test_the_default_may_be_written_out():
    assert flowing(start=Earliest(), write=Append(), headers=True)


def test_tableflow_takes_a_state_without_options():
    assert flowing(write=Upsert()).write == Upsert()
    assert flowing(write="upsert").on_error is ErrorMode.SUSPEND


@pytest.mark.parametrize(
    "options",
    [
        {"key": "id"},
        {"order_by": "at"},
        {"on_tombstone": "soft_delete"},
        {"on_truncate": "delete_all"},
    ],
    ids=lambda options: [*options][-1],
)
def test_tableflow_takes_no_option_of_a_state(options):
    found = problems_of(lambda: flowing(write=Upsert(**options)))
    assert found.keys() >= {f"pipeline.write.{name}" for name in options}
    assert all("Tableflow decides this itself" in problem for problem in found.values())


def test_tableflow_has_no_limits():
    found = problems_of(lambda: Tableflow(limits=Limits()))
    assert list(found) == ["tableflow.limits"]


@pytest.mark.parametrize("name", ["pay.orders", "pay-orders", "Orders"])
def test_a_topic_whose_table_glue_would_name_otherwise_is_refused_with_reason_and_remedy(name: str) -> None:
    """Confluent does not say what Tableflow makes of such a name, and its role may write only tables that are named."""
    topic = Topic(name, value="avro")
    found = problems_of(
        lambda: Pipeline(engine=Tableflow(), topic=topic, table=Table("flow.pay_orders"), name="orders")
    )
    assert list(found) == ["pipeline.topic.name"]
    [problem] = found.values()
    assert f"Confluent documents no name of a Glue table for {name}" in problem
    assert "Use a topic with a-z, 0-9 and _ only in its name, or choose engine spark" in problem
    assert Pipeline(topic=topic, table=Table("flow.pay_orders"), name="orders").topic.name == name


def test_tableflow_publishes_in_one_namespace():
    other = Topic("views", value="avro")
    [problem] = check([flowing(), flowing("elsewhere.views", other)])
    assert (problem.path, "flow" in problem.what) == ("pipelines[1].table.identifier", True)


def test_tableflow_has_a_namespace_for_itself():
    ours = Pipeline(topic=Topic("orders", value="avro"), table=Table("flow.orders"))
    [problem] = check([ours, flowing()])
    assert problem.path == "pipelines[1].table.identifier"


def test_a_run_refuses_what_is_not_its_own():
    ours = Pipeline(topic=CLICKS, table=Table("a.b"))
    refuse_foreign([ours])
    with pytest.raises(FrazilError, match="landed by tableflow"):
        refuse_foreign([ours, flowing()])


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        ({"target_seconds": 0}, ["limits.target_seconds"]),
        ({"target_seconds": 0.5}, ["limits.target_seconds"]),
        ({"max_bytes": 0}, ["limits.max_bytes"]),
        ({"max_rows": 10}, ["limits.first_rows"]),
        ({"first_rows": 0, "max_rows": 2**63}, ["limits.first_rows", "limits.max_rows"]),
    ],
)
def test_bounds_that_admit_no_batch_are_refused(values, paths):
    assert list(problems_of(lambda: Limits(**values))) == paths
