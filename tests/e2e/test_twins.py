"""Two drivers on one pipeline: one makes progress, the other is fenced; no record is lost or doubled."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from frazil.declaration import Limits
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
TWIN = Path(__file__).parents[1] / "support" / "twin.py"


def test_free_running_twins_share_a_topic_without_a_loss(shop_of: Callable[..., Shop], tmp_path: Path) -> None:
    shop = shop_of(limits=Limits(first_rows=40, max_rows=40), partitions=3)
    shop.produce([*shop.orders(1000, shop.register()), *[b"bad!!"] * 10])
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    twins = [shop.process(folder, script=TWIN) for folder in folders]
    results = []
    for twin in twins:
        out, log = twin.communicate(timeout=240)
        assert twin.returncode == 0, log
        results.append(json.loads(out.splitlines()[-1]))
    shop.assert_each_record_once()
    assert sum(r["batches"] for r in results) >= 1010 // 40
    assert sum(r["fenced"] for r in results) >= 1


def scripted(shop: Shop, tmp_path: Path, step: str) -> None:
    """A driver pauses at `step`; a twin lands everything; the driver goes on, and must see that it lost."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    os.mkfifo(f"{pipe}.reached")
    paused = shop.process(tmp_path, failpoints=f"{step}=pause:{pipe}")
    with open(f"{pipe}.reached", "rb") as reached:
        assert reached.read(1) == b"."
    shop.drain()
    with open(pipe, "wb") as go:
        go.write(b".")
    _, log = paused.communicate(timeout=120)
    assert paused.returncode == 0, log
    events = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [e["event"] for e in events if e["event"] in ("fenced", "landed")] == ["fenced"]
    shop.assert_each_record_once()


@pytest.mark.parametrize("step", ["plan.done", "stage.written", "publish.decided", "publish.filled"])
def test_a_twin_that_commits_while_a_driver_pauses_fences_it(shop: Shop, tmp_path: Path, step: str) -> None:
    schema_id = shop.register()
    shop.produce(shop.orders(5, schema_id))
    shop.drain()
    shop.produce([*shop.orders(5, schema_id, first=5), b"bad!!"])
    scripted(shop, tmp_path, step)


def test_a_twin_that_begins_first_fences_nobody_before_there_is_a_batch(shop: Shop, tmp_path: Path) -> None:
    shop.produce(shop.orders(5, shop.register()))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    os.mkfifo(f"{pipe}.reached")
    paused = shop.process(tmp_path, failpoints=f"begin.resolved=pause:{pipe}")
    with open(f"{pipe}.reached", "rb") as reached:
        reached.read(1)
    shop.drain()
    with open(pipe, "wb") as go:
        go.write(b".")
    _, log = paused.communicate(timeout=120)
    assert paused.returncode == 0, log
    shop.assert_each_record_once()
