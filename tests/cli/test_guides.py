"""The guides, run: their commands on the local services of the tests, and what they claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import environment_document
from frazil.local.lakes import file_lake
from frazil.local.services import LocalServices
from tests.support.guides import Terminal, blocks, on_session

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.fixture
def terminal(
    local_world: LocalServices, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Terminal]]:
    """Open a terminal in an empty folder. A project in it has the services of the tests, and a lake of its own."""
    for variable in ("FRAZIL_ENV", "FRAZIL_PIPELINES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)

    def opened(project: str) -> Terminal:
        home = tmp_path / project / ".frazil"
        for kept in local_world.home.iterdir():
            if kept.is_file() or kept.name == "run":
                home.mkdir(parents=True, exist_ok=True)
                (home / kept.name).symlink_to(kept)
        lake = file_lake(home, bootstrap=local_world.bootstrap, registry_url=local_world.registry_url)
        lake = replace(lake, catalog=replace(lake.catalog, name=f"guides_{tmp_path.name}"))
        (home / "environments").mkdir()
        (home / "environments" / "local.json").write_text(json.dumps(environment_document(lake)))
        return Terminal(tmp_path, skipped=("frazil local up",))

    with on_session(spark, monkeypatch):
        yield opened


def test_the_table_follows_the_schemas_of_the_guide(terminal: Callable[..., Terminal]) -> None:
    terminal("payments-project").run(blocks("schema-changes.md"))
