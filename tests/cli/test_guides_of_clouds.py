"""What the guides say for machines and accounts that are not here: parsed, evaluated, and compared with recorded calls."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import boto3
import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.clients.secrets import Secrets
from frazil.exit_codes import Exit
from policies.resources import many
from tests.policies.recorded_aws import REGION, Call, recorded_aws
from tests.support.guides import GUIDES, block, blocks, parse
from tests.support.iam_evaluation import Request, Verdict, evaluate

CLOUD = "confluent-cloud-small-machine.md"
PAGES = sorted(page.name for page in GUIDES.glob("*.md"))


# ── Commands and files ──────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("page", PAGES)
def test_the_command_lines_of_a_guide_are_those_of_the_application(page: str) -> None:
    lines = [line for one in blocks(page) for line in one.text.replace("\\\n", " ").splitlines()]
    commands = [found[0] for line in lines if (found := re.search(r"(^|(?<=/bin/))frazil .*", line.strip()))]
    assert commands
    for command in commands:
        parse(command)


@pytest.mark.usefixtures("folder")
def test_each_project_file_of_a_guide_is_valid() -> None:
    checked = []
    for page in PAGES:
        for one in blocks(page):
            if one.file in {"pipelines.py", "frazil.toml"}:
                Path(one.file).write_text(one.text)
            if one.language in {"toml", "python"} and Path("pipelines.py").exists():
                ended = CliRunner().invoke(app, ["check"])
                assert ended.exit_code == 0, f"{page}\n{one.text}\n{ended.output}"
                checked.append(one.language)
    assert {kind: checked.count(kind) for kind in ("toml", "python")} == {
        "toml": 2,
        "python": 17,
    }  # one comes before its declarations


# ── The policy ──────────────────────────────────────────────────────────────────────────────────
POLICY: dict[str, Any] = json.loads(block(CLOUD, "policy.json"))
ACCOUNT, HERE = "111111111111", "eu-central-1"
GLUE = f"arn:aws:glue:{HERE}:{ACCOUNT}"
LAKE = "arn:aws:s3:::example-lake"
WITHOUT_RECORD = {
    "s3:ListBucket": "without it, S3 answers 'forbidden' for a missing file",
    "s3:AbortMultipartUpload": "uploads of large files that failed half-way",
}


def requests(calls: list[list[str]]) -> list[Request]:
    """The recorded calls, with the names of the guide."""
    made = []
    for action, what in calls:
        for written, here in (
            ("tables/lake", "example-lake/warehouse"),
            ("tables?lake", "example-lake?warehouse"),
            ("<table>", "orders"),
            ("<dead letters>", "orders__dead_letters"),
            ("<ticket>", "1f"),
            ("<file>", "file"),
        ):
            what = what.replace(written, here)
        if action.startswith("glue:"):
            database, _, table = what.partition("/")
            arns = [f"{GLUE}:catalog", f"{GLUE}:database/{database}", *([f"{GLUE}:table/{what}"] if table else [])]
            made += [Request(action=action, resource=arn) for arn in arns]
        elif action == "s3:ListBucket":
            bucket, _, prefix = what.partition("?")
            made.append(Request(action=action, resource=f"arn:aws:s3:::{bucket}", context={"s3:prefix": prefix}))
        else:
            made.append(Request(action=action, resource=f"arn:aws:s3:::{what}"))
    return made


@pytest.fixture(scope="module")
def doctors_calls(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """What `frazil doctor` asks of AWS, recorded, with the names of `calls.json`."""
    folder = tmp_path_factory.mktemp("doctor")
    (folder / "pipelines.py").write_text(block(CLOUD, "pipelines.py"))
    for name in ("id", "key"):
        (folder / name).write_text("made-up")
        (folder / name).chmod(0o600)
    with recorded_aws() as (endpoint, log):
        options = {"aws_access_key_id": "made-up", "aws_secret_access_key": "made-up", "region_name": REGION}
        session = boto3.session.Session()
        session.client("s3", endpoint_url=endpoint, **options).create_bucket(Bucket="tables")
        session.client("glue", endpoint_url=endpoint, **options).create_database(DatabaseInput={"Name": "shop"})
        log.forget()
        document = {
            "version": 1,
            "name": "env",
            "kafka": {"bootstrap": "127.0.0.1:9"},
            "catalog": {"type": "glue", "warehouse": "s3://tables/lake", "region": REGION, "endpoint": endpoint},
            "object_store": {
                "endpoint": endpoint,
                "path_style": True,
                "region": REGION,
                "access_key_id": {"file": str(folder / "id")},
                "secret_access_key": {"file": str(folder / "key")},
            },
        }
        (folder / "env.json").write_text(json.dumps(document))
        arguments = ["doctor", "--pipelines", str(folder / "pipelines.py"), "--env", str(folder / "env.json"), "--json"]
        ended = CliRunner().invoke(app, arguments, obj=Secrets({}))
        found = {check["name"]: check["result"] for check in json.loads(ended.stdout)["checks"]}
        assert (found["catalog"], found["warehouse"]) == ("ok", "ok"), ended.output
        calls: list[Call] = log.take()
    return [[action, re.sub("doctor-[0-9a-z-]+", "doctor-<ticket>", what)] for action, what in calls]


@pytest.fixture(scope="module")
def all_calls(doctors_calls: list[list[str]], root: Path) -> list[list[str]]:
    """What doctor, runs, maintenance and readers ask for."""
    recorded = json.loads((root / "tests/policies/calls.json").read_text())
    return [*doctors_calls, *(call for calls in recorded.values() for call in calls)]


def is_allowed(request: Request, policy: dict[str, Any] = POLICY) -> bool:
    return evaluate(request, [policy]).is_allowed


def test_the_policy_allows_each_recorded_call(all_calls: list[list[str]], doctors_calls: list[list[str]]) -> None:
    assert {action for action, _ in doctors_calls} >= {"glue:GetDatabase", "s3:PutObject", "s3:DeleteObject"}
    made = [*requests(all_calls), Request(action="s3:ListBucket", resource=LAKE)]  # HEAD of a missing file
    assert [one for one in made if not is_allowed(one)] == []


def test_the_policy_grants_no_other_action_and_has_no_idle_statement(all_calls: list[list[str]]) -> None:
    granted = {action for each in POLICY["Statement"] for action in many(each["Action"])}
    assert granted == {action for action, _ in all_calls} | WITHOUT_RECORD.keys()
    for statement in POLICY["Statement"]:
        poorer = {**POLICY, "Statement": [each for each in POLICY["Statement"] if each is not statement]}
        assert any(not is_allowed(one, poorer) for one in requests(all_calls)), statement["Sid"]


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("glue:DeleteTable", f"{GLUE}:table/shop/orders"),
        ("glue:DeleteTable", f"{GLUE}:table/shop/orders__dead_letters"),
        ("glue:UpdateTable", f"{GLUE}:table/shop/refunds"),
        ("glue:GetTable", f"{GLUE}:table/hr/orders"),
        ("glue:CreateDatabase", f"{GLUE}:database/shop"),
        ("glue:DeleteDatabase", f"{GLUE}:database/shop"),
        ("s3:GetObject", f"{LAKE}/warehouse/shop.db/refunds/data/1.parquet"),
        ("s3:GetObject", f"{LAKE}/warehouse/.frazil-doctor-1f"),
        ("s3:PutObject", f"{LAKE}/warehouse/other"),
        ("s3:PutObject", f"{LAKE}/warehouse/shop.db/frazil_probe_1f/data/1.parquet"),
        ("s3:DeleteObject", f"{LAKE}/warehouse/shop.db/orders_of_others/data/1.parquet"),
        ("s3:DeleteObjectVersion", f"{LAKE}/warehouse/shop.db/orders/data/1.parquet"),
        ("s3:PutBucketPolicy", LAKE),
        ("s3:DeleteBucket", LAKE),
        ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{HERE}:{ACCOUNT}:secret:x"),
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin"),
        ("emr-serverless:StartJobRun", f"arn:aws:emr-serverless:{HERE}:{ACCOUNT}:/applications/1"),
    ],
)
def test_the_policy_denies_what_belongs_to_others(action: str, resource: str) -> None:
    assert evaluate(Request(action=action, resource=resource), [POLICY]).verdict is Verdict.IMPLICITLY_DENIED


def test_the_policy_lists_no_other_table() -> None:
    for prefix in ("", "warehouse/", "warehouse/shop.db/refunds/"):
        assert not is_allowed(Request(action="s3:ListBucket", resource=LAKE, context={"s3:prefix": prefix})), prefix


# ── The units ───────────────────────────────────────────────────────────────────────────────────
UNITS = {Path(one.file).name: one.text for one in blocks(CLOUD) if one.language == "ini" and one.file}


class Unit(ConfigParser):
    """A unit file, whose names have capitals."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def unit(name: str) -> Unit:
    parser = Unit(interpolation=None)
    parser.read_string(UNITS[name])
    return parser


