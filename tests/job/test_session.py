"""A job under spark-submit is asked to end by way of its JVM, and ends between two steps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.spark_home import job_environment, spark_home

pytestmark = pytest.mark.spark

JOB = """
import sys, threading
from pyspark.sql import SparkSession
from frazil.job.session import heed_the_jvm
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
stopping = threading.Event()
heed_the_jvm(spark, stopping)
print("up", flush=True)
if "--stay" in sys.argv:
    stopping.wait(60)
    print("counted", spark.range(7).count(), "after it was asked", flush=True)
spark.stop()
print("done", flush=True)
"""


def submitted(root: Path, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    home = spark_home(folder)
    (folder / "job.py").write_text(JOB)
    return subprocess.Popen(
        [str(home / "bin" / "spark-submit"), "--master", "local[1]", "job.py", *arguments],
        cwd=folder,
        env={**job_environment(home, root / "jobs"), "PYSPARK_PYTHON": sys.executable, "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


@pytest.mark.long
def test_a_jvm_that_is_asked_to_end_waits_until_the_job_has(root: Path, tmp_path: Path) -> None:
    with submitted(root, tmp_path, "--stay") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.terminate()  # the JVM alone: it is what spark-submit becomes
        assert process.stdout.readlines() == ["counted 7 after it was asked\n", "done\n"]
        assert process.wait(30) == 143


@pytest.mark.long
def test_a_job_that_ends_by_itself_is_not_held_up(root: Path, tmp_path: Path) -> None:
    with submitted(root, tmp_path) as process:
        assert process.communicate(timeout=60)[0] == "up\ndone\n"
        assert process.returncode == 0
