"""The rows that a commit added and deleted, put together by key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from frazil.lake.history.changed_keys import changed_keys

pytestmark = pytest.mark.spark
COLUMNS = "`the key` string, word string, _kafka_partition int, _kafka_offset bigint, _ingested_at timestamp, _deleted_at timestamp"
Row = tuple[str, str, int]
Found = dict[str, tuple[str | None, str | None, int, int]]


def rows(spark: SparkSession, *facts: Row) -> DataFrame:
    """Return rows of a key, a word and an offset; one that was deleted has a time beside its null."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return spark.createDataFrame([(key, word, 0, offset, at, None) for key, word, offset in facts], COLUMNS)


def found(spark: SparkSession, came: Sequence[Row], went: Sequence[Row], **choices: Any) -> Found:
    choices = {"is_rewritten": False, "is_own": True, **choices}
    changed = changed_keys(rows(spark, *came), rows(spark, *went), ["the key"], 3, **choices)
    assert changed.rdd.getNumPartitions() == 3, "nothing is shuffled twice"
    words = ((row["_frazil_after"], row["_frazil_before"], row) for row in changed.collect())
    return {
        row["the key"]: (after and after["word"], before and before["word"], row["_frazil_came"], row["_frazil_went"])
        for after, before, row in words
    }


def test_each_key_has_its_row_after_the_commit_and_before_it(spark: SparkSession) -> None:
    came, went = [("a", "new", 5), ("b", "second", 6)], [("b", "first", 1), ("c", "gone", 2)]
    assert found(spark, came, went) == {
        "a": ("new", None, 1, 0),
        "b": ("second", "first", 1, 1),
        "c": (None, "gone", 0, 1),
    }


@pytest.mark.long
@pytest.mark.parametrize("went", [[("a", "older", 1), ("a", "newer", 2)], [("a", "newer", 2), ("a", "older", 1)]])
def test_of_two_rows_of_a_key_the_newer_one_is_that_before(spark: SparkSession, went: list[Row]) -> None:
    assert found(spark, [("a", "repaired", 3)], went) == {"a": ("repaired", "newer", 1, 2)}
    assert found(spark, [], went) == {"a": (None, "newer", 0, 2)}


@pytest.mark.long
def test_rows_that_were_only_rewritten_are_no_change_also_two_of_a_key(spark: SparkSession) -> None:
    stay: list[Row] = [("a", "older", 1), ("a", "newer", 2), ("b", "first", 3)]
    came, went = [*stay, ("c", "second", 5)], [*stay, ("c", "first", 4)]
    for is_own in (True, False):
        assert found(spark, came, went, is_rewritten=True, is_own=is_own) == {"c": ("second", "first", 1, 1)}


@pytest.mark.long
def test_a_row_that_is_replaced_beside_one_that_stays_is_one_change(spark: SparkSession) -> None:
    older, newer, newest = ("a", "older", 1), ("a", "newer", 2), ("a", "newest", 3)
    for gone, stays in ((older, newer), (newer, older)):
        changed = found(spark, [newest, stays], [older, newer], is_rewritten=True)
        assert changed == {"a": ("newest", gone[1], 1, 1)}


@pytest.mark.long
def test_another_engine_changes_values_and_leaves_the_columns_of_the_record(spark: SparkSession) -> None:
    came, went = [("a", "by hand", 1)], [("a", "landed", 1)]
    assert found(spark, came, went, is_rewritten=True, is_own=False) == {"a": ("by hand", "landed", 1, 1)}
    assert found(spark, came, went, is_rewritten=True) == {}
