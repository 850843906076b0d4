"""An operator decides while a driver has a batch staged: nobody commits on top of a decision that is still open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from frazil.lake.commit.fence import StageAgain
from frazil.recovery.decisions import Accepted
from tests.support.jobs import let
from tests.support.ledgers import Ledgers

pytestmark = pytest.mark.spark
REPLAY, HOLD, REPLACED = Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD, Accepted.SIDE_TABLE_REPLACED
LOST = {REPLAY: 0, HOLD: 2, REPLACED: 4}


def _with_and_without(choices: Sequence[Any], *both: Any) -> list[Any]:
    """The first choice with dead letters in the batch; without any, those of `both`. The other pairs are long."""
    return [
        *(
            pytest.param(
                choice, True, id=f"{choice}-dead letters", marks=() if choice == choices[0] else [pytest.mark.long]
            )
            for choice in choices
        ),
        *(
            pytest.param(
                choice, False, id=f"{choice}-no dead letters", marks=() if choice in both else [pytest.mark.long]
            )
            for choice in choices
        ),
    ]


def happens(stock: Ledgers, event: Accepted) -> None:
    """Make happen, to the dead-letter table, what the operator decides about: the table's offsets stay."""
    if event is REPLACED:
        stock.drop(stock.dead_letters)
    else:
        stock.roll_back(1, stock.dead_letters)


def half_accepted(stock: Ledgers, event: Accepted) -> None:
    """Decide, and end before the dead-letter table follows."""
    stock.die("decide.decided", event)


def one_batch(stock: Ledgers, *, dead: bool, failpoint: Callable[[str], None] = lambda step: None) -> None:
    if dead:
        stock.land_with_dead_letters(failpoint=failpoint)
    else:
        stock.land(1, failpoint=failpoint)


@pytest.mark.parametrize(("event", "dead"), _with_and_without([REPLAY, HOLD, REPLACED]))
def test_a_batch_staged_before_a_decision_is_not_committed_on_top_of_it(
    stock: Ledgers, event: Accepted, dead: bool
) -> None:
    """The command has ended half-way: the driver finishes the decision, then stages the batch again."""
    happens(stock, event)
    half_accepted(stock, event)
    with pytest.raises(StageAgain, match="operator"):
        one_batch(stock, dead=dead)
    stock.start()
    one_batch(stock, dead=dead)
    assert len(stock.letters()) == 4 - LOST[event] + 2 * dead
    stock.assert_proven()


@pytest.mark.long
@pytest.mark.parametrize(("step", "dead"), _with_and_without(["publish.decided", "publish.filled"]))
def test_a_decision_made_while_a_batch_is_committed_is_met_on_the_next_try(
    stock: Ledgers, step: str, dead: bool
) -> None:
    decided: list[str] = []

    def decides(reached: str) -> None:
        if reached == step and not decided:
            decided.append(step)
            happens(stock, HOLD)
            half_accepted(stock, HOLD)

    with pytest.raises(StageAgain, match="operator"):
        one_batch(stock, dead=dead, failpoint=decides)
    stock.start()
    one_batch(stock, dead=dead)
    stock.assert_proven()


@pytest.mark.parametrize(
    ("step", "dead"),
    _with_and_without(["accept.decided", "publish.filled", "decide.decided", "finish.started"], "publish.filled"),
)
def test_a_driver_at_work_and_an_operator_agree_at_each_step_of_the_decision(
    stock: Ledgers, step: str, dead: bool
) -> None:
    """The command goes on after the batch, whatever the driver's answer was."""
    happens(stock, REPLACED)
    tried: list[str] = []

    def meanwhile(reached: str) -> None:
        if reached == step and not tried:
            tried.append(step)
            let(lambda: one_batch(stock, dead=dead))

    let(lambda: stock.accept(REPLACED, failpoint=meanwhile))
    assert tried
    let(lambda: stock.accept(REPLACED))  # if the batch came first
    stock.start()
    one_batch(stock, dead=dead)
    stock.assert_proven()


@pytest.mark.long
def test_dead_letters_staged_for_a_table_that_was_replaced_are_staged_again(stock: Ledgers) -> None:
    main, side = stock.staged(1, 8), stock.staged_dead(28, 2)
    happens(stock, REPLACED)
    stock.accept(REPLACED)
    stock.start()
    with pytest.raises(StageAgain, match=stock.dead_letters.rpartition(".")[2]):
        stock.publish(main, side)
    stock.goes_on()
    assert stock.letters() == [28, 29]


@pytest.mark.long
def test_dead_letters_staged_before_their_table_lost_a_column_are_staged_again(stock: Ledgers) -> None:
    main, side = stock.staged(1, 8), stock.staged_dead(28, 2)
    stock.iceberg.load(stock.dead_letters).updateSchema().deleteColumn("message").commit()
    with pytest.raises(StageAgain, match="lost a column"):
        stock.publish(main, side)
    assert stock.end() == 20
