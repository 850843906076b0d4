"""Class-data sharing, with which Spark's JVM starts in about half the time: it maps its classes instead of loading them.

`python -m frazil.local.toolchain.class_data_sharing` starts Spark once, writes and reads a few rows, and lists the loaded
classes. A second JVM creates an archive of them. The archive, about 225 MB, fits one Java, the jars of one virtual
environment and those of the cache, so it is stored in that environment. A JVM that the archive does not fit starts without it.

The first JVM could write the archive when it ends, but with Java 17 that took four minutes and a gigabyte of memory.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from frazil.local.toolchain import class_path
from frazil.local.toolchain.java import java, version_text

LONGEST_SECONDS = 300
"""The time that each of the two steps may take."""
TRY_AGAIN = 75
"""The status of the program if a step took longer; it is `EX_TEMPFAIL` of sysexits.h."""

# Without this option, a JVM prints a warning about an archive that does not fit.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
# It is to load most classes that Frazil needs.
_PRACTICE = """
import sys
from pyspark.sql import SparkSession, functions as F
from pyspark.sql.avro.functions import from_avro
_, classes, folder = sys.argv
spark = SparkSession.builder.master("local[2]").config(map={
    "spark.driver.extraJavaOptions": f"-XX:DumpLoadedClassList={classes} -XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "jdbc",
    "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}.db",
    "spark.sql.catalog.lake.warehouse": folder,
}).getOrCreate()
rows = spark.range(100).select(
    "id",
    F.from_json(F.lit('{"a": 1}'), "a INT").alias("row"),
    F.col("id").cast("string").alias("text"),
    from_avro(F.lit(b"\\x02"), '"long"').alias("number"),
)
rows.where(F.col("row")["a"] == 1).sortWithinPartitions("id").write.parquet(folder + "/files")
spark.read.parquet(folder + "/files").agg(F.count("*"), F.max("text")).collect()
spark.sql("CREATE NAMESPACE lake.practice")
rows.writeTo("lake.practice.rows").create()
spark.table("lake.practice.rows").where("id > 1").agg(F.count("*"), F.max("text")).collect()
spark.sql("SELECT 1 AS one").createOrReplaceTempView("ones")
spark.sql("SELECT * FROM ones").collect()
java, byte_arrays = spark._jvm.java, "org.apache.kafka.common.serialization.ByteArrayDeserializer"
kafka = {"bootstrap.servers": "127.0.0.1:9", "key.deserializer": byte_arrays, "value.deserializer": byte_arrays}
consumer = spark._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(java.util.HashMap(kafka))
consumer.assign([spark._jvm.org.apache.kafka.common.TopicPartition("practice", 0)])
consumer.poll(java.time.Duration.ofMillis(100))  # there is no broker
consumer.close()
print(spark._jvm.java.lang.System.getProperty("java.class.path"))
spark.stop()
"""


def archive() -> Path:
    """Return the path of the archive for this environment, its jars and the installed Java.

    Raises `JavaUnsuitable`, and `JarsUnavailable` or `JarMismatch`.
    """
    source = f"{version_text(java())}{_PRACTICE}{_jars()}"
    return Path(sys.prefix, "share", "frazil", f"spark-{hashlib.sha256(source.encode()).hexdigest()[:16]}.jsa")


def _jars() -> list[Path]:
    return class_path.driver_jars(aws=False)


def java_options() -> str:
    """Return the options with which a driver's JVM uses the archive; empty if it does not exist."""
    return f"-XX:SharedArchiveFile={archive()} {_QUIET}" if archive().is_file() else ""


def make() -> Path | None:
    """Create the archive, replacing an earlier one; None if this Java cannot.

    Raises `JavaUnsuitable`, and `TimeoutError` if a step takes longer than `LONGEST_SECONDS`.
    """
    made = archive()
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as name:
        folder = Path(name)
        classes, new = folder / "classes", folder / made.name
        with class_path.of_new_jvms(_jars()):
            jars = _ran(folder, sys.executable, "-c", _PRACTICE, classes, folder / "rows").strip()
        if jars:
            options = (f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={new}")
            _ran(folder, java(), "-Xshare:dump", *options, "-cp", jars)
        if not new.is_file():
            return None
        os.replace(new, made)
    return made


def _ran(folder: Path, *command: str | Path) -> str:
    """Return the output of a command; empty if it fails. Its processes end with it, also if it takes too long."""
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise TimeoutError(f"{command[0]} took longer than {LONGEST_SECONDS} s") from None
    return output if process.returncode == 0 else ""


def main() -> int:
    """Create the archive and say where it is, or why it does not exist. Return the status of the program."""
    try:
        print(make() or "this Java makes no archive of classes; Spark starts without one")
    except TimeoutError as late:
        print(f"no archive of classes was made: {late}. Spark starts without one; `make setup` tries again")
        return TRY_AGAIN
    return 0


if __name__ == "__main__":
    sys.exit(main())
