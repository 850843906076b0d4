"""How long Kafka keeps what is not landed yet."""

from __future__ import annotations

from typing import Any

import pytest

from policies.rules.retention import retention_under_lag
from tests.policies.review.planning import change, plan
from tests.policies.reviewing import stack, told

DAY_MS = 86_400_000
DOCUMENT = {
    "version": 1,
    "pipelines": [{"topic": {"name": "Orders"}, "table": {"identifier": "shop.orders"}}],
}
LATE = {"metric_name": "freshness_seconds", "threshold": 3600, "dimensions": {"pipeline": "orders"}}


def topic(**config: str) -> dict[str, Any]:
    values = {"topic_name": "Orders", "partitions_count": 6, **({"config": config} if config else {})}
    return stack(confluent_kafka_topic__t=values, aws_cloudwatch_metric_alarm__late=LATE)


def kept(milliseconds: int) -> dict[str, str]:
    return {"retention.ms": str(milliseconds)}


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (kept(3_599_999), 1),
        (kept(3_600_000), 0),
        (kept(-1), 0),
        (kept(0), 1),
        ({}, 0),
        ({"cleanup.policy": "compact", **kept(1)}, 0),
        ({"cleanup.policy": "delete,compact", **kept(3_599_999)}, 1),
        ({"cleanup.policy": "delete,compact", **kept(3_600_000)}, 0),
    ],
    ids=str,
)
def test_records_are_kept_for_as_long_as_rows_may_be_late(config: dict[str, str], count: int) -> None:
    assert len(told(retention_under_lag, topic(**config), DOCUMENT)) == count


def test_a_retention_under_the_lag_says_both() -> None:
    assert told(retention_under_lag, topic(**kept(60_000)), DOCUMENT) == [
        ("confluent_kafka_topic.t", "records are kept for 60 s, rows may come 3600 s late")
    ]


def test_another_pipelines_alarm_says_nothing() -> None:
    other = stack(
        confluent_kafka_topic__t={"topic_name": "Orders", "config": kept(60_000)},
        aws_cloudwatch_metric_alarm__late={**LATE, "dimensions": {"pipeline": "refunds"}},
    )
    assert told(retention_under_lag, other, DOCUMENT) == []


def cut(before: dict[str, str], after: dict[str, str]) -> dict[str, Any]:
    was, will = ({"topic_name": "Orders", "config": config} for config in (before, after))
    return plan(change("confluent_kafka_topic.t", "update", was, will))


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        (kept(7 * DAY_MS), kept(DAY_MS), 1),
        (kept(-1), kept(DAY_MS), 1),
        ({}, kept(DAY_MS), 1),
        (kept(DAY_MS), kept(7 * DAY_MS), 0),
        (kept(DAY_MS), kept(-1), 0),
        (kept(DAY_MS), kept(DAY_MS), 0),
    ],
    ids=str,
)
def test_a_cut_of_which_nothing_says_how_late_rows_may_be_is_told(
    before: dict[str, str], after: dict[str, str], count: int
) -> None:
    assert len(told(retention_under_lag, cut(before, after))) == count


def test_a_cut_that_stays_above_the_lag_passes() -> None:
    alarm = stack(aws_cloudwatch_metric_alarm__late=LATE)
    assert told(retention_under_lag, cut(kept(7 * DAY_MS), kept(DAY_MS)), alarm, DOCUMENT) == []
    assert len(told(retention_under_lag, cut(kept(7 * DAY_MS), kept(60_000)), alarm, DOCUMENT)) == 1


# ── Compaction, sizes and deletes ───────────────────────────────────────────────────────────────
DELETE, COMPACT, BOTH = ({"cleanup.policy": each} for each in ("delete", "compact", "delete,compact"))
STATE: dict[str, Any] = {"type": "upsert", "key": None, "order_by": []}


def read_by(*writes: Any, named: str = "Orders") -> dict[str, Any]:
    """A document with one pipeline on the topic for each write mode; None is a document of before the modes."""
    pipelines = [
        {
            "name": f"orders{number}",
            "topic": {"name": named},
            "table": {"identifier": f"shop.orders{number}"},
            **({} if write is None else {"write": write}),
        }
        for number, write in enumerate(writes)
    ]
    return {"version": 2, "pipelines": pipelines}


def lost(before: dict[str, str], after: dict[str, str], *documents: dict[str, Any]) -> list[str]:
    return [what for _, what in told(retention_under_lag, cut(before, after), *documents)]


