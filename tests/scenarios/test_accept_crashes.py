"""An operator's decision survives a crash, a driver and another operator at every step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from frazil.errors import FrazilError
from frazil.lake.ledger.stop import Stop, note
from frazil.recovery.decisions import Accepted
from tests.support.failpoint_steps import ACCEPT_STEPS as STEPS
from tests.support.jobs import Crash, let
from tests.support.ledgers import Ledgers

pytestmark = pytest.mark.spark
REPLAY, HOLD = Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD


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
    Accepted.MASK_FROM_NOW_ON,
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
            # The second reads Kafka; the others are of upsert tables, and are one commit, as that of a rejected share.
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
        stock.goes_on()
        if event not in (REPLAY, HOLD, Accepted.TOPIC_RECREATED):
            break  # it cannot happen to these tables once more


def _crash(step: str, wanted: str, seen: list[str]) -> None:
    seen.append(step)
    if step == wanted:
        raise Crash


@pytest.mark.long
@pytest.mark.parametrize(
    ("event", "steps"), [(REPLAY, ("accept.decided", "finish.removed")), *((event, STEPS) for event in (REPLAY, HOLD))]
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
                    let(act)

        let(partial(stock.accept, event, failpoint=meanwhile))
        stock.start()
        stock.land_with_dead_letters()
        if event is REPLAY:
            stock.assert_each_once()
        else:
            stock.assert_proven()


@pytest.mark.long
def test_a_driver_that_commits_while_an_operator_decides_wins(stock: Ledgers) -> None:
    happens(stock, Accepted.LOG_TRUNCATED)

    def meanwhile(step: str) -> None:
        if step == "accept.decided":
            stock.land_with_dead_letters()

    with pytest.raises(FrazilError, match="committed first"):
        stock.accept(Accepted.LOG_TRUNCATED, failpoint=meanwhile)
    stock.assert_each_once()
