"""Spark's files on this machine, without a process for each.

Without its native library, Hadoop's local file system runs `chmod` for every file that it creates. The class sets the same
permissions by Java's own calls; ADR 49 has what that saves. https://github.com/globalmentor/hadoop-bare-naked-local-fs
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from frazil.local.toolchain.jars import spark_jars

SETTINGS = {"spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"}
"""Spark's settings for a driver that `class_path` lets find the class."""
_JAR = "hadoop-bare-naked-local-fs"
_VARIABLE = "SPARK_DIST_CLASSPATH"


def class_path(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variable by which spark-submit puts the class behind Spark's own class path; what it has there already stays.

    Spark reads files before it loads `spark.jars`. A jar in front would not fit the archive of `class_data_sharing`.
    Raises `JarsUnavailable` or `JarMismatch`.
    """
    (jar,) = (str(jar) for jar in spark_jars() if jar.name.startswith(_JAR))
    given = variables.get(_VARIABLE, "")
    return {_VARIABLE: given if jar in given.split(os.pathsep) else os.pathsep.join(filter(None, (given, jar)))}


@contextmanager
def found_by_new_jvms() -> Iterator[None]:
    """Let a JVM that starts in the block find the class."""
    before = os.environ.get(_VARIABLE)
    os.environ.update(class_path(os.environ))
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
