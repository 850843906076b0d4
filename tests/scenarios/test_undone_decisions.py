"""Rollbacks of which the table's history says too little, or that undo an operator's decision: the account still holds."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.errors import DeadLetterTableMismatch, LedgerLost, RolledBack
from frazil.ingest.setup.table_setup import make_tables
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.ledger.last_records import LastRecord, LastRecords, property_name
from frazil.recovery.decisions import Accepted
from tests.support import oracle
from tests.support.committed_table import ROW
from tests.support.ledgers import LATE_MS, Ledgers
from tests.support.variants import first_short

pytestmark = pytest.mark.spark
BOTH = pytest.mark.parametrize("event", first_short([Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD]))


def other_commit(stock: Ledgers) -> None:
    """Commit nothing, as another engine."""
    stock.iceberg.load(stock.table).newAppend().commit()


# ── No commit of the pipeline is left in the table's history ────────────────────────────────────
@pytest.mark.long
def test_a_hold_on_a_head_without_history_counts_what_the_rollback_removed(stock: Ledgers) -> None:
    """The account began again at the ledger's offsets: the rows that are there were said to be of offsets never read."""
    other_commit(stock)
    stock.land_with_dead_letters(2)
    stock.roll_back(2)
    stock.expire_unnamed(stock.table)
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, "no snapshot in the table's history says where to begin again")
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 16}
    stock.assert_proven()
    stock.goes_on()
    assert stock.letters() == [8, 9, 18, 19, 28, 29, 38, 39, 48, 49]


@pytest.mark.long
def test_a_hold_delivers_the_dead_letters_that_are_decided(stock: Ledgers) -> None:
    other_commit(stock)
    stock.die("decide.decided")
    stock.roll_back(1)
    stock.expire_unnamed(stock.table)
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 8}
    assert stock.letters() == [8, 9, 18, 19, 28, 29]
    stock.start()
    stock.assert_proven()


@pytest.mark.long
def test_a_head_that_only_looks_rolled_back_is_held_and_nothing_is_lost(stock: Ledgers) -> None:
    """Another engine committed twice and expired the first of these, so that the head's history is not known."""
    other_commit(stock)
    other_commit(stock)
    stock.expire_unnamed(stock.table)
    with pytest.raises(RolledBack):
        stock.start()
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {}
    stock.goes_on(each_once=True)


@pytest.mark.long
def test_a_hold_before_the_pipelines_first_commit_counts_all_that_is_gone(stock: Ledgers) -> None:
    """Verification said `proven` of a table that lacked all its records."""
    stock.drop()
    stock.drop(stock.dead_letters)
    make_tables(stock.job(), stock.pipeline, ROW)
    other_commit(stock)
    with pytest.raises(LedgerLost):
        stock.start()
    stock.accept(Accepted.LEDGER_LOST)
    assert stock.at == 0
    stock.land(2)
    stock.roll_back(3)
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 20}
    found = stock.verified(deep=True)
    assert (found.outcome, found.sum_of("read"), found.sum_of("gaps")) == ("proven", 20, 20)
    stock.land_with_dead_letters()
    stock.assert_proven()


@pytest.mark.long
def test_a_hold_does_not_guess_of_which_topic_the_missing_records_are(stock: Ledgers) -> None:
    other_commit(stock)
    stock.land_with_dead_letters()
    stock.recreate_topic(is_accepted=True)
    stock.land_with_dead_letters()
    last = stock.head()
    stock.roll_back(3)
    stock.expire_unnamed(stock.table)
    stock.refuses(Accepted.ROLLED_BACK_HOLD, f"not known of which topic.*Set the head to snapshot {last} again")
    stock.set_head(last)
    stock.start()
    stock.assert_proven()


@pytest.mark.long
def test_a_hold_after_expiry_counts_dead_letters_whatever_the_clocks_said(stock: Ledgers) -> None:
    stock.land_with_dead_letters()
    stock.step_clock(7200)
    stock.land_with_dead_letters()
    stock.roll_back(2)
    stock.expire_unnamed(stock.table)
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 16}
    stock.goes_on()


