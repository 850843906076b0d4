"""`kill -9` of a maintainer at each step: no record is lost or doubled, and the next one finishes what it left."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from frazil.declaration import Keep
from frazil.maintain.run import maintain
from tests.maintain.test_entry_points import entry_point
from tests.support.committed_table import EAGER, Stock
from tests.support.failpoint_steps import UPKEEP_STEPS
from tests.support.jobs import Crash, crash_at

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
EAGERLY = ("--closed-hours", "0", "--grace-hours", "0", "--orphans")


@pytest.mark.long
@pytest.mark.parametrize("step", UPKEEP_STEPS)
def test_a_maintainer_killed_at_a_step_loses_and_doubles_nothing(
    stock_of: Callable[..., Stock], tmp_path: Path, step: str
) -> None:
    stock = prepared(stock_of)
    killed = entry_point(stock, tmp_path, *EAGERLY, failpoints=f"{step}=kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert_the_next_one_finishes(stock)


def test_a_maintainer_that_died_before_it_deleted_files_loses_and_doubles_nothing(
    stock_of: Callable[..., Stock],
) -> None:
    """Its process is killed by the long tests: this one starts no JVM."""
    stock = prepared(stock_of)
    with pytest.raises(Crash):
        maintain(
            [stock.pipeline], stock.maintenance(failpoint=crash_at("expire.decided")), lambda line: None, orphans=False
        )
    assert_the_next_one_finishes(stock)


def prepared(stock_of: Callable[..., Stock]) -> Stock:
    """A table with files to compact and snapshots to expire."""
    stock = stock_of(snapshots=Keep(2))
    stock.land(7)
    for number in range(6):  # of other writers, so that the tag is to be carried
        stock.iceberg.load(stock.table).newAppend().set("other", str(number)).commit()
    return stock


def assert_the_next_one_finishes(stock: Stock) -> None:
    stock.assert_nothing_changed()
    stock.land(1)
    late = stock.maintenance(clock=lambda: time.time() + EAGER.lease_seconds + 2)
    outcomes = maintain([stock.pipeline], late, lambda line: None, orphans=False)[stock.pipeline.name]
    assert {outcome.ended for outcome in outcomes} <= {"done", "dry_run"}, outcomes
    assert len(stock.live_files()) == 1
    assert stock.lease.holder is None
    stock.assert_nothing_changed()
