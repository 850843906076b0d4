"""What holds of every stack, whatever it is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from infra.buckets import PROOF_DAYS
from policies.resources import HOLDS_DATA
from stacks.spec.deployments import DEPLOYMENTS, dev
from tests.stacks.synthesised import ALL, FLOWING, resources, stacks_of, synthesised

NAMES = sorted({name for name, _ in ALL})
MARKERS = {"expired_object_delete_marker": True}


def every(environment: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Type, name and arguments of each resource of an environment."""
    for stack in stacks_of(environment).values():
        for kind, named in stack["resource"].items():
            for name, arguments in named.items():
                yield kind, name, arguments


def kept(stacks: dict[str, dict[str, Any]]) -> set[bool]:
    return {
        bool(arguments.get("lifecycle", {}).get("prevent_destroy"))
        for stack in stacks.values()
        for kind, named in stack["resource"].items()
        if kind in HOLDS_DATA
        for arguments in named.values()
    }


@pytest.mark.parametrize("environment", NAMES)
def test_what_holds_data_and_nothing_else_cannot_be_destroyed(environment: str) -> None:
    assert kept(stacks_of(environment)) == {True}
    protected = {
        kind for kind, _, arguments in every(environment) if arguments.get("lifecycle", {}).get("prevent_destroy")
    }
    assert protected <= set(HOLDS_DATA)


def test_data_goes_with_both_keys_only() -> None:
    dev, prod = DEPLOYMENTS["dev"], DEPLOYMENTS["prod"]
    assert (dev.is_disposable, prod.is_disposable) == (True, False)
    assert kept(synthesised(prod, is_named_for_destruction=True)) == {True}
    opened = synthesised(dev, is_named_for_destruction=True)
    assert kept(opened) == {False}
    for stacks, is_emptied in ((opened, True), (stacks_of("dev"), False)):
        buckets = resources(stacks["foundation"], "aws_s3_bucket").values()
        assert {bucket["force_destroy"] for bucket in buckets} == {is_emptied}
    assert [c["deletion_protection"] for c in resources(opened["confluent"], "confluent_kafka_cluster").values()] == [
        False
    ]


@pytest.mark.parametrize("environment", NAMES)
def test_every_bucket_has_all_that_makes_it_private(environment: str) -> None:
    stack = stacks_of(environment)["foundation"]
    buckets = {f"${{aws_s3_bucket.{name}.id}}" for name in resources(stack, "aws_s3_bucket")}
    assert len(buckets) == (4 if environment == FLOWING else 3)
    for kind in (
        "public_access_block",
        "ownership_controls",
        "server_side_encryption_configuration",
        "versioning",
        "lifecycle_configuration",
        "policy",
    ):
        assert {each["bucket"] for each in resources(stack, f"aws_s3_bucket_{kind}").values()} == buckets, kind


@pytest.mark.parametrize("environment", NAMES)
def test_files_are_encrypted_with_our_key(environment: str) -> None:
    stack = stacks_of(environment)["foundation"]
    [key] = resources(stack, "aws_kms_key")
    for each in resources(stack, "aws_s3_bucket_server_side_encryption_configuration").values():
        [rule] = each["rule"]
        assert rule["apply_server_side_encryption_by_default"] == {
            "kms_master_key_id": f"${{aws_kms_key.{key}.arn}}",
            "sse_algorithm": "aws:kms",
        }


@pytest.mark.parametrize("environment", NAMES)
def test_a_marker_of_a_deleted_object_is_removed_when_its_versions_are(environment: str) -> None:
    """Maintenance leaves one for each file that it deletes. Where objects expire by age, S3 removes them itself."""
    for name, each in resources(stacks_of(environment)["foundation"], "aws_s3_bucket_lifecycle_configuration").items():
        expirations = [rule["expiration"] for rule in each["rule"] if "expiration" in rule]
        logs = [[{"days": DEPLOYMENTS.get(environment, dev).monitoring.log_days}]]
        proofs = [[{"days": PROOF_DAYS}] for rule in each["rule"] if rule["id"].startswith("expire-reconcile/")]
        assert expirations == (logs if name.startswith("logs") else [[MARKERS], *proofs])


@pytest.mark.parametrize("environment", NAMES)
def test_every_role_is_bounded_by_a_policy_that_whoever_deploys_cannot_change(environment: str) -> None:
    prefix = DEPLOYMENTS["dev" if environment == FLOWING else environment].names.prefix
    roles = [arguments for kind, _, arguments in every(environment) if kind == "aws_iam_role"]
    assert len(roles) >= 3
    for role in roles:
        assert role["permissions_boundary"].endswith(f":policy/boundary-{prefix}")
    policies = [arguments["name"] for kind, _, arguments in every(environment) if kind == "aws_iam_policy"]
    assert all(name.startswith(f"{prefix}-") for name in policies)
    assert not [kind for kind, _, _ in every(environment) if kind == "aws_iam_role_policy"]


