"""The dead-letter table belongs to its table: dropped, restored, rolled back or untagged, nothing is lost or doubled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.audit.verify import verify
from frazil.errors import DeadLetterTableMismatch, DecisionRequired, InvalidInput, RolledBack
from frazil.ingest.setup.table_setup import initialise_ledger, make_tables
from frazil.lake import metadata_expiry
from frazil.lake.commit.fence import StageAgain
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.recovery.decisions import Acceptance, Accepted
from tests.support.busy_lake import BusyLake
from tests.support.committed_table import ROW
from tests.support.jobs import Crash, crash_at, job, no_wait
from tests.support.ledgers import Ledgers, side_entry
from tests.support.variants import first_short

pytestmark = pytest.mark.spark
RUN = "frazil accept .* {} --reason"


def test_a_table_that_is_dropped_and_landed_again_has_each_record_once(stock: Ledgers) -> None:
    stock.drop()
    stock.start()
    assert stock.letters() == []
    stock.land_with_dead_letters(2)
    stock.assert_each_once()


@pytest.mark.parametrize("step", first_short(["decide.decided", "finish.started", "publish.filled"]))
def test_a_crash_while_a_new_table_takes_its_dead_letter_table_over_is_finished(stock: Ledgers, step: str) -> None:
    stock.drop()
    with pytest.raises(Crash):
        stock.start(failpoint=crash_at(step))
    stock.goes_on(2, each_once=True)


@pytest.mark.long
def test_dead_letters_that_cannot_be_landed_again_are_not_removed(stock: Ledgers) -> None:
    stock.drop()
    stock.recreate_topic()
    with pytest.raises(DeadLetterTableMismatch, match="Rename the dead-letter table"):
        stock.start()
    assert stock.letters() == [8, 9, 18, 19]
    stock.drop(stock.dead_letters)
    stock.goes_on(each_once=True)


@pytest.mark.long
def test_a_table_set_back_to_an_older_metadata_file_replays(stock: Ledgers) -> None:
    older = stock.metadata_file()
    stock.land_with_dead_letters()
    stock.restore(older)
    with pytest.raises(RolledBack, match=RUN.format("rolled-back-replay")):
        stock.start()
    stock.at = 20
    with pytest.raises(RolledBack, match="set back to an earlier state"):
        stock.land_with_dead_letters()
    assert stock.accept(Accepted.ROLLED_BACK_REPLAY).after.at == {0: 20}
    stock.land_with_dead_letters()
    stock.assert_each_once()


@pytest.mark.long
@pytest.mark.parametrize("way_out", first_short(["restored", "given up"]))
def test_a_dead_letter_table_that_lost_a_column_while_its_rows_were_decided_waits_for_the_operator(
    stock: Ledgers, way_out: str
) -> None:
    """As at the start: the same error, and the same two ways out."""
    older = stock.metadata_file(stock.dead_letters)

    def lose(step: str) -> None:
        if step == "decide.decided":
            stock.iceberg.load(stock.dead_letters).updateSchema().deleteColumn("message").commit()

    with pytest.raises(DeadLetterTableMismatch, match=RUN.format("side-table-replaced")):
        stock.land_with_dead_letters(failpoint=lose)
    with pytest.raises(DeadLetterTableMismatch, match="lost a column"):
        stock.start()
    if way_out == "restored":
        stock.restore(older, stock.dead_letters)
    else:
        assert stock.accept(Accepted.SIDE_TABLE_REPLACED).lost == {0: 2}
    stock.start()
    assert stock.letters() == [8, 9, 18, 19] + [28, 29] * (way_out == "restored")
    stock.land_with_dead_letters()
    assert "message" in stock.spark.table(f"lake.{stock.dead_letters}").columns
    stock.assert_proven()


@pytest.mark.long
def test_a_table_set_back_behind_a_decision_that_left_its_offsets_is_not_proven(stock: Ledgers) -> None:
    stock.roll_back(1, stock.dead_letters)
    older = stock.metadata_file()
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.restore(older)
    with pytest.raises(RolledBack, match="set back to an earlier state"):
        stock.start()
    assert {f.flaw for f in stock.verified().findings} == {"side_ahead"}
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.goes_on(each_once=True)


@pytest.mark.long
@pytest.mark.parametrize("way", [Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD])
def test_a_rollback_deeper_than_one_that_was_held_keeps_the_account(stock: Ledgers, way: Accepted) -> None:
    """The dead letters that the hold kept are of commits that are in no history of the table any more."""
    stock.land_with_dead_letters(2)
    stock.roll_back(2)
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 16}
    stock.goes_on()
    stock.roll_back(3)  # the batch, the hold, and the second batch
    decided = stock.accept(way)
    assert decided.lost == ({} if way is Accepted.ROLLED_BACK_REPLAY else {0: 32})
    stock.goes_on(5)
    if way is Accepted.ROLLED_BACK_REPLAY:
        stock.assert_each_once()


def roll_back_behind_a_hold_after_the_topic_was_recreated(stock: Ledgers) -> None:
    """The dead-letter table has offsets 8, 9, 18 and 19 of the first topic; the second one's head is at offset 10, behind a hold."""
    stock.recreate_topic(is_accepted=True)
    stock.land_with_dead_letters(3)
    stock.roll_back(1)
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 8}
    stock.land_with_dead_letters()
    stock.assert_proven()
    stock.roll_back(3)  # the batch, the hold, and the second batch


