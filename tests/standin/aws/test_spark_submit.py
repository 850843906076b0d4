"""What a run asks of Spark is read as the service reads it, and what cannot be run is refused."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import FrazilError
from frazil.rollout.job_run_request import run_settings
from tests.standin.aws.spark_submit import submission
from tests.support.rollout_world import DOCUMENT, ENVIRONMENT, desired, release


def test_the_request_of_a_release_names_all_that_is_fetched() -> None:
    asked = run_settings(desired(), release(), bucket="b")
    read = submission(asked["jobDriver"], asked["configurationOverrides"])
    names = [uri.rpartition("/")[2] for uri in read.files]
    documents = [key.rpartition("/")[2] for key in (DOCUMENT, ENVIRONMENT)]
    jars = [jar.name for jar in release().jars]
    assert names == ["ingest.py", "frazil-1.0.0.zip", *jars, *documents]
    assert [(uri.rpartition("/")[2], folder) for uri, folder in read.archives] == [
        ("environment-x86_64.tar.gz", "environment")
    ]
    assert read.variables == {"PYTHONPATH": "./environment"}
    assert not [key for key in read.settings if key.startswith("spark.emr-serverless.")]
    assert "--follow" in read.arguments


def test_here_means_the_folder() -> None:
    asked = run_settings(desired(), release(), bucket="b")
    here = submission(asked["jobDriver"], {}).here("/run")
    assert here["spark.submit.pyFiles"] == "/run/frazil-1.0.0.zip"
    assert here["spark.jars"].split(",")[0] == "/run/iceberg-aws-bundle-1.11.0.jar"
    assert not [value for value in here.values() if "s3://" in value]


def test_flags_defaults_and_quotes_are_understood_and_parameters_win() -> None:
    driver = submit("--conf spark.a=1 --conf 'spark.b=two words' --jars s3://b/a.jar --driver-memory 2g")
    defaults = [{"classification": "spark-defaults", "properties": {"spark.a": "0", "spark.c": "3"}}]
    read = submission(driver, {"applicationConfiguration": defaults})
    assert read.settings == {
        "spark.a": "1",
        "spark.b": "two words",
        "spark.c": "3",
        "spark.jars": "s3://b/a.jar",
        "spark.driver.memory": "2g",
    }


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        ({"hive": {}}, "sparkSubmit is missing"),
        ({"sparkSubmit": {"entryPoint": "/tmp/job.py"}}, "/tmp/job.py is not on S3"),
        (
            {"sparkSubmit": {"entryPoint": "s3://b/j.py", "sparkSubmitParameters": "--jars /a.jar"}},
            "/a.jar is not on S3",
        ),
        (
            {"sparkSubmit": {"entryPoint": "s3://b/j.py", "sparkSubmitParameters": "--magic"}},
            "--magic is not supported",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(driver: dict[str, Any], said: str) -> None:
    with pytest.raises(FrazilError, match=said):
        submission(driver, {})


def submit(parameters: str) -> dict[str, Any]:
    return {"sparkSubmit": {"entryPoint": "s3://b/job.py", "sparkSubmitParameters": parameters}}
