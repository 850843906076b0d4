"""Reading JSON with Arrow: what is read, and what is left to others, one trap after another."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from frazil.ingest import json_batches
from frazil.ingest.json_batches import LONGEST_BODY, can_read, rows_of
from frazil.ingest.spark_types import spark_struct
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, BINARY, DATE, NAIVE, INSTANT = (Primitive(kind) for kind in Kind)
X = Struct((Field("x", LONG),))
UNREAD = "left to from_json"
DEEP = "[" * 5_000 + "]" * 5_000


def read(target: Struct, *bodies: bytes | str | None) -> list[Any]:
    """Each body's row without `_decoded`, or `UNREAD`."""
    given = [body.encode() if isinstance(body, str) else body for body in bodies]
    arrow_type = to_arrow_type(spark_struct(target).add("_decoded", T.BooleanType()))
    rows = rows_of(pa.array(given, pa.binary()), target, arrow_type)
    rows.validate(full=True)
    assert rows.type == arrow_type
    assert len(rows) == len(bodies)
    found = rows.to_pylist()
    assert all(row is None or row.pop("_decoded") is True for row in found)
    return [UNREAD if row is None else row for row in found]


def instant(*at: int) -> dt.datetime:
    return dt.datetime(*at, tzinfo=dt.UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("target", "is_read"),
    [
        *((of, True) for of in (BOOLEAN, INT, LONG, DOUBLE, STRING, DATE, INSTANT)),
        *((of, False) for of in (FLOAT, BINARY, NAIVE, Decimal(5, 2), MapOf(STRING, LONG))),
        (ListOf(LONG), True),
        (ListOf(ListOf(DATE)), True),
        (ListOf(FLOAT), False),
        (X, True),
        (Struct((Field("x", LONG), Field("y", STRING, as_json=True))), False),
        (Struct((Field("x", Struct((Field("y", FLOAT),))),)), False),
        (Struct(()), False),
    ],
)
def test_what_is_read_is_decided_by_the_type(target: Type, is_read: bool) -> None:
    assert can_read(target) is is_read


VALUES: list[tuple[Type, str, Any]] = [
    (BOOLEAN, "true", True),
    (BOOLEAN, "null", None),
    (BOOLEAN, '"true"', UNREAD),
    (BOOLEAN, "1", UNREAD),
    (LONG, "-9223372036854775808", -(2**63)),
    (LONG, "9223372036854775808", UNREAD),
    (LONG, "-0", 0),
    *(
        (LONG, text, UNREAD)
        for text in ("1.0", "1e3", "01", "+1", "0x1", '"1"', "true", "{}", "[]", "NaN", "--1", "1 2", "")
    ),
    (INT, "2147483647", 2**31 - 1),
    (INT, "2147483648", UNREAD),
    (DOUBLE, "1", 1.0),
    (DOUBLE, "9007199254740993", 9007199254740992.0),
    (DOUBLE, "4.9e-324", 5e-324),
    (DOUBLE, "2.2250738585072011e-308", 2.225073858507201e-308),
    (DOUBLE, "1.7976931348623157e308", 1.7976931348623157e308),
    (DOUBLE, "0." + "3" * 500, 1 / 3),
    (DOUBLE, "-0", UNREAD),
    (DOUBLE, "-0.0", -0.0),
    (DOUBLE, "1e400", UNREAD),
    (DOUBLE, "1." + "0" * 1_000, UNREAD),
    (DOUBLE, "-Infinity", float("-inf")),
    *((DOUBLE, text, UNREAD) for text in ("Inf", "-Inf", "-NaN", ".5", "5.", '"NaN"', '"1"', "true")),
    (STRING, '"NaN, Inf and -0"', "NaN, Inf and -0"),
    (STRING, r'"\u00e9\ud83d\ude00\u0000"', "é😀\0"),
    (STRING, r'"\ud83d"', UNREAD),
    (STRING, r'"\ude00"', UNREAD),
    (STRING, '"a\nb"', UNREAD),
    (STRING, "'a'", UNREAD),
    (STRING, r'"\x"', UNREAD),
    (STRING, "5", UNREAD),
    (STRING, "{}", UNREAD),
    (DATE, '"2024-02-29"', dt.date(2024, 2, 29)),
    (DATE, "null", None),
    *((DATE, f'"{text}"', UNREAD) for text in ("2023-02-29", "2024-2-9", "2024-02-29T00:00:00Z", "", " 2024-02-29")),
    (INSTANT, '"2024-02-29T10:11:12Z"', instant(2024, 2, 29, 10, 11, 12)),
    (INSTANT, '"2024-02-29 10:11:12.5-0130"', instant(2024, 2, 29, 11, 41, 12, 500_000)),
    (INSTANT, '"2024-02-29T10:11:12.123456+05:30"', instant(2024, 2, 29, 4, 41, 12, 123_456)),
    *(
        (INSTANT, f'"2024-02-29T{text}"', UNREAD)
        for text in (
            "10:11:12",
            "10:11Z",
            "10:11:12.1234567Z",
            "10:11:12+18:00",
            "10:11:12+19:00",
            "24:00:00Z",
            "10:11:60Z",
        )
    ),
    (INSTANT, '"2024-02-29"', UNREAD),
    (INSTANT, "1709200000", UNREAD),
    (ListOf(LONG), "[1, null]", [1, None]),
    (ListOf(LONG), "[]", []),
    (ListOf(LONG), "null", None),
    (ListOf(LONG), "5", UNREAD),
    (ListOf(LONG), '{"a": 1}', UNREAD),
    (ListOf(DATE), '["2024-02-29", null]', [dt.date(2024, 2, 29), None]),
    (ListOf(DATE), '["x"]', UNREAD),
    (ListOf(ListOf(INSTANT)), '[null, [], ["2024-02-29T00:00:00Z"]]', [None, [], [instant(2024, 2, 29)]]),
    (Struct((Field("d", DATE), Field("y", LONG))), '{"y": 1}', {"d": None, "y": 1}),
    (Struct((Field("d", DATE), Field("y", LONG))), "null", None),
    (Struct((Field("d", DATE), Field("y", LONG))), "[]", UNREAD),
    (Struct((Field("d", DATE, source="D"),)), '{"d": 1, "D": "2024-02-29"}', {"d": dt.date(2024, 2, 29)}),
]