@pytest.mark.long
def test_a_replay_over_a_hold_does_not_remove_the_dead_letters_of_an_earlier_topic(stock: Ledgers) -> None:
    """Their records are in no topic any more, and have the offsets of the commits that are undone."""
    roll_back_behind_a_hold_after_the_topic_was_recreated(stock)
    assert stock.letters() == [8, 8, 9, 9, 18, 18, 19, 19, 28, 29, 38, 39]
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, r"records would be missing, by partition: {0: 2}.*rolled-back-hold")
    with pytest.raises(RolledBack):
        stock.start()


@pytest.mark.long
def test_a_second_hold_does_not_count_the_dead_letters_of_an_earlier_topic(stock: Ledgers) -> None:
    """Of the 30 offsets that are given up, six have a dead letter; two more are of the first topic."""
    roll_back_behind_a_hold_after_the_topic_was_recreated(stock)
    letters = stock.letters()
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 24}
    stock.start()
    assert (stock.at, stock.letters()) == (40, letters)
    stock.assert_proven()
    stock.land_with_dead_letters()
    stock.assert_proven()


@pytest.mark.long
def test_a_hold_after_commits_were_expired_does_not_count_the_dead_letters_of_an_earlier_topic(stock: Ledgers) -> None:
    """The dead letters of the undone commits are found by their offsets, and the first topic's 18 and 19 have these, too."""
    stock.recreate_topic(is_accepted=True)
    stock.land_with_dead_letters(3)
    stock.roll_back(2)
    stock.expire_unnamed(stock.table)
    letters = stock.letters()
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 16}
    stock.land_with_dead_letters()
    assert stock.letters() == [*letters, 38, 39]
    stock.assert_proven()


@pytest.mark.long
@pytest.mark.parametrize("event", [Accepted.ROLLED_BACK_HOLD, Accepted.ROLLED_BACK_REPLAY])
@pytest.mark.parametrize("case", ["plain", "behind a hold", "expired", "at the first topic's end"])
def test_a_rollback_to_before_the_topic_was_recreated_can_be_taken_back_only(
    stock: Ledgers, event: Accepted, case: str
) -> None:
    """A hold subtracted offsets of two topics; a replay removes dead letters whose records are in no topic any more."""
    stock.recreate_topic(is_accepted=True)
    stock.land_with_dead_letters()
    if case == "behind a hold":
        stock.roll_back(1)
        assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 8}
        stock.land_with_dead_letters()
    last = stock.head()
    stock.roll_back(2 if case == "at the first topic's end" else 3 + (case == "behind a hold"))
    if case == "expired":
        stock.expire_unnamed(stock.table)
    refused = stock.refuses(event, "offsets of two logs")
    assert f"Set the head to snapshot {last} again" in refused.do
    with pytest.raises(RolledBack):
        stock.start()
    stock.set_head(last)
    stock.start()
    stock.assert_proven()
    stock.land_with_dead_letters()
    stock.assert_proven()


