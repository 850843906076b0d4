"""`frazil accept`, as a person runs it after a refusal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from frazil.declaration import Upsert
from frazil.errors import DecisionRequired, KeysMoved, OffsetsLost
from tests.scenarios.test_upserts import State
from tests.support.documents import written
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def frazil(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, as it starts and stops a Spark session."""
    command = [str(Path(sys.executable).parent / "frazil"), *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


def decided(shop: Shop, refused: DecisionRequired, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command that a refusal names, on the files of a project in `folder`."""
    _, _, command = refused.do.partition("`frazil ")
    words = command.partition(" --reason")[0].split()
    options = written(folder, [shop.pipeline], shop.environment)
    return frazil(*words, "--reason", "as it happened", *options, "--json", cwd=folder)


@pytest.mark.long
@pytest.mark.parametrize("twice", [False, True])
def test_the_command_that_a_refusal_names_decides_it(shop_of: Callable[..., Shop], tmp_path: Path, twice: bool) -> None:
    shop = shop_of(partitions=1)
    schema_id = shop.register()
    shop.produce(shop.orders(5, schema_id))
    shop.drain()
    shop.produce(shop.orders(5, schema_id, first=5))
    shop.delete_records(8)
    with pytest.raises(OffsetsLost) as refused:
        shop.drain()
    ended = decided(shop, refused.value, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {
        "pipeline": shop.pipeline.name,
        "event": "offsets-lost",
        "before": {"0": 5},
        "after": {"0": 8},
        "lost": {"0": 3},
    }
    assert shop.drain().written == 2
    if twice:
        again = decided(shop, refused.value, tmp_path)
        assert again.returncode == 2
        assert "nothing to accept" in again.stderr


@pytest.mark.long
def test_the_command_decides_about_keys_that_changed_their_partition(
    shop_of: Callable[..., Shop], tmp_path: Path
) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    state = State(shop)
    state.put(1, "first", partition=0)
    shop.drain()
    state.put(1, "moved", partition=1)
    with pytest.raises(KeysMoved) as refused:
        shop.drain()
    ended = decided(shop, refused.value, tmp_path)
    assert ended.returncode == 0, ended.stderr
    held = {"0": 1, "1": 0}
    assert json.loads(ended.stdout) == {
        "pipeline": shop.pipeline.name,
        "event": "keys-moved",
        "before": held,
        "after": held,
        "lost": {},
    }
    shop.drain()
    state.check()
    assert any("keys-moved" in note and "as it happened" in note for note in shop.verified().notes)
