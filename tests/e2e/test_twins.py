"""Two drivers on one pipeline: one makes progress, the other is fenced; no record is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.support import concurrent_drivers
from tests.support.paused_driver import Driver, on_a_thread
from tests.support.paused_driver import paused as in_a_process
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
STEPS = ("publish.decided",)
"""Between the base of a transaction and its commit. The other steps are long."""
Paused = Callable[..., AbstractContextManager[Driver]]


def _cases(steps: Sequence[str]) -> list[Any]:
    """Each step with a driver on a thread of the test and with one in a process of its own, which starts a JVM."""
    return [
        *(pytest.param(s, on_a_thread, id=f"{s}-thread", marks=[pytest.mark.long][: s not in STEPS]) for s in steps),
        *(pytest.param(s, in_a_process, id=f"{s}-process", marks=pytest.mark.long) for s in steps),
    ]


@pytest.mark.long
def test_free_running_twins_share_a_topic_without_a_loss(shop_of: ShopOf, tmp_path: Path) -> None:
    concurrent_drivers.run_free(shop_of, tmp_path, orders=400)


@pytest.mark.parametrize(("step", "paused"), _cases(concurrent_drivers.STEPS))
def test_a_twin_that_commits_while_a_driver_pauses_fences_it(
    shop: Shop, tmp_path: Path, step: str, paused: Paused
) -> None:
    concurrent_drivers.commit_while_one_pauses(shop, tmp_path, step, paused)


@pytest.mark.long
@pytest.mark.parametrize(("step", "paused"), _cases(concurrent_drivers.BEGINNINGS))
def test_a_twin_that_begins_first_fences_nobody_before_there_is_a_batch(
    shop: Shop, tmp_path: Path, step: str, paused: Paused
) -> None:
    concurrent_drivers.begin_while_one_pauses(shop, tmp_path, step, paused)


@pytest.mark.long
@pytest.mark.parametrize(
    ("step", "paused"), _cases(("stage.written", "decide.written", "publish.decided", "publish.filled"))
)
def test_an_operator_who_decides_while_a_driver_pauses_is_obeyed(
    shop: Shop, tmp_path: Path, step: str, paused: Paused
) -> None:
    concurrent_drivers.decide_while_one_pauses(shop, tmp_path, step, paused)
