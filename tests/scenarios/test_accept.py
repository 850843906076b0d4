"""Each refusal names a command; the command decides, the pipeline goes on, and verification proves what was decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.decode.writers.registered_writers import RegisteredWriters
from frazil.errors import FrazilError, LedgerLost, LogTruncated, OffsetsLost, RolledBack, TopicRecreated
from frazil.recovery.decisions import Accepted
from tests.support.shop import ORDER, Shop, ShopOf, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
BAD = [b"bad!!!", b"\x00\x00"]


@pytest.fixture
def one(shop_of: ShopOf) -> Shop:
    """A shop whose topic has one partition, three batches landed, each with dead letters."""
    shop = shop_of(partitions=1)
    schema_id = shop.register()
    for batch in range(3):
        shop.produce([*shop.orders(4, schema_id, first=4 * batch), *BAD])
        shop.drain()
    return shop


@pytest.mark.long
def test_a_topic_created_again_is_landed_from_its_beginning(one: Shop) -> None:
    old = dict(one.journal)
    one.new_topic()
    one.produce([*one.orders(5, one.register()), *BAD])
    with pytest.raises(TopicRecreated, match="frazil accept .* topic-recreated --reason"):
        one.drain()
    assert one.accept(Accepted.TOPIC_RECREATED).after.at == {0: 0}
    total = one.drain()
    assert (total.written, sum(total.rejected.values())) == (5, 2)
    assert len(one.landed()) + len(one.dead()) == len(old) + 7
    one.assert_proven(deep=True)


@pytest.mark.long
def test_a_truncated_topic_goes_on_from_its_end_and_later_dead_letters_are_kept(one: Shop) -> None:
    kafka = one.job().kafka
    real = kafka.topic(one.topic).topic_id
    one.delete()
    one.create(1)
    one.produce(one.orders(3, one.register()))
    # An unclean election cuts a log and keeps the topic's id: here, a new topic under the old id.
    patched = Renamed(one.job().kafka, real)
    with pytest.raises(LogTruncated, match="frazil accept .* log-truncated --reason"):
        one.drain(kafka=patched)
    assert one.accept(Accepted.LOG_TRUNCATED, kafka=patched).after.at == {0: 3}
    one.produce([*one.orders(2, one.register(), first=50), *BAD])
    total = one.drain(kafka=patched)
    assert (total.written, sum(total.rejected.values())) == (2, 2)
    assert (len(one.landed()), len(one.dead())) == (12 + 2, 6 + 2)
    one.assert_proven(deep=True)


class Renamed:
    """A cluster that tells another id for every topic."""

    def __init__(self, kafka: Any, topic_id: str) -> None:
        self._kafka, self._topic_id = kafka, topic_id

    def topic(self, name: str) -> Any:
        return replace(self._kafka.topic(name), topic_id=self._topic_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)


def test_lost_offsets_are_recorded_and_never_taken_for_read(one: Shop) -> None:
    one.produce(one.orders(5, one.register(), first=20))
    one.delete_records(18 + 3)
    with pytest.raises(OffsetsLost, match="frazil accept .* offsets-lost --reason"):
        one.drain()
    decided = one.accept(Accepted.OFFSETS_LOST)
    assert (decided.after.at, decided.lost) == ({0: 21}, {0: 3})
    assert one.drain().written == 2
    one.assert_proven(deep=True)
    (account,) = one.verified(deep=True).partitions
    assert (account.read, account.landed, account.dead_lettered, account.gaps) == (23, 14, 6, 3)


@pytest.mark.long
def test_a_rollback_to_replay_lands_the_records_again_once(one: Shop) -> None:
    one.roll_back(2)
    with pytest.raises(RolledBack, match="rolled-back-replay --reason"):
        one.drain()
    assert one.accept(Accepted.ROLLED_BACK_REPLAY).after.at == {0: 6}
    assert one.drain().read == 12
    one.assert_each_record_once()
    one.assert_proven(deep=True)


@pytest.mark.long
def test_a_replayed_record_with_another_verdict_is_in_one_place_only(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shop_of(partitions=1)
    first = shop.register()
    second = shop.register({**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]})
    decoder = RegisteredWriters.decoder
    unfit: list[int] = []

    def judging(self: RegisteredWriters, target: Any, _: Any, **more: Any) -> Any:
        return decoder(self, target, dict.fromkeys(unfit, "as the test says"), **more)

    monkeypatch.setattr(RegisteredWriters, "decoder", judging)
    shop.drain()
    shop.produce([*shop.orders(3, first), *(frame(second, v[5:] + b"\x00") for v in shop.orders(4, second))])
    unfit[:] = [first]
    assert dict(shop.drain().rejected) == {"incompatible_schema": 3}
    shop.roll_back(1)
    unfit[:] = [second]
    shop.accept(Accepted.ROLLED_BACK_REPLAY)
    assert dict(shop.drain().rejected) == {"incompatible_schema": 4}
    shop.assert_each_record_once()
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_a_rollback_to_hold_gives_up_the_rows_of_a_partition_that_was_added_after_the_head(one: Shop) -> None:
    one.add_partitions(2)
    one.produce([*one.orders(3, one.register(), first=30), *BAD], partition=1)
    one.drain()
    one.roll_back(1)
    with pytest.raises(RolledBack, match="rolled-back-hold --reason"):
        one.drain()
    decided = one.accept(Accepted.ROLLED_BACK_HOLD)
    assert (decided.after.at, decided.lost) == ({0: 18, 1: 5}, {1: 3})
    one.assert_proven(deep=True)
    found = one.verified(deep=True)
    assert [(a.read, a.landed, a.dead_lettered, a.gaps) for a in found.partitions][1] == (5, 0, 2, 3)
    assert any("as the test says" in note for note in found.notes)


@pytest.mark.long
def test_a_lost_ledger_is_taken_from_the_rows(one: Shop) -> None:
    iceberg = one.job().iceberg
    identifier = one.pipeline.table.identifier
    rows = one.spark.table(f"{iceberg.name}.{identifier}").collect()
    schema = one.spark.table(f"{iceberg.name}.{identifier}").schema
    iceberg.drop(identifier, purge=False)
    one.spark.createDataFrame(rows, schema).writeTo(f"{iceberg.name}.{identifier}").using("iceberg").create()
    with pytest.raises(LedgerLost, match="frazil accept .* ledger-lost --reason"):
        one.drain()
    assert one.accept(Accepted.LEDGER_LOST).after.at == {0: 18}
    assert one.drain().read == 0
    one.assert_each_record_once()
    one.assert_proven(deep=True)


@pytest.mark.long
def test_what_has_not_happened_cannot_be_accepted(one: Shop) -> None:
    before = one.table.currentSnapshot().snapshotId()
    for event in (event for event in Accepted if event is not Accepted.REJECTED_SHARE):
        with pytest.raises(FrazilError, match="nothing to accept|not lost"):
            one.accept(event)
        after = one.table.currentSnapshot().snapshotId()
        assert after == before, event
