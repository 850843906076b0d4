from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from decimal import Decimal as Dec
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from frazil.declaration import Json
from frazil.decode.json.json_decoder import json_body
from frazil.decode.raw import row_step
from frazil.decode.spark_types import spark_struct
from frazil.inference.inferred_schema import json_schema as sampled_schema
from frazil.inference.record_file import Line
from frazil.inference.sample import Sample
from frazil.schemas.json import json_schema
from frazil.schemas.json.written_times import is_written
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type
from tests.support.bodies import at_once, rows_of

pytestmark = pytest.mark.spark

BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, BINARY, DATE, NAIVE, INSTANT, _ = (Primitive(kind) for kind in Kind)
JSON = "json"


def column(of: Type | str, name: str = "x", source: str = "") -> Field:
    found = source or name
    return Field(name, STRING, source=found, as_json=True) if isinstance(of, str) else Field(name, of, source=found)


def decode(
    spark: SparkSession, target: Struct, *bodies: bytes | str | None, single_value: bool = False
) -> list[Row | None]:
    """Each body's row without `_decoded`; None if it was rejected."""
    found = rows_of(spark, json_body(target, single_value=single_value), *bodies)
    return [row and Row(*row[:-1]) for row in found]


def decode_one(spark: SparkSession, of: Type | str, value: str) -> Any:
    """The value of a column of this type in the object `{"x": value}`, or `REJECTED`."""
    (row,) = decode(spark, Struct((column(of),)), f'{{"x": {value}}}')
    return REJECTED if row is None else row[0]


REJECTED = "rejected"
UTC = dt.UTC


def instant(*at: int) -> dt.datetime:
    """As pyspark gives it: naive, in the machine's time zone."""
    return dt.datetime(*at, tzinfo=UTC).astimezone().replace(tzinfo=None)  # type: ignore[misc,arg-type]


