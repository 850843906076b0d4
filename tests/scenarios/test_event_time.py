"""Bounds of the time of an event: decided record by record, against the record's time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frazil.declaration import Append, ErrorMode, EventTime, Shape, Upsert
from frazil.errors import InvalidInput, RejectedRecords
from tests.support.keyed_topic import record
from tests.support.shop import Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
BOUNDS = EventTime("at", oldest="2 days", newest="1 hour", lateness="10 minutes")
COLUMNS = {"value_format": "json", "columns": ("id long", "at timestamptz", "day date")}
FIRST, LAST = -719_162 * 86_400, 2_932_896 * 86_400  # the first and the last day that lands
AHEAD = {  # of the record's time -> what happens
    timedelta(0): "lands",
    timedelta(hours=1): "lands",
    timedelta(hours=1, seconds=1): "dies",
    timedelta(minutes=-10): "lands",
    timedelta(minutes=-10, seconds=-1): "late",
    timedelta(days=-2): "late",
    timedelta(days=-2, seconds=-1): "dies",
    timedelta(days=-400_000): "dies",
    timedelta(days=2_000_000): "dies",
}


def produce(shop: Shop) -> None:
    for number, ahead in enumerate(AHEAD):
        value: dict[str, Any] = {"id": number, "at": (AT + ahead).isoformat()}
        shop.produce([json.dumps(value).encode()], key=str(number).encode(), timestamp=round(AT.timestamp() * 1000))
    shop.produce([b'{"id": 99}'], key=b"99", timestamp=round(AT.timestamp() * 1000))


@pytest.mark.parametrize("write", [Append(), Upsert(key="id")])
def test_an_event_beyond_a_bound_is_a_dead_letter_and_late_rows_are_counted(shop_of: ShopOf, write: Any) -> None:
    shop = shop_of(**COLUMNS, write=write, shape=Shape(event_time=BOUNDS), on_error=ErrorMode.DEAD_LETTER)
    produce(shop)
    total = shop.drain()
    wanted = [number for number, what in enumerate(AHEAD.values()) if what != "dies"]
    assert sorted(row["id"] for row in shop.landed()) == [*wanted, 99], "a null time is not compared"
    assert total.rejected == {"event_time": 4}
    assert sum(event.get("late_events", 0) for event in shop.seen("batch_committed")) == 2
    texts = {letter["message"] for letter in shop.dead()}
    words = ("more than 1 hour after the record", "more than 2 days before the record")
    assert texts == {f"the time of the event is beyond the declared bounds: at: {one}" for one in words}
    shop.assert_proven(deep=True)


def test_a_filtered_event_has_no_bounds_and_a_date_is_a_time(shop_of: ShopOf) -> None:
    bounds = EventTime("day", oldest="1 day")
    shop = shop_of(**COLUMNS, shape=Shape(where="id <> 1", event_time=bounds), on_error=ErrorMode.SUSPEND)
    stamp = round(AT.timestamp() * 1000)
    for number, day in ((1, "2020-01-01"), (2, "2026-01-31"), (3, "2026-01-30")):
        value = json.dumps({"id": number, "day": day}).encode()
        shop.produce([value], timestamp=stamp)
    with pytest.raises(RejectedRecords, match="day: more than 1 day before the record|beyond the declared bounds"):
        shop.drain()
    assert shop.landed() == []


@pytest.mark.parametrize(("column", "what"), [("id", "id is of type long"), ("when", "there is no column when")])
def test_another_column_is_refused(shop_of: ShopOf, column: str, what: str) -> None:
    shop = shop_of(**COLUMNS, shape=Shape(event_time=EventTime(column, newest="1 day")))
    shop.produce([b'{"id": 1}'])
    with pytest.raises(InvalidInput, match=f"{what}, so it is no event time.*day") as refused:
        shop.drain()
    assert "at, day" in refused.value.do


@pytest.mark.parametrize(
    ("kind", "logical"), [("int", "date"), ("long", "timestamp-micros"), ("long", "local-timestamp-micros")]
)
def test_no_time_is_too_far_to_be_compared(shop_of: ShopOf, kind: str, logical: str) -> None:
    written = record("R", id="long", at={"type": kind, "logicalType": logical})
    shop = shop_of(shape=Shape(event_time=EventTime("at", oldest="1 day", newest="1 day")), partitions=1)
    schema, unit = shop.register(written), 1 / 86_400 if kind == "int" else 1_000_000
    times = [round(of * unit) for of in (FIRST, LAST, AT.timestamp())]
    plain = record("R", id="long", at=kind)
    values = [frame(schema, avro(plain, {"id": number, "at": at})) for number, at in enumerate(times)]
    shop.produce(values, timestamp=round(AT.timestamp() * 1000))
    assert shop.drain().rejected == {"event_time": 2}
    assert [row["id"] for row in shop.landed()] == [2]
