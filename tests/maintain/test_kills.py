"""`kill -9` of a maintainer at each step: no record is lost or doubled, and the next one finishes what it left."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from frazil.job.failpoints import UPKEEP_STEPS
from frazil.maintain.run import maintain
from tests.maintain.test_entry_points import entry_point
from tests.support.committed_table import EAGER, Stock

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
QUICK = ("compact.rewritten", "expire.decided")  # files that nobody committed yet, and files that nobody refers to


def _marked(steps: Sequence[str]) -> list[Any]:
    return [step if step in QUICK else pytest.param(step, marks=pytest.mark.long) for step in steps]


@pytest.mark.parametrize("step", _marked(UPKEEP_STEPS))
def test_a_maintainer_killed_at_a_step_loses_and_doubles_nothing(
    stock_of: Callable[..., Stock], tmp_path: Path, step: str
) -> None:
    stock = stock_of(keep_snapshots=2)
    stock.land(7)
    for number in range(6):  # of other writers, so that the tag is to be carried
        stock.iceberg.load(stock.table).newAppend().set("other", str(number)).commit()
    eager = ("--closed-hours", "0", "--grace-hours", "0", "--orphans")
    killed = entry_point(stock, tmp_path, *eager, failpoints=f"{step}=kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    stock.assert_nothing_changed()
    stock.land(1)
    late = stock.maintenance(clock=lambda: time.time() + EAGER.lease_seconds + 2)
    outcomes = maintain([stock.pipeline], late, lambda line: None, orphans=False)[stock.pipeline.name]
    assert {outcome.ended for outcome in outcomes} <= {"done", "dry_run"}, outcomes
    assert len(stock.live_files()) == 1
    assert stock.lease.holder is None
    stock.assert_nothing_changed()
