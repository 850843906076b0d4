"""Each kind of change has its facts in the review; six of them have a golden of the layout, too."""

from __future__ import annotations

import pytest

from tests.policies.review.cases import CASES, LAYOUTS, golden
from tests.policies.review.facts import facts

FACTS = {
    "first_deployment": [
        "made flights nyc.flights",
        "made planes nyc.planes",
        "create aws_s3_object.pipelines",
        "create confluent_kafka_topic.topic-flights",
        "create aws_scheduler_schedule.ingest",
        "output dev-ingestion: environment_document",
        "cost 0.00 -> 85.01",
    ],
    "pipeline_added": [
        "expected policy_widened: aws_iam_policy.ingest",
        "made boats sea.boats",
        "replace aws_s3_object.pipelines, forced by key",
        "update aws_iam_policy.ingest",
        "policy aws_iam_policy.ingest: changed ListTables, changed ReadAndWriteTables, changed DeleteMetadata, changed ProbeTheFence, changed ReadCatalog, changed CommitTables, changed DropProbes",
    ],
    "pipeline_removed": [
        "danger data_effect: planes",
        "left planes nyc.planes",
        "replace aws_s3_object.pipelines, forced by key",
    ],
    "pipeline_renamed": [
        "danger data_effect: aircraft",
        "stops aircraft nyc.planes",
        "left planes nyc.planes",
        "replace aws_s3_object.pipelines, forced by key",
    ],
    "table_moved": [
        "danger data_effect: planes",
        "left planes nyc.planes: table.identifier nyc.planes -> nyc.aircraft",
        "replace aws_s3_object.pipelines, forced by key",
    ],
    "layout_changed": [
        "rebuild flights nyc.flights: table.format_version 2 -> 3",
        "rebuild flights nyc.flights: table.partition_by months(time_hour) -> days(time_hour), bucket(8, carrier)",
        "from_now_on flights nyc.flights: table.sort_by time_hour -> carrier",
        "replace aws_s3_object.pipelines, forced by key",
    ],
    "metadata_columns_changed": [
        "danger data_effect: flights",
        "stops flights nyc.flights: table.metadata_columns flat -> struct",
        "replace aws_s3_object.pipelines, forced by key",
    ],
    "evolution_and_retention_changed": [
        "from_now_on flights nyc.flights: table.schema_evolution widen -> freeze",
        "upkeep flights nyc.flights: engine.limits.max_rows 1000000 -> 5000000",
        "upkeep flights nyc.flights: engine.limits.target_seconds 10 -> 60",
        "upkeep flights nyc.flights: table.snapshots.days nothing -> 30",
        "upkeep flights nyc.flights: table.snapshots.newest 100 -> 10",
        "replace aws_s3_object.pipelines, forced by key",
    ],
    "reading_changed": [
        "danger data_effect: flights",
        "danger data_effect: flights",
        "danger data_effect: flights",
        "stops flights nyc.flights: topic.key bytes -> avro subject_strategy=topic",
        "from_now_on flights nyc.flights: kafka.isolation read_committed -> read_uncommitted",
        "from_now_on flights nyc.flights: on_error dead_letter -> skip",
        "rebuild flights nyc.flights: start earliest -> timestamp timestamp=2026-01-01T00:00:00.000Z",
        "replace aws_s3_object.pipelines, forced by key",
    ],
    "topic_exchanged": [
        "danger data_effect: flights",
        "stops flights nyc.flights: topic.name flights -> flights.v2",
        "replace aws_s3_object.pipelines, forced by key",
    ],
    "columns_added_and_widened": [
        "from_now_on flights nyc.flights: schema",
        "from_now_on flights nyc.flights: schema",
        "from_now_on flights nyc.flights: schema",
        "update confluent_schema.flights",
    ],
    "columns_refused": [
        "danger data_effect: flights",
        "from_now_on flights nyc.flights: schema",
        "update confluent_schema.flights",
    ],
    "bucket_replaced": [
        "danger data_lost: aws_s3_bucket.tables_bucket",
        "replace aws_s3_bucket.tables_bucket, forced by bucket",
    ],
    "partitions_lowered": [
        "danger partitions_lowered: confluent_kafka_topic.topic-flights",
        "replace confluent_kafka_topic.topic-flights, forced by partitions_count",
    ],
    "partitions_added": [
        "update confluent_kafka_topic.topic-flights",
    ],
    "kafka_retention_cut": [
        "danger retention_under_lag: confluent_kafka_topic.topic-flights",
        "update confluent_kafka_topic.topic-flights",
        "cost 0.10 -> 0.10",
    ],
    "trust_widened": [
        "danger policy_widened: aws_iam_role.tableflow",
        "update aws_iam_role.tableflow",
        "policy aws_iam_role.tableflow: changed AssumedWithOurExternalId",
    ],
    "trust_unknown": [
        "danger data_lost: confluent_provider_integration.tableflow",
        "danger policy_widened: aws_iam_role.tableflow",
        "replace confluent_provider_integration.tableflow, forced by environment[0].id",
        "update aws_iam_role.tableflow",
        "policy aws_iam_role.tableflow: unknown",
    ],
    "protection_removed": [
        "danger protection_removed: aws_s3_bucket_policy.x",
        "danger protection_removed: aws_s3_bucket_public_access_block.x",
        "update aws_s3_bucket_public_access_block.x",
        "delete aws_s3_bucket_policy.x",
    ],
    "forgotten_moved_imported": [
        "danger forgotten: aws_s3_bucket.old",
        "forget aws_s3_bucket.old",
        "move aws_glue_catalog_database.nyc",
        "import aws_kms_key.lake",
    ],
    "secret_rotated": [
        "update confluent_api_key.reader",
        "replace aws_secretsmanager_secret_version.reader, forced by secret_string",
        "update aws_s3_object.readme",
    ],
    "stopped": [
        "danger data_effect: job ingest",
        "stops job ingest",
        "update aws_s3_object.desired",
    ],
    "private_link": [
        "delete aws_nat_gateway.nat",
        "delete aws_eip.nat",
        "create aws_vpc_endpoint.glue",
        "create aws_vpc_endpoint.kms",
        "create aws_vpc_endpoint.logs",
        "create aws_vpc_endpoint.sts",
        "create aws_vpc_endpoint.secretsmanager",
        "create aws_vpc_endpoint.confluent",
        "cost 103.93 -> 165.30",
    ],
}


@pytest.mark.parametrize("name", FACTS)
def test_a_kind_of_change_has_its_facts_in_the_review(name: str) -> None:
    assert facts(CASES[name]()) == FACTS[name]


def test_each_case_has_facts_or_a_golden() -> None:
    assert sorted([*FACTS, *LAYOUTS]) == sorted(CASES)


def test_a_rotated_secret_is_in_no_review() -> None:
    assert "OLDoldOLDold1234" not in golden("secret_rotated")
    assert "NEWnewNEWnew5678" not in golden("secret_rotated")