VALUES: list[tuple[Type | str, str, Any]] = [
    (BOOLEAN, '"true"', REJECTED),
    (LONG, '"1"', REJECTED),
    (LONG, "01", REJECTED),
    (LONG, "0e7", 0),
    (LONG, "-0.0E-10", 0),
    (LONG, "1." + "0" * 38 + "1", REJECTED),
    (DOUBLE, '"Infinity"', float("inf")),
    (DOUBLE, '"1.5"', REJECTED),
    (Decimal(5, 2), "1.500", Dec("1.50")),
    (Decimal(5, 2), "1.5e2", Dec("150.00")),
    (Decimal(5, 2), "1.234", REJECTED),
    (Decimal(5, 2), "1000", REJECTED),
    (Decimal(5, 2), '"AIAA"', REJECTED),
    (Decimal(38, 2), "1.00000000000000000001e5", REJECTED),
    (Decimal(38, 0), "9007199254740993e0", REJECTED),
    (STRING, "12.50", "12.5"),
    (STRING, '{"k": [1, true]}', '{"k":[1,true]}'),
    (STRING, r'"?\\ud800"', r"?\ud800"),
    (STRING, r'"?\\\ud83d\ude00"', "?\\😀"),
    (STRING, r'"?\\ud83d\\ude00"', r"?\ud83d\ude00"),
    (STRING, r'"?\ud83d\ude00"', "?😀"),
    (DATE, "2024", REJECTED),
    (INSTANT, '"2024-02-29T10:11:12+18:01"', REJECTED),
    (INSTANT, "1709200000", REJECTED),
    (NAIVE, '"2024-02-29T10:11:12.5"', dt.datetime(2024, 2, 29, 10, 11, 12, 500000)),
    (NAIVE, '"2024-02-29T10:11:12Z"', REJECTED),
    (NAIVE, '"0000-02-29T10:11:12"', REJECTED),
    (JSON, '{"b": 1.50, "a": [null, "x", true]}', '{"a":[null,"x",true],"b":1.5}'),
    (JSON, "null", None),
    (JSON, "12345678901234567890123456789.125", "12345678901234567890123456789.125"),
    (
        JSON,
        '{"n": [-' + "9" * 45 + ", 0.1000000000000000055511151231257827]}",
        '{"n":[-' + "9" * 45 + ",0.1000000000000000055511151231257827]}",
    ),
    (JSON, '{"n": "x, ' + "9" * 45 + ', y"}', REJECTED),
    (JSON, '{"n": "' + "9" * 45 + '"}', '{"n":"' + "9" * 45 + '"}'),
    (JSON, '{"a": [1e308, -1e400]}', REJECTED),
    (JSON, '{"a": 1e308, "b": "Infinite"}', '{"a":1.0E308,"b":"Infinite"}'),
    (JSON, r'{"a": "\ud800"}', REJECTED),
    (JSON, r'{"\udc00": 1}', REJECTED),
    (JSON, r'{"a": "\\ud83d\ude00"}', REJECTED),
    (JSON, r'{"a": "\\\ud83d\ude00"}', r'{"a":"\\😀"}'),
    (JSON, r'{"a": "\ud83d\ude00"}', '{"a":"😀"}'),
    (JSON, '{"a": 1, "a": 2}', REJECTED),
    (JSON, "[" * 5000 + "]" * 5000, REJECTED),
    (ListOf(LONG), "[1, 2e2, null]", [1, 200, None]),
    (ListOf(LONG), '{"a": 1}', REJECTED),
    (ListOf(DOUBLE), "[1, 1e400, null]", REJECTED),
    (ListOf(STRING), r'["a", "\ud800"]', REJECTED),
    (ListOf(Decimal(3, 1)), "[1.5, 10, null]", [Dec("1.5"), Dec("10.0"), None]),
    (ListOf(ListOf(DATE)), '[["2024-02-29"], [], null]', [[dt.date(2024, 2, 29)], [], None]),
    (ListOf(ListOf(DATE)), '[["2024-02-29"], ["x"]]', REJECTED),
    (MapOf(STRING, LONG), '{"a": 1, "b": null}', {"a": 1, "b": None}),
    (MapOf(STRING, LONG), '{"a": 1, "a": 2}', REJECTED),
    (MapOf(STRING, STRING), r'{"\ud800": "a"}', REJECTED),
    (MapOf(STRING, STRING), r'{"a": "\udfff"}', REJECTED),
    (Struct((column(LONG, "a"), column(JSON, "b"))), '{"a": 1, "b": {"c": [ ]}}', Row(1, '{"c":[]}')),
    (Struct((column(LONG, "a"), column(DATE, "b"))), "null", None),
    (Struct((column(LONG, "a"), column(DATE, "b"))), "{}", Row(None, None)),
    (Struct((column(LONG, "a"),)), '{"a": "x"}', REJECTED),
    (Struct((column(LONG, "a"),)), '[{"a": 1}]', REJECTED),
    (ListOf(Struct((column(DATE, "d", "D"),))), '[{"D": "2024-02-29"}, null]', [Row(dt.date(2024, 2, 29)), None]),
    (ListOf(Struct((column(DATE, "d", "D"),))), '[{"D": "x"}]', REJECTED),
]
"""Beside those that tests/decode/json_cases.py draws."""


def has_json(of: Type | str) -> bool:
    return isinstance(of, str) or (isinstance(of, Struct) and any(f.as_json for f in of.fields))


@pytest.mark.parametrize("beside_json", [True, False])
def test_a_value_is_what_was_written_or_its_record_is_rejected(spark: SparkSession, *, beside_json: bool) -> None:
    values = [value for value in VALUES if beside_json or not has_json(value[0])]
    types = list(dict.fromkeys(of for of, _, _ in values))
    target = Struct(tuple(column(of, f"c{i}") for i, of in enumerate(types)))
    bodies = [f'{{"c{types.index(of)}": {text}}}' for of, text, _ in values]
    wrong = []
    for (of, text, expected), row in zip(values, decode(spark, target, *bodies), strict=True):
        got = REJECTED if row is None else row[types.index(of)]
        if got != expected or type(got) is not type(expected):
            wrong.append((str(of), text[:60], got, expected))
    assert not wrong


