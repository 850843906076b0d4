"""Upsert tables and changelogs that Frazil lands: what deployment makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Changelog, Pipeline, Table, Topic, Upsert, parse
from infra.confluent.managed_topic import Cleanup, ManagedTopic
from policies.resource_values import Facts
from policies.resources import read, together
from policies.rules import findings
from policies.table_resources import Scope
from stacks.spec.deployments import Access, dev
from tests.stacks.synthesised import TODAY, named, resources, synthesised
from tests.stacks.terraform_text import worked_out

DEPLOYMENT = named(dev, access=Access(scope=Scope.TABLE, readers=(f"arn:aws:iam::{dev.account}:role/analysts",)))
"""Its roles name each table."""
ORDERED = Upsert(key=("trip", "leg"), order_by="changed_at", on_tombstone="soft_delete")
PIPELINES = (
    Pipeline(
        topic=Topic("fleet", value="avro", key="avro"),
        table=Table("nyc.fleet"),
        write=Upsert(),
    ),
    Pipeline(topic=Topic("fares", value="avro"), table=Table("nyc.fares"), write=ORDERED),
    Pipeline(
        topic=Topic("moves", value="avro", key="text"),
        table=Table("nyc.moves"),
        write=Changelog(order_by="_kafka_timestamp"),
    ),
)
TOPICS = (ManagedTopic("fleet", cleanup=Cleanup.COMPACT), ManagedTopic("fares"), ManagedTopic("moves"))
TABLES = {name for table in ("fleet", "fares", "moves") for name in (table, f"{table}__dead_letters")}


@pytest.fixture(scope="module")
def stacks() -> dict[str, dict[str, Any]]:
    return synthesised(DEPLOYMENT, PIPELINES, TOPICS)


def test_the_jobs_document_has_each_mode_as_it_is_declared(stacks: dict[str, dict[str, Any]]) -> None:
    found = resources(stacks["ingestion"], "aws_s3_object")
    [content] = [each["content"] for name, each in found.items() if name.startswith("pipelines")]
    assert parse(worked_out(content, stacks["ingestion"], {}).encode()) == PIPELINES


def test_no_rule_has_anything_against_them(stacks: dict[str, dict[str, Any]]) -> None:
    reviewed = together([read(stack) for stack in stacks.values()])
    facts = Facts(reviewed, TODAY)
    assert facts.tables == {f"nyc.{table}" for table in TABLES}
    assert {topic for topic in facts.topics if facts.needs_last_records_only(topic)} == {"fleet"}
    assert {topic for topic in facts.topics if facts.needs_deletes(topic)} == {"fleet", "fares", "moves"}
    assert findings(reviewed, facts) == []


def test_a_state_that_frazil_lands_needs_no_compacted_topic_and_nothing_of_tableflow(
    stacks: dict[str, dict[str, Any]],
) -> None:
    topics = {
        each["topic_name"]: each["config"] for each in resources(stacks["confluent"], "confluent_kafka_topic").values()
    }
    assert {name: config["cleanup.policy"] for name, config in topics.items()} == {
        "fleet": "compact",
        "fares": "delete",
        "moves": "delete",
    }
    assert not resources(stacks["confluent"], "confluent_tableflow_topic")
