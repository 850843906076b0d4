"""`frazil doctor` on real services: all is well, and each layer that fails is named."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from frazil.clients.secrets import Secrets
from frazil.declaration.documents.document import environment_document
from frazil.declaration.environment import Kafka
from frazil.local.services import LocalServices
from tests.support.documents import environment_in
from tests.support.shop import ORDER

DECLARED = """
from frazil.declaration import *
pipelines = [
    Pipeline(topic=Topic("{name}", value="avro"), table=Table("shop.orders"), name="orders"),
    Pipeline(topic=Topic("{name}-gone", value="text"), table=Table("shop.gone"), name="gone"),
]
"""


def doctor(*arguments: str, **variables: str) -> Result:
    return CliRunner(env=variables).invoke(app, ["doctor", *arguments], obj=Secrets(variables))


def by_name(ended: Result) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(ended.stdout)["checks"]}


@pytest.fixture(autouse=True)
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAZIL_PIPELINES", "pipelines.py")


def write(folder: Path, name: str, environment: Any, **changes: Any) -> None:
    (folder / "pipelines.py").write_text(DECLARED.format(name=name))
    document = environment_document(replace(environment, catalog=environment_in(folder / "lake").catalog))
    for part, members in changes.items():
        document[part] |= members
    (folder / "env.json").write_text(json.dumps(document))


@pytest.mark.e2e
@pytest.mark.spark
def test_healthy_services_pass_within_five_seconds_and_a_missing_topic_is_named(
    folder: Path, local_world: LocalServices, shop: Any
) -> None:
    shop.produce([b"anything"])
    shop.register(ORDER)
    write(folder, shop.topic, local_world.environment)
    began = time.process_time()
    ended = doctor("--env", "env.json", "--json", "orders")
    assert ended.exit_code == 0, ended.stdout
    assert time.process_time() - began < 5  # of CPU: a busy machine takes longer
    checks = by_name(ended)
    assert {check["result"] for name, check in checks.items() if name != "clock"} == {"ok"}
    assert f"topic {shop.topic}-gone" not in checks
    assert {"name": "order_id", "type": "long"} in checks["columns orders"]["columns"]
    ended = doctor("--env", "env.json", "--columns")
    assert ended.exit_code == 3
    assert "order_id  long" in ended.stdout
    assert f"✗ topic {shop.topic}-gone" in ended.stdout
    assert "not checked: topic" in ended.stdout
    assert not (folder / "lake").exists()  # nothing was written


@pytest.mark.long
def test_services_that_do_not_answer_are_failures_with_remedies(folder: Path, local_world: LocalServices) -> None:
    write(
        folder,
        "t",
        local_world.environment,
        kafka={"bootstrap": "127.0.0.1:1"},
        registry={"url": "http://127.0.0.1:1", "username": {"env": "U"}, "password": {"env": "P"}},
    )
    began = time.monotonic()
    ended = doctor("--env", "env.json", "--json", U="hunter2-hunter2", P="planted-secret")
    assert time.monotonic() - began < 11
    assert ended.exit_code == 3, ended.output
    checks = by_name(ended)
    assert checks["broker"]["found"] == "127.0.0.1:1: connection refused"
    assert {checks[name]["result"] for name in ("broker login", "topic t", "read t", "columns orders")} == {"skipped"}
    assert (checks["registry"]["result"], checks["columns gone"]["result"]) == ("failed", "ok")
    assert checks["secret env P"]["result"] == "ok"
    assert "planted" not in ended.output
    assert "hunter2" not in ended.output


def test_an_environment_without_a_registry_is_one_failure(folder: Path, local_world: LocalServices) -> None:
    write(folder, "t", replace(local_world.environment, registry=None, kafka=Kafka(bootstrap="127.0.0.1:1")))
    began = time.monotonic()
    checks = by_name(doctor("--env", "env.json", "--json"))
    assert time.monotonic() - began < 5
    assert "needs a schema registry" in checks["declarations"]["found"]
    assert checks["columns orders"] == {
        "name": "columns orders",
        "result": "skipped",
        "found": "not checked: the environment has no registry",
        "remedy": None,
    }


def test_files_that_do_not_load_are_failures_and_the_machine_is_checked_all_the_same(folder: Path) -> None:
    (folder / "pipelines.py").write_text("from frazil.declaration import *\npipelines = [Topic('a b')]\n")
    ended = doctor("--env", "nowhere", "--json")
    assert ended.exit_code == 2, ended.output
    checks = by_name(ended)
    assert [name for name, check in checks.items() if check["result"] == "failed"] == ["declarations", "environment"]
    assert checks["declarations"]["found"].startswith("pipelines.py:2: ")
    assert checks["declarations"]["remedy"].endswith("; 1 more: `frazil check --env NAME` lists all")
    assert checks["java"]["result"] == "ok"
    assert checks["services"]["result"] == "skipped"


def test_an_unknown_pipeline_is_wrong_input(folder: Path, local_world: LocalServices) -> None:
    write(folder, "t", local_world.environment)
    ended = doctor("--env", "env.json", "nope")
    assert ended.exit_code == 2
    assert "the pipeline nope does not exist" in ended.stderr


def test_signs_are_words_where_the_terminal_has_none(folder: Path) -> None:
    ended = CliRunner(charset="ascii").invoke(app, ["doctor", "--env", "nowhere"])
    assert "FAIL declarations" in ended.output


@pytest.mark.parametrize("module", ["doctor.examination", "status.all_pipelines"])
def test_the_checks_and_the_status_import_no_spark(module: str) -> None:
    code = f"import sys; import frazil.{module}; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
