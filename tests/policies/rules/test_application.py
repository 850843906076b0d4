"""The application has room for its jobs, and a label with a future."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from frazil.release.emr_labels import LABELS, SOON_DAYS
from policies.rules.application import application_too_small, label_near_end
from tests.policies.reviewing import TODAY, stack, told

ADDRESS = "aws_emrserverless_application.a"
WORKER = {"cores": 4, "memory_gb": 16, "disk_gb": 20}
DESIRED = {"version": 1, "job": "ingest", "workers": {"driver": WORKER, "executor": WORKER, "least": 1, "most": 4}}


def application(cpu: int = 20, memory: int = 80, label: str = LABELS[0].name, **others: Any) -> dict[str, Any]:
    values = {"release_label": label, "maximum_capacity": {"cpu": f"{cpu} vCPU", "memory": f"{memory} GB"}}
    return stack(aws_emrserverless_application__a=values, **others)


def schedule(job: str | None, parameters: str) -> dict[str, Any]:
    request = {
        "JobDriver": {"SparkSubmit": {"SparkSubmitParameters": parameters}},
        "Tags": {"frazil:job": job} if job else {},
    }
    values = {"name": "scheduled", "schedule_expression": "rate(1 hour)", "target": [{"input": json.dumps(request)}]}
    return {"aws_scheduler_schedule__s": values}


SIZES = (
    "--conf spark.driver.cores=4 --conf spark.driver.memory=12g --conf spark.driver.memoryOverhead=4g "
    "--conf spark.executor.cores=4 --conf spark.executor.memory=13107m --conf spark.executor.memoryOverhead=3277m "
    "--conf spark.dynamicAllocation.minExecutors=1 --conf spark.dynamicAllocation.maxExecutors=4"
)


@pytest.mark.parametrize(("cpu", "memory", "count"), [(20, 80, 0), (19, 80, 1), (20, 79, 1), (400, 3000, 0)])
def test_an_application_has_room_for_a_desired_job(cpu: int, memory: int, count: int) -> None:
    assert len(told(application_too_small, application(cpu, memory), DESIRED)) == count


def test_the_finding_says_what_is_wanted_and_what_is_there() -> None:
    assert told(application_too_small, application(16, 64), DESIRED) == [
        (ADDRESS, "its jobs want 20 vCPU and 80 GB at once, it may have 16 and 64")
    ]


def test_while_jobs_move_one_of_two_applications_has_room() -> None:
    def two(first: int, second: int, other: str = "frazil-dev") -> list[tuple[str, str]]:
        sizes = {"a": ("frazil-dev", first), "b": (other, second)}
        values = {
            f"aws_emrserverless_application__{key}": {
                "name": f"{prefix}-emr-spark-8-1-0-arm64",
                "maximum_capacity": {"cpu": f"{cpu} vCPU", "memory": "400 GB"},
            }
            for key, (prefix, cpu) in sizes.items()
        }
        return told(application_too_small, stack(**values), DESIRED)

    assert two(8, 20) == two(20, 8) == []
    assert [address for address, _ in two(8, 16)] == [ADDRESS]
    assert [address for address, _ in two(8, 20, "frazil-prod")] == [ADDRESS], "of another environment"


def test_a_schedules_job_counts_by_its_spark_settings() -> None:
    assert told(application_too_small, application(20, 80, **schedule(None, SIZES))) == []
    assert len(told(application_too_small, application(20, 79, **schedule(None, SIZES)))) == 1


def test_jobs_add_up_and_one_that_is_told_twice_counts_once() -> None:
    assert len(told(application_too_small, application(20, 80, **schedule("maintain", SIZES)), DESIRED)) == 1
    assert told(application_too_small, application(40, 160, **schedule("maintain", SIZES)), DESIRED) == []
    assert told(application_too_small, application(20, 80, **schedule("ingest", SIZES)), DESIRED) == []


def test_a_desired_state_inside_the_stack_is_read() -> None:
    inside = {"aws_s3_object__d": {"bucket": "b", "key": "desired/ingest.json", "content": json.dumps(DESIRED)}}
    assert len(told(application_too_small, application(16, 64, **inside))) == 1


def test_workers_that_cannot_be_understood_fit_nowhere() -> None:
    odd = {**DESIRED, "workers": {"driver": {"cores": 3}}}
    assert len(told(application_too_small, application(4000, 16000), odd)) == 1


def test_an_application_without_jobs_is_large_enough() -> None:
    assert told(application_too_small, application(1, 1)) == []


def test_a_label_near_its_end_is_told() -> None:
    assert told(label_near_end, application()) == []
    end = LABELS[0].supported_until
    just = date.fromordinal(end.toordinal() - SOON_DAYS)
    assert told(label_near_end, application(), today=just) == [
        (ADDRESS, f"standard support of {LABELS[0].name} ends on {end}")
    ]
    assert told(label_near_end, application(), today=date.fromordinal(just.toordinal() - 1)) == []


def test_a_label_that_nobody_knows_is_told() -> None:
    findings = told(label_near_end, application(label="emr-6.1.0"), today=TODAY)
    assert findings == [(ADDRESS, "emr-6.1.0 is an unknown label")]
