"""What Frazil makes of a record is what the official library makes of it, or a dead letter: random schemas and records, whole and spoilt.

All cases of a format are one Spark job. The differences that remain are those of docs/schemas.md: `may_reject` and `Unclear` in the cases.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from frazil.decode.avro.avro_decoder import avro_body, is_readable
from frazil.decode.avro.plain_avro import plain_body
from frazil.decode.decoded_columns import DECODED
from frazil.decode.json.json_decoder import json_body
from frazil.schemas import avro
from frazil.schemas.avro.schema_fingerprint import head
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.json import json_schema
from frazil.schemas.types import Field, ListOf, MapOf, Struct, Type
from tests.decode import avro_cases, json_cases, protobuf_cases
from tests.decode.json_cases import REJECTED
from tests.support.bodies import at_once

UNCLEAR = "unclear"
Bodies = Mapping[int, list[bytes]]


def target_of(row: Struct) -> Struct:
    return landing(Struct(()), [(1, row)]).target


def landed(
    spark: SparkSession,
    targets: Mapping[int, Struct],
    made: Callable[[int, Column], Column],
    bodies: Bodies,
    unsure: bool,
) -> dict[int, list[Any]]:
    """Of each schema's bodies the rows, by one job."""
    records = [(number, at, bytearray(body)) for number, own in bodies.items() for at, body in enumerate(own)]
    frame = spark.createDataFrame(records, "number int, at int, body binary").repartition(4)
    columns, is_row = [], F.lit(False)
    for number, target in targets.items():
        name, body = f"r{number}", F.when(F.col("number") == number, F.col("body"))
        frame = frame.withColumn(name, made(number, body))
        well = is_readable(F.col(name), target) if unsure else F.col(name)[DECODED]
        columns.append(F.when(well, F.col(name).dropFields("_decoded")).alias(name))
        is_row |= F.coalesce(well, F.lit(False))
    found: dict[int, list[Any]] = {number: [REJECTED] * len(own) for number, own in bodies.items()}
    rows = frame.select("number", "at", *columns, is_row.alias("is_row")).toArrow()  # Python's own rows lack the year 1
    for row in rows.to_pylist():
        if row["is_row"]:
            number = row["number"]
            found[number][row["at"]] = value_of(row[f"r{number}"], targets[number])
    return found


def value_of(value: Any, kind: Type) -> Any:
    """A value as the cases have it."""
    match value, kind:
        case None, _:
            return None
        case dict(), Struct(fields):
            return {f.source: _field(value[f.name], f) for f in fields}
        case list(), ListOf(element):
            return [value_of(inner, element) for inner in value]
        case list(), MapOf(_, inner):
            return {key: value_of(held, inner) for key, held in value}
        case float(), _:
            return repr(value)
        case dt.datetime(), _:
            return value.replace(tzinfo=None)
        case _:
            return value


def _field(value: Any, field: Field) -> Any:
    return json_cases.parsed(value) if field.as_json and value is not None else value_of(value, field.type)


def compared(
    texts: Mapping[int, str], bodies: Bodies, found: Mapping[int, list[Any]], wanted: Mapping[int, list[Any]]
) -> list[str]:
    return [
        f"{texts[number]}\n  {body!r}\n  frazil   {ours}\n  official {official}"
        for number, own in bodies.items()
        for body, ours, official in zip(own, found[number], wanted[number], strict=True)
        if official != UNCLEAR and ours != official
    ]


