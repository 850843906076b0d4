"""HotSpot compiles no method of more than 8,000 bytes: what Spark generates for a plan must not be one that rows run through."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.decode.json.json_decoder import json_body
from frazil.schemas.types import Field, Kind, Primitive, Struct

pytestmark = pytest.mark.spark

_CODEGEN = "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator"
_STAGES = "org.apache.spark.sql.execution.WholeStageCodegenExec"


@contextmanager
def logged(spark: SparkSession) -> Iterator[list[str]]:
    """What Spark says of the code that it generates: the lines are in the list when the block ends."""
    lines: list[str] = []
    log4j = spark._jvm.org.apache.logging.log4j
    writer = spark._jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, writer, "generated", False, True)
    appender.start()
    configure = log4j.core.config.Configurator.setLevel
    loggers = [log4j.LogManager.getLogger(name) for name in (_CODEGEN, _STAGES)]
    for logger in loggers:
        configure(logger.getName(), log4j.Level.INFO)
        logger.addAppender(appender)
    try:
        yield lines
    finally:
        for logger in loggers:
            logger.removeAppender(appender)
            configure(logger.getName(), log4j.Level.ERROR)
        lines += writer.toString().splitlines()


@pytest.mark.parametrize("spark", ["generated"], indirect=True)
def test_no_method_that_decodes_json_is_too_long_to_be_compiled(spark: SparkSession) -> None:
    instant = Primitive(Kind.TIMESTAMPTZ)
    decoder = json_body(Struct(tuple(Field(f"c{i}", instant, source=f"c{i}") for i in range(40))))
    body = F.encode(F.concat(F.lit('{"id": '), "id", F.lit("}")), "utf-8")
    records = spark.range(10).select(body.alias("body"), "id")
    begun: list[str] = []
    for number, step in enumerate(decoder.steps):
        records = records.withColumns({f"s{number}": step(F.col("body"), *map(F.col, begun)), "once": F.rand()})
        begun.append(f"s{number}")
    with logged(spark) as lines:
        rows = records.where(F.col(begun[-1])["_decoded"] & (F.col("once") >= 0))
        rows.select(f"{begun[-1]}.*", "id").write.format("noop").mode("append").save()
    long = [line for line in lines if "Generated method too long" in line]
    stages = [line for line in long if "GeneratedIteratorForCodegenStage" in line]
    disabled = [line for line in lines if re.search(r"above the limit .*8000.* whole-stage codegen was disabled", line)]
    assert len(stages) == len(disabled) == 1, "\n".join(lines)  # else this test tests nothing: decode more columns
    assert long == stages, "\n".join(lines)
