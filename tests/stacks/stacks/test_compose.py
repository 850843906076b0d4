"""What cannot be deployed together is refused before anything is synthesised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Append, InvalidDeclaration, Pipeline, Table, Topic, Upsert, WriteMode
from frazil.release.manifest import Architecture
from frazil.rollout.desired import Worker, Workers
from infra.capacity import Capacity
from infra.confluent.managed_topic import Cleanup, ManagedTopic
from stacks.spec.deployments import Access, Confluent, Runs, dev
from tests.declaration.problems_of import problems_of
from tests.stacks.synthesised import EXAMPLE, FLOWING_PIPELINES, release, resources, synthesised

SMALL = Workers(driver=Worker(cores=1, memory_gb=4), executor=Worker(cores=1, memory_gb=4), least=1, most=2)


def refused(**changed: Any) -> list[str]:
    """Where the problems are that synthesis tells."""
    told: dict[str, Any] = {"deployment": dev, "pipelines": EXAMPLE, "topics": (), **changed}
    with pytest.raises(InvalidDeclaration) as raised:
        synthesised(**told)
    return [problem.path for problem in raised.value.problems]


def test_a_topic_is_made_once() -> None:
    assert refused(topics=(ManagedTopic("a"), ManagedTopic("a"))) == ["topics[1].name"]


def test_records_that_would_go_before_they_are_read_are_refused() -> None:
    assert refused(topics=(ManagedTopic("flights", retention_hours=1),)) == ["topics[0].retention_hours"]


@pytest.mark.parametrize(
    ("write", "cleanup"), [(Upsert(), Cleanup.DELETE), (Append(), Cleanup.COMPACT)], ids=["upsert", "append"]
)
def test_a_topic_that_tableflow_would_land_in_another_mode_is_refused(write: WriteMode, cleanup: Cleanup) -> None:
    pipeline = replace(FLOWING_PIPELINES[0], write=write)
    topics = (ManagedTopic("views"), ManagedTopic("clicks", cleanup=cleanup))
    assert refused(pipelines=(pipeline,), topics=topics) == ["topics[1].cleanup"]


def test_a_state_of_tableflow_is_one_that_confluent_must_choose() -> None:
    pipeline = replace(FLOWING_PIPELINES[0], write=Upsert())
    stack = synthesised(dev, [pipeline], (ManagedTopic("clicks", cleanup=Cleanup.COMPACT),))["confluent"]
    [table] = resources(stack, "confluent_tableflow_topic").values()
    [chosen] = table["lifecycle"]["postcondition"]
    assert chosen["condition"] == '${self.write_mode == "UPSERT"}'
    assert "cleanup.policy compact" in chosen["error_message"]


def test_a_release_for_other_processors_is_refused() -> None:
    assert dev.emr.architecture is Architecture.ARM64
    assert refused(release=release(Architecture.X86_64)) == ["release.architecture"]


def test_pipelines_that_clash_are_refused_with_all_else_that_is_wrong() -> None:
    twice = (*EXAMPLE, Pipeline(topic=Topic("x", value="avro"), table=Table("nyc.flights")))
    assert refused(pipelines=twice, topics=(ManagedTopic("a"), ManagedTopic("a"))) == [
        "pipelines[2].name",
        "pipelines[2].table.identifier",
        "topics[1].name",
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Prod"),
        ("name", "a" * 13),
        ("account", "123"),
        ("region", "europe"),
    ],
)
def test_a_deployment_that_cannot_be_is_refused(field: str, value: Any) -> None:
    assert list(problems_of(lambda: replace(dev, **{field: value}))) == [f"deployment.{field}"]


@pytest.mark.parametrize("principal", ["*", "arn:aws:iam::111111111111:root", "arn:aws:iam::111111111111:role/*", "me"])
@pytest.mark.parametrize("field", ["readers", "reconcilers", "deployers"])
def test_who_may_become_a_role_is_named(field: str, principal: str) -> None:
    assert list(problems_of(lambda: Access(**{field: (principal,)}))) == [f"access.{field}[0]"]


@pytest.mark.parametrize("external_id", ["", "x", "a b", "*", "${aws:userid}"])
def test_an_external_id_is_one_that_sts_takes(external_id: str) -> None:
    who = "arn:aws:iam::888888888888:user/snow"
    assert problems_of(lambda: Access(readers=(who,), external_ids={who: external_id}))


def test_an_external_id_belongs_to_a_reader() -> None:
    who = "arn:aws:iam::888888888888:user/snow"
    assert problems_of(lambda: Access(external_ids={who: "SNOW=1"}))
    assert Access(readers=(who,), external_ids={who: "SNOW=1"}).external_ids


def test_runs_that_do_not_fit_their_application_are_refused() -> None:
    small = Capacity(cores=3, memory_gb=12, disk_gb=60)
    assert list(problems_of(lambda: Runs(ingest=SMALL, maintain=SMALL, capacity=small))) == ["runs.capacity"]


def test_rows_cannot_be_fresher_than_drains_are_frequent() -> None:
    room = Capacity(cores=8, memory_gb=32, disk_gb=200)
    told = problems_of(
        lambda: Runs(ingest=SMALL, maintain=SMALL, capacity=room, ingest_minutes=30, freshness_minutes=30)
    )
    assert list(told) == ["runs.freshness_minutes"]


def test_a_cluster_that_exists_has_an_environment_that_exists() -> None:
    assert list(problems_of(lambda: Confluent(cluster_id="lkc-1"))) == ["confluent.environment_id"]
