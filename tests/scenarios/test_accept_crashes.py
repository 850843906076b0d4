"""An operator's decision survives a crash, a driver and another operator at every step."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.errors import FrazilError
from frazil.job import failpoints
from frazil.lake import ledger, letters
from frazil.lake.commit import append
from frazil.lake.commit.check import CommitRequest
from frazil.lake.commit.entries import entry
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.offsets import Offsets
from frazil.lake.stage import empty_commit as empty
from frazil.lake.stop import Stop, note
from frazil.lake.totals import Counts
from frazil.recovery.decisions import Accepted
from tests.support.jobs import job
from tests.support.ledgers import Crash, Ledgers, as_version_010, crash_at

pytestmark = pytest.mark.spark
REPLAY, HOLD = Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD
STEPS = failpoints.ACCEPT_STEPS


@pytest.fixture
def stock(spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str) -> Ledgers:
    """A pipeline that landed two batches, each with two dead letters."""
    made = Ledgers(spark, iceberg, lake_environment, name)
    made.land_with_dead_letters()
    made.land_with_dead_letters()
    return made


def happens(stock: Ledgers, event: Accepted) -> None:
    """Make what the operator decides about happen."""
    match event:
        case Accepted.ROLLED_BACK_REPLAY | Accepted.ROLLED_BACK_HOLD:
            stock.roll_back(1)
        case Accepted.TOPIC_RECREATED:
            stock.recreate_topic()
        case Accepted.LOG_TRUNCATED:
            stock.kafka.topics[stock.pipeline.topic.name].partitions[0].timestamps[:] = [1] * 13
        case Accepted.OFFSETS_LOST:
            partition = stock.kafka.topics[stock.pipeline.topic.name].partitions[0]
            partition.timestamps[:] = [1] * 30
            partition.earliest = 25
        case Accepted.REJECTED_RECORDS:
            made = Stop(error="RejectedRecords", message="", records={0: [[20, 21]]}, until={0: 22}, topic_id="T1")
            note(stock.iceberg, stock.table, stock.pipeline.name, made)
        case Accepted.SIDE_TABLE_REPLACED:
            stock.drop(stock.dead_letters)
        case Accepted.LEDGER_LOST:
            rows = stock.spark.table(f"lake.{stock.table}")
            kept, schema = rows.collect(), rows.schema
            stock.drop()
            stock.spark.createDataFrame(kept, schema).writeTo(f"lake.{stock.table}").using("iceberg").create()


def met(stock: Ledgers) -> list[str]:
    """The steps of one decision to replay, each once, in their order."""
    steps: list[str] = []
    happens(stock, REPLAY)
    stock.accept(REPLAY, failpoint=lambda step: steps.append(step) if step not in steps else None)
    stock.land_with_dead_letters()
    return steps


def test_a_decision_passes_all_steps_that_are_named(stock: Ledgers) -> None:
    assert set(met(stock)) == set(STEPS)


OF_STATES = (
    Accepted.LATE_RECORDS,
    Accepted.KEYS_MOVED,
    Accepted.DELETES_LOST,
    Accepted.SOURCE_TRUNCATED,
    Accepted.REMEMBERED_DELETES_LOST,
)
FEW = ("publish.committed",)
SHORT = (Accepted.SIDE_TABLE_REPLACED,)
"""The table's commit is made, which is the decision; nothing that follows from it is done."""


@pytest.mark.parametrize(
    ("event", "steps"),
    [
        (REPLAY, FEW),
        *(
            pytest.param(event, FEW, marks=() if event in SHORT else pytest.mark.long)
            for event in Accepted
            # The second reads Kafka; the others are of tables of current state, and are one commit, as that of a rejected share.
            if event not in (REPLAY, Accepted.LOG_TRUNCATED_REPLAY, *OF_STATES)
        ),
        *(pytest.param(event, STEPS, marks=pytest.mark.long) for event in (REPLAY, HOLD, Accepted.TOPIC_RECREATED)),
    ],
)
def test_a_decision_that_crashed_anywhere_is_finished_by_the_next_run_or_command(
    stock: Ledgers, event: Accepted, steps: Sequence[str]
) -> None:
    """It is made again where the table's commit did not come, and else finished: by a run, or by accepting again."""
    for step in steps:
        happens(stock, event)
        seen: list[str] = []
        try:
            stock.accept(event, failpoint=lambda s, step=step, seen=seen: _crash(s, step, seen))  # type: ignore[misc]
        except Crash:
            if "publish.committed" in seen:
                stock.start()
            else:
                stock.accept(event)
        stock.start()
        stock.land_with_dead_letters()
        stock.assert_proven()
        if event not in (REPLAY, HOLD, Accepted.TOPIC_RECREATED):
            break  # it cannot happen to these tables once more


