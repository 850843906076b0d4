from datetime import UTC, datetime, timedelta, timezone

import pytest

from frazil.declaration import At, Offsets
from tests.declaration.problems_of import problems_of

EAST = timezone(timedelta(hours=2))


def test_an_instant_is_kept_in_utc():
    start = At(datetime(2026, 1, 31, 2, tzinfo=EAST))
    assert start.timestamp.isoformat() == "2026-01-31T00:00:00+00:00"
    assert start == At(datetime(2026, 1, 31, tzinfo=UTC))


@pytest.mark.parametrize(
    ("timestamp", "told"),
    [
        (datetime(2026, 1, 31), "no time zone"),
        (datetime(2026, 1, 31, microsecond=1, tzinfo=UTC), "milliseconds"),
        (datetime(1970, 1, 1, tzinfo=EAST), "before 1970"),
        (datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=5))), "beyond the years"),
        (datetime(1, 1, 1, tzinfo=EAST), "beyond the years"),
        ("2026-01-31", "Write a datetime with a time zone"),
    ],
)
def test_an_instant_that_kafka_cannot_be_asked_for_is_refused(timestamp, told):
    assert told in problems_of(lambda: At(timestamp))["at.timestamp"]


@pytest.mark.parametrize(
    ("offsets", "paths"),
    [
        ({}, ["offsets.offsets"]),
        ({0: -1, 1: -2}, ["offsets.offsets[0]", "offsets.offsets[1]"]),
        ({-1: 0}, ["offsets.offsets[-1]"]),
        ({2**31: 0}, ["offsets.offsets[2147483648]"]),
        ({0: 2**63}, ["offsets.offsets[0]"]),
        ({"0": 1}, ["offsets.offsets['0']"]),
        ({True: 1}, ["offsets.offsets[True]"]),
        ({0: "earliest"}, ["offsets.offsets[0]"]),
    ],
)
def test_offsets_that_no_partition_has_are_refused(offsets, paths):
    assert list(problems_of(lambda: Offsets(offsets))) == paths
