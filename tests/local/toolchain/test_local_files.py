"""Files of a local catalog are created without a process for each, with the permissions that they would have had."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from frazil.local.toolchain import local_files

VARIABLE = "SPARK_DIST_CLASSPATH"


def test_the_class_path_of_the_user_stays_and_the_class_is_added_once() -> None:
    alone = local_files.class_path({})[VARIABLE]
    assert Path(alone).is_file()
    behind = local_files.class_path({VARIABLE: "/opt/own.jar"})
    assert behind[VARIABLE].split(os.pathsep) == ["/opt/own.jar", alone]
    assert local_files.class_path(behind) == behind


def test_the_variable_is_what_it_was_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    with local_files.found_by_new_jvms():
        assert os.environ[VARIABLE]
    assert VARIABLE not in os.environ
    monkeypatch.setenv(VARIABLE, "/opt/own.jar")
    with pytest.raises(RuntimeError), local_files.found_by_new_jvms():
        raise RuntimeError
    assert os.environ[VARIABLE] == "/opt/own.jar"


@pytest.mark.spark
def test_files_and_folders_have_the_permissions_of_hadoops_class(spark: SparkSession, tmp_path: Path) -> None:
    jvm, modes = cast(Any, spark._jvm), []
    hadoop = jvm.org.apache.hadoop
    path = hadoop.fs.Path
    used = hadoop.fs.FileSystem.get(path(tmp_path.as_uri()).toUri(), jvm.org.apache.hadoop.conf.Configuration())
    assert used.getClass().getName() == local_files.SETTINGS["spark.hadoop.fs.file.impl"]
    usual = hadoop.fs.LocalFileSystem()
    usual.initialize(path(tmp_path.as_uri()).toUri(), jvm.org.apache.hadoop.conf.Configuration())
    for name, system in (("used", used), ("usual", usual)):
        file = tmp_path / name / "folder" / "file"
        system.create(path(file.as_uri())).close()
        modes.append([oct(p.stat().st_mode) for p in (file, file.parent, file.with_name(".file.crc"))])
    assert modes[0] == modes[1]