def official(read: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        return read(body)
    except avro_cases.Unclear:
        return UNCLEAR


def check_avro(spark: SparkSession, dice: Random, schemas: int, each: int, *, plain: bool = False) -> None:
    """With `plain` a body must fill its bytes: what follows it, or lacks, makes it no row."""
    cases = {number: avro_cases.Cases(dice) for number in range(schemas)}
    parsed = {number: avro.parse(case.text) for number, case in cases.items()}
    targets = {number: target_of(avro.row_type(schema)) for number, schema in parsed.items()}
    given = {number: case.bodies(each) for number, case in cases.items()}
    bodies = {number: [body for body, _ in own] for number, own in given.items()}

    if plain:
        bodies = {number: [_longer(body, dice) for body in own] for number, own in bodies.items()}

    def made(number: int, body: Column) -> Column:
        reader = avro.reader(parsed[number], targets[number])
        if plain:
            return at_once(plain_body(reader, targets[number], (head(cases[number].text),)), body)
        return at_once(avro_body(reader, targets[number]), body)

    found = landed(spark, targets, made, bodies, True)
    reads = {number: case.official_whole if plain else case.official for number, case in cases.items()}
    wanted = {number: [official(reads[number], body) for body in own] for number, own in bodies.items()}
    for (
        number,
        own,
    ) in given.items():  # fastavro takes any byte for a boolean, and a branch or a symbol of a negative number
        for at, (_, is_valid) in enumerate(own):
            if not is_valid:
                ours, theirs = found[number][at], wanted[number][at]
                wanted[number][at] = UNCLEAR if ours == REJECTED else without_booleans(theirs)
                found[number][at] = without_booleans(ours)
    wrong = compared({n: case.text for n, case in cases.items()}, bodies, found, wanted)
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:8])


def _longer(body: bytes, dice: Random) -> bytes:
    """Three of four bodies as they are, others with bytes behind them."""
    return body if dice.random() < 0.75 else body + dice.randbytes(dice.choice((1, 1, 2, 16)))


def without_booleans(value: Any) -> Any:
    match value:
        case bool():
            return None
        case dict():
            return {key: without_booleans(inner) for key, inner in value.items()}
        case list():
            return [without_booleans(inner) for inner in value]
    return value


def check_json(spark: SparkSession, dice: Random, schemas: int, each: int) -> None:
    cases = {number: json_cases.Cases(dice) for number in range(schemas)}
    targets = {number: target_of(json_schema.row_type(json_schema.parse(case.text))) for number, case in cases.items()}
    bodies = {number: case.bodies(each) for number, case in cases.items()}
    found = landed(spark, targets, lambda number, body: at_once(json_body(targets[number]), body), bodies, False)
    wanted = {number: [official(cases[number].official, body) for body in own] for number, own in bodies.items()}
    for number, own in bodies.items():
        for at, body in enumerate(own):
            if found[number][at] == REJECTED and cases[number].may_reject(body):
                wanted[number][at] = UNCLEAR
    wrong = compared({n: case.text for n, case in cases.items()}, bodies, found, wanted)
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:8])


def check_protobuf(dice: Random, messages: int, each: int) -> None:
    """Bytes that are no Protobuf may be a row if the fault is in a field that the type does not know, which nobody looks at."""
    cases = protobuf_cases.Cases(dice, messages)
    wrong, overlooked = [], 0
    for name in cases.types:
        bodies = list(cases.bodies(name, each))
        for body, ours, theirs in zip(bodies, cases.landed(name, bodies), cases.official(name, bodies), strict=True):
            if theirs == protobuf_cases.SPOILT:
                overlooked += ours != REJECTED
            elif theirs is not None and ours != theirs:
                wrong.append(f"{name} {body.hex()}\n  frazil   {ours}\n  official {theirs}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join([cases.text, *wrong[:8]])
    assert overlooked <= messages * each / 50


def test_protobuf_is_read_as_the_official_library_reads_it(seed: int) -> None:
    check_protobuf(Random(seed), 24, 30)


@pytest.mark.spark
def test_avro_is_read_as_fastavro_reads_it(spark: SparkSession, seed: int) -> None:
    check_avro(spark, Random(seed), 8, 60)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("part", range(4))
def test_plain_avro_is_read_as_fastavro_reads_it_to_the_last_byte(spark: SparkSession, seed: int, part: int) -> None:
    check_avro(spark, Random(f"{seed} plain {part}"), 10, 150, plain=True)


@pytest.mark.spark
def test_json_is_read_as_python_reads_it_exactly(spark: SparkSession, seed: int) -> None:
    check_json(spark, Random(seed), 6, 200)


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_thousands_of_protobuf_records_are_read_alike(seed: int, part: int) -> None:
    check_protobuf(Random(f"{seed} {part}"), 12, 200)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("part", range(12))
@pytest.mark.parametrize("check", [check_avro, check_json])
def test_thousands_of_records_are_read_alike(
    spark: SparkSession, seed: int, part: int, check: Callable[..., None]
) -> None:
    check(spark, Random(f"{seed} {part}"), 12, 300)
