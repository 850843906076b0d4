"""One run: the order of the actions at each table, one line each, and what keeps a run away from a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from frazil.errors import FrazilError
from frazil.maintain import run
from frazil.maintain.run import maintain
from tests.support.committed_table import EAGER, Stock
from tests.support.variants import first_short

pytestmark = pytest.mark.spark


def lines(stock: Stock, *, orphans: bool = False, **overrides: Any) -> list[Mapping[str, Any]]:
    told: list[Mapping[str, Any]] = []
    maintain([stock.pipeline], stock.maintenance(**overrides), told.append, orphans=orphans)
    return told


def test_a_run_keeps_the_table_and_its_dead_letters(stock: Stock) -> None:
    stock.land_with_dead_letters(2)
    stock.land(6)
    told = lines(stock)
    main, side = stock.table, stock.dead_letters
    assert [(t["table"], t["action"]) for t in told] == [
        (table, action) for table in (main, side) for action in ("compact", "carry", "expire", "orphans")
    ]
    assert [t["ended"] for t in told] == ["done", "done", "done", "dry_run"] * 2
    assert [t["files_removed"] for t in told if t["action"] == "compact"] == [8, 2]
    assert stock.lease.holder is None
    proof = stock.verified(deep=True)
    assert proof.outcome == "proven", proof.findings


@pytest.mark.long
def test_a_table_that_has_no_snapshot_is_left_alone(stock: Stock) -> None:
    stock.land(1)
    assert {t["table"] for t in lines(stock)} == {stock.table}


def test_a_dry_run_changes_nothing_at_all(stock: Stock) -> None:
    stock.land(8)
    before = stock.metadata()
    told = {t["action"]: t for t in lines(stock, dry_run=True)}
    assert {action: t["ended"] for action, t in told.items() if action != "carry"} == dict.fromkeys(
        ("compact", "expire", "orphans"), "dry_run"
    )
    assert [told["compact"][name] for name in ("files_removed", "files_added", "rows")] == [8, 1, 80]
    assert told["expire"]["snapshots"] == 4
    assert stock.metadata() == before


def test_two_maintainers_do_not_work_at_one_table(stock: Stock) -> None:
    stock.land(3)
    second: list[Mapping[str, Any]] = []

    def meanwhile(step: str) -> None:
        if step == "compact.rewritten":
            second.extend(lines(stock))

    first = lines(stock, failpoint=meanwhile)
    assert [t["ended"] for t in second] == ["busy"]
    assert [t["ended"] for t in first] == ["done", "done", "done", "dry_run"]
    stock.assert_nothing_changed()


def test_a_maintainer_that_lost_its_lease_stops(stock: Stock) -> None:
    stock.land(3)

    def thief(step: str) -> None:
        if step == "compact.committed":
            stock.iceberg.load(stock.table).updateProperties().set(
                "frazil.upkeep", '{"number": 9, "holder": "thief", "until_ms": 9999999999999}'
            ).commit()

    assert [t["ended"] for t in lines(stock, failpoint=thief)] == ["done", "stopped"]
    assert stock.lease.holder == "thief"


@pytest.mark.long
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (FrazilError("broken", where="here"), "here: broken"),
        (OSError("Corrupt snappy compressed data."), "Corrupt snappy"),
    ],
)
def test_one_actions_error_is_told_and_the_others_go_on(
    stock: Stock, monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    stock.land(8)

    def broken(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(run, "compact", broken)
    told = lines(stock)
    assert [t["ended"] for t in told] == ["failed", "done", "done", "dry_run"]
    assert why in told[0]["why"]
    assert stock.lease.holder is None


@pytest.mark.long
def test_behind_the_end_of_the_jvm_no_action_is_tried(stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    stock.land(8)

    def broken(*arguments: object, **options: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(run, "compact", broken)
    monkeypatch.setattr(run, "jvm_answers", lambda spark: False)
    assert [(told["action"], told["ended"]) for told in lines(stock)] == [("compact", "failed")]


@pytest.mark.long
@pytest.mark.parametrize(("moves", "ended"), [(True, "done"), (False, "failed")])
def test_what_failed_while_the_table_moved_on_is_tried_again(
    stock: Stock, monkeypatch: pytest.MonkeyPatch, moves: bool, ended: str
) -> None:
    stock.land(8)
    real, tried = run.expire, []

    def unlucky(*arguments: Any) -> Any:
        tried.append(arguments)
        if len(tried) > 1:
            return real(*arguments)
        if moves:
            stock.land(1)
        return stock.iceberg.load("stock.what_is_gone")

    monkeypatch.setattr(run, "expire", unlucky)
    assert [t["ended"] for t in lines(stock) if t["action"] == "expire"] == [ended]
    assert len(tried) == (2 if moves else 1)
    stock.assert_nothing_changed()


@pytest.mark.long
@pytest.mark.parametrize(("broken", "ended"), first_short([("files", "conflict"), ("table", "failed")]))
def test_files_that_go_each_time_while_it_reads_are_another_writers_right(
    stock: Stock, monkeypatch: pytest.MonkeyPatch, broken: str, ended: str
) -> None:
    stock.land(2)

    def unlucky(*arguments: Any) -> Any:
        stock.land(1)
        if broken == "table":
            return stock.iceberg.load("stock.what_is_gone")
        return stock.iceberg.read_text(
            stock.iceberg.load(stock.table), stock.iceberg.load(stock.table).location() + "/metadata/m0.avro"
        )

    monkeypatch.setattr(run, "expire", unlucky)
    assert [t["ended"] for t in lines(stock) if t["action"] == "expire"] == [ended]


def test_a_run_that_is_to_end_ends_between_two_actions(stock: Stock) -> None:
    stock.land(2)
    told = lines(stock, stopping=lambda: True)
    assert [(t["action"], t["ended"]) for t in told] == [("compact", "stopped")]
    assert stock.lease.holder is None


@pytest.mark.long
def test_orphans_are_removed_only_if_asked_for(stock: Stock) -> None:
    stock.land(1)
    assert [t["ended"] for t in lines(stock) if t["action"] == "orphans"] == ["dry_run"]
    assert [t["ended"] for t in lines(stock, orphans=True) if t["action"] == "orphans"] == ["done"]


@pytest.mark.long
def test_a_long_compaction_takes_the_lease_anew(stock_of: Callable[..., Stock]) -> None:
    stock = stock_of(partition_by=("bucket(2, order_id)",))
    stock.land(2, rows=40)
    now = iter(range(1_000_000_000, 2_000_000_000, 600))
    policy = replace(EAGER, closed_seconds=-1e12, groups_a_commit=1, lease_seconds=1200.0)
    held = []

    def note(step: str) -> None:
        if step == "compact.committed":
            held.append(stock.lease.number)

    lines(stock, clock=lambda: float(next(now)), policy=policy, failpoint=note)
    assert held[1] > held[0]
    stock.assert_nothing_changed()
