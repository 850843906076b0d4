"""Each refusal names a command; the command decides, the pipeline goes on, and verification proves what was decided."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from frazil.audit.verification import Verification
from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.decode.writers.registered_writers import RegisteredWriters
from frazil.errors import (
    DeadLetterTableMismatch,
    FrazilError,
    LedgerLost,
    LogTruncated,
    OffsetsLost,
    RolledBack,
    TopicRecreated,
)
from frazil.lake.read.stored_tables import Lake
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Acceptance, Accepted
from tests.support.jobs import Crash, crash_at
from tests.support.shop import ORDER, Shop, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]
BAD = [b"bad!!!", b"\x00\x00"]


def accepted(shop: Shop, event: Accepted, **overrides: Any) -> Acceptance:
    return accept(shop.pipeline, event, "as the test says", shop.job(**overrides))


def verified(shop: Shop) -> Verification:
    return verify(shop.pipeline, Lake(shop.lake, Secrets({}).read), deep=True)


def delete_records(shop: Shop, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": shop.world.bootstrap})
    for deleted in admin.delete_records([TopicPartition(shop.topic, 0, before)]).values():
        deleted.result()


@pytest.fixture
def one(shop_of: ShopOf) -> Shop:
    """A shop whose topic has one partition, three batches landed, each with dead letters."""
    shop = shop_of(partitions=1)
    schema_id = shop.register()
    for batch in range(3):
        shop.produce([*shop.orders(4, schema_id, first=4 * batch), *BAD])
        shop.drain()
    return shop


def roll_back(shop: Shop, snapshots: int) -> None:
    """Move the table's head back by so many snapshots, and leave the tag where it is."""
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    snapshot = table.currentSnapshot()
    for _ in itertools.repeat(None, snapshots):
        snapshot = table.snapshot(snapshot.parentId())
    table.manageSnapshots().rollbackTo(snapshot.snapshotId()).commit()


@pytest.mark.long
def test_a_topic_created_again_is_landed_from_its_beginning(one: Shop) -> None:
    old = dict(one.journal)
    one.delete()
    one.create(1)
    one.journal.clear()
    one.produce([*one.orders(5, one.register()), *BAD])
    with pytest.raises(TopicRecreated, match="frazil accept .* topic-recreated --reason"):
        one.drain()
    assert accepted(one, Accepted.TOPIC_RECREATED).after.at == {0: 0}
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
    assert accepted(one, Accepted.LOG_TRUNCATED, kafka=patched).after.at == {0: 3}
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
    delete_records(one, 18 + 3)
    with pytest.raises(OffsetsLost, match="frazil accept .* offsets-lost --reason"):
        one.drain()
    decided = accepted(one, Accepted.OFFSETS_LOST)
    assert (decided.after.at, decided.lost) == ({0: 21}, {0: 3})
    assert one.drain().written == 2
    one.assert_proven(deep=True)
    (account,) = verified(one).partitions
    assert (account.read, account.landed, account.dead_lettered, account.gaps) == (23, 14, 6, 3)


@pytest.mark.long
def test_a_rollback_to_replay_lands_the_records_again_once(one: Shop) -> None:
    roll_back(one, 2)
    with pytest.raises(RolledBack, match="rolled-back-replay --reason"):
        one.drain()
    assert accepted(one, Accepted.ROLLED_BACK_REPLAY).after.at == {0: 6}
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
    roll_back(shop, 1)
    unfit[:] = [second]
    accepted(shop, Accepted.ROLLED_BACK_REPLAY)
    assert dict(shop.drain().rejected) == {"incompatible_schema": 4}
    shop.assert_each_record_once()
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_a_rollback_to_hold_goes_on_and_tells_what_is_gone(one: Shop) -> None:
    roll_back(one, 1)
    with pytest.raises(RolledBack, match="rolled-back-hold --reason"):
        one.drain()
    decided = accepted(one, Accepted.ROLLED_BACK_HOLD)
    assert (decided.after.at, decided.lost) == ({0: 18}, {0: 4})
    one.produce(one.orders(1, one.register(), first=90))
    assert one.drain().written == 1
    assert len(one.landed()) == 9
    one.assert_proven(deep=True)


@pytest.mark.long
def test_a_rollback_to_hold_gives_up_the_rows_of_a_partition_that_was_added_after_the_head(one: Shop) -> None:
    one.add_partitions(2)
    one.produce([*one.orders(3, one.register(), first=30), *BAD], partition=1)
    one.drain()
    roll_back(one, 1)
    decided = accepted(one, Accepted.ROLLED_BACK_HOLD)
    assert (decided.after.at, decided.lost) == ({0: 18, 1: 5}, {1: 3})
    one.assert_proven(deep=True)
    assert [(a.read, a.landed, a.dead_lettered, a.gaps) for a in verified(one).partitions][1] == (5, 0, 2, 3)


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
    assert accepted(one, Accepted.LEDGER_LOST).after.at == {0: 18}
    assert one.drain().read == 0
    one.assert_each_record_once()
    one.assert_proven(deep=True)


@pytest.mark.long
def test_undelivered_dead_letters_of_a_replaced_table_are_let_go_by_word_only(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    schema_id = shop.register()
    shop.produce([*shop.orders(4, schema_id), *BAD])
    with pytest.raises(Crash):
        shop.drain(failpoint=crash_at("decide.decided"))
    shop.job().iceberg.drop(shop.pipeline.table.dead_letters, purge=False)
    with pytest.raises(DeadLetterTableMismatch, match="2 of its rows.*side-table-replaced --reason"):
        shop.drain()
    assert accepted(shop, Accepted.SIDE_TABLE_REPLACED).lost == {0: 2}
    shop.produce([*shop.orders(1, schema_id, first=9), *BAD])
    shop.drain()
    assert (len(shop.landed()), len(shop.dead())) == (5, 2)
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_what_has_not_happened_cannot_be_accepted(one: Shop) -> None:
    before = one.job().iceberg.load(one.pipeline.table.identifier).currentSnapshot().snapshotId()
    for event in (event for event in Accepted if event is not Accepted.REJECTED_SHARE):
        with pytest.raises(FrazilError, match="nothing to accept|not lost"):
            accepted(one, event)
        after = one.job().iceberg.load(one.pipeline.table.identifier).currentSnapshot().snapshotId()
        assert after == before, event


@pytest.mark.long
def test_the_reason_is_in_the_ledger_and_verification_tells_it(one: Shop) -> None:
    roll_back(one, 1)
    accepted(one, Accepted.ROLLED_BACK_HOLD)
    assert any("as the test says" in note for note in verified(one).notes)
