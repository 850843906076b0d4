"""A new project: complete or not there, and without problems as it is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from frazil.declaration import InvalidDeclaration, Secret, Security
from frazil.errors import InvalidInput
from frazil.project.checked_project import checked_pipelines
from frazil.project.environments import environment
from frazil.project.new_project import BOOTSTRAP, REGISTRY, Cluster, NewProject, write_files

LOCAL = NewProject(cluster=Cluster.LOCAL, environment="local")
PLAIN = NewProject(cluster=Cluster.PLAIN, environment="dev", bootstrap="k:9092")
CONFLUENT = NewProject(
    cluster=Cluster.CONFLUENT,
    environment="dev",
    bootstrap=BOOTSTRAP[Cluster.CONFLUENT],
    registry=REGISTRY[Cluster.CONFLUENT],
)


DEPLOYING = replace(CONFLUENT, environment="workstation", has_aws=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("project", [LOCAL, PLAIN, CONFLUENT], ids=lambda project: project.cluster)
def test_a_new_project_has_no_problem_and_its_test_passes(folder: Path, project: NewProject) -> None:
    write_files(folder, project.files("0.1.0"))
    (listed,) = checked_pipelines(Path("pipelines.py"), choice=None, with_project=True).listed
    assert listed.pipeline.table.identifier == "shop.orders"
    if project is not CONFLUENT:
        return
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "1 passed" in ended.stdout, ended.stdout


def test_on_confluent_cloud_only_secrets_are_left_to_variables(folder: Path) -> None:
    write_files(folder, CONFLUENT.files("0.1.0"))
    found = environment("dev")
    assert found.kafka.security is Security.SASL_SSL
    assert (found.kafka.username, found.kafka.password) == (Secret(env="KAFKA_API_KEY"), Secret(env="KAFKA_API_SECRET"))
    assert found.registry is not None
    assert found.registry.password == Secret(env="REGISTRY_API_SECRET")
    assert [each for each in CONFLUENT.next_commands(Path("shop")) if each.startswith("export ")] == [
        f"export {name}=…" for name in CONFLUENT.variables
    ]


def test_the_records_of_the_sample_have_the_declared_columns() -> None:
    records = [json.loads(line) for line in LOCAL.files("0.1.0")["orders.jsonl"].splitlines()]
    assert [record["order_id"] for record in records] == list(range(1, 11))
    assert all(set(record) == {"order_id", "customer", "amount", "ordered_at"} for record in records)
    assert "orders.jsonl" not in PLAIN.files("0.1.0")


@pytest.mark.parametrize(
    ("bootstrap", "registry", "path"),
    [
        ("nowhere", "", "environments.dev.kafka.bootstrap"),
        ('x"\n[a]\nb="', "", "environments.dev.kafka.bootstrap"),
        ("k:9092", "ftp://r", "environments.dev.registry.url"),
        ("k:9092$environment", "", "environments.dev.kafka.bootstrap"),
    ],
)
def test_an_answer_that_is_no_address_is_refused(bootstrap: str, registry: str, path: str) -> None:
    project = NewProject(cluster=Cluster.PLAIN, environment="dev", bootstrap=bootstrap, registry=registry)
    with pytest.raises(InvalidDeclaration) as raised:
        project.files("0.1.0")
    assert [problem.path for problem in raised.value.problems] == [path]


@pytest.mark.parametrize("name", ["Dev", "a.b", "dev]"])
def test_a_name_that_is_none_of_an_environment_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not an environment's name"):
        NewProject(cluster=Cluster.PLAIN, environment=name, bootstrap="k:9092").files("0.1.0")


WORKFLOWS = ("synthesise", "review", "deploy", "deploy-environment")


def test_a_project_that_deploys_has_its_stacks_and_their_review() -> None:
    files = DEPLOYING.files("0.1.0")
    assert set(files) - set(CONFLUENT.files("0.1.0")) == {
        *(f".github/workflows/{name}.yml" for name in WORKFLOWS), "cdktf.json", "infra_app.py"
    }  # fmt: skip
    assert json.loads(files["cdktf.json"])["app"] == "python infra_app.py"
    assert 'environment = "workstation"' in files["frazil.toml"], "dev is a deployment"


def test_workflows_install_this_version_and_pin_actions_as_frazils_own(root: Path) -> None:
    """`tests/policies/review/test_workflow.py` holds them against the rules of Frazil's own."""
    files = DEPLOYING.files("0.1.0")
    pinned = set(re.findall(r"uses: (.+)", (root / ".github" / "workflows" / "review.yml").read_text()))
    for name, extras in {"check": "cli", **dict.fromkeys(WORKFLOWS, "cli,infra")}.items():
        text = files[f".github/workflows/{name}.yml"]
        assert f'"frazil[{extras}]==0.1.0"' in text
        assert set(re.findall(r"uses: (.+)", text)) <= pinned | {"./.github/workflows/deploy-environment.yml"}
    comment = "      - name: Comment"
    own = (root / ".github" / "workflows" / "review.yml").read_text()
    assert files[".github/workflows/review.yml"].partition(comment)[2] == own.partition(comment)[2] != ""


def test_no_file_is_overwritten_and_all_of_them_are_named(folder: Path) -> None:
    (folder / "pipelines.py").write_text("mine")
    (folder / ".gitignore").symlink_to("nowhere")
    with pytest.raises(InvalidInput, match=r"pipelines\.py, \.gitignore exist already"):
        write_files(folder, LOCAL.files("0.1.0"))
    assert sorted(each.name for each in folder.iterdir()) == [".gitignore", "pipelines.py"]
    assert (folder / "pipelines.py").read_text() == "mine"


def test_a_file_that_cannot_be_written_leaves_nothing(folder: Path) -> None:
    (folder / "shop").mkdir()
    (folder / "shop" / "tests").write_text("a file where a folder belongs")
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_files(folder / "shop", LOCAL.files("0.1.0"))
    assert [each.name for each in (folder / "shop").iterdir()] == ["tests"]


def test_folders_that_were_made_are_removed_with_the_files(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_files(folder / "new" / "shop", {"a.txt": "a", "b/c.txt": "c", "x" * 300: "too long"})
    assert [*folder.iterdir()] == []
