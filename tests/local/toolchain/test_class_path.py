"""A driver on this machine has the locked jars behind Spark's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from frazil.local.toolchain import class_path
from frazil.local.toolchain.class_path import VARIABLE


def test_the_class_path_of_the_user_stays_in_front_and_a_jar_is_added_once() -> None:
    jars = [Path("/j/a.jar"), Path("/j/b.jar")]
    assert class_path.variables(jars, {})[VARIABLE].split(os.pathsep) == ["/j/a.jar", "/j/b.jar"]
    behind = class_path.variables(jars, {VARIABLE: "/opt/own.jar"})
    assert behind[VARIABLE].split(os.pathsep) == ["/opt/own.jar", "/j/a.jar", "/j/b.jar"]
    assert class_path.variables(jars, behind) == behind


def test_the_variable_is_what_it_was_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with class_path.of_new_jvms([Path("/j/a.jar")]):
        assert os.environ[VARIABLE] == "/j/a.jar"
    assert VARIABLE not in os.environ
    monkeypatch.setenv(VARIABLE, "/opt/own.jar")
    with pytest.raises(RuntimeError), class_path.of_new_jvms([Path("/j/a.jar")]):
        raise RuntimeError
    assert os.environ[VARIABLE] == "/opt/own.jar"


@pytest.mark.parametrize("folder", ["of a user", "SPARK_HOME"])
def test_jars_come_by_a_setting_where_a_script_may_set_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str
) -> None:
    """A user's spark-env.sh runs behind this process: `SPARK_DIST_CLASSPATH=$(hadoop classpath)` is one of its lines."""
    monkeypatch.delenv(VARIABLE, raising=False)
    conf = tmp_path / "conf"
    conf.mkdir()
    name, value = ("SPARK_HOME", tmp_path) if folder == "SPARK_HOME" else ("SPARK_CONF_DIR", conf)
    monkeypatch.setenv(name, str(value))
    assert class_path.settings([Path("/j/a.jar")]) == {}
    (conf / "spark-env.sh").write_text(f"export {VARIABLE}=/opt/hadoop\n")
    _check_that_the_setting_has_them(Path("/j/a.jar"), Path("/j/b.jar"))


def test_jars_come_by_a_setting_where_the_variable_cannot_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    _check_that_the_setting_has_them(Path("/j:k/a.jar"))


def _check_that_the_setting_has_them(*jars: Path) -> None:
    assert class_path.settings(jars) == {"spark.jars": ",".join(map(str, jars))}
    with class_path.of_new_jvms(jars):
        assert VARIABLE not in os.environ


def test_jars_for_aws_are_behind_the_others() -> None:
    without, all_jars = class_path.driver_jars(aws=False), class_path.driver_jars(aws=True)
    assert all_jars[: len(without)] == without
    assert {jar.name.rsplit("-", 1)[0] for jar in all_jars[len(without) :]} == {
        "iceberg-aws-bundle",
        "aws-msk-iam-auth",
    }


@pytest.mark.spark
def test_spark_copies_no_jar_for_the_session(spark: SparkSession) -> None:
    of_iceberg = cast(Any, spark._jvm).java.lang.Class.forName("org.apache.iceberg.Table")
    assert of_iceberg.getClassLoader().equals(cast(Any, spark._jvm).java.lang.ClassLoader.getSystemClassLoader())
    assert spark.conf.get("spark.jars", "") == ""
