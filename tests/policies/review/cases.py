"""Kinds of change that a review must report: each a plan. Six of them have the Markdown that is wanted as a golden.

python -m tests.policies.review.cases     writes the goldens again
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from frazil.declaration import (
    Latest,
    Pipeline,
    SchemaEvolution,
    Table,
    Topic,
)
from policies.documents import fill, placeholders
from policies.review.markdown.page import markdown
from policies.review.plan.plan_gaps import StackPlan
from policies.review.prices import price_table
from policies.review.review import Review, on_command_line, review
from tests.policies.example import PLACES, VALUES, policy
from tests.policies.review.planning import FLIGHTS, PLANES, change, documents, plan, reviewed, stays
from tests.policies.reviewing import TODAY
from tests.support.topics import varied

GOLDEN = Path(__file__).parent / "golden"
DAY_MS = 86_400_000
BOATS = Pipeline(
    topic=Topic("boats", value="json"),
    start=Latest(),
    table=Table("sea.boats", partition_by=("days(_kafka_timestamp)",)),
)
WORKER = {"cores": 1, "memory_gb": 4, "disk_gb": 20}
DESIRED = {
    "version": 1,
    "job": "ingest",
    "generation": 4,
    "label": "emr-spark-8.1.0",
    "mode": "drain",
    "is_stopped": False,
    "release": f"releases/1.0.0/{'a' * 64}/manifest.json",
    "workers": {"driver": WORKER, "executor": WORKER, "least": 1, "most": 2},
}
SIZES = (
    "--conf spark.driver.cores=1 --conf spark.driver.memory=3276m --conf spark.driver.memoryOverhead=820m "
    "--conf spark.executor.cores=1 --conf spark.executor.memory=3276m --conf spark.executor.memoryOverhead=820m "
    "--conf spark.dynamicAllocation.minExecutors=1 --conf spark.dynamicAllocation.maxExecutors=2"
)
APPLICATION = {
    "name": "frazil-dev",
    "architecture": "ARM64",
    "release_label": "emr-spark-8.1.0",
    "maximum_capacity": [{"cpu": "8 vCPU", "memory": "32 GB"}],
}


def topic(partitions: int = 6, days: int = 7, name: str = "flights") -> dict[str, Any]:
    config = {"cleanup.policy": "delete", "retention.ms": str(days * DAY_MS)}
    return {"topic_name": name, "partitions_count": partitions, "config": config, "rest_endpoint": "https://lkc-1:443"}


def avro(*fields: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps({"type": "record", "name": "Flight", "fields": list(fields)})
    return {"subject_name": "flights-value", "format": "AVRO", "schema": text}


def role(trust: Any) -> dict[str, Any]:
    return {"name": "frazil-dev-tableflow", "assume_role_policy": json.dumps(trust)}


def rights(*tables: str) -> dict[str, Any]:
    places = replace(PLACES, tables=[name for table in tables for name in (table, f"{table}__dead_letters")])
    wanted = placeholders("ingest_job")
    filled = fill("ingest_job", places.values("ingest_job", **{k: v for k, v in VALUES.items() if k in wanted}))
    return {"name": "frazil-dev-ingest", "policy": json.dumps(filled)}


def scheduled(job: str, minutes: int) -> dict[str, Any]:
    request = {"JobDriver": {"SparkSubmit": {"SparkSubmitParameters": SIZES}}, "Tags": {"frazil:job": job}}
    return {
        "name": f"frazil-dev-{job}",
        "schedule_expression": f"rate({minutes} minutes)",
        "state": "ENABLED",
        "target": [{"arn": "arn:aws:scheduler:::aws-sdk:emrserverless:startJobRun", "input": json.dumps(request)}],
    }


def with_topic(pipeline: Pipeline, **changed: Any) -> Pipeline:
    return replace(pipeline, topic=varied(pipeline.topic, **changed))


def with_table(pipeline: Pipeline, **changed: Any) -> Pipeline:
    return replace(pipeline, table=replace(pipeline.table, **changed))


def declares(*after: Pipeline) -> Review:
    """Only the declarations change, from the two that are deployed."""
    return reviewed(plan(documents([FLIGHTS, PLANES], after)))


ID = {"name": "id", "type": "int"}
TRUST = policy("confluent_trust")
BUCKET = "aws_s3_bucket.tables_bucket"
TOPIC = "confluent_kafka_topic.topic-flights"
DEPLOYED = documents([FLIGHTS, PLANES], [FLIGHTS, PLANES])


def nothing() -> Review:
    return reviewed(plan(DEPLOYED, stays(TOPIC, topic())))


def columns_refused() -> Review:
    frozen = with_table(FLIGHTS, schema_evolution=SchemaEvolution.FREEZE)
    after = avro(ID, {"name": "gate", "type": "string"})
    return reviewed(plan(documents([frozen], [frozen]), change("confluent_schema.flights", "update", avro(ID), after)))


def forgotten_moved_imported() -> Review:
    bucket = {"bucket": "frazil-dev-tables-1"}
    return reviewed(
        plan(
            DEPLOYED,
            change("aws_s3_bucket.old", "forget", bucket, None),
            change("aws_glue_catalog_database.nyc", "stay", {"name": "nyc"}, {"name": "nyc"}, previous_address="aws_glue_catalog_database.n"),
            change("aws_kms_key.lake", "stay", {"description": "lake"}, {"description": "lake"}, importing="1111-2222"),
        )
    )  # fmt: skip


def unfinished() -> Review:
    """One stack whose plan ended in an error, one that could not be planned."""
    lost = change(
        BUCKET, "delete", {"bucket": "frazil-dev-tables-1"}, action_reason="delete_because_no_resource_config"
    )
    return review(
        "dev",
        [
            StackPlan(
                name="dev-foundation",
                plan=plan(lost, errored=True, outputs={"key": "create"}),
                why_not="Terraform refuses this plan: Instance cannot be destroyed",
            ),
            StackPlan(name="dev-confluent", why_not="it takes outputs of dev-foundation that do not exist yet"),
        ],
        prices=price_table(),
        today=TODAY,
    )


def mode_changed() -> Review:
    """From drains each quarter of an hour to a streaming run: no rebuild, and another bill."""
    follow = {**DESIRED, "mode": "follow", "generation": 5}
    return reviewed(
        plan(
            DEPLOYED,
            stays("aws_emrserverless_application.spark", APPLICATION),
            stays("aws_scheduler_schedule.maintain", scheduled("maintain", 360)),
            change("aws_scheduler_schedule.ingest", "delete", scheduled("ingest", 15)),
            change("aws_s3_object.desired", "update", {"key": "desired/ingest.json", "content": json.dumps(DESIRED)},
                   {"key": "desired/ingest.json", "content": json.dumps(follow)}),
        )
    )  # fmt: skip


def danger_accepted() -> Review:
    lowered = change(TOPIC, "replace", topic(6), topic(3), forced=[["partitions_count"]])
    return reviewed(
        plan(DEPLOYED, lowered),
        accepted=lambda digest: on_command_line("the topic is empty, see #12; agreed with @anna"),
    )


def hostile_names() -> Review:
    """Text of users: mentions, HTML, pipes, backticks, links, invisible characters."""
    told = "@everyone | `x` <script>alert(1)</script> [a](https://evil.example) ![i](//e) \u202etxt\n# H #1"
    return reviewed(
        plan(
            DEPLOYED,
            change("aws_s3_bucket.tables", "delete", {"bucket": told}),
            change('aws_sns_topic.x["@everyone|`<b>"]', "update", {"name": "x", "kms_master_key_id": "k"}, {"name": told, "kms_master_key_id": "k"}),
        ),
        accepted=lambda digest: on_command_line(told),
    )  # fmt: skip


def of_the_page() -> Review:
    """The example of docs/review.md: some of everything."""
    frozen = with_table(FLIGHTS, schema_evolution=SchemaEvolution.FREEZE)
    follow = {**DESIRED, "mode": "follow", "generation": 5}
    return reviewed(
        plan(
            documents([FLIGHTS, PLANES], [frozen, PLANES, BOATS]),
            change("aws_iam_policy.ingest", "update", rights("nyc.flights"), rights("nyc.flights", "sea.boats")),
            change(TOPIC, "replace", topic(6), topic(3), forced=[["partitions_count"]]),
            stays("aws_emrserverless_application.spark", APPLICATION),
            stays("aws_nat_gateway.nat", {"subnet_id": "a"}),
            change("aws_scheduler_schedule.ingest", "delete", scheduled("ingest", 15), action_reason="delete_because_no_resource_config"),
            change("aws_s3_object.desired", "update", {"key": "desired/ingest.json", "content": json.dumps(DESIRED)},
                   {"key": "desired/ingest.json", "content": json.dumps(follow)}),
        )
    )  # fmt: skip


CASES: dict[str, Callable[[], Review]] = {
    each.__name__: each
    for each in (
        nothing, columns_refused, forgotten_moved_imported, unfinished,
        mode_changed, danger_accepted, hostile_names, of_the_page,
    )
}  # fmt: skip
LAYOUTS = ("nothing", "of_the_page", "danger_accepted", "unfinished", "hostile_names", "mode_changed")
WITH_ASSUMPTIONS = {"mode_changed"}


def golden(name: str) -> str:
    """Return the Markdown of a case. Only one of them shows the assumptions of the estimate."""
    text = markdown(CASES[name]())
    if name in WITH_ASSUMPTIONS:
        return text
    head, _, _ = text.partition("\n\n<details><summary>Assumptions of the estimate</summary>")
    return f"{head}\n"


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for stale in GOLDEN.glob("*.md"):
        stale.unlink()
    for case in LAYOUTS:
        (GOLDEN / f"{case}.md").write_text(golden(case), "utf-8")
