"""Values of two libraries that are the same, and values that are not."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from frazil.declaration import Nullify, Pipeline, Redact, Shape, Table, Topic
from frazil.trace.comparison import Verdict, compared, is_same

AT = datetime(2026, 1, 31, 12, 30, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("table", "record"),
    [
        (None, None),
        (1, 1),
        (1.5, 1.5),
        (0.1, Decimal("0.1")),
        (float("nan"), float("nan")),
        (Decimal("1.50"), Decimal("1.5")),
        (7, "7"),
        (True, True),
        ("é", "é"),
        (b"\0", bytearray(b"\0")),
        (AT, AT),
        (AT, "2026-01-31T12:30:00.000005Z"),
        (AT.replace(tzinfo=None), AT),
        (date(2026, 1, 31), "2026-01-31"),
        (time(1, 2, 3), time(1, 2, 3)),
        ("123e4567-e89b-12d3-a456-426614174000", UUID("123e4567-e89b-12d3-a456-426614174000")),
        ([1, 2], [1, 2]),
        ([("a", 1)], {"a": 1}),
        ({"a": {"b": 1}, "c": None}, {"a": {"b": 1}}),
    ],
)
def test_the_same_value_in_the_types_of_two_libraries(table: Any, record: Any) -> None:
    assert is_same(table, record)


@pytest.mark.parametrize(
    ("table", "record"),
    [
        (None, 0),
        (1, 2),
        (1, True),
        (1.5, float("nan")),
        ("a", "b"),
        (b"a", "a"),
        (AT, "2026-01-31T12:30:00Z"),
        (AT, "soon"),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 1, "b": 2}),
        (7, "seven"),
    ],
)
def test_other_values(table: Any, record: Any) -> None:
    assert not is_same(table, record)


def verdicts(shape: Shape, row: dict[str, Any], record: dict[str, Any]) -> dict[str, Verdict]:
    pipeline = Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"), shape=shape)
    return {one.column: one.verdict for one in compared(pipeline, row, record)}


def test_columns_that_are_computed_masked_absent_or_other_ones() -> None:
    row = {"id": 1, "twice": 2, "card": "x", "later": None, "_kafka_offset": 3}
    masks = Shape(select="*, id * 2 as twice", mask={"card": Redact()})
    assert verdicts(masks, row, {"ID": 1, "card": "4711"}) == {
        "id": Verdict.SAME,
        "twice": Verdict.COMPUTED,
        "card": Verdict.MASKED,
        "later": Verdict.COMPUTED,
    }
    assert verdicts(Shape(), row, {"id": 2, "card": "x"}) == {
        "id": Verdict.DIFFERS,
        "twice": Verdict.DIFFERS,
        "card": Verdict.SAME,
        "later": Verdict.ABSENT,
    }


def test_no_value_of_a_masked_field_is_kept() -> None:
    shape = Shape(mask={"card.number": Nullify()})
    pipeline = Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"), shape=shape)
    (found,) = compared(pipeline, {"card": {"number": "x"}}, {"card": {"number": "4711"}})
    assert (found.verdict, found.in_record) == (Verdict.MASKED, None)
