"""Upsert tables and changelogs that Frazil lands: what deployment makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Changelog, Pipeline, Table, Topic, Upsert
from infra.confluent.managed_topic import Cleanup, ManagedTopic
from policies.resource_values import Facts
from policies.resources import read, together
from policies.rules import findings
from policies.table_resources import Scope
from stacks.spec.deployments import Access, dev
from tests.stacks.synthesised import TODAY, named, synthesised

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


def test_no_rule_has_anything_against_them(stacks: dict[str, dict[str, Any]]) -> None:
    reviewed = together([read(stack) for stack in stacks.values()])
    facts = Facts(reviewed, TODAY)
    assert facts.tables == {f"nyc.{table}" for table in TABLES}
    assert {topic for topic in facts.topics if facts.needs_last_records_only(topic)} == {"fleet"}
    assert {topic for topic in facts.topics if facts.needs_deletes(topic)} == {"fleet", "fares", "moves"}
    assert findings(reviewed, facts) == []