@pytest.mark.long
@pytest.mark.parametrize("event", [Accepted.ROLLED_BACK_HOLD, Accepted.ROLLED_BACK_REPLAY])
def test_the_refusal_names_the_snapshot_since_which_a_rollback_can_be_decided(stock: Ledgers, event: Accepted) -> None:
    stock.recreate_topic(is_accepted=True)
    recreated = stock.head()
    stock.land_with_dead_letters(2)
    stock.roll_back(4)
    refused = stock.refuses(event, "offsets of two logs")
    assert f"or to snapshot {recreated} and accept again" in refused.do
    stock.set_head(recreated)
    is_hold = event is Accepted.ROLLED_BACK_HOLD
    assert stock.accept(event).lost == ({0: 16} if is_hold else {})
    stock.start()
    assert stock.letters() == ([8, 8, 9, 9, 18, 18, 19, 19] if is_hold else [8, 9, 18, 19])
    stock.land_with_dead_letters(2)
    stock.assert_proven()


@pytest.mark.long
@pytest.mark.parametrize("event", [Accepted.ROLLED_BACK_HOLD, Accepted.ROLLED_BACK_REPLAY])
def test_a_rollback_to_before_the_log_was_truncated_can_be_taken_back_only(stock: Ledgers, event: Accepted) -> None:
    """The topic still has its id, and the table's offset is not above the ledger's: only the account shows two logs."""
    stock.kafka.topics[stock.pipeline.topic.name].partitions[0].timestamps[:] = [1] * 10
    assert stock.accept(Accepted.LOG_TRUNCATED).after.at == {0: 10}
    stock.land_with_dead_letters()
    last = stock.head()
    assert stock.at == 20
    stock.roll_back(2)
    stock.refuses(event, "offsets of two logs")
    stock.set_head(last)
    stock.start()
    stock.assert_proven()


@pytest.mark.parametrize(("topic_id", "lost"), [("T1", -4), ("T1", 0), ("T2", 4)], ids=["negative", "none", "foreign"])
def test_no_decision_records_a_gap_that_is_no_number_of_records_of_one_topic(topic_id: str, lost: int) -> None:
    before, after = Offsets("t", "T1", {0: 10}), Offsets("t", topic_id, {0: 10})
    with pytest.raises(InvalidInput, match=rf"wrong number of abandoned records, by partition: {{0: {lost}}}"):
        Acceptance(Accepted.ROLLED_BACK_HOLD, before, after, {0: lost})


@pytest.mark.long
@pytest.mark.parametrize("way_out", ["restored", "given up"])
def test_a_table_set_back_to_before_the_topic_was_recreated_is_not_replayed(stock: Ledgers, way_out: str) -> None:
    """A replay removed the first topic's dead letters 18 and 19, whose records are in no topic any more."""
    older = stock.metadata_file()
    stock.land_with_dead_letters()
    stock.recreate_topic(is_accepted=True)
    stock.land_with_dead_letters(2)
    newest = stock.metadata_file()
    stock.restore(older)
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, "dead letters since are of two logs")
    if way_out == "restored":
        stock.restore(newest)
        stock.start()
        stock.land_with_dead_letters()
    else:
        stock.drop(stock.dead_letters)
        stock.accept(Accepted.SIDE_TABLE_REPLACED)
        stock.accept(Accepted.TOPIC_RECREATED)
        stock.start()
    stock.assert_proven()