# ── A rollback undoes a decision that gave records up ───────────────────────────────────────────
@pytest.mark.long
@BOTH
@pytest.mark.parametrize("gave_up", [Accepted.SIDE_TABLE_REPLACED, Accepted.ROLLED_BACK_HOLD])
def test_dead_letters_that_were_given_up_stay_so_when_the_decision_is_undone(
    stock: Ledgers, gave_up: Accepted, event: Accepted
) -> None:
    """The account before the decision expects them, and no record of them is left to land again."""
    if gave_up is Accepted.SIDE_TABLE_REPLACED:
        stock.drop(stock.dead_letters)
    else:
        stock.roll_back(1, stock.dead_letters)
    given_up, left = stock.accept(gave_up).lost[0], stock.letters()
    assert given_up + len(left) == 4
    stock.start()
    stock.land_with_dead_letters()
    stock.roll_back(2)
    is_replay = event is Accepted.ROLLED_BACK_REPLAY
    assert stock.accept(event).lost == {0: given_up + 8 * (not is_replay)}
    stock.assert_proven()
    stock.goes_on()
    assert stock.letters() == [*left, 28, 29, *([] if is_replay else [38, 39])]


@pytest.mark.long
@BOTH
def test_a_dead_letter_table_that_is_rolled_back_before_a_decision_is_finished_can_be_decided(
    stock: Ledgers, event: Accepted
) -> None:
    """The error named both commands, and each ended with the same error."""
    stock.recreate_topic()
    stock.die("decide.decided", Accepted.TOPIC_RECREATED)
    stock.roll_back(1, stock.dead_letters)
    with pytest.raises(RolledBack):
        stock.start()
    is_replay = event is Accepted.ROLLED_BACK_REPLAY
    assert stock.accept(event).lost == ({} if is_replay else {0: 2})
    assert stock.letters() == ([8, 9, 18, 19] if is_replay else [8, 9])
    stock.start()
    assert stock.at == 0
    stock.land_with_dead_letters()
    stock.assert_proven()


@pytest.mark.long
@BOTH
def test_a_rollback_of_a_table_whose_dead_letter_table_is_gone_is_decided_in_two_steps(
    stock: Ledgers, event: Accepted
) -> None:
    stock.roll_back(1)
    stock.drop(stock.dead_letters)
    with pytest.raises(DeadLetterTableMismatch):
        stock.start()
    with pytest.raises(RolledBack):
        stock.accept(Accepted.SIDE_TABLE_REPLACED)
    assert stock.accept(event).lost == ({} if event is Accepted.ROLLED_BACK_REPLAY else {0: 10})
    assert stock.accept(Accepted.SIDE_TABLE_REPLACED).lost == {0: 2}
    stock.goes_on()


# ── The table is set back, and the dead-letter table has decisions since ────────────────────────
@pytest.mark.long
def test_dead_letters_that_a_decision_delivered_are_not_doubled_by_a_replay(stock: Ledgers) -> None:
    """The third batch's dead letters were still open when the dead-letter table was rolled back."""
    older = stock.metadata_file()
    stock.die("decide.decided")
    stock.roll_back(1, stock.dead_letters)
    stock.accept(Accepted.ROLLED_BACK_HOLD)
    assert stock.letters() == [8, 9, 28, 29]
    stock.restore(older)
    assert stock.accept(Accepted.ROLLED_BACK_REPLAY).lost == {0: 2}
    assert stock.letters() == [8, 9]
    stock.goes_on()
    assert stock.letters() == [8, 9, 28, 29]


@pytest.mark.long
def test_dead_letters_that_a_decision_delivered_stay_if_their_batch_does(stock: Ledgers) -> None:
    stock.die("decide.decided")
    older = stock.metadata_file()
    stock.roll_back(1, stock.dead_letters)
    stock.accept(Accepted.ROLLED_BACK_HOLD)
    stock.restore(older)
    assert stock.accept(Accepted.ROLLED_BACK_REPLAY).lost == {0: 2}
    assert stock.letters() == [8, 9, 28, 29]
    stock.goes_on()