def test_the_services_run_what_the_application_takes_and_are_not_restarted_where_that_does_not_help() -> None:
    ingest, maintain = unit("frazil.service")["Service"], unit("frazil-maintain.service")["Service"]
    for service in (ingest, maintain):
        program, *words = shlex.split(service["ExecStart"])
        assert program == "/opt/frazil/current/bin/frazil"
        parse(shlex.join(["frazil", *words]))
    assert shlex.split(ingest["ExecStart"])[1:4] == ["run", "--all", "--follow"]
    assert ingest["Restart"] == "on-failure"
    assert {int(code) for code in ingest["RestartPreventExitStatus"].split()} == {
        Exit.DECISION_REQUIRED,
        Exit.INVALID_INPUT,
    }
    assert unit("frazil-maintain.timer")["Timer"]["OnCalendar"] == "hourly"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    assert UNITS.keys() == {"frazil.service", "frazil-maintain.service", "frazil-maintain.timer"}
    here = str(Path(sys.executable).parent / "frazil")
    for name, text in UNITS.items():
        (tmp_path / name).write_text(text.replace("/opt/frazil/current/bin/frazil", here))
    command = ["systemd-analyze", "verify", "--recursive-errors=no", *(str(tmp_path / name) for name in UNITS)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    calendar = ["systemd-analyze", "calendar", unit("frazil-maintain.timer")["Timer"]["OnCalendar"]]
    assert subprocess.run(calendar, capture_output=True, check=False, timeout=60).returncode == 0
