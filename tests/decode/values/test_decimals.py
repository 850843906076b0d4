"""Decimals of any precision and scale: one column and one number in all formats, in values and keys, or a refusal."""

from __future__ import annotations

import base64
import io
import json
from decimal import Decimal, localcontext
from random import Random
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.decode.writers.record_type import RecordType, avro_type, embedded_type, json_type
from frazil.errors import UnreadableSchema
from frazil.schemas.connect.connect_types import DECIMAL
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.types import Struct
from tests.support.bodies import at_once
from tests.support.variants import first_short

REJECTED = "rejected"
FORMATS = ("avro", "avro of connect", "avro fixed", "json_schema", "json_schema numeric", "connect_json")
SIZES = (1, 2, 4, 8, 9, 16, 17, 40)


def leaf(written: str, precision: Any, scale: Any, size: int = 16) -> Any:
    """The type of one decimal; a precision of None is not written."""
    digits = {"scale": scale} if precision is None else {"precision": precision, "scale": scale}
    named = (
        {"scale": str(scale)}
        if precision is None
        else {"scale": str(scale), "connect.decimal.precision": str(precision)}
    )
    connect = {"title": DECIMAL, "connect.type": "bytes", "connect.parameters": named}
    match written:
        case "avro":
            return {"type": "bytes", "logicalType": "decimal", **digits}
        case "avro of connect":
            return {"type": "bytes", "connect.name": DECIMAL, "connect.parameters": named}
        case "avro fixed":
            return {"type": "fixed", "name": f"f.F{size}", "size": size, "logicalType": "decimal", **digits}
        case "json_schema":
            return {"type": "string", **connect}
        case "json_schema numeric":
            return {"type": "number", **connect}
    return {"type": "bytes", "name": DECIMAL, "parameters": named, "optional": True}


def avro_record(of: Any) -> dict[str, Any]:
    name = of["name"] if isinstance(of, dict) and of["type"] == "fixed" else of
    inner = {"type": "record", "name": "In", "fields": [{"name": "y", "type": name}]}
    tree_fields = [{"name": "v", "type": name}, {"name": "next", "type": ["null", "Tree"]}]
    types = {
        "x": of,
        "list": {"type": "array", "items": name},
        "by": {"type": "map", "values": name},
        "in": inner,
        "tree": {"type": "record", "name": "Tree", "fields": tree_fields},
        "either": ["null", name, "string"],
    }
    return {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in types.items()]}


def type_of(written: str, of: Any, *, connect_types: bool = False) -> RecordType:
    """A record of the fields x, list, by, in.y, and tree.tree.tree… which ends in JSON text."""
    if written.startswith("avro"):
        return avro_type(json.dumps(avro_record(of)), {}, connect_types=connect_types)
    if written.startswith("json"):
        inner = {"type": "object", "properties": {"y": of}}
        types = {
            "x": of,
            "list": {"type": "array", "items": of},
            "by": {"type": "object", "additionalProperties": of},
            "in": inner,
        }
        return json_type(json.dumps({"type": "object", "properties": types}), {}, connect_types=connect_types)
    text = {"type": "string", "optional": False}
    fields = [
        {**of, "field": "x"},
        {"type": "array", "items": of, "field": "list"},
        {"type": "map", "keys": text, "values": of, "field": "by"},
        {"type": "struct", "fields": [{**of, "field": "y"}], "field": "in"},
    ]
    return embedded_type(json.dumps({"type": "struct", "fields": fields}))


