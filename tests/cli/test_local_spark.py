"""Which jars a command on this machine takes, and what it says if its JVM is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.cli import local_spark
from frazil.cli.local_spark import local_job
from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.environment import Environment, Kafka, Mechanism, Security
from frazil.errors import JvmEnded, TopicRecreated
from frazil.job import session as job_session
from frazil.local.toolchain import class_path


def work(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, answers: bool, is_stopping: bool = False
) -> None:
    lang = SimpleNamespace(System=SimpleNamespace(nanoTime=lambda: 1))
    jvm = SimpleNamespace(java=SimpleNamespace(lang=lang)) if answers else None

    @contextmanager
    def opened(*_: Any, stopping: threading.Event, **__: Any) -> Iterator[Any]:
        if is_stopping:
            stopping.set()
        yield SimpleNamespace(spark=SimpleNamespace(_jvm=jvm))

    monkeypatch.setattr(job_session, "open_job", opened)
    monkeypatch.setattr(local_spark, "jars_here", lambda _: [])
    anything: Any = None
    with local_job(anything, anything, master="local[1]", memory="1g", log=tmp_path / "spark.log"):
        raise error


REFUSED = ConnectionRefusedError(111, "Connection refused")


def test_a_lost_jvm_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JvmEnded, match="Spark's JVM ended"):
        work(REFUSED, tmp_path, monkeypatch, answers=False)


def test_a_jvm_that_the_same_signal_ended_is_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        work(REFUSED, tmp_path, monkeypatch, answers=False, is_stopping=True)


@pytest.mark.parametrize("error", [REFUSED, TopicRecreated("another id", pipeline="p", place="topic a")], ids=repr)
def test_other_errors_stay_what_they_are(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(type(error)):
        work(error, tmp_path, monkeypatch, answers=True)


def test_amazons_sdk_and_login_are_taken_where_the_broker_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    amazons = [Path("/j/iceberg-aws-bundle-1.jar"), Path("/j/aws-msk-iam-auth-2.jar")]
    monkeypatch.setattr(class_path, "spark_jars", lambda: (Path("/j/kafka-clients-3.jar"), *amazons))
    of = Environment(
        name="here", kafka=Kafka(bootstrap="b:1"), catalog=LocalCatalog(path="/lake.db", warehouse="/lake")
    )
    iam = Kafka(bootstrap="b:1", security=Security.SASL_SSL, mechanism=Mechanism.AWS_MSK_IAM, region="eu-central-1")
    assert local_spark.jars_here(of) == [Path("/j/kafka-clients-3.jar")]
    assert local_spark.jars_here(replace(of, kafka=iam)) == [Path("/j/kafka-clients-3.jar"), *amazons]
