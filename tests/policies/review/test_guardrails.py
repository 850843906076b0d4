"""Each guardrail's finding is in the review, under the rule's name, and refuses it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.review.markdown.page import markdown
from policies.review.plan.plan_gaps import StackPlan
from policies.review.prices import price_table
from policies.review.review import Verdict, review
from policies.rules import RULES
from tests.policies.review.cases import OPEN_TRUST, TOPIC, TRUST, closed, role, topic
from tests.policies.review.planning import FLIGHTS, change, declared, plan, stays
from tests.policies.reviewing import TODAY, allow, stack

WORKER = {"cores": 4, "memory_gb": 16, "disk_gb": 20}
DESIRED = {"version": 1, "job": "ingest", "workers": {"driver": WORKER, "executor": WORKER, "least": 1, "most": 4}}
APPLICATION = {"release_label": "emr-spark-8.1.0", "maximum_capacity": {"cpu": "4 vCPU", "memory": "8 GB"}}
BARE = stack(aws_s3_bucket__b={"bucket": "b"})
ENVIRONMENT = {
    "version": 1,
    "name": "dev",
    "kafka": {"bootstrap": "b:9092"},
    "catalog": {"type": "glue", "warehouse": "s3://t/lake"},
}
EXPIRES = {"id": "old", "status": "Enabled", "expiration": [{"days": 30}]}


def document(content: Any) -> dict[str, Any]:
    return {"bucket": "artifacts", "key": "documents/x.json", "content": json.dumps(content)}


FAILING: dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]] = {
    # rule: a stack, a plan
    "data_lost": (None, plan(change("aws_kms_key.k", "delete", {"description": "lake"}))),
    "partitions_lowered": (None, plan(change(TOPIC, "replace", topic(6), topic(3)))),
    "retention_under_lag": (None, plan(change(TOPIC, "update", topic(days=7), topic(days=1)))),
    "policy_widened": (None, plan(change("aws_iam_role.r", "update", role(TRUST), role(OPEN_TRUST)))),
    "protection_removed": (None, plan(change("aws_s3_bucket_versioning.v", "delete", {"bucket": "b"}))),
    "public_bucket": (BARE, None),
    "bucket_encryption": (BARE, None),
    "bucket_tls": (BARE, None),
    "bucket_owner": (BARE, None),
    "unencrypted": (stack(aws_sns_topic__t={"name": "x"}), None),
    "in_the_clear": (stack(aws_s3_object__e=document(ENVIRONMENT)), None),
    "wildcard_action": (stack(aws_iam_role_policy__p={"policy": allow(Action="s3:*", Resource="*")}), None),
    "wildcard_principal": (stack(aws_s3_bucket_policy__p={"policy": allow(Action="s3:GetObject", Resource="*", Principal="*")}), None),
    "trust_without_condition": (
        stack(aws_iam_role__r={"assume_role_policy": allow(Action="sts:AssumeRole", Principal={"Service": "x.amazonaws.com"})}), None,
    ),
    "optimizer_on_tables": (
        stack(aws_glue_catalog_table_optimizer__o={"database_name": "nyc", "table_name": "flights", "type": "retention"},
              aws_s3_object__p=declared(FLIGHTS)), None,
    ),
    "lifecycle_under_tables": (
        stack(aws_s3_bucket_lifecycle_configuration__l={"bucket": "t", "rule": [EXPIRES]}, aws_s3_object__e=document(ENVIRONMENT)), None,
    ),
    "checkpoint_under_tables": (
        stack(aws_s3_object__o={"bucket": "t", "key": "lake/x", "content": ""}, aws_s3_object__e=document(ENVIRONMENT)), None,
    ),
    "application_too_small": (stack(aws_emrserverless_application__a=APPLICATION, aws_s3_object__d=document(DESIRED)), None),
    "label_near_end": (stack(aws_emrserverless_application__a={"release_label": "emr-1.0.0"}), None),
}  # fmt: skip


def test_every_rule_has_its_case() -> None:
    assert FAILING.keys() == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize("rule", FAILING)
def test_a_rules_finding_is_shown_and_refuses(rule: str) -> None:
    synthesised, planned = FAILING[rule]
    one = StackPlan(name="dev-foundation", synthesised=synthesised, plan=planned or plan())
    made = review("dev", [one], prices=price_table(), today=TODAY)
    assert f"`{rule}`" in markdown(made)
    assert made.verdict is Verdict.REFUSED


def test_a_bucket_that_is_as_it_must_be_is_not_told() -> None:
    bucket = change("aws_s3_bucket.tables", "create", None, {"bucket": "b"})
    assert (
        review("dev", [StackPlan(name="x", plan=plan(bucket, *closed("b")))], prices=price_table(), today=TODAY).dangers
        == ()
    )


def test_what_the_plan_does_not_know_yet_deep_inside_the_stack_tells() -> None:
    """The key of a bucket's encryption is made by the same plan, so its ARN is known later."""
    by_key = {"sse_algorithm": "aws:kms", "kms_master_key_id": "${aws_kms_key.k.arn}"}
    encryption = "aws_s3_bucket_server_side_encryption_configuration"
    synthesised = stack(
        aws_s3_bucket__tables={"bucket": "b"},
        **{f"{encryption}__x": {"bucket": "b", "rule": [{"apply_server_side_encryption_by_default": by_key}]}},
    )
    known = {"bucket": "b", "rule": [{"apply_server_side_encryption_by_default": [{"sse_algorithm": "aws:kms"}]}]}
    others = [each for each in closed("b") if encryption not in each["address"]]
    made = plan(
        change("aws_s3_bucket.tables", "create", None, {"bucket": "b"}),
        change(f"{encryption}.x", "create", None, known,
               unknown={"rule": [{"apply_server_side_encryption_by_default": [{"kms_master_key_id": True}]}]}),
        *others,
    )  # fmt: skip
    one = StackPlan(name="dev-foundation", synthesised=synthesised, plan=made)
    assert review("dev", [one], prices=price_table(), today=TODAY).dangers == ()


def test_what_a_service_fills_in_by_itself_is_not_held_against_the_declaration() -> None:
    """AWS gives an endpoint a policy that allows all, where none is declared; one that is declared is looked at."""
    open_to_all = allow(Action="*", Resource="*", Principal="*")
    endpoint = stays("aws_vpc_endpoint.s3", {"service_name": "s3", "policy": open_to_all})
    for declared_values, wanted in (
        ({"service_name": "s3"}, Verdict.NOTHING),
        ({"service_name": "s3", "policy": open_to_all}, Verdict.REFUSED),
    ):
        one = StackPlan(
            name="dev-foundation", synthesised=stack(aws_vpc_endpoint__s3=declared_values), plan=plan(endpoint)
        )
        assert review("dev", [one], prices=price_table(), today=TODAY).verdict is wanted