def test_a_bare_nan_or_infinity_is_a_text_with_quotes_in_any_column_of_strings_but_beside_json_text(
    spark: SparkSession,
) -> None:
    inner = Struct((column(STRING, "a"),))
    places: list[tuple[Type, str]] = [
        (STRING, "%s"),
        (ListOf(STRING), '["NaN", %s, "aGk="]'),
        (MapOf(STRING, STRING), '{"k": %s}'),
        (inner, '{"a": %s}'),
        (ListOf(inner), '[{"a": %s}]'),
    ]
    columns = tuple(column(of, f"c{n}") for n, (of, _) in enumerate(places))
    bodies = [f'{{"c{n}": {place}}}' for n, (_, place) in enumerate(places)]
    bare = [body % number for body in bodies for number in ("NaN", "Infinity", "-Infinity")]
    quoted = [body % rf'"\"{number}\""' for body in bodies for number in ("NaN", "Infinity", "-Infinity")]
    landed = decode(spark, Struct(columns), *bare, *quoted)
    assert landed[0] == Row('"NaN"', None, None, None, None)
    assert landed[: len(bare)] == landed[len(bare) :]
    beside = decode(spark, Struct((*columns, column(JSON, "j"))), *bare, *quoted)
    assert [row is None for row in beside] == [True] * len(bare) + [False] * len(quoted)


DOCUMENTS: list[tuple[bytes | str | None, Any]] = [
    ('{"x": 1}', 1),
    ("{}", None),
    ('{"y": 1}', None),
    ('{"X": 1}', None),
    ('{"x": "a", "x": 1}', 1),
    ('{"x": 1, "x": 2}', 2),
    ('{"x": 1, "y": {"z": [1e99999]}}', 1),
    ('{"x": 1.0, "y": "1.0,2.0"}', 1),
    ('{"x": 1e3, "y": ",1.0,"}', 1000),
    (r'{"x": 1e3, "y": "\u002c1.0\u002c"}', 1000),
    ('{"x": 1e3, "y": 1.2345678901234567e-05}', REJECTED),
    ('{"x": 1.0} x', REJECTED),
    ('{"x": 1.0},{"x": 2.0}', REJECTED),
    ('{"x": 1.0, "x": 2.0}', 2),
    ('{"x": 1, "_decoded": false, "corrupt": "y", "e": false}', 1),
    ("{'x': 1}", REJECTED),
    ("{x: 1}", REJECTED),
    ('/* x */ {"x": 1}', REJECTED),
    ("", REJECTED),
    ("null", REJECTED),
    (None, REJECTED),
    (b'{"x": 1, "y": "\xff"}', REJECTED),
    (b'\xef\xbb\xbf{"x": 1}', REJECTED),
    ('{"x": 1}'.encode("utf-16"), REJECTED),
    ('{"x": 1, "y": ' + "[" * 5000 + "]" * 5000 + "}", REJECTED),
    ('{"x": 1, "y": ' + "[" * 996 + "]" * 996 + "}", 1),
    ('{"x": 1, "y": ' + "[" * 999 + "]" * 999 + "}", REJECTED),
    ("[" * 5000, REJECTED),
    ('{"x":' * 5000, REJECTED),
    (b"\x00\x00\x00\x00\x01" + b'{"x": 1}', REJECTED),
]


def test_a_body_is_one_whole_json_object_or_it_is_rejected(spark: SparkSession) -> None:
    decoded = decode(spark, Struct((column(LONG),)), *[body for body, _ in DOCUMENTS])
    got = [REJECTED if row is None else row[0] for row in decoded]
    wrong = [(body, g) for (body, expected), g in zip(DOCUMENTS, got, strict=True) if g != expected]
    assert not wrong


@pytest.mark.long
def test_a_number_of_hundreds_of_digits_is_the_nearest_double_but_beside_json_text(spark: SparkSession) -> None:
    body = '{"x": 1' + "0" * 308 + "}"
    assert decode(spark, Struct((column(DOUBLE),)), body) == [Row(1e308)]
    assert decode(spark, Struct((column(DOUBLE), column(JSON, "y"))), body) == [None]
    numbers = '{"y": "' + "9" * 45 + '", "z": [1e300, NaN, 1]}'
    assert decode(spark, Struct((column(STRING, "y"), column(ListOf(DOUBLE), "z"))), numbers) == [
        Row("9" * 45, [1e300, pytest.approx(float("nan"), nan_ok=True), 1.0])
    ]


@pytest.mark.long
def test_a_value_of_more_than_20_million_characters_lands(spark: SparkSession) -> None:
    body = '{"x": "' + "é" * 21_000_000 + '"}'
    decoded = spark.createDataFrame([(body.encode(),)], "body binary").select(
        at_once(json_body(Struct((column(STRING),))), F.col("body")).alias("r")
    )
    assert decoded.select(F.length("r.x"), "r._decoded").first() == Row(21_000_000, True)


