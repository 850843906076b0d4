"""Dead letters are listed newest first and counted by reason, all of them or some."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from frazil.clients.secrets import Secrets
from frazil.dead_letters.listing import Listing, letters_of, listing
from frazil.declaration import Pipeline, Table, Topic
from frazil.declaration.environment import Environment
from frazil.lake.read.scan import Where
from frazil.lake.read.stored_tables import Lake
from tests.support.shop import Shop

ALL = {"too_short": 1, "wrong_magic": 1, "undecodable": 2, "tombstone": 1, "unknown_schema": 1}


def listed(shop: Shop, limit: int = 50, **wanted: Any) -> Listing:
    conditions = [
        Where(column="reason", equal=wanted.get("reason")),
        Where(column="partition", equal=wanted.get("partition")),
        Where(column="rejected_at", at_least=wanted.get("since"), below=wanted.get("until")),
    ]
    return listing(shop.pipeline, Lake(shop.lake, Secrets({}).read), conditions, limit=limit)


@pytest.mark.spark
@pytest.mark.e2e
class TestOnATable:
    def test_all_are_counted_and_the_newest_come_first(self, letters: Shop) -> None:
        found = listed(letters)
        assert (found.counts, found.total) == (ALL, 6)
        assert [(one.run, one.partition, one.offset) for one in found.letters] == [
            ("second", 0, 5),
            ("second", 0, 4),
            ("first", 1, 3),
            ("first", 1, 2),
            ("first", 1, 1),
            ("first", 1, 0),
        ]
        assert list(found.counts) == ["undecodable", "tombstone", "too_short", "unknown_schema", "wrong_magic"]

    def test_a_limit_bounds_what_is_listed_not_what_is_counted(self, letters: Shop) -> None:
        found = listed(letters, limit=2)
        assert ([one.run for one in found.letters], found.total) == (["second", "second"], 6)
        assert (listed(letters, limit=0).letters, listed(letters, limit=0).total) == ((), 6)

    @pytest.mark.parametrize(
        ("wanted", "places"),
        [
            ({"reason": "undecodable"}, [(0, 5), (1, 2)]),
            ({"partition": 0}, [(0, 5), (0, 4)]),
            ({"partition": 0, "reason": "undecodable"}, [(0, 5)]),
            ({"reason": "before_missing"}, []),
            ({"since": datetime.fromtimestamp(1_800_000_001, UTC)}, [(0, 5), (0, 4)]),
            ({"until": datetime.fromtimestamp(1_800_003_600, UTC)}, [(1, 3), (1, 2), (1, 1), (1, 0)]),
            ({"since": datetime.fromtimestamp(1_800_000_000, UTC), "until": datetime.fromtimestamp(1_800_000_001, UTC), "reason": "tombstone"}, [(1, 3)]),
        ],
        ids=["reason", "partition", "both", "none of it", "since", "until is not included", "window"],
    )  # fmt: skip
    def test_some_can_be_asked_for(self, letters: Shop, wanted: dict[str, Any], places: list[tuple[int, int]]) -> None:
        found = listed(letters, **wanted)
        assert [(one.partition, one.offset) for one in found.letters] == places
        assert found.total == len(places)


def test_a_pipeline_that_never_ran_has_none(lake_environment: Environment) -> None:
    pipeline = Pipeline(topic=Topic("never", value="avro"), table=Table("shop.never"))
    found = listing(pipeline, Lake(lake_environment, Secrets({}).read))
    assert (found.letters, found.total, found.table) == ((), 0, "shop.never__dead_letters")


def test_a_timestamp_beyond_pythons_calendar_is_given_in_milliseconds() -> None:
    """A producer that writes microseconds where Kafka expects milliseconds is in the year 55,000."""
    ms = [1_767_225_600_123, 1_767_225_600_000_000, -1, 253_402_300_799_999, 253_402_300_800_000, None]
    us = pa.array([None if n is None else n * 1000 for n in ms], pa.timestamp("us", "UTC"))
    found = letters_of(pa.RecordBatch.from_pydict({"offset": pa.array(range(len(ms))), "timestamp": us}))
    assert [row["timestamp_ms"] for row in found] == ms
    assert [row["timestamp"] is None for row in found] == [False, True, False, False, True, True]
    assert found[0]["timestamp"] == datetime(2026, 1, 1, 0, 0, 0, 123_000, UTC)
