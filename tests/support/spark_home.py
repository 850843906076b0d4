"""A Spark installation as a job finds it: pyspark's own files and nothing else of the virtual environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from frazil.local.toolchain.java import java


def spark_home(folder: Path) -> Path:
    """Links to pyspark's parts; what Spark writes beside them (`work/`) is the test's."""
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
    """The interpreter that the virtual environment was made with: the standard library, and what its machine has."""
    return str(getattr(sys, "_base_executable", sys.executable))


def job_environment(home: Path, unpacked: Path) -> Mapping[str, str]:
    """What the process of a job has in its environment, and nothing of the test's own."""
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