@pytest.mark.parametrize("environment", NAMES)
def test_jobs_reach_out_by_two_ports_only_and_nothing_reaches_them(environment: str) -> None:
    stack = stacks_of(environment)["foundation"]
    out = [each for each in resources(stack, "aws_vpc_security_group_egress_rule").values() if "cidr_ipv4" in each]
    assert sorted((each["from_port"], each["to_port"]) for each in out) == [(443, 443), (9092, 9092)]
    for each in resources(stack, "aws_vpc_security_group_ingress_rule").values():
        assert "cidr_ipv4" not in each
        assert each["referenced_security_group_id"] == each["security_group_id"]


@pytest.mark.parametrize("environment", NAMES)
def test_an_application_is_named_after_its_label_and_made_before_the_old_one_goes(environment: str) -> None:
    [application] = resources(stacks_of(environment)["foundation"], "aws_emrserverless_application").values()
    assert application["release_label"].replace(".", "-") in application["name"]
    assert application["lifecycle"] == {"create_before_destroy": True}


def test_a_tableflow_table_waits_for_topic_schema_role_and_rights() -> None:
    stack = stacks_of(FLOWING)["confluent"]
    waits = {
        table["display_name"]: {each.partition(".")[0] for each in table["depends_on"]}
        for table in resources(stack, "confluent_tableflow_topic").values()
    }
    common = {"aws_iam_role", "aws_iam_role_policy_attachment", "confluent_provider_integration"}
    assert waits == {"clicks": {*common, "confluent_kafka_topic", "confluent_schema"}, "views": common}
    [glue] = resources(stack, "confluent_catalog_integration").values()
    assert sum(each.startswith("confluent_tableflow_topic.") for each in glue["depends_on"]) == 2


def test_the_integrations_role_and_the_role_of_that_name_are_one() -> None:
    stack = stacks_of(FLOWING)["confluent"]
    [integration] = resources(stack, "confluent_provider_integration").values()
    [role] = resources(stack, "aws_iam_role").values()
    assert integration["aws"]["customer_role_arn"].endswith(f":role/{role['name']}")
    first, second = json.loads(role["assume_role_policy"])["Statement"]
    assert first["Condition"]["StringEquals"]["sts:ExternalId"].endswith(".aws[0].external_id}")
    assert second["Action"] == "sts:TagSession"


def test_tableflow_writes_no_bucket_of_ours() -> None:
    stacks = stacks_of(FLOWING)
    written = {
        table["byob_aws"]["bucket_name"]
        for table in resources(stacks["confluent"], "confluent_tableflow_topic").values()
    }
    warehouse = json.loads(stacks["ingestion"]["locals"]["environment-text"])["catalog"]["warehouse"]
    assert len(written) == 1
    assert not warehouse.startswith(f"s3://{written.pop()}/")


@pytest.mark.parametrize("environment", NAMES)
def test_a_secret_is_in_secrets_manager_and_nowhere_else(environment: str) -> None:
    for kind, name, arguments in every(environment):
        secrets = re.findall(r"confluent_api_key\.[^}]*\.secret", json.dumps(arguments))
        inside_confluent = kind.startswith("confluent_") and not re.search(
            r"\.secret", json.dumps({**arguments, "credentials": 0})
        )
        assert not secrets or kind == "aws_secretsmanager_secret_version" or inside_confluent, (kind, name)


def test_no_output_tells_a_secret() -> None:
    for environment, what in ALL:
        for name, output in stacks_of(environment)[what].get("output", {}).items():
            assert ".secret" not in json.dumps(output["value"]) or output.get("sensitive"), name


def test_environments_share_no_name_and_no_state() -> None:
    seen: dict[str, str] = {}
    for environment in DEPLOYMENTS:
        for what, stack in stacks_of(environment).items():
            [(backend, settings)] = stack["terraform"]["backend"].items()
            state = f"{backend} {settings.get('bucket')} {settings.get('key') or settings['path']}"
            assert seen.setdefault(state, f"{environment} {what}") == f"{environment} {what}"
        for kind, _, arguments in every(environment):
            if kind in {"aws_s3_bucket", "aws_iam_role", "aws_secretsmanager_secret", "confluent_service_account"}:
                name = next(arguments[key] for key in ("bucket", "name", "display_name") if key in arguments)
                assert seen.setdefault(f"{kind} {name}", environment) == environment


def test_only_the_local_environment_goes_to_stand_ins() -> None:
    for environment in DEPLOYMENTS:
        for stack in stacks_of(environment).values():
            [provider] = stack["provider"]["aws"]
            assert ("endpoints" in provider, "s3_use_path_style" in provider) == ((environment == "local"),) * 2