def test_properties_that_differ_in_case_are_two_columns(spark: SparkSession) -> None:
    target = Struct((column(LONG, "id", "Id"), column(DATE, "id_1", "id"), column(JSON, "id_2", "ID")))
    assert decode(spark, target, '{"id": "2024-02-29", "Id": 1, "ID": {}}', '{"id": "x", "Id": 1}', '{"ID": 5}') == [
        Row(1, dt.date(2024, 2, 29), "{}"),
        None,
        Row(None, None, "5"),
    ]


@pytest.mark.long
def test_properties_that_differ_in_case_work_inside_lists_and_maps(spark: SparkSession) -> None:
    inner = Struct((column(LONG, "a", "A"), column(Decimal(3, 1), "a_1", "a")))
    target = Struct((column(ListOf(inner), "l"), column(MapOf(STRING, inner), "m")))
    body = '{"l": [{"A": 1, "a": 1.5}], "m": {"k": {"a": 2}}}'
    assert decode(spark, target, body) == [Row([Row(1, Dec("1.5"))], {"k": Row(None, Dec("2.0"))})]


@pytest.mark.long
def test_odd_property_names_are_found(spark: SparkSession) -> None:
    names = [
        "a.b",
        'q"uote',
        "back`tick",
        "select",
        "😀",
        "$ref",
        "with space",
        "v",
        "e",
        "corrupt",
        "_Decoded",
        "back\\",
    ]
    target = Struct(tuple(column(DATE if i % 2 else LONG, f"c{i}", name) for i, name in enumerate(names)))
    values = [dt.date(2024, 2, 29) if i % 2 else i for i in range(len(names))]
    body = json.dumps(dict(zip(names, values, strict=True)), default=str)
    assert decode(spark, target, body) == [Row(*values)]


def test_a_body_that_is_not_an_object_is_the_column_value(spark: SparkSession) -> None:
    dates = Struct((column(LONG, "other"), column(ListOf(DATE), "value_1", "value")))
    bodies = ['["2024-02-29"]', '["x"]', "[] x", "5", "", "null", "[],[]", '{"value": []}']
    landed = [Row(None, [dt.date(2024, 2, 29)]), Row(None, None)]
    assert decode(spark, dates, *bodies, single_value=True) == [
        landed[0],
        None,
        None,
        None,
        None,
        landed[1],
        None,
        None,
    ]
    objects = Struct((column(Struct((column(LONG, "a"),)), "value_1", "value"),))
    assert decode(spark, objects, '{"a": 1}', '{"a": 1} x', single_value=True) == [Row(Row(1)), None]


def test_schemaless_json_lands_as_its_text(spark: SparkSession) -> None:
    target = json_schema.row_type(json_schema.parse("true"))
    deep = "[" * 997 + "]" * 997
    assert decode(spark, target, deep, f"[[[{deep}]]]", single_value=True) == [Row(deep), None]
    assert decode(spark, target, ' {"b" : [1, 2], "a": "x"} ', '"x"', "[", "", b'"\xff"', "1 2", single_value=True) == [
        Row('{"a":"x","b":[1,2]}'),
        Row('"x"'),
        None,
        None,
        None,
        None,
    ]


def test_one_json_document_is_its_own_text_and_others_are_rejected(spark: SparkSession) -> None:
    texts = ['{"a": 1}', ' [1, "x"]\n', "5", '"x"', "null"]
    wrong = ["", " ", "nul", "{", '{"a": 1} x', '{"a": 1}{"b": 2}', "1 2", "1,2", "1],[2", "1]", "1],[2,3", '1,"x"']
    found = unframed_json(spark, [*texts, *wrong, '{"a": 1, "a": 2}', b'"\xff"'])
    assert found == [*texts, *[REJECTED] * (len(wrong) + 2)]


def unframed_json(spark: SparkSession, values: Sequence[str | bytes]) -> list[Any]:
    step = row_step(Json(), "value", [Field("value", STRING)])
    raw = [(value.encode() if isinstance(value, str) else value,) for value in values]
    rows = spark.createDataFrame(raw, "value binary").select(step(F.col("value")).alias("r"))
    return [row.value if row._decoded else REJECTED for row in rows.select("r.value", "r._decoded").collect()]