@pytest.mark.parametrize("after", [COMPACT, BOTH, {"cleanup.policy": "compact, delete"}], ids=str)
@pytest.mark.parametrize(
    "documents",
    [
        [],
        [read_by(None)],
        [read_by("append")],
        [read_by({"type": "changelog"})],
        [read_by(STATE, {"type": "append"})],
        [read_by({**STATE, "key": ["order_id"]})],
        [read_by({**STATE, "order_by": ["changed_at"]})],
        [read_by(STATE, named="refunds")],
    ],
    ids=str,
)
def test_compaction_of_a_topic_whose_superseded_records_are_rows_is_told(
    after: dict[str, str], documents: list[dict[str, Any]]
) -> None:
    [what] = lost(DELETE, after, *documents)
    assert what.startswith("compaction is new, and removes a record as soon as a newer one has its key")


@pytest.mark.parametrize(
    "write", ["upsert", {"type": "upsert"}, STATE, {**STATE, "on_tombstone": "soft_delete"}], ids=str
)
@pytest.mark.parametrize("after", [COMPACT, BOTH], ids=str)
def test_compaction_of_a_topic_that_only_tables_of_current_state_read_passes(after: dict[str, str], write: Any) -> None:
    assert lost(DELETE, after, read_by(write, STATE)) == []


def test_a_topic_that_is_no_longer_compacted_loses_nothing_by_it() -> None:
    assert lost(COMPACT, {"cleanup.policy": "delete", **kept(-1)}) == []
    assert lost(BOTH, DELETE) == []
    assert lost(COMPACT, COMPACT) == []


def test_records_that_compaction_spares_until_they_are_landed_are_not_lost() -> None:
    alarm = stack(aws_cloudwatch_metric_alarm__late=LATE)
    spared = {**COMPACT, "min.compaction.lag.ms": "3600000"}
    assert lost(DELETE, spared, alarm, DOCUMENT) == []
    [what] = lost(DELETE, {**spared, "min.compaction.lag.ms": "3599999"}, alarm, DOCUMENT)
    assert "3599 s after it was written at the earliest, and rows may come 3600 s late" in what
    [what] = lost(spared, {**spared, "min.compaction.lag.ms": "60000"}, alarm, DOCUMENT)
    assert what.startswith("compaction begins sooner")
    assert lost({**spared, "min.compaction.lag.ms": "60000"}, spared, alarm, DOCUMENT) == []


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ({}, {"retention.bytes": "1000"}, 1),
        ({"retention.bytes": "-1"}, {"retention.bytes": "1000"}, 1),
        ({"retention.bytes": "1000"}, {"retention.bytes": "999"}, 1),
        ({"retention.bytes": "1000"}, {"retention.bytes": "1001"}, 0),
        ({"retention.bytes": "1000"}, {"retention.bytes": "-1"}, 0),
        ({"retention.bytes": "1000"}, {}, 0),
        (COMPACT, {**COMPACT, "retention.bytes": "1000"}, 0),
        ({**BOTH, "retention.bytes": "-1"}, {**BOTH, "retention.bytes": "1000"}, 1),
    ],
    ids=str,
)
def test_a_limit_of_the_size_is_told_however_late_rows_may_be(
    before: dict[str, str], after: dict[str, str], count: int
) -> None:
    alarm = stack(aws_cloudwatch_metric_alarm__late=LATE)
    for more in ((), (alarm, DOCUMENT), (alarm, read_by(STATE))):
        found = lost(before, after, *more)
        assert ["whatever its age" in what for what in found] == [True] * count


@pytest.mark.parametrize(
    ("config", "write", "count"),
    [
        ({"delete.retention.ms": "3599999"}, "upsert", 1),
        ({"delete.retention.ms": "3599999"}, {"type": "changelog"}, 1),
        ({"delete.retention.ms": "3599999"}, "append", 0),
        ({"delete.retention.ms": "3599999", "min.compaction.lag.ms": "1"}, "upsert", 0),
        ({"delete.retention.ms": "3600000"}, "upsert", 0),
        ({}, "upsert", 0),
    ],
    ids=str,
)
def test_deletes_are_kept_for_as_long_as_rows_may_be_late(config: dict[str, str], write: Any, count: int) -> None:
    """An upsert table keeps the row of a key whose delete Kafka removed before it was read."""
    made, document = topic(**COMPACT, **config), read_by(write)
    document["pipelines"][0]["name"] = "orders"
    assert len(told(retention_under_lag, made, document)) == count


def test_a_cut_of_how_long_deletes_are_kept_is_told_if_nothing_says_how_late_rows_may_be() -> None:
    after = {**COMPACT, "delete.retention.ms": "1000"}
    for documents in ((), (read_by(STATE),)):
        [what] = lost(COMPACT, after, *documents)
        assert what.startswith("deletes are kept for 1 s only")
    assert lost(COMPACT, after, read_by("append")) == []
    assert lost(after, COMPACT) == []