@pytest.mark.parametrize(("of", "text", "expected"), VALUES)
def test_a_value_is_what_was_written_or_is_left(of: Type, text: str, expected: Any) -> None:
    (row,) = read(Struct((Field("x", of),)), f'{{"x": {text}}}')
    assert row == (expected if expected is UNREAD else {"x": expected})
    if isinstance(expected, float):
        assert repr(row["x"]) == repr(expected)  # which tells -0.0 from 0.0


BODIES: list[tuple[bytes | str | None, Any]] = [
    ('{"x": 1}', 1),
    ('{"x": 1} \r\n\t', 1),
    ('{\n"x"\n:\n1\n}', 1),
    ('{"y": 1}', None),
    ('{"X": 1}', None),
    ('{"y": {"x": 2, "x": 3}, "x": 1}', 1),
    ('{"y": "Inf and NaN", "x": 1}', 1),
    ('{"y": [NaN, Infinity], "x": 1}', 1),
    ('{"y": ' + "[" * 400 + "]" * 400 + ', "x": 1}', 1),
    (r'{"\u0078": 1}', 1),
    ('{"x": 1, "x": 1}', UNREAD),
    ('{"x": 1, "y": [Inf]}', UNREAD),
    ('{"x": 1, "y": -Inf}', UNREAD),
    ('{"x": 1, "y": -NaN }', UNREAD),
    ('{"x": 1, "y": 1e999}', UNREAD),
    ('{"x": 1, "y": ' + "1" * 1_001 + "}", UNREAD),
    ('{"x": 1, "' + "y" * LONGEST_BODY + '": 1}', UNREAD),
    (f'{{"x": 1, "y": {DEEP}}}', UNREAD),
    (f'{{"x": {DEEP}}}', UNREAD),
    ('{"x":' * 5_000, UNREAD),
    ('{"x": 1, "y": "' + "z" * 20_000_000 + '"}', UNREAD),
    (None, UNREAD),
    *((text, UNREAD) for text in ("", " ", "null", "5", '"x"', "[]", '[{"x": 1}]', ' {"x": 1}', "{", "{}", "}")),
    *(
        ('{"x": 1}' + text, UNREAD)
        for text in ('{"x": 2}', '\n{"x": 2}', ',{"x": 2}', "}", "]", " x", "\0", '\0{"x"', "null")
    ),
    *(
        ('{"x": 1' + text, UNREAD)
        for text in ("", ",}", ', "y": [', ', "y": "', "]", "/**/}", ", \"y\": 'a'}", ", y: 1}")
    ),
    (b'\xef\xbb\xbf{"x": 1}', UNREAD),
    (b'{"x": 1, "y": "\xff"}', UNREAD),
    (b'{"x": 1, "y": "\xed\xa0\x80"}', UNREAD),
    (b'{"x": 1, "\xff": true}', UNREAD),
    (b'{"x": 1}\n{"\xff":true,"x":2}', UNREAD),
    (r'{"x": 1, "\u00ff": true}', 1),
    (r'{"x": 1}{"\u00ff": true, "x": 2}', UNREAD),
]


