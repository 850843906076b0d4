"""The wheel, installed outside of the checkout, has all that the commands read."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass, replace
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from frazil.errors import ReleaseIncomplete
from frazil.local.services import down
from frazil.release import build, wheels
from frazil.release import installed as installed_wheel
from frazil.release.manifest import Architecture, Role, manifest, parse_manifest
from tests.support import quickstart, small_release
from tests.support.rollout_world import release

DECLARED = """
from frazil import Json, Pipeline, Table, Topic

pipelines = [Pipeline(topic=Topic("orders", value=Json(columns=("id long",))), table=Table("shop.orders"))]
"""
ASKS = """
import json, sys
import frazil
from importlib.metadata import metadata
from frazil.local.toolchain.jars import lock_file, locked
of = metadata("frazil")
print(json.dumps({
    "package": frazil.__file__, "lock": str(lock_file()), "jars": len(locked(lock_file())), "python": of["Requires-Python"],
    "licence": of["License-Expression"], "licence_files": of.get_all("License-File"),
}))
"""


def without_frazil() -> dict[str, str]:
    """Return the environment of a user who has set nothing."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("FRAZIL_", "PYTEST_", "PYTHON"))}


@dataclass(frozen=True)
class Installed:
    """The wheel in a folder that comes before the editable install, and an empty working folder."""

    target: Path
    folder: Path

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        shell = {**without_frazil(), "PYTHONPATH": str(self.target), "NO_COLOR": "1", **variables}
        return subprocess.run(
            command, cwd=self.folder, env=shell, capture_output=True, text=True, check=False, timeout=120
        )

    def frazil(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, str(self.target / "bin" / "frazil"), *words, **variables)


@pytest.fixture(scope="module")
def installed(own_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    target, folder = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("elsewhere")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
    ]
    subprocess.run([*pip, "--target", str(target), str(own_wheel)], check=True, capture_output=True, cwd=folder)
    (folder / "mine.py").write_text(DECLARED)
    return Installed(target, folder)


def test_an_installed_package_has_its_lock_its_licence_and_its_python(installed: Installed, root: Path) -> None:
    ended = installed.run(sys.executable, "-c", ASKS)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    package = installed.target / "frazil"
    assert found["package"] == str(package / "__init__.py")
    assert found["lock"] == str(package / "local" / "toolchain" / "jars.lock")
    assert Path(found["lock"]).read_bytes() == (root / "jobs" / "jars.lock").read_bytes()
    assert found["jars"] > 100
    assert (found["licence"], found["licence_files"]) == ("Apache-2.0", ["LICENSE"])
    assert found["python"] == "<3.14,>=3.11"
    (licence,) = installed.target.glob("frazil-*.dist-info/licenses/LICENSE")
    assert licence.read_bytes() == (root / "LICENSE").read_bytes()


def test_every_file_of_the_package_is_in_the_wheel(own_wheel: Path, root: Path) -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "frazil"]
    files = subprocess.run(listed, cwd=root / "jobs", capture_output=True, text=True, check=True).stdout.split()
    content = {name for name in wheels.content(own_wheel) if ".dist-info/" not in name}
    packaged = {name for name in content if not name.startswith("frazil_deploy/")}
    assert "frazil/py.typed" in packaged
    inputs = {f"frazil/release/inputs/{name}" for name in ("ingest.py", "maintain.py", "requirements.lock")}
    assert packaged == {*files, "frazil/local/toolchain/jars.lock", *inputs}
    deployment = {name for name in content - packaged if not name.startswith("frazil_deploy/__init__")}
    assert {name.split("/")[1] for name in deployment} == {"infra", "policies", "stacks"}


def distribution(installed: Installed) -> Distribution:
    (metadata,) = installed.target.glob("frazil-*.dist-info")
    return Distribution.at(metadata)


