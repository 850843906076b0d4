"""Two drivers on one pipeline: one makes progress, the other is fenced; no record is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import concurrent_drivers
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
DECIDING = ("stage.written", "decide.written", "publish.filled")
QUICK = ("plan.done", "publish.decided")  # between planning and the transaction, and between its base and its commit


def _marked(steps: Sequence[str]) -> list[Any]:
    return [step if step in QUICK else pytest.param(step, marks=pytest.mark.long) for step in steps]


def test_free_running_twins_share_a_topic_without_a_loss(shop_of: Callable[..., Shop], tmp_path: Path) -> None:
    concurrent_drivers.run_free(shop_of, tmp_path, orders=400)


@pytest.mark.parametrize("step", _marked(concurrent_drivers.STEPS))
def test_a_twin_that_commits_while_a_driver_pauses_fences_it(shop: Shop, tmp_path: Path, step: str) -> None:
    concurrent_drivers.commit_while_one_pauses(shop, tmp_path, step)


@pytest.mark.parametrize("step", _marked(concurrent_drivers.BEGINNINGS))
def test_a_twin_that_begins_first_fences_nobody_before_there_is_a_batch(shop: Shop, tmp_path: Path, step: str) -> None:
    concurrent_drivers.begin_while_one_pauses(shop, tmp_path, step)


@pytest.mark.parametrize("step", ["publish.decided", *(pytest.param(s, marks=pytest.mark.long) for s in DECIDING)])
def test_an_operator_who_decides_while_a_driver_pauses_fences_it(shop: Shop, tmp_path: Path, step: str) -> None:
    concurrent_drivers.decide_while_one_pauses(shop, tmp_path, step)