def octets(number: int, size: int = 0) -> bytes:
    return number.to_bytes(max(size, (number + (number < 0)).bit_length() // 8 + 1), "big", signed=True)


def body(written: str, number: int, scale: int, size: int) -> bytes:
    held: Any = octets(number, size if written == "avro fixed" else 0)
    if written.startswith("avro"):
        kind = {"type": "fixed", "name": "F", "size": size} if written == "avro fixed" else "bytes"
        branch: Any = None
        for _ in range(4):
            branch = {"v": held, "next": branch}
        out = io.BytesIO()
        row = {"x": held, "list": [held], "by": {"k": held}, "in": {"y": held}, "tree": branch, "either": held}
        fastavro.schemaless_writer(out, fastavro.parse_schema(avro_record(kind)), row)
        return out.getvalue()
    one = value_of(number, scale) if written == "json_schema numeric" else json.dumps(base64.b64encode(held).decode())
    row_text = f'{{"x": {one}, "list": [{one}], "by": {{"k": {one}}}, "in": {{"y": {one}}}}}'
    return (f'{{"payload": {row_text}}}' if written == "connect_json" else row_text).encode()


def value_of(number: int, scale: int) -> Decimal:
    with localcontext() as context:
        context.prec = 100
        return Decimal(number).scaleb(-scale)


COLUMNS = [
    (3, 5, "decimal(5, 5)"), (10, 2, "decimal(10, 2)"), (5, -2, "decimal(7, 0)"), (38, -3, "decimal(38, 0)"),
    (None, 2, "decimal(38, 2)"), (0, 2, "decimal(38, 2)"), (60, 2, "decimal(38, 2)"), (1, 38, "decimal(38, 38)"),
    (64, 38, "decimal(38, 38)"), (1, -37, "decimal(38, 0)"), (18, 18, "decimal(18, 18)"), ("12", "2", "decimal(12, 2)"),
    (-1, 0, "decimal(38, 0)"),
]  # fmt: skip
REFUSED = [(60, 40), (39, 39), (5, -38), (5, 127), (5, "x"), ("x", 2), (5, 1.5), (5, True), (True, 2), (5, "")]


@pytest.mark.parametrize("connect_types", [False, True], ids=["", "connect_types"])
@pytest.mark.parametrize("written", FORMATS)
def test_a_decimal_is_one_column_in_all_formats(written: str, connect_types: bool) -> None:
    for precision, scale, column in COLUMNS:
        row = type_of(written, leaf(written, precision, scale), connect_types=connect_types).row
        assert [str(f.type) for f in row.fields[:4]] == [
            column,
            f"list<{column}>",
            f"map<string, {column}>",
            f"struct<y: {column}>",
        ]


@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize(("precision", "scale"), REFUSED)
def test_a_decimal_that_no_column_holds_is_refused_by_the_name_of_its_field(
    written: str, precision: Any, scale: Any
) -> None:
    with pytest.raises(UnreadableSchema, match=r"a decimal of (precision|scale)") as refused:
        type_of(written, leaf(written, precision, scale))
    assert "x" in refused.value.where


@pytest.mark.parametrize("written", [name for name in FORMATS if not name.startswith("avro")])
def test_a_scale_that_connect_does_not_write_is_not_guessed(written: str) -> None:
    of = leaf(written, 5, 2)
    del of["parameters" if written == "connect_json" else "connect.parameters"]["scale"]
    with pytest.raises(UnreadableSchema, match="scale missing"):
        type_of(written, of)


def numbers(dice: Random, digits: int) -> list[int]:
    most = 10**digits - 1
    edges = (0, 1, -1, 127, -129, most, -most, most + 1, -most - 1, 2**63, -(2**63), 2**64 + 5, -(2**64) - 5, 2**127)
    return [*edges, *(dice.choice((-1, 1)) * dice.randrange(10 ** dice.randrange(1, digits + 3)) for _ in range(8))]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("precision", "scale"), first_short([(9, 2), (5, -2), (3, 5), (38, -3), (60, 2), (None, 20), (1, 0), (38, 38)])
)
def test_a_decimal_is_its_number_or_its_record_is_rejected(
    spark: SparkSession, precision: int | None, scale: int, seed: int
) -> None:
    dice = Random(seed)
    cases = [(written, dice.choice(SIZES), bool((place + scale) % 2)) for place, written in enumerate(FORMATS)]
    found_in, wanted = [], []
    given = numbers(dice, precision if precision and precision < 39 else 37)
    bodies: list[list[Any]] = [[n] for n in range(len(given))]
    for at, (written, size, is_key) in enumerate(cases):
        made = type_of(written, leaf(written, precision, scale, size))
        target = landing(Struct(()), [(1, made.row)]).target
        decoder = made.body(target.exact() if is_key else target)
        found_in.append(at_once(decoder, F.col(f"b{at}")).alias(f"r{at}"))
        column: Any = target.fields[0].type
        for place, number in enumerate(given):
            value = value_of(number, scale)
            fits = value.copy_abs() < 10 ** (column.precision - column.scale)
            is_double = written == "json_schema numeric" and "E" in str(value) and len(str(abs(number))) > 15
            is_written = not is_double and (written != "avro fixed" or len(octets(number)) <= size)
            bodies[place].append(bytearray(body(written, number, scale, size)) if is_written else None)
            wanted.append(((written, size, is_key, number), at, place, value if fits else REJECTED, is_written))
    records = spark.createDataFrame(bodies, "n int, " + ", ".join(f"b{at} binary" for at in range(len(cases))))
    found = {row["n"]: row.asDict(recursive=True) for row in records.select("n", *found_in).collect()}
    for case, at, place, value, is_written in wanted:
        row = found[place][f"r{at}"]
        if not is_written:
            continue
        if value == REJECTED:
            assert row is None or not row["_decoded"], case
            continue
        assert row is not None, case
        assert row["_decoded"], case
        assert (row["x"], row["list"], row["by"], row["in"]) == (value, [value], {"k": value}, {"y": value}), case
        if case[0].startswith("avro"):
            assert row["tree"]["next"]["next"]["v"] == value, case
            assert list(row["either"].values()) == [value, None], case
            text = json.loads(row["tree"]["next"]["next"]["next"], parse_float=Decimal, parse_int=Decimal)
            assert text["v"] == value, case


@pytest.mark.spark
def test_fifteen_digits_with_an_exponent_are_the_number_as_written(spark: SparkSession, seed: int) -> None:
    dice = Random(seed)
    texts = ["695387965557018E3", "6.95387965557018E17", "-6.95387965557018E-12", "2E23", "2.0E-3", "1e0", "0.00001E30"]
    for _ in range(1500):
        digits = str(dice.randrange(10 ** dice.randrange(1, 15), 10**15))
        at, exponent = dice.randrange(1, len(digits) + 1), dice.randrange(-16, 18)
        text = f"{digits[:at]}.{digits[at:] or 0}E{exponent}"
        texts.append(f"{digits}E{exponent}" if len(digits) == 15 and text.startswith(f"{digits}.") else text)
    columns = [(38, 0), (38, 30), (38, 19)]
    readers = [
        (made.body(landing(Struct(()), [(1, made.row)]).target), 10 ** (precision - scale), scale)
        for precision, scale in columns
        for made in [type_of("json_schema numeric", leaf("json_schema numeric", precision, scale))]
    ]
    bodies = spark.createDataFrame(
        [(n, bytearray(f'{{"x": {t}}}', "utf-8")) for n, t in enumerate(texts)], "n int, b binary"
    )
    found = bodies.select("n", *[at_once(r, F.col("b")).alias(f"r{at}") for at, (r, _, _) in enumerate(readers)])
    for row in found.collect():
        number = Decimal(texts[row["n"]])
        for at, (_, end, scale) in enumerate(readers):
            fits = abs(number) < end and number == value_of(int(number.scaleb(scale)), scale)
            assert row[f"r{at}"]["_decoded"] == fits, (texts[row["n"]], scale)
            assert not fits or row[f"r{at}"]["x"] == number, (texts[row["n"]], scale)
