"""Shared classes: Spark's JVM starts in about half the time when it maps its classes instead of reading them anew.

`python -m frazil.local.toolchain.class_data_sharing` starts Spark once, lets it write and read a few rows and list the classes
that it met, and has a second JVM make an archive of those (class-data sharing). The archive is for one Java and for the jars of
one virtual environment, so it lies in that environment, about 180 MB, and goes with it. A JVM that finds that it does not fit
starts without.

It is not dumped by the first JVM as it ends, which would be simpler: Java 17 was seen to take four minutes and a gigabyte for that.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from frazil.local.toolchain.java import java, told_version

LONGEST_SECONDS = 120
"""How long either step may take."""

# A JVM would complain on its output of an archive that does not fit.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
# What matters is that most of the classes that ours need are met. Iceberg's own cannot be in it: they come by `spark.jars`.
_PRACTICE = """
import sys
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(
    "spark.driver.extraJavaOptions", f"-XX:DumpLoadedClassList={sys.argv[1]} -XX:TieredStopAtLevel=1"
).getOrCreate()
rows = spark.range(100).select("id", F.from_json(F.lit('{"a": 1}'), "a INT").alias("row"), F.col("id").cast("string").alias("text"))
rows.where(F.col("row")["a"] == 1).sortWithinPartitions("id").write.parquet(sys.argv[2])
spark.read.parquet(sys.argv[2]).agg(F.count("*"), F.max("text")).collect()
spark.sql("SELECT 1 AS one").createOrReplaceTempView("ones")
spark.sql("SELECT * FROM ones").collect()
print(spark._jvm.java.lang.System.getProperty("java.class.path"))
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
    with tempfile.TemporaryDirectory(dir=made.parent) as name:
        folder = Path(name)
        classes, new = folder / "classes", folder / made.name
        class_path = _ran(folder, sys.executable, "-c", _PRACTICE, classes, folder / "rows").strip()
        if class_path:
            options = (f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={new}")
            _ran(folder, java(), "-Xshare:dump", *options, "-cp", class_path)
        if not new.is_file():
            return None
        os.replace(new, made)
    return made


def _ran(folder: Path, *command: str | Path) -> str:
    """What a command prints; nothing if it fails or takes too long. Its processes end with it."""
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as process:
        try:
            told, _ = process.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return ""
    return told if process.returncode == 0 else ""


if __name__ == "__main__":
    print(make() or "this Java makes no archive of classes; Spark starts without one")