@pytest.mark.long
@pytest.mark.parametrize("forget", [False, True], ids=["kept metadata", "no older metadata"])
def test_a_replay_after_dead_letter_commits_were_expired_doubles_none(stock: Ledgers, *, forget: bool) -> None:
    """The table is set back by three batches, of which two commits to the dead-letter table are expired."""
    older = stock.metadata_file()
    stock.land_with_dead_letters(3)
    stock.expire_unnamed(stock.dead_letters, forget=forget)
    stock.restore(older)
    with pytest.raises(RolledBack, match="set back to an earlier state"):
        stock.start()
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.start()
    assert stock.letters() == [8, 9, 18, 19]
    stock.land_with_dead_letters(3)
    stock.assert_each_once()


@pytest.mark.long
def test_a_replay_after_expiry_whose_dead_letters_do_not_add_up_is_refused(stock: Ledgers) -> None:
    older = stock.metadata_file()
    stock.land_with_dead_letters()
    stock.spark.sql(f"DELETE FROM lake.{stock.dead_letters} WHERE offset = 8")
    stock.expire_unnamed(stock.dead_letters, forget=False)
    stock.restore(older)
    stock.refuses(Accepted.ROLLED_BACK_REPLAY, "lacks records, by partition: {0: 1}")
    assert stock.letters() == [9, 18, 19, 28, 29]
    stock.drop(stock.dead_letters)
    assert stock.accept(Accepted.SIDE_TABLE_REPLACED).lost == {0: 4}
    stock.goes_on()
    assert stock.letters() == [28, 29]


@pytest.mark.long
def test_a_rolled_back_dead_letter_table_is_refused_before_the_table_commits(stock: Ledgers) -> None:
    stock.roll_back(1, stock.dead_letters)
    before = stock.head()
    for command in ("rolled-back-replay", "rolled-back-hold"):
        with pytest.raises(RolledBack, match=RUN.format(command)):
            stock.land_with_dead_letters()
    with pytest.raises(RolledBack, match="rolled back by hand"):
        stock.start()
    assert stock.head() == before
    assert "rolled_back" in {f.flaw for f in stock.verified().findings}


def test_replay_puts_the_dead_letters_of_a_rolled_back_table_back(stock: Ledgers) -> None:
    stock.roll_back(1, stock.dead_letters)
    assert stock.accept(Accepted.ROLLED_BACK_REPLAY).lost == {}
    stock.assert_each_once()
    stock.land_with_dead_letters()
    stock.assert_each_once()


@pytest.mark.long
def test_hold_gives_the_dead_letters_of_a_rolled_back_table_up(stock: Ledgers) -> None:
    stock.roll_back(1, stock.dead_letters)
    assert stock.accept(Accepted.ROLLED_BACK_HOLD).lost == {0: 2}
    stock.land_with_dead_letters()
    assert stock.letters() == [8, 9, 28, 29]
    stock.assert_proven()


@pytest.mark.long
@pytest.mark.parametrize("event", [Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD])
def test_dead_letters_that_were_still_open_survive_the_rollback_of_their_table(stock: Ledgers, event: Accepted) -> None:
    stock.die("decide.decided")
    stock.roll_back(1, stock.dead_letters)
    with pytest.raises(RolledBack, match="rolled back by hand"):
        stock.start()
    stock.accept(event)
    assert stock.letters() == ([8, 9, 18, 19, 28, 29] if event is Accepted.ROLLED_BACK_REPLAY else [8, 9, 28, 29])
    stock.assert_proven()


@pytest.mark.long
def test_both_tables_rolled_back_replay_and_tell_what_is_lost(stock: Ledgers) -> None:
    stock.land_with_dead_letters()
    stock.roll_back(1)
    stock.roll_back(2, stock.dead_letters)
    decided = stock.accept(Accepted.ROLLED_BACK_REPLAY)
    assert (decided.after.at, decided.lost) == ({0: 20}, {0: 2})
    stock.land_with_dead_letters()
    assert stock.letters() == [8, 9, 28, 29]
    stock.assert_proven()