@pytest.mark.long
def test_dead_letters_that_an_undone_replay_removed_are_counted(stock: Ledgers) -> None:
    older = stock.metadata_file()
    stock.roll_back(1)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.restore(older)
    assert stock.accept(Accepted.ROLLED_BACK_REPLAY).lost == {0: 2}
    stock.goes_on()


@pytest.mark.long
def test_an_expired_parent_whose_id_was_erased_is_no_beginning(stock: Ledgers) -> None:
    """PyIceberg erases it. The dead letters of the expired commits stayed, and their records landed again."""
    older = stock.metadata_file()
    stock.land_with_dead_letters(3)
    table = oracle.table(stock.environment, stock.dead_letters)
    head = table.current_snapshot()
    assert head is not None
    gone = [s.snapshot_id for s in table.metadata.snapshots if s.snapshot_id != head.snapshot_id]
    table.maintenance.expire_snapshots().by_ids(gone).commit()
    stock.restore(older)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    assert stock.letters() == [8, 9, 18, 19]
    for _ in range(3):
        stock.start()
        stock.land_with_dead_letters()
    stock.assert_each_once()


@pytest.mark.long
def test_what_lands_while_a_decision_is_finished_late_is_not_removed(stock: Ledgers) -> None:
    """The next run finishes the operator's decision and lands the records again, before the operator's command removes any."""
    stock.land_with_dead_letters()
    stock.roll_back(1)
    stock.accept(Accepted.ROLLED_BACK_HOLD)
    stock.land_with_dead_letters()
    stock.roll_back(3)  # the batch, the hold, and the second batch
    steps = iter([True])

    def land_meanwhile(step: str) -> None:
        if step == "finish.started" and next(steps, False):
            stock.start()
            stock.land_with_dead_letters()

    stock.accept(Accepted.ROLLED_BACK_REPLAY, failpoint=land_meanwhile)
    assert stock.letters() == [8, 9, 18, 19]
    stock.start()
    assert stock.at == 20
    stock.assert_each_once()


@pytest.mark.long
# ── Kafka does not have the undone records any more ─────────────────────────────────────────────
def test_a_replay_removes_no_dead_letter_of_a_topic_that_is_gone(stock: Ledgers) -> None:
    """Nothing in the tables shows that the topic was re-created."""
    stock.roll_back(1)
    stock.recreate_topic()
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, r"the topic was re-created .* cannot be landed again.*rolled-back-hold")
    assert stock.letters() == [8, 9, 18, 19]
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 8}
    stock.accept(Accepted.TOPIC_RECREATED)
    stock.goes_on()
    assert stock.letters() == [8, 8, 9, 9, 18, 19]


@pytest.mark.long
def test_a_replay_removes_no_dead_letter_whose_record_retention_took(stock: Ledgers) -> None:
    topic = stock.pipeline.topic.name
    stock.roll_back(1)
    stock.kafka.trim(topic, 0, before=19)
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, "Kafka does not have the records of 1 dead letters any more")
    assert stock.letters() == [8, 9, 18, 19]
    stock.kafka.trim(topic, 0, before=18)
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, "retention took the records of partition 0 from offset 10 up to 18")
    stock.kafka.trim(topic, 0, before=10)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    assert stock.letters() == [8, 9]
    stock.goes_on(each_once=True)


@pytest.mark.parametrize("case", first_short(["retention", "truncated", "grown again"]))
def test_a_replay_is_refused_if_kafka_lacks_rows_that_it_would_land_again(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, case: str
) -> None:
    """The decision was accepted if no dead letter was among them, and the next run asked for the next decision."""
    stock = Ledgers(spark, iceberg, lake_environment, name)
    stock.remembers_last = True
    stock.land(3)
    before = stock.head()
    stock.roll_back(1)
    if case == "retention":
        stock.kafka.trim(stock.pipeline.topic.name, 0, before=21)
    else:
        stock.replace_log(kept=22, grown=22 if case == "truncated" else 35)
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, f"cannot be landed again.*Set the head to snapshot {before} again")
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 10}
    stock.assert_proven()