def test_a_release_of_the_installed_wheel_is_that_of_its_checkout_but_for_its_origin(
    installed: Installed, own_wheel: Path, root: Path, tmp_path: Path
) -> None:
    subprocess.run(
        [sys.executable, "-c", "import frazil.errors"], env={**os.environ, "PYTHONPATH": str(installed.target)}
    )
    source = installed_wheel.Installed.of_this_python(distribution(installed))
    (tmp_path / "wheel").mkdir()
    made = small_release.built(root, build.own_wheel(source, tmp_path / "wheel"), tmp_path, tmp_path / "out", of=source)
    of_checkout = small_release.built(root, own_wheel, tmp_path, tmp_path / "checkout")
    bill = {file.name for file in made.files if file.role is Role.BILL}  # it has the time of the commit
    assert [file for file in made.files if file.name not in bill] == [
        file for file in of_checkout.files if file.name not in bill
    ]
    assert (made.git_commit, made.is_dirty) == (None, False)
    listed = "".join(
        f"{name},{hashlib.sha256(data).hexdigest()}\n"
        for name, data in sorted(wheels.content(own_wheel).items())
        if not name.endswith("/RECORD")
    )
    assert made.wheel_sha256 == hashlib.sha256(listed.encode()).hexdigest()
    assert parse_manifest((tmp_path / "out" / "manifest.json").read_bytes()) == made
    again = small_release.built(
        root, build.own_wheel(source, tmp_path / "wheel"), tmp_path, tmp_path / "again", of=source
    )
    assert again.digest == made.digest


