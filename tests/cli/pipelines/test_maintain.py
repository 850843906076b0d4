"""`frazil maintain` prints the work that was done or is to do, and one line for a table without work."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from frazil.cli.pipelines.maintain import ACTIONS, REASONS, print_results
from frazil.maintain.choose_upkeep import Why
from frazil.maintain.target import Action, Outcome, Status

PLANNED = Status.DRY_RUN


def printed(*outcomes: Outcome) -> str:
    console = Console(file=io.StringIO(), width=160)
    print_results(outcomes, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def outcome(action: Action, ended: Status = Status.DONE, **known: Any) -> Outcome:
    return Outcome(action=action, table="shop.orders", ended=ended, **known)


def dry_run(**compact: Any) -> list[Outcome]:
    return [outcome(Action.COMPACT, PLANNED, **compact), outcome(Action.CARRY), outcome(Action.EXPIRE, PLANNED)]


def test_a_table_without_work_is_one_line_with_the_reason() -> None:
    assert printed(*dry_run(left={"open": 5}), outcome(Action.ORPHANS, PLANNED)) == (
        "shop.orders: nothing to do: 5 partitions received files recently\n"
    )
    assert printed(*dry_run(left={"open": 1})).endswith("nothing to do: 1 partition received files recently\n")
    assert printed(*dry_run()) == "shop.orders: nothing to do\n"
    assert printed() == "nothing to do: no table has a snapshot yet\n"


def test_only_actions_with_work_are_rows() -> None:
    lines = printed(*dry_run(files_removed=30, files_added=1, left={"open": 2})).splitlines()
    assert [line.split()[:4] for line in lines[1:2]] == [["shop.orders", "compact", "files", "planned"]]
    assert lines[2:] == ["shop.orders: 2 partitions received files recently"]


def test_an_error_is_printed_with_its_table_and_action() -> None:
    text = printed(outcome(Action.EXPIRE, Status.FAILED, why="the bucket refused"))
    assert "shop.orders, expire snapshots: the bucket refused\n" in text


def test_each_action_and_each_reason_has_words() -> None:
    assert set(ACTIONS) == set(Action)
    assert {why for why in Why if not why.is_compacted} <= set(REASONS)
