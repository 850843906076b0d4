"""Which jars a command on this machine takes, and what it says if its JVM is gone."""

from __future__ import annotations

import os
import subprocess
import sys
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


_WRITES_A_TABLE = """
import sys
from frazil.cli.local_spark import local_job
from frazil.clients.secrets import Secrets
from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.environment import Environment, Kafka

lake = LocalCatalog(path=f"{sys.argv[1]}/lake.db", warehouse=f"file://{sys.argv[1]}/lake")
environment = Environment(name="here", kafka=Kafka(bootstrap="127.0.0.1:9"), catalog=lake)
with local_job(environment, Secrets({}), master="local[1]", memory="1g") as job:
    job.spark.sql("CREATE NAMESPACE lake.a")
    job.spark.sql("CREATE TABLE lake.a.b AS SELECT 7 AS x")
    print("rows", job.spark.table("lake.a.b").collect())
"""


@pytest.mark.spark
@pytest.mark.long
def test_a_driver_has_its_jars_whatever_a_users_script_sets(tmp_path: Path) -> None:
    (tmp_path / "spark-env.sh").write_text("export SPARK_DIST_CLASSPATH=/opt/hadoop/lib\n")
    variables = {**os.environ, "SPARK_CONF_DIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    variables.pop(class_path.VARIABLE, None)
    command = [sys.executable, "-c", _WRITES_A_TABLE, str(tmp_path)]
    ended = subprocess.run(
        command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert "rows [Row(x=7)]" in ended.stdout, ended.stderr[-2000:]