def test_a_changed_file_of_an_installed_wheel_makes_no_release(own_wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(own_wheel) as archive:
        archive.extractall(tmp_path)
    (metadata,) = tmp_path.glob("frazil-*.dist-info")
    assert installed_wheel.Installed.of_this_python(Distribution.at(metadata)).commit is None
    (tmp_path / "frazil" / "errors" / "failures.py").write_text("raise SystemExit\n")
    with pytest.raises(ReleaseIncomplete, match="errors/failures.py: the file is not that of the wheel"):
        installed_wheel.Installed.of_this_python(Distribution.at(metadata))


def test_an_editable_install_is_no_wheel() -> None:
    with pytest.raises(ReleaseIncomplete, match="Frazil is installed from a checkout"):
        installed_wheel.Installed.of_this_python()


@pytest.mark.long
def test_a_project_deploys_by_the_installed_package_alone(installed: Installed) -> None:
    """It has folders of the names that deployment has in the checkout, and they are its own."""
    project = installed.folder / "deploying"
    made = installed.frazil("init", str(project), "--kafka", "local", "--aws", "--yes")
    assert made.returncode == 0, made.stderr
    for name in ("infra", "policies", "stacks"):
        (project / name).mkdir()
        (project / name / "__init__.py").write_text("raise ImportError('a project's own')\n")
    asked = "import sys; sys.argv[1:] = ['describe', 'dev']; import runpy; runpy.run_path('infra_app.py', run_name='__main__')"
    there = f"import os; os.chdir({str(project)!r})"
    ended = installed.run(sys.executable, "-c", f"{there}; {asked}")
    assert (ended.returncode, json.loads(ended.stdout)["architecture"]) == (0, "ARM64"), ended.stderr
    # The first step of its workflow of deployments, without a release and with a committed manifest.
    check = ["release", "check", "dev", "--json"]
    command = f"{there}; import sys; sys.argv[1:] = {check!r}; from frazil.cli.main import main; main()"
    ended = installed.run(sys.executable, "-c", command)
    assert (ended.returncode, json.loads(ended.stdout)["digest"]) == (0, None), ended.stderr
    digest = declare_release(project)
    ended = installed.run(sys.executable, "-c", command)
    assert (ended.returncode, json.loads(ended.stdout)["digest"]) == (0, digest), ended.stderr


def declare_release(project: Path) -> str:
    """Commit the manifest of a release, as docs/deploy.md says, and return its digest."""
    made = replace(release(), architecture=Architecture.ARM64)
    (project / "release").mkdir()
    (project / "release" / "manifest.json").write_bytes(manifest(made))
    program = project / "infra_app.py"
    assert program.read_text().count('release="none"') == 1
    program.write_text(program.read_text().replace('release="none"', 'release="release/manifest.json"'))
    return made.digest


@pytest.mark.long
def test_the_command_runs_and_checks_a_declaration_outside_of_a_checkout(installed: Installed) -> None:
    shown = installed.frazil("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "dead-letters" in shown.stdout
    checked = installed.frazil("check", "mine.py", "--json")
    assert checked.returncode == 0, checked.stderr
    assert [pipeline["name"] for pipeline in json.loads(checked.stdout)["pipelines"]] == ["orders"]


@pytest.mark.long
def test_a_new_environment_follows_the_quickstart(own_wheel: Path, root: Path, tmp_path: Path) -> None:
    """It installs about 1.2 GB, the packages of `cli` and `local`, and fetches all jars into an empty cache."""
    venv.create(tmp_path / "venv", with_pip=True)
    program = tmp_path / "venv" / "bin"
    pip = [str(program / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{own_wheel}[cli,local]"], check=True, cwd=tmp_path)
    (first, again), cache = (tmp_path / "first", tmp_path / "again"), str(tmp_path / "cache")
    for folder in (first, again):
        folder.mkdir()
        try:
            steps = quickstart.followed(root, folder, program, XDG_CACHE_HOME=cache)
        finally:
            down(folder, data=True)
        quickstart.check(steps)
        fetched = [step.command for step in steps if "fetching" in step.stderr]
        assert fetched == (["frazil local up", "frazil run"] if folder == first else [])
        print(f"seconds: {[round(step.seconds, 1) for step in steps]}")


@pytest.mark.long
def test_a_new_environment_synthesises_a_new_project(root: Path, tmp_path: Path) -> None:
    """The wheel of `pip wheel`, and the packages of `cli` and `infra`: about 1.5 GB."""
    build = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(root)]
    subprocess.run([sys.executable, "-m", *build], check=True, cwd=tmp_path)
    [wheel] = tmp_path.glob("frazil-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    program, project = tmp_path / "venv" / "bin", tmp_path / "shop"
    subprocess.run([program / "pip", "install", "--quiet", f"{wheel}[cli,infra]", "pytest"], check=True, cwd=tmp_path)
    shell = {**without_frazil(), "PATH": f"{program}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def ran(*command: str, folder: Path = project) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(command, cwd=folder, env=shell, capture_output=True, text=True, check=False, timeout=600)
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
        return ended

    ran("frazil", "init", "shop", "--kafka", "confluent", "--aws", "--yes", folder=tmp_path)
    ran("frazil", "check")
    assert "1 passed" in ran("python", "-m", "pytest").stdout
    ran("python", "infra_app.py")
    stacks = {f"dev-{what}" for what in ("foundation", "confluent", "ingestion")}
    assert {each.name for each in (project / "cdktf.out" / "stacks").iterdir()} == stacks
    assert {each.name for each in (project / "deployed").iterdir()} == {"dev.json"}
    reviewed = subprocess.run(
        ["frazil", "deploy", "plan", "dev", "--offline"],
        cwd=project,
        env=shell,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "## Review of `dev`" in reviewed.stdout, reviewed.stderr
    assert "| `orders` | `shop.orders` | new |" in reviewed.stdout
    digest = declare_release(project)
    told = json.loads(ran("frazil", "release", "check", "dev", "--json").stdout)
    assert told["digest"] == digest
    ran("python", "infra_app.py")
    stack = (project / "cdktf.out" / "stacks" / "dev-ingestion" / "cdk.tf.json").read_text()
    assert f"releases/{told['version']}/{digest}/manifest.json" in stack, "the manifest alone is enough"