def test_a_body_is_one_object_or_is_left() -> None:
    alone = [read(X, body)[0] for body, _ in BODIES]
    assert alone == [UNREAD if expected is UNREAD else {"x": expected} for _, expected in BODIES]


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_the_neighbours_of_any_body_are_read_as_without_it(number: int) -> None:
    body, expected = BODIES[number]
    left, right = ('{"x": 7, "y": "é"}',) * 3, ('{"x": 8}',) * 5
    wanted = UNREAD if expected is UNREAD else {"x": expected}
    assert read(X, *left, body, *right) == [*[{"x": 7}] * 3, wanted, *[{"x": 8}] * 5]


@pytest.mark.parametrize(
    "bodies",
    [
        ('{"y": [1,', '{"x": 2}]}{"x": 3}'),
        ('{"y": [1,', r'{"x": 2}]}{"\u00ff": true, "x": 3}'),
        ('{"y": "', '"}', '{"x": 1}{"x": 2}'),
        ('{"y": {"z":', '{"x": 1}}', '{"x": 1}{"x": 2}'),
        ('{"x": 1}{"x": 2}', '{"y": [', '{"x": 3}]}'),
        ('{"x": 1}{"x": 2}', "\0", '{"x": 3}'),
        ('{"x": 1}{"x": 2}', '{"x": 3}\0{'),
        (b'{"y": "\xc3', b'{\xa9"}'),
    ],
)
def test_bodies_that_make_sense_together_only_are_left(bodies: tuple[bytes | str, ...]) -> None:
    whole = ['{"x": 3}' in bodies and body == '{"x": 3}' for body in bodies]
    assert read(X, '{"x": 0}', *bodies, '{"x": 9}') == [
        {"x": 0},
        *({"x": 3} if is_whole else UNREAD for is_whole in whole),
        {"x": 9},
    ]


def test_odd_names_are_found() -> None:
    names = ["a.b", 'q"uote', "", "😀", "$ref", "with space", "_decoded", "back\\", "ÿ", "x\0", "0"]
    target = Struct(tuple(Field(f"c{number}", LONG, source=name) for number, name in enumerate(names)))
    body = json.dumps({name: number for number, name in enumerate(names)})
    assert read(target, body, body) == [{f"c{number}": number for number in range(len(names))}] * 2


def test_a_thousand_columns_and_fifty_levels_are_read() -> None:
    wide = Struct(tuple(Field(f"c{number}", LONG) for number in range(1_000)))
    row = {f"c{number}": number for number in range(1_000)}
    assert read(wide, json.dumps(row)) == [row]
    deep: Type = LONG
    value: Any = 1
    for level in range(50):
        deep, value = (ListOf(deep), [value]) if level % 2 else (Struct((Field("a", deep),)), {"a": value})
    assert read(Struct((Field("x", deep),)), json.dumps({"x": value})) == [{"x": value}]


@pytest.mark.parametrize("bad", ['{"x": "a"}', '{"x": 1.5}', '{"x": 1, "y": "\\ud800"}', "[]", '{"x": 1, "y": Inf}'])
@pytest.mark.parametrize("place", [0, 1, 4_999, 9_999])
def test_one_bad_body_among_many_is_alone(bad: str, place: int) -> None:
    bodies = [f'{{"x": {number}}}' for number in range(10_000)]
    bodies[place] = bad
    rows = read(X, *bodies)
    assert rows[place] == UNREAD
    assert [row for number, row in enumerate(rows) if number != place] == [
        {"x": n} for n in range(10_000) if n != place
    ]


def test_some_bad_bodies_among_many_are_alone() -> None:
    bodies = [f'{{"x": {number}}}' if number % 500 else '{"x": "a"}' for number in range(10_000)]
    assert [row == UNREAD for row in read(X, *bodies)] == [number % 500 == 0 for number in range(10_000)]


@pytest.mark.parametrize("bad", ['{"x": "a"}', '{"x": 1.5}'])
def test_a_batch_of_bad_bodies_is_given_up_soon(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    one = json_batches._read

    def counted(documents: pa.Array, target: Struct, arrow_type: pa.StructType) -> pa.Array:
        tried.append(len(documents))
        return one(documents, target, arrow_type)

    monkeypatch.setattr(json_batches, "_read", counted)
    assert read(X, *[bad] * 10_000) == [UNREAD] * 10_000
    assert len(tried) < 20


def test_bodies_of_many_bytes_are_read_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_batches, "_MOST_AT_ONCE", 1_000)
    assert read(X, *[f'{{"x": {number}}}' for number in range(1_000)]) == [{"x": number} for number in range(1_000)]


def test_no_bodies_are_no_rows() -> None:
    assert read(X) == []
