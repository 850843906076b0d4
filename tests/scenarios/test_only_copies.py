"""A log was truncated and has grown again: the dead letters of the earlier log are the only copies of their records."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.errors import DeadLetterTableMismatch, RolledBack
from frazil.lake.iceberg_java import Iceberg
from frazil.recovery.decisions import Accepted
from tests.support.ledgers import Ledgers, side_entry
from tests.support.variants import first_short

pytestmark = pytest.mark.spark
REPLAY, HOLD = Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD
BOTH = pytest.mark.parametrize("event", first_short([REPLAY, HOLD]))


@pytest.fixture
def stock(spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str) -> Ledgers:
    """A pipeline that landed two batches, each with two dead letters; its commits remember the last record."""
    made = Ledgers(spark, iceberg, lake_environment, name)
    made.remembers_last = True
    made.land_with_dead_letters(2)
    return made


def replace_log(stock: Ledgers) -> int:
    """Replace the records from offset 4 on, accept that, and land the next batch; return the decision's snapshot."""
    stock.replace_log(kept=4, grown=30)
    assert stock.accept(Accepted.LOG_TRUNCATED).after.at == {0: 20}
    decided = stock.head()
    stock.goes_on()
    assert stock.letters() == [8, 9, 18, 19, 28, 29]
    return decided


@BOTH
@pytest.mark.parametrize("case", first_short(["plain", "expired"]))
def test_a_rollback_to_before_a_log_was_replaced_can_be_taken_back_only(
    stock: Ledgers, event: Accepted, case: str
) -> None:
    """The offsets of the decision are those of before: a replay removed the dead letters 18 and 19."""
    decided, last = replace_log(stock), stock.head()
    stock.roll_back(3)
    if case == "expired":
        stock.expire_unnamed(stock.table)
    refused = stock.refuses(event, "offsets of two logs")
    assert f"Set the head to snapshot {last} again" in refused.do
    assert (f"or to snapshot {decided} and accept again" in refused.do) is (case != "expired")
    with pytest.raises(RolledBack):
        stock.start()
    stock.set_head(last)
    stock.goes_on()


@pytest.mark.long
@BOTH
def test_rows_of_the_new_log_can_be_landed_again_or_given_up(stock: Ledgers, event: Accepted) -> None:
    decided = replace_log(stock)
    stock.set_head(decided)
    assert stock.accept(event).lost == ({} if event is REPLAY else {0: 8})
    stock.goes_on()
    assert stock.letters() == [8, 9, 18, 19, 28, 29, *([] if event is REPLAY else [38, 39])]


@pytest.mark.long
def test_a_table_without_dead_letters_is_not_replayed_either(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str
) -> None:
    stock = Ledgers(spark, iceberg, lake_environment, name)
    stock.remembers_last = True
    stock.land(2)
    stock.replace_log(kept=4, grown=30)
    stock.accept(Accepted.LOG_TRUNCATED)
    stock.land(1)
    stock.roll_back(3)
    stock.refuses(REPLAY, "offsets of two logs")


@pytest.mark.long
def test_a_table_set_back_to_before_a_log_was_replaced_is_not_replayed(stock: Ledgers) -> None:
    older = stock.metadata_file()
    stock.land_with_dead_letters()
    stock.replace_log(kept=4, grown=40)
    assert stock.accept(Accepted.LOG_TRUNCATED).after.at == {0: 30}
    newest = stock.metadata_file()
    stock.restore(older)
    stock.refuses(REPLAY, "dead letters since are of two logs")
    assert stock.letters() == [8, 9, 18, 19, 28, 29]
    stock.restore(newest)
    stock.goes_on()


@pytest.mark.long
def test_a_table_set_back_to_before_its_first_dead_letter_does_not_land_another_topics_twice(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str
) -> None:
    """Its entries have no number yet, and offsets of two topics cannot be compared: it counted as in order."""
    stock = Ledgers(spark, iceberg, lake_environment, name)
    stock.land(2)
    older = stock.metadata_file()
    stock.recreate_topic(is_accepted=True)
    stock.start()
    stock.land_with_dead_letters()
    newest = stock.metadata_file()
    stock.restore(older)
    with pytest.raises(RolledBack):
        stock.start()
    stock.refuses(REPLAY, "dead letters since are of two logs")
    assert stock.letters() == [8, 9]
    stock.restore(newest)
    stock.goes_on()


@pytest.mark.long
def test_a_rollback_of_the_dead_letter_table_hides_no_replaced_log(stock: Ledgers) -> None:
    older = stock.metadata_file()
    stock.land_with_dead_letters()
    stock.replace_log(kept=4, grown=40)
    stock.accept(Accepted.LOG_TRUNCATED)
    stock.roll_back(1, stock.dead_letters)
    stock.accept(HOLD)
    stock.restore(older)
    stock.refuses(REPLAY, "dead letters since are of two logs")
    assert stock.letters() == [8, 9, 18, 19, 28, 29]


@pytest.mark.long
def test_a_dropped_table_is_not_landed_over_the_dead_letters_of_a_replaced_log(stock: Ledgers) -> None:
    replace_log(stock)
    stock.drop()
    with pytest.raises(DeadLetterTableMismatch, match="Rename the dead-letter table"):
        stock.start()
    assert stock.letters() == [8, 9, 18, 19, 28, 29]


@pytest.mark.long
@pytest.mark.parametrize("step", first_short(["decide.decided", "finish.started", "publish.filled"]))
def test_a_decision_that_crashed_is_in_the_dead_letter_table_after_the_next_start(stock: Ledgers, step: str) -> None:
    stock.replace_log(kept=4, grown=30)
    stock.die(step, Accepted.LOG_TRUNCATED)
    assert {f.flaw for f in stock.verified(deep=True).findings} == ({"unfinished"} if "publish" not in step else set())
    stock.start()
    if step == "publish.filled":  # before the table's commit
        stock.accept(Accepted.LOG_TRUNCATED)
    assert side_entry(stock).event == Accepted.LOG_TRUNCATED
    stock.land_with_dead_letters()
    stock.assert_proven()


# ── Nobody has noticed yet that the log was truncated, or no table shows it ─────────────────────
@pytest.mark.long
@pytest.mark.parametrize("grown", first_short([30, 15, 19]))
def test_a_replay_removes_no_dead_letter_whose_record_was_replaced_unnoticed(stock: Ledgers, grown: int) -> None:
    stock.roll_back(1)
    stock.replace_log(kept=4, grown=grown)
    stock.refuses(REPLAY, "log was truncated.*at offset 19 of partition 0.*rolled-back-hold")
    assert stock.letters() == [8, 9, 18, 19]
    assert stock.accept(HOLD).lost == {0: 8}


@pytest.mark.long
def test_a_replay_lands_again_what_a_truncation_left(stock: Ledgers) -> None:
    stock.roll_back(1)
    stock.replace_log(kept=20, grown=25)
    stock.accept(REPLAY)
    stock.goes_on(each_once=True)


@pytest.mark.long
def test_a_dropped_table_is_not_landed_over_dead_letters_that_are_in_no_log(stock: Ledgers) -> None:
    stock.replace_log(kept=4, grown=30)
    letters = stock.letters()
    stock.drop()
    with pytest.raises(DeadLetterTableMismatch, match="Rename the dead-letter table"):
        stock.start()
    assert stock.letters() == letters
    stock.drop(stock.dead_letters)
    stock.goes_on(each_once=True)
