"""The class path of a driver's JVM on this machine: Spark's own jars, and after them those of `jobs/jars.lock`.

With `spark.jars`, as on EMR, Spark copies them for each session (72 MB), and loads their classes by a class loader of its own,
which shares none with an archive (`class_data_sharing`). Spark also opens files before it loads `spark.jars`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from frazil.local.toolchain.jars import jars

LOCAL_FILES = {"spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"}
"""Spark's settings for a driver that has the class on its class path (`class_path`)."""


VARIABLE = "SPARK_DIST_CLASSPATH"
"""The variable by which spark-submit puts jars after Spark's own."""
_FOR_AWS = re.compile("iceberg-aws-bundle|aws-msk-iam")


def driver_jars(*, aws: bool) -> list[Path]:
    """Return the locked jars of a driver, with or without those that only AWS needs.

    These are last: an archive of classes fits class paths that begin with its own. Raises `JarsUnavailable` or `JarMismatch`.
    """
    of_spark = jars("spark")
    for_aws = [jar for jar in of_spark if _FOR_AWS.match(jar.name)]
    return [jar for jar in of_spark if jar not in for_aws] + (for_aws if aws else [])


def variables(jars: Sequence[Path], given: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that adds jars to the class path of new JVMs; what the given variables have there stays in front."""
    before = [name for name in given.get(VARIABLE, "").split(os.pathsep) if name]
    return {VARIABLE: os.pathsep.join([*before, *(name for jar in jars if (name := str(jar)) not in before)])}


def settings(jars: Sequence[Path]) -> dict[str, str]:
    """Return the settings with which a session has the jars that the variable cannot bring; empty if it can.

    A path may have the separator of the variable, and `spark-env.sh`, which spark-submit runs, may set it to something else.
    """
    home = os.environ.get("SPARK_HOME") or str(resources.files("pyspark"))
    script = Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"), "spark-env.sh")
    can_bring = not script.exists() and not any(os.pathsep in str(jar) for jar in jars)
    return {} if can_bring else {"spark.jars": ",".join(map(str, jars))}


@contextmanager
def of_new_jvms(jars: Sequence[Path]) -> Iterator[None]:
    """Add jars to the class path of JVMs that start in the block, unless `settings` has them."""
    if settings(jars):
        yield
        return
    before = os.environ.get(VARIABLE)
    os.environ.update(variables(jars, os.environ))
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
