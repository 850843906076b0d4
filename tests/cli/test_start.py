"""A package of an extra that is not installed is one line that names the command, in each program of Frazil."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from frazil.cli import main
from frazil.cli.deploy import program as deployment_program
from frazil.errors import LocalPartFailed
from frazil.errors.missing_package import missing_package
from frazil.local.process import await_ready, start
from tests.support.missing_packages import BLOCKED

STARTED = "from frazil.cli.start import main; main()"


def without(folder: Path, module: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this Python, which has every package but one."""
    (folder / "sitecustomize.py").write_text(BLOCKED)
    shell = {**os.environ, "PYTHONPATH": str(folder), "BLOCKED": module, "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=shell, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_a_command_names_the_extra_that_it_needs(tmp_path: Path, module: str) -> None:
    ended = without(tmp_path, module, "-c", f"import sys; sys.argv[1:] = ['--version']; {STARTED}")
    said = f"error: the package {module} is not installed. pip install 'frazil[cli]'"
    assert (ended.returncode, said in ended.stderr, len(ended.stderr.splitlines())) == (3, True, 1), ended.stderr


def test_a_command_that_imports_its_package_later_names_the_extra_too() -> None:
    def needs_fastavro(context: object) -> None:
        raise ModuleNotFoundError("No module named 'fastavro'", name="fastavro")

    with pytest.raises(LocalPartFailed, match=r"fastavro is not installed. pip install 'frazil\[local\]'"):
        main._with_packages(needs_fastavro, None)


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("fastavro.schema", "fastavro"),
        ("localstack_client.config", "localstack-client"),
        ("cyclonedx.model", "cyclonedx-python-lib"),
        ("cdktf_cdktf_provider_aws", "cdktf-cdktf-provider-aws"),
        ("pyspark.sql", "pyspark"),
        ("boto3", "boto3"),
    ],
)
def test_a_module_is_found_in_the_package_that_frazil_requires(module: str, package: str) -> None:
    assert f"the package {package} is not installed" in str(missing_package(module))


@pytest.mark.parametrize("module", [None, "", "frazil.nothing", "my_module", "fraz"])
def test_another_missing_module_is_a_defect_or_the_users(module: str | None) -> None:
    assert missing_package(module) is None


def test_a_local_server_without_its_package_is_one_line(tmp_path: Path) -> None:
    process = start(
        "aws", [sys.executable, "-c", "raise ModuleNotFoundError(\"No module named 'fastavro'\")"], home=tmp_path
    )
    with pytest.raises(
        LocalPartFailed, match=r"^the package fastavro is not installed. pip install 'frazil\[local\]'$"
    ):
        await_ready(process, lambda: False, seconds=60)


def test_a_deployment_without_its_packages_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("frazil.toml", "infra_app.py"):
        (tmp_path / name).touch()
    monkeypatch.setattr(deployment_program, "find_spec", lambda name: None)
    with pytest.raises(LocalPartFailed, match=r"the package cdktf is not installed. pip install 'frazil\[infra\]'"):
        deployment_program.deployment_program(tmp_path, "review")
