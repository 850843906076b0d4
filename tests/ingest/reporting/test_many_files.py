"""Small files are said where they are made."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Json, Pipeline, Table, Topic
from frazil.ingest.reporting import many_files


def by(*fields: str) -> Pipeline:
    return Pipeline(
        topic=Topic("events", value=Json(columns=("id long", "at timestamptz", "place struct<zip: string>"))),
        table=Table("s.events", partition_by=fields),
    )


def test_many_files_of_few_rows_are_warned_about() -> None:
    said = many_files.of_batch(by("days(at)"), 126, 3_000)
    assert said.startswith("a batch of 3,000 rows made 126 data files: the table is partitioned by days(at)")


def test_few_files_and_large_files_are_fine() -> None:
    assert many_files.of_batch(by("days(at)"), 100, 100) == ""
    assert many_files.of_batch(by("days(at)"), 126, 126 * 10_000) == ""
    assert many_files.of_batch(by("days(at)"), 0, 0) == ""


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {"id": n, "at": f"2026-01-{n % 28 + 1:02}T{n % 24:02}:00:00.000000Z", "place": {"zip": f"{n:05}"}}
        for n in range(count)
    ]


@pytest.mark.parametrize("field", ["days(at)", "hours(at)", "id", "truncate(1, id)", "bucket(64, id)", "place.zip"])
def test_a_preview_whose_records_are_in_partitions_of_their_own_is_warned_about(field: str) -> None:
    assert many_files.of_preview(by(field), rows(20)).startswith("20 records are in ")


@pytest.mark.parametrize(
    "field", ["months(at)", "years(at)", "truncate(100, id)", "bucket(4, id)", "truncate(2, place.zip)"]
)
def test_a_preview_whose_records_share_partitions_is_not(field: str) -> None:
    assert many_files.of_preview(by(field), rows(20)) == ""


def test_a_preview_of_few_records_and_a_table_without_partitions_say_nothing() -> None:
    assert many_files.of_preview(by("days(at)"), rows(9)) == ""
    assert many_files.of_preview(by(), rows(100)) == ""
    assert many_files.of_preview(by("days(_kafka_timestamp)"), rows(100)) == ""
    assert many_files.of_preview(by("days(at)"), [{"at": None}] * 20) == ""