@pytest.mark.parametrize(
    "event", [Accepted.ROLLED_BACK_REPLAY, pytest.param(Accepted.ROLLED_BACK_HOLD, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_batch_that_a_person_undoes_in_both_tables_has_a_way_out(
    stock: Ledgers, event: Accepted, is_first: bool
) -> None:
    """The table is rolled back by a batch, and the dead-letter table dropped, or restored from before it."""
    if is_first:
        stock.drop()
        stock.drop(stock.dead_letters)
        stock.start()
        stock.land(1)
    older = stock.metadata_file(stock.dead_letters)
    stock.land_with_dead_letters()
    stock.roll_back(1)
    stock.drop(stock.dead_letters) if is_first else stock.restore(older, stock.dead_letters)
    with pytest.raises(DecisionRequired):
        stock.start()
    stock.accept(event)
    with pytest.raises(DeadLetterTableMismatch):
        stock.start()
    stock.accept(Accepted.SIDE_TABLE_REPLACED)
    stock.goes_on()


@pytest.mark.long
def test_a_dead_letter_table_without_its_tag_goes_on(stock: Ledgers) -> None:
    stock.remove_tag(stock.dead_letters)
    stock.goes_on(each_once=True)
    assert ledger.tag(stock.pipeline.name) in stock.metadata(stock.dead_letters)["refs"]


@pytest.mark.long
@pytest.mark.parametrize(
    "later", [pytest.param(0, id="at once"), pytest.param(1, id="after a batch without dead letters")]
)
def test_a_dead_letter_table_that_was_dropped_after_delivery_is_given_up_by_word(stock: Ledgers, later: int) -> None:
    stock.land(later)
    stock.drop(stock.dead_letters)
    with pytest.raises(DeadLetterTableMismatch, match=RUN.format("side-table-replaced")):
        stock.start()
    assert stock.accept(Accepted.SIDE_TABLE_REPLACED).lost == {0: 4}
    stock.goes_on()


@pytest.mark.long
def test_undelivered_dead_letters_of_a_replaced_table_are_let_go_by_word_only(stock: Ledgers) -> None:
    stock.drop()
    stock.drop(stock.dead_letters)
    stock.start()
    stock.die("decide.decided")
    stock.drop(stock.dead_letters)
    with pytest.raises(DeadLetterTableMismatch, match="2 of its rows.*side-table-replaced --reason"):
        stock.start()
    assert stock.accept(Accepted.SIDE_TABLE_REPLACED).lost == {0: 2}
    stock.goes_on()
    assert stock.letters() == [18, 19]


@pytest.mark.long
def test_a_lost_tag_is_found_by_the_newest_summary_and_set_again(stock: Ledgers) -> None:
    stock.remove_tag()
    stock.goes_on(each_once=True)
    stock.refuses(Accepted.LEDGER_LOST, "not lost")


@pytest.mark.long
def test_a_tag_that_was_moved_back_does_not_land_records_again(stock: Ledgers) -> None:
    table = stock.iceberg.load(stock.table)
    older = table.currentSnapshot().parentId()
    table.manageSnapshots().replaceTag(ledger.tag(stock.pipeline.name), older).commit()
    stock.goes_on(each_once=True)


@pytest.mark.long
@pytest.mark.parametrize("later", [0, 1])
def test_a_tag_that_was_moved_to_another_writers_snapshot_is_set_again(stock: Ledgers, later: int) -> None:
    """Before, the run had no offsets to begin with, and metadata expiry removed the snapshot that has them."""
    for _ in range(2):
        stock.iceberg.load(stock.table).newAppend().commit()
    table = stock.iceberg.load(stock.table)
    table.manageSnapshots().replaceTag(ledger.tag(stock.pipeline.name), stock.head()).commit()
    for _ in range(later):
        stock.iceberg.load(stock.table).newAppend().commit()
    assert metadata_expiry.trim(stock.iceberg, stock.table, keep=1, now_ms=2**53, at_least=1).snapshots == 2
    stock.goes_on(each_once=True)


@pytest.mark.long
def test_a_rolled_back_table_without_its_tag_is_still_refused(stock: Ledgers) -> None:
    stock.remove_tag()
    stock.roll_back(1)
    with pytest.raises(RolledBack):
        stock.start()
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.land_with_dead_letters()
    stock.assert_each_once()


@pytest.mark.long
def test_replay_spares_the_dead_letters_of_an_earlier_life_of_the_topic(stock: Ledgers) -> None:
    stock.recreate_topic(is_accepted=True)
    stock.land_with_dead_letters(2)
    stock.roll_back(1)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    assert stock.letters() == [8, 8, 9, 9, 18, 19]
    stock.land_with_dead_letters()
    assert stock.letters() == [8, 8, 9, 9, 18, 18, 19, 19]
    stock.assert_proven()


@pytest.mark.long
def test_a_pipeline_that_is_moved_to_another_topic_verifies(stock: Ledgers) -> None:
    moved = replace(stock.pipeline, topic=replace(stock.pipeline.topic, name=f"{stock.pipeline.name}b"))
    stock.kafka.create(moved.topic.name)
    stock.pipeline = moved
    assert stock.accept(Accepted.TOPIC_RECREATED).after.topic == moved.topic.name
    stock.land_with_dead_letters()
    stock.assert_proven()
    topics = [(one.topic, one.read) for one in stock.verified().partitions]
    assert topics == [(moved.topic.name, 10), (moved.topic.name[:-1], 20)]
    stock.drop(stock.dead_letters)
    with pytest.raises(InvalidInput, match="has records of topic .*, too"):
        stock.accept(Accepted.SIDE_TABLE_REPLACED)


@pytest.mark.long
def test_decisions_are_numbered_in_both_tables(stock: Ledgers) -> None:
    stock.land(1)
    main, side = entry(stock.iceberg.load(stock.table), stock.pipeline.name), side_entry(stock)
    assert main is not None
    assert (main.number, side.number) == (2, 2)
    assert side.summary[ledger.TABLE] == str(stock.iceberg.load(stock.table).uuid())


def test_a_start_that_skips_dead_letters_keeps_them(stock: Ledgers) -> None:
    stock.drop()
    make_tables(job(stock.iceberg), stock.pipeline, ROW)
    with pytest.raises(DeadLetterTableMismatch):
        initialise_ledger(job(stock.iceberg), stock.pipeline, stock.offsets(10))
    assert stock.letters() == [8, 9, 18, 19]


@pytest.mark.long
def test_dead_letters_of_a_compacted_topic_are_not_removed(stock: Ledgers) -> None:
    """Compaction may have removed their records since."""
    stock.drop()
    make_tables(job(stock.iceberg), stock.pipeline, ROW)
    with pytest.raises(DeadLetterTableMismatch, match="Rename the dead-letter table"):
        initialise_ledger(job(stock.iceberg), stock.pipeline, stock.offsets(0), compacted=True)
    assert stock.letters() == [8, 9, 18, 19]


@pytest.mark.long
def test_a_try_that_decided_otherwise_is_not_taken_for_this_one(stock: Ledgers) -> None:
    """Its answer was lost. The same records are staged again, and what is rejected of them may be decoded by now."""
    stock.die("publish.committed")
    for again in (lambda: stock.land(1), stock.land_with_dead_letters):
        with pytest.raises(StageAgain, match="from an earlier try"):
            again()
    stock.goes_on(each_once=True)


@pytest.mark.long
def test_a_decision_without_new_offsets_between_the_loads_of_both_tables_is_no_fault(stock: Ledgers) -> None:
    stock.drop(stock.dead_letters)
    lake = BusyLake(stock.environment, [lambda: stock.accept(Accepted.SIDE_TABLE_REPLACED)])
    found = verify(stock.pipeline, lake, wait=no_wait)
    assert found.outcome == "proven", [str(f) for f in found.findings]
    assert found.sum_of("gaps") == 4
