"""Files of a local catalog are created without a process for each, with the permissions that they would have had."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from frazil.local.toolchain.class_path import LOCAL_FILES


@pytest.mark.spark
def test_files_and_folders_have_the_permissions_of_hadoops_class(spark: SparkSession, tmp_path: Path) -> None:
    jvm, modes = cast(Any, spark._jvm), []
    hadoop = jvm.org.apache.hadoop
    path = hadoop.fs.Path
    used = hadoop.fs.FileSystem.get(path(tmp_path.as_uri()).toUri(), cast(Any, spark)._jsc.hadoopConfiguration())
    assert used.getClass().getName() == LOCAL_FILES["spark.hadoop.fs.file.impl"]
    usual = hadoop.fs.LocalFileSystem()
    usual.initialize(path(tmp_path.as_uri()).toUri(), jvm.org.apache.hadoop.conf.Configuration())
    for name, system in (("used", used), ("usual", usual)):
        file = tmp_path / name / "folder" / "file"
        system.create(path(file.as_uri())).close()
        modes.append([oct(p.stat().st_mode) for p in (file, file.parent, file.with_name(".file.crc"))])
    assert modes[0] == modes[1]
