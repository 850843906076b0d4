"""`frazil accept`, as a person runs it after a refusal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from frazil.declaration.document import canonical, document
from frazil.declaration.environment import environment_document
from frazil.errors import OffsetsLost
from tests.scenarios.test_accept import delete_records
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def frazil(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, as it starts and stops a Spark session."""
    command = [str(Path(sys.executable).parent / "frazil"), *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.long
@pytest.mark.parametrize("twice", [False, True])
def test_the_command_that_a_refusal_names_decides_it(shop_of: Callable[..., Shop], tmp_path: Path, twice: bool) -> None:
    shop = shop_of(partitions=1)
    schema_id = shop.register()
    shop.produce(shop.orders(5, schema_id))
    shop.drain()
    shop.produce(shop.orders(5, schema_id, first=5))
    delete_records(shop, 8)
    (tmp_path / "pipelines.json").write_bytes(canonical(document([shop.pipeline])))
    (tmp_path / "environment.json").write_bytes(canonical(environment_document(shop.environment)))
    with pytest.raises(OffsetsLost) as refused:
        shop.drain()
    _, _, command = refused.value.do.partition("`frazil ")
    words = command.partition(" --reason")[0].split()
    options = ("--reason", "the disk was full", "--pipelines", "pipelines.json", "--env", "environment.json", "--json")
    ended = frazil(*words, *options, cwd=tmp_path)
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
        again = frazil(*words, *options, cwd=tmp_path)
        assert again.returncode == 2
        assert "nothing to accept" in again.stderr
