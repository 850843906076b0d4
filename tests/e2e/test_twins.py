"""Two drivers on one pipeline: one makes progress, the other is fenced; no record is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import twins
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def test_free_running_twins_share_a_topic_without_a_loss(shop_of: Callable[..., Shop], tmp_path: Path) -> None:
    twins.run_free(shop_of, tmp_path)


@pytest.mark.parametrize("step", twins.STEPS)
def test_a_twin_that_commits_while_a_driver_pauses_fences_it(shop: Shop, tmp_path: Path, step: str) -> None:
    twins.commit_while_one_pauses(shop, tmp_path, step)


@pytest.mark.parametrize("step", twins.BEGINNINGS)
def test_a_twin_that_begins_first_fences_nobody_before_there_is_a_batch(shop: Shop, tmp_path: Path, step: str) -> None:
    twins.begin_while_one_pauses(shop, tmp_path, step)
