"""A Spark installation as a job finds it: pyspark's files, without the virtual environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from frazil.local.toolchain.java import java


def spark_home(folder: Path) -> Path:
    """Link to pyspark's parts. Spark's own files (`work/`) are written into the test's folder."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = folder / "spark"
    home.mkdir(parents=True)
    for part in Path(spec.origin).parent.iterdir():
        if part.name in ("bin", "jars", "python", "sbin"):
            (home / part.name).symlink_to(part)
    return home


def plain_python() -> str:
    """Return the interpreter that created the virtual environment, without the environment's packages."""
    return str(getattr(sys, "_base_executable", sys.executable))


def job_environment(home: Path, unpacked: Path) -> Mapping[str, str]:
    """Return the environment variables of a job's process, without those of the test."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "JAVA_HOME": str(java().parent.parent),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(unpacked),
        "PYTHONNOUSERSITE": "1",
        "PYSPARK_PYTHON": plain_python(),
    }