@BOTH
def test_commits_that_were_landed_again_do_not_come_back(stock: Ledgers, event: Accepted) -> None:
    """The replay removed their dead letters. A second one gave up those of later commits, and what it began with lacked two."""
    left = stock.head()
    stock.roll_back(1)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.start()
    stock.land(2)
    last = stock.head()
    stock.set_head(left)
    with pytest.raises(RolledBack):
        stock.start()
    stock.refuses(event, f"undone and landed again.*Set the head to snapshot {last} again")
    assert stock.letters() == [8, 9]
    stock.set_head(last)
    stock.goes_on(each_once=True)


@pytest.mark.long
@BOTH
def test_nor_do_they_if_the_replay_was_undone_itself(stock: Ledgers, event: Accepted) -> None:
    """A hold came between. A replay would have removed the dead letters of the commits that landed the records again."""
    left, first = stock.head(), stock.iceberg.load(stock.table).currentSnapshot().parentId()
    stock.roll_back(1)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.start()
    stock.land_with_dead_letters(rows=20, dead=4)
    assert stock.letters() == [8, 9, 26, 27, 28, 29]
    stock.set_head(first)
    stock.accept(Accepted.ROLLED_BACK_HOLD)
    stock.set_head(left)
    stock.refuses(event, "undone and landed again")
    assert stock.letters() == [8, 9, 26, 27, 28, 29]


@pytest.mark.long
def test_commits_behind_a_replay_are_landed_again_after_it_was_undone(stock: Ledgers) -> None:
    """They are later than the replay, which is in no history of the head."""
    first = stock.iceberg.load(stock.table).currentSnapshot().parentId()
    stock.roll_back(1)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.start()
    stock.land_with_dead_letters()
    stock.set_head(first)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.start()
    stock.land_with_dead_letters(2)
    stock.roll_back(1)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.goes_on(each_once=True)


@pytest.mark.long
def test_a_lost_dead_letter_does_not_let_a_replay_pass_over_what_retention_took(stock: Ledgers) -> None:
    stock.spark.sql(f"DELETE FROM lake.{stock.dead_letters} WHERE offset = 19")
    stock.roll_back(1)
    stock.kafka.trim(stock.pipeline.topic.name, 0, before=15)
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, "retention took the records of partition 0 from offset 10 up to 15")
    assert stock.letters() == [8, 9, 18]


@pytest.mark.long
def test_what_retention_took_before_it_landed_does_not_hinder_a_replay(stock: Ledgers) -> None:
    """The decision on it is undone, too, and asked for again."""
    stock.log.extend([LATE_MS] * 10)
    stock.kafka.trim(stock.pipeline.topic.name, 0, before=25)
    stock.accept(Accepted.OFFSETS_LOST)
    stock.start()
    stock.land(1, rows=5)
    stock.roll_back(2)
    assert stock.accept(Accepted.ROLLED_BACK_REPLAY).after.at == {0: 20}
    assert stock.accept(Accepted.OFFSETS_LOST).lost == {0: 5}
    stock.start()
    stock.land(1, rows=5)
    stock.assert_proven()


@pytest.mark.long
def test_an_open_transaction_is_no_end_of_a_truncated_log(stock: Ledgers) -> None:
    """Its marker was cut off. What it holds has landed, and landed again when its producer ended it."""
    partition = stock.kafka.topics[stock.pipeline.topic.name].partitions[0]
    del stock.log[15:]
    partition.open_from = 12
    assert stock.accept(Accepted.LOG_TRUNCATED).after.at == {0: 15}
    stock.assert_proven()