def _crash(step: str, wanted: str, seen: list[str]) -> None:
    seen.append(step)
    if step == wanted:
        raise Crash


@pytest.mark.long
@pytest.mark.parametrize(
    ("event", "steps"),
    [
        (REPLAY, ("accept.decided", "finish.removed")),
        *((event, STEPS) for event in (REPLAY, HOLD)),
    ],
)
def test_two_operators_who_decide_at_once_decide_once(stock: Ledgers, event: Accepted, steps: Sequence[str]) -> None:
    """The other one decides, a driver goes on and lands, all while the first is at any one step."""
    for step in steps:
        happens(stock, event)
        done: list[str] = []

        def meanwhile(reached: str, step: str = step, done: list[str] = done) -> None:
            if reached == step and not done:
                done.append(step)
                for act in (lambda: stock.accept(event), stock.start, stock.land_with_dead_letters):
                    _let(act)

        _let(lambda meanwhile=meanwhile: stock.accept(event, failpoint=meanwhile))  # type: ignore[misc]
        stock.start()
        stock.land_with_dead_letters()
        if event is REPLAY:
            stock.assert_each_once()
        else:
            stock.assert_proven()


def _let(act: Callable[[], object]) -> None:
    """Do it; a refusal is an answer too."""
    try:
        act()
    except FrazilError:
        return


@pytest.mark.long
def test_a_driver_that_commits_while_an_operator_decides_wins(stock: Ledgers) -> None:
    happens(stock, Accepted.LOG_TRUNCATED)

    def meanwhile(step: str) -> None:
        if step == "accept.decided":
            stock.land_with_dead_letters()

    with pytest.raises(FrazilError, match="committed first"):
        stock.accept(Accepted.LOG_TRUNCATED, failpoint=meanwhile)
    stock.assert_each_once()


@pytest.mark.long
@pytest.mark.parametrize("event", [REPLAY, Accepted.TOPIC_RECREATED, Accepted.LOG_TRUNCATED])
def test_a_decision_that_version_010_left_half_done_is_repaired_by_accepting_again(
    spark: SparkSession,
    iceberg: Iceberg,
    lake_environment: Environment,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    event: Accepted,
) -> None:
    """Version 0.1.0 wrote the event to the dead-letter table first, and crashed before its commit to the table."""
    with monkeypatch.context() as old:
        as_version_010(old)
        stock = Ledgers(spark, iceberg, lake_environment, name)
        stock.land_with_dead_letters()
        stock.land_with_dead_letters()
        happens(stock, event)
        after = 10 if event is REPLAY else 0 if event is Accepted.TOPIC_RECREATED else 13
        if event is REPLAY:
            letters.remove(spark, f"lake.{stock.dead_letters}", [_batch(stock)])
        took_back(stock, event, after)
    stock.accept(event)
    stock.start()
    stock.land_with_dead_letters()
    stock.assert_proven()
    assert len(stock.letters()) == (4 if event is REPLAY else 6)


def _batch(stock: Ledgers) -> dict[str, object]:
    return {
        "run": None, "topic": stock.pipeline.topic.name, "ranges": {"0": [10, 20]}, "since_ms": 0, "until_ms": 2**41
    }  # fmt: skip


def took_back(stock: Ledgers, event: Accepted, after: int) -> None:
    """The dead-letter table's commit of version 0.1.0's `accept`."""
    last = entry(stock.iceberg.load(stock.dead_letters), stock.pipeline.name)
    assert last is not None
    assert last.end is not None
    end = stock.offsets(after)
    append.publish(
        job(stock.iceberg, clock=lambda: 1.0),
        empty(stock.iceberg, stock.dead_letters, at=0.0),
        CommitRequest(
            pipeline=stock.pipeline.name,
            run="operator",
            version="0.1.0",
            start=last.end,
            end=end,
            committed=last.end,
            topic_id=end.topic_id,
            counts=Counts(),
            accepted=json.dumps({"event": event.value, "reason": "as the test says", "at": "", "lost": {}}),
            over_rollback=True,
        ),
        is_dead_letter_table=True,
    )


