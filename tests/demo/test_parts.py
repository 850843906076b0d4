"""The parts of `make deploy-demo` that need no cloud."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from tests.demo import checkout as own_checkout
from tests.demo import project
from tests.demo.machine import clean


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / project.NAME
    begun = CliRunner().invoke(app, ["init", str(folder), "--kafka", "local", "--aws", "--yes"])
    assert begun.exit_code == 0, begun.output
    return folder


@pytest.mark.long
def test_what_is_declared_and_the_change_fit_the_stacks_as_they_are(lake: Path, root: Path) -> None:
    environment = {**clean(os.environ, root), "PYTHONPATH": f"{root}{os.pathsep}{root / 'jobs'}"}
    environment |= {"FRAZIL_ENVIRONMENTS": "dev", "FRAZIL_RELEASE": "none"}
    for edit in (project.declare, project.change):
        edit(lake)
        for file in (lake / project.INFRA, lake / project.PIPELINES):  # no wheel is installed here
            file.write_text(file.read_text().replace("from frazil_deploy.", "from "))
        (own_checkout.commit if edit is project.change else own_checkout.begin)(lake, "x")
        command = [sys.executable, project.INFRA]
        ended = subprocess.run(command, cwd=lake, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        if edit is project.declare:
            for file in (lake / project.INFRA, lake / project.PIPELINES):
                file.write_text(file.read_text().replace("from infra.", "from frazil_deploy.infra."))
    shown = own_checkout.difference(lake).splitlines()
    assert '+    ManagedTopic("weather", partitions=3),' in shown
    assert "-        schema_evolution=SchemaEvolution.FREEZE," in shown
    assert '+    Retired("confluent_kafka_topic", "planes", reason="its producer has ended"),' in shown


def test_no_variable_that_leads_to_an_account_reaches_a_command(root: Path) -> None:
    given = {
        "AWS_PROFILE": "prod",
        "AWS_SECRET_ACCESS_KEY": "x",
        "CONFLUENT_CLOUD_API_KEY": "x",
        "TF_VAR_x": "x",
        "FRAZIL_DESTROY_DATA": "prod",
        "GIT_DIR": "x",
        "LANG": "C",
        "PATH": "p",
    }
    found = clean(given, root)
    assert not {"AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "FRAZIL_DESTROY_DATA", "GIT_DIR", "TF_VAR_x"} & found.keys()
    assert not [name for name in found if name.startswith("CONFLUENT")]
    assert found["LANG"] == "C"
    assert found["PATH"].endswith(f"{os.pathsep}p")


def test_missing_programs_are_told_at_once(root: Path, tmp_path: Path) -> None:
    for name in ("bash", "dirname", "sed"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    command = [str(tmp_path / "bash"), str(root / ".ci" / "setup-deploy"), "--check"]
    ended = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert "nothing was started" in ended.stderr
    for name in ("go", "terraform", "node", "npm", "git"):
        assert f"  {name} is not found" in ended.stderr