def test_the_struct_has_exactly_the_columns_of_the_target_and_decoded(spark: SparkSession) -> None:
    every: list[Type | str] = [*map(Primitive, Kind), Decimal(9, 2), ListOf(DATE), MapOf(STRING, INSTANT), JSON]
    nested = Struct(tuple(column(of, f"n{i}", f"N{i}") for i, of in enumerate(every)))
    target = Struct((*[column(of, f"c{i}") for i, of in enumerate(every)], column(nested, "n")))
    rows = spark.createDataFrame([(b"{}",)], "body binary").select(at_once(json_body(target), F.col("body")).alias("r"))
    assert rows.selectExpr("r.*").drop("_decoded").schema.simpleString() == spark_struct(target).simpleString()
    assert rows.selectExpr("r._decoded").schema.simpleString() == "struct<_decoded:boolean>"


def test_the_body_is_read_once_wherever_the_expression_stands(spark: SparkSession) -> None:
    target = Struct(tuple(column(DATE if i % 2 else LONG, f"c{i}") for i in range(20)))
    bodies = spark.createDataFrame([(b"{}",)], "body binary")
    row = F.when(F.length("body") > 0, at_once(json_body(target), F.col("body")))
    rows = (
        bodies.withColumns({"r": row, "once": F.spark_partition_id()}).where("r._decoded and once >= 0").select("r.*")
    )
    plan = rows._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("from_json") == 2  # the second one only where the first finds no record: `1.0` is an integer


@pytest.mark.long
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_the_session_time_zone_changes_nothing(spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert decode_one(spark, INSTANT, '"2024-01-01T00:00:00Z"') == instant(2024, 1, 1)
        assert decode_one(spark, DATE, '"2024-01-01"') == dt.date(2024, 1, 1)
        assert decode_one(spark, NAIVE, '"2024-01-01T00:00:00"') == dt.datetime(2024, 1, 1)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.long
def test_each_record_of_a_sample_lands_with_the_schema_of_the_sample(spark: SparkSession) -> None:
    """What the sample takes for a time is one here, and JSON text keeps the digits that a number would lose."""
    times = [
        *("2026-02-28T10:00:00Z", "2026-02-28t10:00:00.123456789z", "2026-02-28 10:00:00+0530"),
        *("0001-01-05T00:00:00-18:00", "9999-12-31T23:59:59+18:00", "2024-02-29T23:59:59.9-00:00"),
    ]
    mixed = ["1", '"a"', "[1, {}]", '{"b": 1.50}', "true", "12345678901234567890123"]
    exact = ["0.12345678901234567891", "12345678901234567890123", "9007199254740993", "0.1", "-5", "1"]
    numbers = ["1", "0.1", "-0.0", "1e308", "5e-324", "9007199254740992"]
    bodies = [
        f'{{"at": "{at}", "m": {m}, "e": {e}, "n": {n}, "d": "2024-02-29", "l": [{{"x": {m}}}, null]}}'
        for at, m, e, n in zip(times, mixed, exact, numbers, strict=True)
    ]
    found = Sample.of(Line("r", body) for body in bodies).found
    row = json_schema.row_type(json_schema.parse(json.dumps(sampled_schema(found, "Row")), {}))
    assert [str(field.type) for field in row.fields] == [
        *("timestamptz", "string", "string", "double", "date", "list<struct<x: string>>")
    ]
    landed = decode(spark, row, *bodies)
    assert [each and each[2] for each in landed] == exact
    assert [each and each[1] for each in landed] == ["1", '"a"', "[1,{}]", '{"b":1.5}', "true", mixed[-1]]
    assert [each and each[3] for each in landed] == [float(number) for number in numbers]
    assert all(each and each[0] for each in landed)
    not_times = ["2026-02-30T10:00:00Z", "2026-02-28T24:00:00Z", "2026-02-28T10:00:60Z", "2026-02-28T10:00:00+18:01"]
    not_times += ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-02-28T10:00:00"]
    assert not any(is_written(text, Kind.TIMESTAMPTZ) for text in not_times)
    assert decode(spark, Struct((column(INSTANT, "at"),)), *(f'{{"at": "{text}"}}' for text in not_times)) == [
        None
    ] * len(not_times)