@pytest.mark.long
def test_tables_of_version_010_are_continued(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that version decided last, and its driver died before the dead letters were appended."""
    with monkeypatch.context() as old:
        as_version_010(old)
        stock = Ledgers(spark, iceberg, lake_environment, name)
        stock.land_with_dead_letters()
        with pytest.raises(Crash):
            stock.land_with_dead_letters(failpoint=crash_at("decide.decided"))
    assert entry(iceberg.load(stock.table), stock.pipeline.name).number is None  # type: ignore[union-attr]
    assert stock.letters() == [8, 9]
    stock.start()
    assert stock.letters() == [8, 9, 18, 19]
    stock.land_with_dead_letters()
    stock.assert_each_once()
    stock.roll_back(2)  # behind a commit of either version
    stock.accept(REPLAY)
    assert stock.letters() == [8, 9]
    for _ in range(2):
        stock.land_with_dead_letters()
    stock.assert_each_once()


@pytest.mark.long
@pytest.mark.parametrize(
    ("undone", "step_seconds"),
    [
        pytest.param("rolled back", 3600, id="rolled back-ahead"),
        pytest.param("set back", -30 * 86_400, id="set back-behind"),
        pytest.param("rolled back", -30 * 86_400, id="rolled back-behind"),
        pytest.param("set back", 3600, id="set back-ahead"),
    ],
)
def test_the_dead_letters_of_version_010_are_found_whatever_the_clocks_said(
    spark: SparkSession,
    iceberg: Iceberg,
    lake_environment: Environment,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    step_seconds: int,
    undone: str,
) -> None:
    """The clock of the driver that staged the dead letters was not that of the commits, and they were compacted since."""
    with monkeypatch.context() as old:
        as_version_010(old)
        stock = Ledgers(spark, iceberg, lake_environment, name)
        stock.land_with_dead_letters()
        stock.land_with_dead_letters()
        older = stock.metadata_file()
        stock.step_clock(step_seconds)
        stock.land_with_dead_letters()
    compact(stock)
    if undone == "rolled back":
        stock.roll_back(1)
    else:
        stock.restore(older)
    stock.accept(REPLAY)
    assert stock.letters() == [8, 9, 18, 19]
    stock.land_with_dead_letters()
    stock.assert_each_once()


def compact(stock: Ledgers) -> None:
    """Rewrite all files of the dead-letter table."""
    stock.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{stock.dead_letters}', options => map('rewrite-all', 'true'))"
    )


@pytest.mark.long
def test_a_replay_over_version_010_keeps_the_dead_letters_of_an_earlier_life_of_the_topic(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run landed the same offsets of the topic before it was created again: the records of those are gone."""
    with monkeypatch.context() as old:
        as_version_010(old)
        stock = Ledgers(spark, iceberg, lake_environment, name)
        stock.land_with_dead_letters()
    stock.recreate_topic()
    stock.accept(Accepted.TOPIC_RECREATED)
    with monkeypatch.context() as old:
        as_version_010(old)
        stock.land_with_dead_letters()
    assert stock.letters() == [8, 8, 9, 9]
    stock.roll_back(1)
    stock.accept(REPLAY)
    assert stock.letters() == [8, 9]
    stock.land_with_dead_letters()
    assert stock.letters() == [8, 8, 9, 9]
    stock.assert_proven()


@pytest.mark.long
def test_offsets_that_version_010_landed_again_are_replayed_again(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run landed the same offsets twice, and both commits have the same id: the newer one is undone."""
    stock = Ledgers(spark, iceberg, lake_environment, name)
    for _ in range(2):
        with monkeypatch.context() as old:
            as_version_010(old)
            stock.land_with_dead_letters()
        stock.roll_back(1)
        stock.accept(REPLAY)
        assert stock.letters() == []
    stock.land_with_dead_letters()
    stock.assert_each_once()


@pytest.mark.long
def test_dead_letters_of_version_010_whose_commit_was_expired_are_found_by_their_time(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as old:
        as_version_010(old)
        stock = Ledgers(spark, iceberg, lake_environment, name)
        for _ in range(3):
            stock.land_with_dead_letters()
    side = iceberg.load(stock.dead_letters)
    side.expireSnapshots().expireSnapshotId(side.currentSnapshot().parentId()).commit()
    stock.roll_back(2)
    stock.accept(REPLAY)
    assert stock.letters() == [8, 9]
    for _ in range(2):
        stock.land_with_dead_letters()
    stock.assert_each_once()


def test_a_batch_by_its_time_is_of_its_run_topic_and_offsets() -> None:
    start, end = (Offsets("t", "T", {0: at}) for at in (10, 20))
    known = ledger.Entry(1, "c", start, end, None, "side", "run", {}, at_ms=5_000)
    older = letters.batch_by_time(known, run="it's", since_ms=0)
    assert letters.condition([older]) == (
        "(run = CAST(X'69742773' AS STRING) AND topic = CAST(X'74' AS STRING) AND rejected_at > timestamp_millis(0) "
        "AND rejected_at <= timestamp_millis(5000) AND ((partition = 0 AND offset >= 10 AND offset < 20)))"
    )
    assert letters.condition([]) == "false"
