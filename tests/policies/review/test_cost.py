"""Costs, worked out by hand; `tests/stacks/workflow/test_monthly_bill.py` has a complete bill."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from frazil.declaration import Spark, Upsert, parse
from policies.resources import Resource, embedded
from policies.review.cost import Estimate, estimate
from policies.review.markdown.page import cost_table
from policies.review.prices import NotAssumed, Prices, price_table
from tests.policies.review.cases import APPLICATION, DESIRED, scheduled
from tests.policies.review.planning import FLIGHTS, PLANES, declared

TABLE = price_table()


def made(**resources: Any) -> list[Resource]:
    """Resources, `aws_eip__nat={...}` being `aws_eip.nat`."""
    return [
        Resource(address.replace("__", ".", 1), address.partition("__")[0], values)
        for address, values in resources.items()
    ]


def follow(**changed: Any) -> dict[str, Any]:
    return {"content": json.dumps({**DESIRED, "mode": "follow", **changed})}


def cost(table: Prices = TABLE, /, **resources: Any) -> Estimate:
    return estimated(made(**resources), table)


def estimated(resources: list[Resource], table: Prices = TABLE, left: Sequence[str] = ()) -> Estimate:
    pipelines = [one for each in embedded(resources) if "pipelines" in each for one in parse(each)]
    return estimate(resources, pipelines, table, left=left)


def cents(amount: Decimal) -> str:
    return f"{amount:.2f}"


WORKER = {"cores": 1, "memory_gb": 4, "disk_gb": 50}
DRAIN = scheduled("ingest", 15)


@pytest.mark.parametrize(
    ("dollars", "resources"),
    [
        # 730 h x 60 / 15 = 2,920 runs of 6 min = 292 h. A driver and 1 + (2 - 1) x 0.25 = 1.25 executors of 1 vCPU and 4 GB are
        # 2.25 vCPU and 9 GB; on x86 2.25 x 0.060528 + 9 x 0.006643 = 0.195975 an hour; x 292 = 57.2247.
        ("57.22", {"aws_scheduler_schedule__i": DRAIN}),
        # A desired drain is counted by its schedule only.
        ("57.22", {"aws_scheduler_schedule__i": DRAIN, "aws_s3_object__d": {"content": json.dumps(DESIRED)}}),
        # A run is no longer than its interval. Each 5 min for at most 5 min is always: 730 h x 0.195975 = 143.06.
        ("143.06", {"aws_scheduler_schedule__i": scheduled("ingest", 5)}),
        ("143.06", {"aws_s3_object__d": follow()}),
        # 50 GB are 30 beyond 20: (1 + 1.25) x 30 x 0.000132 = 0.00891 more an hour; (0.195975 + 0.00891) x 730 = 149.566.
        ("149.57", {"aws_s3_object__d": follow(workers={"driver": WORKER, "executor": WORKER, "least": 1, "most": 2})}),
    ],
)  # fmt: skip
def test_hours_of_workers_cost(dollars: str, resources: dict[str, Any]) -> None:
    assert cents(cost(**resources).of("EMR Serverless")) == dollars


def test_of_two_applications_that_of_the_runs_counts() -> None:
    """While runs move between kinds of processors, both exist. A new one has no id before it is applied."""
    former = {**APPLICATION, "architecture": "X86_64", "id": "a"}
    for new, wanted in (({"id": "b"}, "b"), ({}, "${aws_emrserverless_application.z.id}")):
        both = {"aws_emrserverless_application__a": former, "aws_emrserverless_application__z": APPLICATION | new}
        drain = scheduled("ingest", 15)
        [target] = drain["target"]
        drain["target"] = [{**target, "input": json.dumps({**json.loads(target["input"]), "ApplicationId": wanted})}]
        told = cost(aws_scheduler_schedule__i=drain, **both)
        assert cents(told.of("EMR Serverless")) == "45.78", "0.1567755 x 292 on ARM64"
        streaming = cost(aws_s3_object__d=follow(application=wanted), **both)
        assert cents(streaming.of("EMR Serverless")) == "114.45", "0.1567755 x 730"
        back = cost(aws_s3_object__d=follow(application="a"), **both)
        assert cents(back.of("EMR Serverless")) == "143.06", "as of x86"


@pytest.mark.parametrize("off", [{"state": "DISABLED"}, None])
def test_what_does_not_run_costs_nothing(off: dict[str, str] | None) -> None:
    schedule = {"aws_scheduler_schedule__i": {**scheduled("ingest", 15), **(off or {})}} if off else {}
    assert cost(aws_s3_object__p=declared(FLIGHTS), **schedule).total == 0
    assert cost(aws_s3_object__p=declared(FLIGHTS), aws_s3_object__d=follow(is_stopped=True)).total == 0


def test_a_drain_that_the_reconciler_starts_costs_the_same_and_its_other_calls_start_nothing() -> None:
    def called(minutes: int, **event: str) -> dict[str, Any]:
        return {
            "name": "frazil-dev-ingest",
            "schedule_expression": f"rate({minutes} minutes)",
            "target": [{"arn": "arn:aws:lambda:x", "input": json.dumps({"job": DESIRED["job"], **event})}],
        }

    calls = {
        "aws_scheduler_schedule__i": called(15, execution="<aws.scheduler.execution-id>"),
        "aws_scheduler_schedule__r": called(5),
    }
    told = cost(aws_s3_object__d={"content": json.dumps(DESIRED)}, **calls)
    assert (cents(told.of("EMR Serverless")), told.missing) == ("57.22", ())
    assert cost(**calls).missing == ("aws_scheduler_schedule.i",), "without desired state, its workers are not known"


def test_batches_of_ten_seconds_cost_requests() -> None:
    """730 x 3,600 / 10 = 262,800 batches. Writes 2,628,000 x 0.0054 / 1,000 = 14.1912; reads 2,628,000 x 0.00043 / 1,000 = 1.13004;
    stored 360 GB x 0.0245 = 8.82: 24.14. Glue: 1,839,600 requests, 839,600 beyond the free million: 0.8396."""
    told = cost(aws_s3_object__d=follow(), aws_s3_object__p=declared(FLIGHTS))
    assert cents(told.of("S3")) == "24.14"
    assert cents(told.of("Glue")) == "0.84"


def test_batches_of_a_current_state_make_more_requests() -> None:
    """The same batches: writes 14.1912; reads 15,768,000 x 0.00043 / 1,000 = 6.78024; stored 8.82: 29.79. Glue: 2,365,200 requests,
    1,365,200 beyond the free million."""
    told = cost(aws_s3_object__d=follow(), aws_s3_object__p=declared(replace(FLIGHTS, write=Upsert())))
    assert cents(told.of("S3")) == "29.79"
    assert cents(told.of("Glue")) == "1.37"


def test_tables_of_a_pipeline_that_is_gone_still_cost() -> None:
    """2 x 360 GB x 0.0245 = 17.64, and the requests of one pipeline: 0.1702."""
    listed = made(aws_scheduler_schedule__i=scheduled("ingest", 15), aws_s3_object__p=declared(FLIGHTS))
    assert cents(estimated(listed, left=["planes"]).of("S3")) == "17.81"


def test_given_assumptions_count_and_are_told_as_given() -> None:
    """30 GB x 0.5 x 1 month = 15 GB x 0.0245 = 0.3675."""
    given = price_table(
        {"stored_share": 0.5, "months_stored": 1, "puts_a_batch": 0, "gets_a_batch": 0, "pipelines": {"flights": 30}}
    )
    told = cost(given, aws_scheduler_schedule__i=scheduled("ingest", 15), aws_s3_object__p=declared(FLIGHTS))
    assert cents(told.of("S3")) == "0.37"
    assert {name for name, each in given.assumptions.items() if each.is_given} == {
        "stored_share", "months_stored", "puts_a_batch", "gets_a_batch",
    }  # fmt: skip


@pytest.mark.parametrize(
    "given", [{"months": 1}, {"stored_share": "much"}, {"stored_share": -1}, {"pipelines": 3}, {"drain_minutes": "NaN"}]
)
def test_what_is_no_assumption_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(NotAssumed):
        price_table(given)


@pytest.mark.parametrize(
    "schedule",
    [
        {**scheduled("ingest", 15), "schedule_expression": "cron(0 * * * ? *)"},
        {**scheduled("ingest", 15), "target": [{"input": None}]},
        {**scheduled("ingest", 15), "target": [{"input": json.dumps({"JobDriver": {"SparkSubmit": {}}})}]},
    ],
)
def test_a_schedule_that_cannot_be_understood_is_told_and_not_guessed_at(schedule: dict[str, Any]) -> None:
    told = cost(aws_scheduler_schedule__i=schedule)
    assert told.missing == ("aws_scheduler_schedule.i",)
    assert told.total == 0


def test_workers_that_cannot_be_understood_are_told() -> None:
    assert cost(aws_s3_object__d=follow(workers={"driver": 3})).missing == ("desired state of ingest",)


def test_a_running_pipeline_has_metrics_and_a_query_costs_a_time_series_for_each() -> None:
    """2 x 8 metrics x 0.30 = 4.80. One alarm on a query over 2 pipelines, one of a pipeline, one of the scheduler: 4 x 0.10."""
    query = 'SELECT MAX(freshness_seconds) FROM SCHEMA("Frazil/dev", pipeline) GROUP BY pipeline'
    told = cost(
        aws_scheduler_schedule__i=scheduled("ingest", 15),
        aws_s3_object__p=declared(FLIGHTS, PLANES),
        aws_cloudwatch_metric_alarm__q={"metric_query": [{"expression": query}]},
        aws_cloudwatch_metric_alarm__p={"metric_name": "lag", "dimensions": {"pipeline": "flights"}},
        aws_cloudwatch_metric_alarm__s={"metric_name": "TargetErrorCount", "dimensions": {"ScheduleGroup": "x"}},
    )
    assert cents(told.of("CloudWatch")) == "5.20"


def test_each_group_has_the_batches_of_its_own_job() -> None:
    """2,920 drains each 15 minutes for one pipeline, and 730 each hour for the other: 3,650 batches, 36,500 writes and reads cost
    0.2128; stored 17.64."""
    boats = replace(PLANES, engine=Spark(group="sea"))
    told = cost(
        aws_scheduler_schedule__i=scheduled("ingest", 15),
        aws_scheduler_schedule__g=scheduled("ingest-sea", 60),
        aws_scheduler_schedule__m=scheduled("maintain-sea", 360),
        aws_s3_object__p=declared(FLIGHTS),
        aws_s3_object__g=declared(boats),
    )
    assert cents(told.of("S3")) == "17.85"
    assert set(told.pipelines) == {FLIGHTS.name, boats.name}


def test_a_group_whose_job_does_not_run_costs_nothing_but_its_tables() -> None:
    boats = replace(PLANES, engine=Spark(group="sea"))
    told = cost(aws_scheduler_schedule__i=scheduled("ingest", 15), aws_s3_object__p=declared(FLIGHTS, boats))
    assert set(told.pipelines) == {FLIGHTS.name}


def test_cloudwatch_a_managed_cluster_and_tableflow_are_counted() -> None:
    alarms = [Resource(f"aws_cloudwatch_metric_alarm.{n}", "aws_cloudwatch_metric_alarm", {}) for n in range(3)]
    standard = Resource("confluent_kafka_cluster.c", "confluent_kafka_cluster", {"standard": [{}]})
    basic = Resource("confluent_kafka_cluster.b", "confluent_kafka_cluster", {"basic": [{}]})
    topic = Resource("confluent_tableflow_topic.t", "confluent_tableflow_topic", {})
    found = estimated([*alarms, standard, basic, topic])
    assert (found.of("CloudWatch"), found.of("Kafka cluster")) == (Decimal("0.30"), Decimal("547.50"))
    assert found.of("Tableflow") == Decimal("75.00"), "730 h, and 50 GB"


def test_a_dashboard_is_counted() -> None:
    dashboard = Resource("aws_cloudwatch_dashboard.d", "aws_cloudwatch_dashboard", {})
    assert estimated([dashboard]).of("CloudWatch") == Decimal("3.00")


def test_a_difference_of_less_than_one_is_one_line_without_a_table() -> None:
    alarm = Resource("aws_cloudwatch_metric_alarm.a", "aws_cloudwatch_metric_alarm", {})
    before, after = estimated([alarm]), estimated([alarm, alarm])
    assert cost_table(before, after, TABLE) == "About 0.20 USD a month, as before."
    many = estimated([alarm] * 12)
    assert cost_table(before, many, TABLE).startswith("| USD a month | now | after |")
