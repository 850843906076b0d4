"""Tables have one keeper each, and their places to themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.declaration import canonical, each_topic
from frazil.declaration.documents.document import document
from policies.rules.tables import lifecycle_under_tables, optimizer_on_tables
from tests.policies.reviewing import stack, told

DOCUMENT = {"version": 1, "pipelines": [{"topic": {"name": "orders"}, "table": {"identifier": "shop.orders"}}]}
ENVIRONMENT = {"version": 1, "name": "dev", "catalog": {"type": "glue", "warehouse": "s3://tables/lake"}}


# ── Optimizers ──────────────────────────────────────────────────────────────────────────────────
def optimizer(database: str, table: str, **others: Any) -> dict[str, Any]:
    values = {"database_name": database, "table_name": table, "type": "compaction"}
    return stack(aws_glue_catalog_table_optimizer__x=values, **others)


@pytest.mark.parametrize("table", ["orders", "orders__dead_letters"])
def test_an_optimizer_on_a_declared_table_is_told(table: str) -> None:
    assert told(optimizer_on_tables, optimizer("shop", table), DOCUMENT) == [
        (
            "aws_glue_catalog_table_optimizer.x",
            f"a compaction optimizer works on shop.{table}, which Frazil or Tableflow maintains",
        )
    ]


def test_an_optimizer_on_a_table_of_a_pattern_is_told() -> None:
    pattern = each_topic(r"shop\..*", table="shop.{topic}", value="avro")
    with_pattern = json.loads(canonical(document([], [pattern])))
    assert len(told(optimizer_on_tables, optimizer("shop", "new"), with_pattern)) == 1
    assert not told(optimizer_on_tables, optimizer("hr", "new"), with_pattern)


@pytest.mark.parametrize(
    ("database", "table", "count"),
    [
        ("${aws_glue_catalog_database.d.name}", "orders", 1),
        ("${data.external.x.result}", "orders", 1),  # it cannot be named
        ("hr", "people", 0),
    ],
)
def test_an_optimizer_is_found_through_references(database: str, table: str, count: int) -> None:
    made = optimizer(database, table, aws_glue_catalog_database__d={"name": "shop"})
    assert len(told(optimizer_on_tables, made, DOCUMENT)) == count


@pytest.mark.parametrize("how", ["database", "cluster"])
def test_an_optimizer_on_a_tableflow_table_is_told(how: str) -> None:
    flow = {"topic": "orders", "kafka_cluster": {"id": "lkc-1"}}
    catalog = {"aws_glue": {"custom_database": "flow"}} if how == "database" else {"aws_glue": {}}
    stacks = {"confluent_catalog_integration__c": catalog, "confluent_tableflow_topic__t": flow}
    findings = told(optimizer_on_tables, optimizer("flow" if how == "database" else "lkc-1", "anything", **stacks))
    assert len(findings) == 1


# ── Lifecycle rules ─────────────────────────────────────────────────────────────────────────────
EXPIRES = {"id": "old", "status": "Enabled", "expiration": [{"days": 30}]}


def lifecycle(rule: dict[str, Any], bucket: str = "tables") -> dict[str, Any]:
    return stack(aws_s3_bucket_lifecycle_configuration__x={"bucket": bucket, "rule": [rule]})


@pytest.mark.parametrize(
    "rule",
    [
        EXPIRES,
        {**EXPIRES, "filter": [{"prefix": ""}]},
        {**EXPIRES, "filter": [{"prefix": "lake"}]},
        {**EXPIRES, "filter": [{"prefix": "lake/"}]},
        {**EXPIRES, "filter": [{"prefix": "la"}]},
        {**EXPIRES, "filter": {"and": {"prefix": "lake/shop.db/", "tags": {"a": "b"}}}},
        {**EXPIRES, "prefix": "lake/shop.db"},
        {"status": "Enabled", "transition": [{"days": 30, "storage_class": "GLACIER"}]},
    ],
    ids=str,
)
def test_a_rule_that_acts_on_tables_is_told(rule: dict[str, Any]) -> None:
    assert len(told(lifecycle_under_tables, lifecycle(rule), ENVIRONMENT)) == 1


@pytest.mark.parametrize(
    "rule",
    [
        {**EXPIRES, "status": "Disabled"},
        {**EXPIRES, "filter": [{"prefix": "athena-results/"}]},
        {**EXPIRES, "filter": [{"prefix": "lakes"}]},
        {"status": "Enabled", "abort_incomplete_multipart_upload": [{"days_after_initiation": 7}]},
        {"status": "Enabled", "noncurrent_version_expiration": [{"noncurrent_days": 30}]},
        {"status": "Enabled", "expiration": [{"expired_object_delete_marker": True}]},
    ],
    ids=str,
)
def test_a_rule_that_leaves_current_files_alone_passes(rule: dict[str, Any]) -> None:
    assert told(lifecycle_under_tables, lifecycle(rule), ENVIRONMENT) == []


def test_another_buckets_rule_passes() -> None:
    assert told(lifecycle_under_tables, lifecycle(EXPIRES, "logs"), ENVIRONMENT) == []


def test_tables_are_found_by_their_database_and_by_tableflows_bucket() -> None:
    buckets = {"aws_s3_bucket__t": {"bucket": "tables"}}
    rule = {"aws_s3_bucket_lifecycle_configuration__x": {"bucket": "${aws_s3_bucket.t.id}", "rule": EXPIRES}}
    database = {
        "aws_glue_catalog_database__d": {"name": "shop", "location_uri": "s3://${aws_s3_bucket.t.bucket}/lake/shop.db"}
    }
    flow = {"confluent_tableflow_topic__f": {"byob_aws": {"bucket_name": "${aws_s3_bucket.t.bucket}"}}}
    assert told(lifecycle_under_tables, stack(**buckets, **rule)) == []
    assert len(told(lifecycle_under_tables, stack(**buckets, **rule, **database))) == 1
    assert len(told(lifecycle_under_tables, stack(**buckets, **rule, **flow))) == 1
