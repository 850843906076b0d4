"""The stacks of 0.1.0, deployed to the stand-ins, and today's stacks planned and applied on their state.

`deployed_0_1_0` has the stacks of `local` as 0.1.0 (commit 247cde7) synthesised them, policies as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.holds_data import HOLDS_DATA
from stacks.deployments import local
from tests.stacks.synthesised import STACKS
from tests.support.standin import Terraform
from tests.support.standin_cloud import Cloud, cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]
BEFORE = Path(__file__).parent / "deployed_0_1_0"
SYNTHESISED_FOR = "http://localhost:4566"
DECLARED = "from tests.stacks.synthesised import EXAMPLE, EXAMPLE_TOPICS\npipelines, topics = list(EXAMPLE), list(EXAMPLE_TOPICS)\n"
TABLE_FILE, RELEASED = "lake/nyc.db/flights/data/1.parquet", "releases/0.1.0/x"


@pytest.fixture(scope="module")
def deployed(root: Path, tmp_path_factory: pytest.TempPathFactory, terraform: Terraform) -> Iterator[Cloud]:
    """A cloud that 0.1.0 deployed, with a file of a table and one of a release."""
    with cloud(root, tmp_path_factory.mktemp("upgraded"), terraform) as made:
        for what in STACKS:
            folder = made.folder / "cdktf.out" / "stacks" / f"local-{what}"
            folder.mkdir(parents=True)
            stack = (BEFORE / f"{what}.json").read_text().replace(SYNTHESISED_FOR, made.endpoint)
            (folder / "cdk.tf.json").write_text(stack)
            made.apply(what)
        for what, key in (("tables", TABLE_FILE), ("artifacts", RELEASED)):
            made.aws("s3").put_object(Bucket=local.names.bucket(what), Key=key, Body=b"content")
        yield made


def identities(at: Cloud) -> dict[str, Any]:
    """Return what must be the same object after the upgrade."""
    kept = ("environment", "kafka_cluster", "service_account", "kafka_topic", "api_key")
    return {
        "confluent": {kind: sorted(at.organization.get(kind, {})) for kind in kept},
        "secrets": sorted(each["ARN"] for each in at.aws("secretsmanager").list_secrets()["SecretList"]),
        "keys": sorted(each["KeyId"] for each in at.aws("kms").list_keys()["Keys"]),
        "topics": {name: number for name, number in at.partitions().items() if name in ("flights", "planes")},
        "files": [
            at.aws("s3").get_object(Bucket=local.names.bucket(what), Key=key)["Body"].read()
            for what, key in (("tables", TABLE_FILE), ("artifacts", RELEASED))
        ],
        "databases": [each["CreateTime"] for each in at.aws("glue").get_databases()["DatabaseList"]],
        "applications": [each["id"] for each in at.aws("emr-serverless").list_applications()["applications"]],
    }


def stored(at: Cloud) -> set[str]:
    """Return the keys of the documents that runs read."""
    listed = at.aws("s3").list_objects_v2(Bucket=local.names.bucket("artifacts"), Prefix="documents/")
    return {each["Key"] for each in listed.get("Contents", ())}


def planned(at: Cloud, what: str) -> list[dict[str, Any]]:
    """Plan a stack. Return the changes of resources."""
    ended = at.run(what, "plan", "-out=plan")
    assert ended.returncode == 0, ended.stderr
    shown = at.terraform.run(at.folder / "cdktf.out" / "stacks" / f"local-{what}", "show", "-json", "plan")
    found: list[dict[str, Any]] = json.loads(shown.stdout)["resource_changes"]
    return found


def test_an_environment_that_0_1_0_deployed_is_upgraded_and_keeps_what_holds_data(deployed: Cloud) -> None:
    before = identities(deployed)
    assert all(before.values())
    documents = stored(deployed)
    assert len(documents) == 2
    deployed.declare(pipelines=DECLARED, is_first=True)  # as docs/deploy.md says: the file of deployed objects first
    deployed.declare(pipelines=DECLARED)
    removed: dict[str, set[str]] = {}
    for what in STACKS:
        for each in planned(deployed, what):
            actions = each["change"]["actions"]
            if "delete" in actions:
                assert each["type"] not in HOLDS_DATA, (each["address"], actions)
                removed.setdefault(f"{what} {'replace' if 'create' in actions else 'delete'}", set()).add(each["type"])
        deployed.apply(what)
    # READ includes DESCRIBE, and a group has one alarm of a kind (test_addresses.py has the reasons).
    assert removed == {"confluent delete": {"confluent_kafka_acl"}, "ingestion delete": {"aws_cloudwatch_metric_alarm"}}
    assert identities(deployed) == before
    assert documents <= stored(deployed), "a run of 0.1.0 may read them"
    for what in STACKS:
        status, output = deployed.plan(what)
        assert status == 0, output
