"""Checkov, which knows what others got wrong, has nothing against our stacks that is not explained in `checkov_skips.json`."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from stacks.spec.deployments import DEPLOYMENTS, Access, Deployment
from tests.policies.checkov_environment import OutOfReach, python_with_checkov
from tests.policies.checkov_report import Report, Verdict, report
from tests.stacks.synthesised import (
    EXAMPLE,
    EXAMPLE_TOPICS,
    FLOWING_PIPELINES,
    FLOWING_TOPICS,
    every_stack,
    named,
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

ENVIRONMENTS = ("dev", "staging", "prod")
SKIPS: list[dict[str, str]] = json.loads(Path(__file__).with_name("checkov_skips.json").read_text())
PLANTED = "planted"

Stacks = dict[str, dict[str, Any]]


def everything(deployment: Deployment) -> Stacks:
    """All stacks that an environment can have, with all roles, and pipelines of both engines, by the stacks' names."""
    people = (f"arn:aws:iam::{deployment.account}:role/people",)
    cluster = deployment.confluent
    if not cluster.is_managed:
        cluster = replace(cluster, is_administered=True)  # which Tableflow's tables need
    access = Access(readers=people, reconcilers=people, deployers=people)
    return every_stack(
        named(deployment, confluent=cluster, access=access),
        (*EXAMPLE, *FLOWING_PIPELINES),
        (*EXAMPLE_TOPICS, *FLOWING_TOPICS),
    )


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], Report]:
    """Asks checkov about a stack."""
    try:
        python = python_with_checkov()
    except OutOfReach as problem:
        pytest.skip(f"checkov cannot be had here, no package index answers: {problem}")
    return lambda stack: report(python, stack, tmp_path_factory.mktemp("checkov"))


@pytest.fixture(scope="module")
def synthesised() -> dict[str, Stacks]:
    """The stacks of each environment."""
    return {name: everything(DEPLOYMENTS[name]) for name in ENVIRONMENTS}


@pytest.fixture(scope="module")
def reports(asked: Callable[[dict[str, Any]], Report], synthesised: dict[str, Stacks]) -> dict[str, dict[str, Report]]:
    """What checkov says of each environment's stacks."""
    return {name: {what: asked(stack) for what, stack in stacks.items()} for name, stacks in synthesised.items()}


def explains(skip: dict[str, str], finding: Verdict) -> bool:
    return skip["check"] == finding.check and fnmatchcase(finding.address, skip["address"])


def unexplained(findings: frozenset[Verdict]) -> list[Verdict]:
    return sorted(finding for finding in findings if not any(explains(skip, finding) for skip in SKIPS))


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_finding_is_explained(reports: dict[str, dict[str, Report]], environment: str) -> None:
    assert {what: unexplained(each.failed) for what, each in reports[environment].items()} == {
        "confluent": [],
        "foundation": [],
        "ingestion": [],
        "owner": [],
    }


def test_every_skip_explains_a_finding(reports: dict[str, dict[str, Report]]) -> None:
    findings = {finding for stacks in reports.values() for each in stacks.values() for finding in each.failed}
    idle = [skip for skip in SKIPS if not any(explains(skip, finding) for finding in findings)]
    assert idle == [], "what is mended, or gone, needs no skip"
    assert all(set(skip) == {"check", "address", "reason"} and skip["reason"].endswith(".") for skip in SKIPS)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_resource_is_read(
    synthesised: dict[str, Stacks], reports: dict[str, dict[str, Report]], environment: str
) -> None:
    made = {
        what: sum(len(each) for each in stack["resource"].values()) for what, stack in synthesised[environment].items()
    }
    assert {what: each.resources for what, each in reports[environment].items()} == made


def with_a_public_bucket(stack: dict[str, Any]) -> None:
    for closed in stack["resource"]["aws_s3_bucket_public_access_block"].values():
        closed["block_public_policy"] = False


def with_a_policy_of_writing_anywhere(stack: dict[str, Any]) -> None:
    """Plant a policy with a reference, as ours have: checkov's own reader leaves such texts unread."""
    statements = [
        {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"},
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "${aws_s3_bucket.tables.arn}/*"},
    ]
    text = json.dumps({"Version": "2012-10-17", "Statement": statements})
    stack["resource"]["aws_iam_policy"][PLANTED] = {"name": PLANTED, "policy": text}


@pytest.mark.parametrize(
    ("what", "plant", "found"),
    [
        ("foundation", with_a_public_bucket, {"CKV_AWS_54", "CKV2_AWS_6"}),
        ("ingestion", with_a_policy_of_writing_anywhere, {"CKV_AWS_290", "CKV_AWS_355"}),
    ],
)
def test_checkov_would_find_something(
    asked: Callable[[dict[str, Any]], Report],
    synthesised: dict[str, Stacks],
    what: str,
    plant: Callable[[dict[str, Any]], None],
    found: set[str],
) -> None:
    stack = copy.deepcopy(synthesised["dev"][what])
    plant(stack)
    assert {finding.check for finding in unexplained(asked(stack).failed)} == found
