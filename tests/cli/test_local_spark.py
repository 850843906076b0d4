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
from frazil.declaration.environment import Kafka, Mechanism, Security
from frazil.errors import JvmEnded, TopicRecreated
from frazil.job import session as job_session
from frazil.local.toolchain import class_path
from tests.support.documents import environment_in


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
    monkeypatch.setattr(class_path, "jars", lambda purpose: (Path("/j/kafka-clients-3.jar"), *amazons))
    of = environment_in(Path("/lake"))
    iam = Kafka(bootstrap="b:1", security=Security.SASL_SSL, mechanism=Mechanism.AWS_MSK_IAM, region="eu-central-1")
    assert local_spark.jars_here(of) == [Path("/j/kafka-clients-3.jar")]
    assert local_spark.jars_here(replace(of, kafka=iam)) == [Path("/j/kafka-clients-3.jar"), *amazons]


_HERE = """
import sys
from pathlib import Path
from frazil.cli.local_spark import local_job
from frazil.clients.secrets import Secrets
from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.environment import Environment, Kafka
from frazil.exit_codes import exit_of
from frazil.lake import spark_session

lake = LocalCatalog(path=f"{sys.argv[1]}/lake.db", warehouse=f"file://{sys.argv[1]}/lake")
environment = Environment(name="here", kafka=Kafka(bootstrap="127.0.0.1:9"), catalog=lake)
"""
_STARTS = f"""{_HERE}
spark_session.START_SECONDS = float(sys.argv[2])
try:
    with local_job(environment, Secrets({{}}), master="local[1]", memory="1g", log=Path("spark.log")):
        pass
except Exception as error:
    print(exit_of(error).value, error)
"""


@pytest.mark.parametrize(
    ("script", "seconds"),
    [
        ("kill -9 $$", "60"),
        ("exit 3", "60"),
        ("exit 0", "1"),  # PySpark waits without end for one that ends without an error
        ("exec sleep 5", "1"),
        # It comes up, and is gone when it is asked for something.
        (
            "import os, struct\n"
            "with open(os.environ['_PYSPARK_DRIVER_CONN_INFO_PATH'] + '.new', 'wb') as file:\n"
            "    file.write(struct.pack('>ii', 9, 1) + b's')\n"
            "os.rename(file.name, os.environ['_PYSPARK_DRIVER_CONN_INFO_PATH'])\n",
            "60",
        ),
    ],
    ids=["killed", "failed", "ended", "hanging", "gone"],
)
def test_a_jvm_that_does_not_come_up_is_named_with_its_log(tmp_path: Path, script: str, seconds: str) -> None:
    """Linux kills a JVM for memory while Spark starts, say."""
    home = tmp_path / "bin"
    home.mkdir()
    shell = f"#!{sys.executable}\n" if script.startswith("import") else "#!/bin/sh\n"
    (home / "spark-submit").write_text(f"{shell}{script}\n")
    (home / "spark-submit").chmod(0o755)
    variables = {**os.environ, "SPARK_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", _STARTS, str(tmp_path), seconds]
    ended = subprocess.run(
        command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout.startswith("6 log spark.log: Spark's JVM ended. "), ended.stdout + ended.stderr[-2000:]


_WRITES_A_TABLE = f"""{_HERE}
with local_job(environment, Secrets({{}}), master="local[1]", memory="1g") as job:
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
