"""Each kind of change has its facts in the review; six of them have a golden of the layout, too."""

from __future__ import annotations

import pytest

from tests.policies.review.cases import CASES, LAYOUTS
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
    "columns_refused": [
        "danger data_effect: flights",
        "from_now_on flights nyc.flights: schema",
        "update confluent_schema.flights",
    ],
    "bucket_replaced": [
        "danger data_lost: aws_s3_bucket.tables_bucket",
        "replace aws_s3_bucket.tables_bucket, forced by bucket",
    ],
    "kafka_retention_cut": [
        "danger retention_under_lag: confluent_kafka_topic.topic-flights",
        "update confluent_kafka_topic.topic-flights",
        "cost 0.10 -> 0.10",
    ],
    "trust_unknown": [
        "danger data_lost: confluent_provider_integration.tableflow",
        "danger policy_widened: aws_iam_role.tableflow",
        "replace confluent_provider_integration.tableflow, forced by environment[0].id",
        "update aws_iam_role.tableflow",
        "policy aws_iam_role.tableflow: unknown",
    ],
    "forgotten_moved_imported": [
        "danger forgotten: aws_s3_bucket.old",
        "forget aws_s3_bucket.old",
        "move aws_glue_catalog_database.nyc",
        "import aws_kms_key.lake",
    ],
}


@pytest.mark.parametrize("name", FACTS)
def test_a_kind_of_change_has_its_facts_in_the_review(name: str) -> None:
    assert facts(CASES[name]()) == FACTS[name]


def test_each_case_has_facts_or_a_golden() -> None:
    assert sorted([*FACTS, *LAYOUTS]) == sorted(CASES)
