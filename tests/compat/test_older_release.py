"""Release 0.1.0 continues a table that this release has written, and this release one of 0.1.0: each record lands once."""

from __future__ import annotations

import io
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import canonical, parse
from frazil.lake.read.stored_tables import Lake
from frazil.local.services import LocalServices
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
RELEASE = "247cde7"  # the commit of 0.1.0
BAD = [b"", b"\x01bad"]


@pytest.fixture
def older(root: Path, tmp_path: Path) -> Path:
    """The entry point of 0.1.0, from the project's history."""
    asked = subprocess.run(["git", "archive", RELEASE, "jobs"], cwd=root, capture_output=True, check=False)
    if asked.returncode:
        pytest.skip(f"the history has no commit {RELEASE}")
    with tarfile.open(fileobj=io.BytesIO(asked.stdout)) as archive:
        archive.extractall(tmp_path / "older", filter="data")
    return tmp_path / "older" / "jobs" / "ingest.py"


def in_version_1(shop: Shop) -> bytes:
    """Return the pipeline as 0.1.0 declares it: a release reads documents of its own version and of earlier ones."""
    topic, table = shop.pipeline.topic, shop.pipeline.table
    pipeline = {
        "name": shop.pipeline.name,
        "topic": {"name": topic.name, "value_format": topic.value_format.value},
        "table": {"identifier": table.identifier},
    }
    written = {"version": 1, "pipelines": [pipeline]}
    assert parse(written) == (shop.pipeline,)
    return canonical(written)


def proven(shop: Shop) -> None:
    shop.assert_each_record_once()
    found = verify(shop.pipeline, Lake(shop.environment, Secrets({}).read), deep=True, wait=lambda seconds: None)
    assert found.outcome == "proven", found.findings


def test_the_older_release_continues_what_this_one_wrote_and_back(
    shop: Shop, older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(older.parent))
    schema_id = shop.register()
    for number in range(2):
        shop.produce([*shop.orders(6, schema_id, first=6 * number), *BAD])
        shop.drain()
    shop.produce([*shop.orders(6, schema_id, first=100), *BAD])
    process = shop.process(tmp_path, script=older, declared=in_version_1(shop))
    _, log = process.communicate(timeout=200)
    assert process.returncode == 0, log
    proven(shop)
    shop.produce([*shop.orders(6, schema_id, first=200), *BAD])
    assert shop.drain().read == 8
    proven(shop)


def test_the_older_release_finishes_a_decision_that_this_one_left_open(
    shop: Shop, older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(older.parent))
    shop.produce([*shop.orders(6, shop.register()), *BAD])

    def die(step: str) -> None:
        if step == "decide.decided":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        shop.drain(failpoint=die)
    process = shop.process(tmp_path, script=older, declared=in_version_1(shop))
    _, log = process.communicate(timeout=200)
    assert process.returncode == 0, log
    assert len(shop.dead()) == 2
    proven(shop)


@pytest.mark.parametrize("lake", ["rest_lake", "glue_lake"])
def test_this_release_finishes_a_decision_that_the_older_one_left_open(
    request: pytest.FixtureRequest,
    local_world: LocalServices,
    spark: SparkSession,
    name: str,
    lake: str,
    older: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table is written by 0.1.0 itself, as SeaweedFS's catalog registers stored metadata as an empty table."""
    shop = Shop(local_world, spark, request.getfixturevalue(lake), name)
    shop.produce([*shop.orders(6, shop.register()), *BAD])
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(older.parent))
        killed = shop.process(tmp_path, script=older, declared=in_version_1(shop), failpoints="decide.decided=kill")
        _, log = killed.communicate(timeout=200)
    assert killed.returncode == -signal.SIGKILL, log
    assert (len(shop.landed()), len(shop.dead())) == (6, 0)
    assert shop.drain().read == 0
    assert len(shop.dead()) == 2
    shop.produce([*shop.orders(6, shop.register(), first=200), *BAD])
    assert shop.drain().read == 8
    proven(shop)
