"""Shared classes: Spark's JVM starts in about half the time when it maps its classes instead of reading them anew.

`python -m frazil.local.shared_classes` starts Spark once, lets it write and read a few rows, and has the JVM leave an archive
of the classes it met (class-data sharing, JEP 350). The archive is for one Java and for the jars of one virtual environment,
so it lies in that environment, about 160 MB, and goes with it. A JVM that finds that it does not fit starts without it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from frazil.local.java import java, told_version

# A JVM would complain on its output of an archive that does not fit.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
# What matters is that most of the classes that ours need are met. Iceberg's own cannot be in it: they come by `spark.jars`.
_PRACTICE = """
import sys
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(
    "spark.driver.extraJavaOptions", f"-XX:ArchiveClassesAtExit={sys.argv[1]} -XX:TieredStopAtLevel=1"
).getOrCreate()
rows = spark.range(100).select("id", F.from_json(F.lit('{"a": 1}'), "a INT").alias("row"), F.col("id").cast("string").alias("text"))
rows.where(F.col("row")["a"] == 1).sortWithinPartitions("id").write.parquet(sys.argv[2])
spark.read.parquet(sys.argv[2]).agg(F.count("*"), F.max("text")).collect()
spark.sql("SELECT 1 AS one").createOrReplaceTempView("ones")
spark.sql("SELECT * FROM ones").collect()
spark.stop()
"""


def archive() -> Path:
    """Where the archive for this environment and the Java that is found lies, or would lie. Raises `JavaUnsuitable`."""
    told = f"{told_version(java())}{_PRACTICE}"
    return Path(sys.prefix, "share", "frazil", f"spark-{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa")


def java_options() -> str:
    """The options with which a driver's JVM uses the archive; empty where there is none."""
    return f"-XX:SharedArchiveFile={archive()} {_QUIET}" if archive().is_file() else ""


def make() -> Path | None:
    """Make the archive, anew if it is there; None where this Java cannot. Raises `JavaUnsuitable`."""
    made = archive()
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        new = Path(folder, made.name)
        subprocess.run(
            [sys.executable, "-c", _PRACTICE, new, Path(folder, "rows")], cwd=folder, capture_output=True, check=False
        )
        if not new.is_file():
            return None
        os.replace(new, made)
    return made


if __name__ == "__main__":
    print(make() or "this Java makes no archive of classes; Spark starts without one")
