"""Values that changes omit, against a replay of each key's changes one by one."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from frazil.upsert.fold import IS_LAST, UNRESOLVED, Rules, fold
from frazil.upsert.resolver_protocol import IS_DELETE, LACKS, OMITTED

pytestmark = pytest.mark.spark
NAMES = ("a", "b")
Change = dict[str, Any]


def changes_of(seed: int, keys: int) -> list[Change]:
    """Return random changes; a value that is omitted has another text, which must not land."""
    chance, found = random.Random(seed), []
    for offset in range(keys * 4):
        omitted = [name for name in NAMES if chance.random() < 0.5]
        values = {name: "left out" if name in omitted else chance.choice([None, f"{name}{offset}"]) for name in NAMES}
        is_delete = chance.random() < 0.2
        found.append(
            {
                "id": chance.randrange(keys),
                **(dict.fromkeys(NAMES) if is_delete else values),
                "_kafka_partition": 0,
                "_kafka_offset": offset,
                IS_DELETE: is_delete,
                OMITTED: None if is_delete or not omitted else omitted,
            }
        )
    return found


def replayed(changes: list[Change], *, soft: bool) -> Change:
    """Return what one key's changes come to; `lacking` columns are those that the table must have.

    A change behind a delete has none of the values before it. One that lacks a value there has no effect; it is `unresolved` if no
    later change has one. A soft delete keeps the values of the last change that had one.
    """
    said: dict[str, Any] = {}
    behind_delete = False
    last, written = changes[0], Change()
    unresolved = list[int]()
    for change in changes:
        omitted = change[OMITTED] or []
        if change[IS_DELETE]:
            said, behind_delete = {}, True
        else:
            said = said | {name: change[name] for name in NAMES if name not in omitted}
        lacking = [] if change[IS_DELETE] else [name for name in NAMES if name not in said]
        if lacking:
            unresolved.append(change["_kafka_offset"])
        if lacking and behind_delete:
            continue
        last = change
        if not lacking:
            unresolved = []
        if not change[IS_DELETE]:
            written = {**said, **({"lacking": lacking} if lacking else {})}
    if not last[IS_DELETE]:
        return {"is_delete": False, "unresolved": unresolved, **written}
    if not soft:
        return {"is_delete": True, "unresolved": unresolved}
    return {"is_delete": True, "unresolved": unresolved, **(written or {"lacking": None})}


def found_of(row: dict[str, Any], unresolved: list[int], *, soft: bool) -> Change:
    found = {"is_delete": row[IS_DELETE], "unresolved": unresolved}
    if row[IS_DELETE] and not soft:
        return found
    lacking = row[OMITTED]
    if row[LACKS] and lacking is None:
        return {**found, "lacking": None}
    values = {name: row[name] for name in NAMES if name not in (lacking or ())}
    return {**found, **values, **({"lacking": lacking} if lacking else {})}


def of_records(changes: DataFrame) -> DataFrame:
    at = F.timestamp_seconds("_kafka_offset")
    return changes.withColumns({"_kafka_timestamp": at, "_deleted_at": F.lit(None).cast("timestamp")})


@pytest.mark.parametrize("soft", [False, True])
def test_a_key_has_the_values_that_its_changes_have_one_by_one(spark: SparkSession, soft: bool) -> None:
    keys, changes = 300, changes_of(7, 300)
    kinds = {"id": pa.int64(), "a": pa.string(), "b": pa.string(), "_kafka_partition": pa.int32()}
    kinds |= {"_kafka_offset": pa.int64(), IS_DELETE: pa.bool_(), OMITTED: pa.list_(pa.string())}
    table = pa.Table.from_pylist(changes, schema=pa.schema(kinds.items()))
    changed, observed = of_records(spark.createDataFrame(table)), Observation()
    rows = fold(changed, ["id"], NAMES, Rules(soft=soft, fills=True), observed).toArrow().to_pylist()
    wanted = {
        key: replayed(of_key, soft=soft)
        for key in range(keys)
        if (of_key := [change for change in changes if change["id"] == key])
    }
    last, others = [row for row in rows if row[IS_LAST]], [row for row in rows if row[UNRESOLVED] is not False]
    unresolved = {key: sorted(row["_kafka_offset"] for row in others if row["id"] == key) for key in range(keys)}
    assert {row["id"]: found_of(row, unresolved[row["id"]], soft=soft) for row in last} == wanted
    for row in others:
        depends = not wanted[row["id"]]["is_delete"] and "lacking" in wanted[row["id"]]
        assert row[UNRESOLVED] is (None if depends else True)
    shapes = {tuple(sorted(shape)) for shape in wanted.values()}
    assert len(shapes) >= 4, "the changes show too little"
    seen = observed.get
    assert seen["records"] == len(changes)


@pytest.mark.long
def test_a_change_of_a_hot_key_is_as_large_as_any_other(spark: SparkSession) -> None:
    """A window function gives its result to each row: a list of the key's changes would be copied for each of them."""
    sizes = []
    for number in (50, 200):
        texts = [(1, None, 0, 0, True, None), *((1, "left out", 0, at + 1, False, ["a"]) for at in range(number))]
        schema = (
            f"id long, a string, _kafka_partition int, _kafka_offset long, {IS_DELETE} boolean, {OMITTED} array<string>"
        )
        changed, observed = of_records(spark.createDataFrame(texts, schema)), Observation()
        folded = fold(changed, ["id"], ["a"], Rules(fills=True), observed)
        assert "collect_list" not in folded._jdf.queryExecution().optimizedPlan().toString()
        rows = folded.toArrow().to_pylist()
        assert sum(row[UNRESOLVED] is True for row in rows) == number
        sizes.append(max(len(str(row)) for row in rows))
    assert sizes[1] < sizes[0] + 20
