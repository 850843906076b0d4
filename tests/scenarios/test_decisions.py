"""The table and its dead letters are decided together; whoever comes next finishes, and judges nothing again."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.decode.record_decoder import RecordDecoder
from frazil.errors import DeadLetterTableMismatch
from tests.support.shop import Shop
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def poisoned(shop: Shop) -> None:
    shop.produce([*shop.orders(5, shop.register()), b"bad!!", b"worse"])


@pytest.mark.parametrize("step", ["decide.decided", pytest.param("finish.started", marks=pytest.mark.long)])
def test_a_crash_between_decision_and_finish_is_finished_by_the_next_driver(shop: Shop, step: str) -> None:
    poisoned(shop)
    shop.die(step)
    assert (len(shop.landed()), len(shop.dead())) == (5, 0)
    assert shop.drain().read == 0
    shop.assert_each_record_once()
    assert [e["dead_letters"] for e in shop.seen("dead_letters_recovered")] == [2]


@pytest.mark.long
@pytest.mark.parametrize("step", first_short(["decide.written", "stage.rejected", "publish.filled"]))
def test_a_crash_before_the_decision_leaves_nothing_visible(shop: Shop, step: str) -> None:
    poisoned(shop)
    shop.die(step)
    assert (shop.landed(), shop.dead()) == ([], [])
    shop.drain()
    shop.assert_each_record_once()


@pytest.mark.long
@pytest.mark.parametrize("milder", [True, False], ids=["new decoder takes it", "new decoder rejects more"])
def test_a_new_release_between_decision_and_finish_changes_no_verdict(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, milder: bool
) -> None:
    poisoned(shop)
    shop.die("decide.decided")
    judged: list[str] = []

    def other_decode(decoder: RecordDecoder, records: Any) -> Any:
        judged.append("again")
        raise AssertionError("a decided batch was decoded again")

    monkeypatch.setattr(RecordDecoder, "_decoded", other_decode)
    shop.drain()
    assert judged == []
    shop.assert_each_record_once()


@pytest.mark.long
def test_finishing_twice_adds_nothing(shop: Shop) -> None:
    poisoned(shop)
    shop.die("decide.decided")
    finished: list[str] = []

    def twin_finishes(step: str) -> None:
        if step == "finish.started" and not finished:
            finished.append(step)
            shop.drain()

    shop.drain(failpoint=twin_finishes)
    assert finished
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_decision_whose_file_is_gone_is_never_taken_for_finished(shop: Shop) -> None:
    poisoned(shop)
    shop.die("decide.decided")
    iceberg = shop.job().iceberg
    table = iceberg.load(shop.pipeline.table.identifier)
    table.io().deleteFile(table.currentSnapshot().summary().get("frazil.side"))
    with pytest.raises(DeadLetterTableMismatch, match="cannot be read"):
        shop.drain()