@pytest.mark.long
@BOTH
def test_dead_letters_that_do_not_say_their_batch_are_counted(stock: Ledgers, event: Accepted) -> None:
    """A column was dropped, and added again without values. A replay removed none of them and landed their records again."""
    stock.roll_back(1)
    stock.spark.sql(f"ALTER TABLE lake.{stock.dead_letters} DROP COLUMN run")
    make_tables(stock.job(), stock.pipeline, ROW)
    if event is Accepted.ROLLED_BACK_HOLD:
        assert stock.accept(event).lost == {0: 8}
        stock.goes_on()
    else:
        stock.refuses(event, "more rows and dead letters than the ledger accounts for")
    assert stock.letters()[:4] == [8, 9, 18, 19]


@pytest.mark.long
def test_commits_that_were_held_and_come_back_are_replayed(stock: Ledgers) -> None:
    """A hold keeps the dead letters of what it gave up."""
    left = stock.head()
    stock.roll_back(1)
    stock.accept(Accepted.ROLLED_BACK_HOLD)
    stock.start()
    stock.land_with_dead_letters()
    stock.set_head(left)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    assert stock.letters() == [8, 9, 18, 19]
    stock.goes_on(each_once=True)


# ── The ledger is lost ──────────────────────────────────────────────────────────────────────────
def lose_ledger(stock: Ledgers, without: str = "false") -> None:
    """Copy the table, as a tool does that keeps no snapshots; rows that `without` is true of are not copied."""
    rows = stock.spark.table(f"lake.{stock.table}").where(f"NOT ({without})")
    kept, schema = rows.collect(), rows.schema
    stock.drop()
    stock.spark.createDataFrame(kept, schema).writeTo(f"lake.{stock.table}").using("iceberg").create()


@pytest.mark.long
@pytest.mark.parametrize("case", first_short(["re-created", "shorter", "grown again", "dead letter of another log"]))
def test_a_lost_ledger_is_not_taken_from_rows_of_another_log(stock: Ledgers, case: str) -> None:
    """Records that were never read were taken for landed, and verification proved it."""
    lose_ledger(stock, "_kafka_offset > 15" if case == "dead letter of another log" else "false")
    if case == "re-created":
        stock.recreate_topic()
        stock.log.extend([1] * 30)
    else:
        kept = 16 if case == "dead letter of another log" else 4
        stock.replace_log(kept=kept, grown=15 if case == "shorter" else 40)
    stock.refuses(Accepted.LEDGER_LOST, "do not say which of the topic's records were landed.*another table")


@pytest.mark.long
def test_the_topic_of_a_lost_ledger_is_known_from_the_table(stock: Ledgers) -> None:
    """The new topic has the same records so far: only its id says that it is another one."""
    text = str(LastRecords("T0", {0: LastRecord(19, "of it")}))
    lose_ledger(stock)
    stock.iceberg.load(stock.table).updateProperties().set(property_name(stock.pipeline.name), text).commit()
    stock.refuses(Accepted.LEDGER_LOST, "re-created since the table's rows were landed")


@pytest.mark.long
def test_what_a_table_lacks_between_its_rows_is_given_up_with_a_lost_ledger(stock: Ledgers) -> None:
    """Verification said `missing` for ever: the ledger began without what the lost one had explained."""
    lose_ledger(stock, "_kafka_offset IN (3, 11, 12)")
    assert stock.accept(Accepted.LEDGER_LOST).lost == {0: 3}
    stock.assert_proven()
    stock.goes_on()
    assert stock.at == 30


@pytest.mark.long
def test_a_lost_ledger_is_taken_from_rows_whose_records_retention_took(stock: Ledgers) -> None:
    lose_ledger(stock)
    stock.kafka.trim(stock.pipeline.topic.name, 0, before=20)
    assert stock.accept(Accepted.LEDGER_LOST).after.at == {0: 20}
    stock.assert_proven()


@pytest.mark.long
def test_nor_does_a_replay_of_a_table_that_was_set_back(stock: Ledgers) -> None:
    older = stock.metadata_file()
    stock.land_with_dead_letters()
    newest = stock.metadata_file()
    stock.restore(older)
    stock.kafka.trim(stock.pipeline.topic.name, 0, before=30)
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, "the records of 2 dead letters any more.*side-table-replaced")
    stock.restore(newest)
    stock.goes_on(each_once=True)
