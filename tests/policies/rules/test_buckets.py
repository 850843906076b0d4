"""Buckets: closed, encrypted, TLS only, ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.rules import Rule
from policies.rules.buckets import bucket_encryption, bucket_owner, bucket_tls, public_bucket
from tests.policies.example import policy
from tests.policies.reviewing import stack, told

REF = "${aws_s3_bucket.tables.id}"
ADDRESS = "aws_s3_bucket.tables"
CLOSED = dict.fromkeys(
    ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets"), True
)
ENCRYPTED = {
    "apply_server_side_encryption_by_default": {"sse_algorithm": "aws:kms", "kms_master_key_id": "${aws_kms_key.k.arn}"}
}


def bucket(**others: Any) -> dict[str, Any]:
    """A bucket as it must be, but for what is given; None leaves a part out."""
    parts = {
        "aws_s3_bucket__tables": {"bucket": "frazil-dev-tables"},
        "aws_s3_bucket_public_access_block__x": {"bucket": REF, **CLOSED},
        "aws_s3_bucket_server_side_encryption_configuration__x": {"bucket": REF, "rule": [ENCRYPTED]},
        "aws_s3_bucket_policy__x": {"bucket": REF, "policy": json.dumps(policy("table_bucket"))},
        "aws_s3_bucket_ownership_controls__x": {"bucket": REF, "rule": {"object_ownership": "BucketOwnerEnforced"}},
        **others,
    }
    return stack(**{name: values for name, values in parts.items() if values is not None})


@pytest.mark.parametrize("rule", [public_bucket, bucket_encryption, bucket_tls, bucket_owner])
def test_a_bucket_that_is_as_it_must_be_passes(rule: Rule) -> None:
    assert told(rule, bucket()) == []


@pytest.mark.parametrize("rule", [public_bucket, bucket_encryption, bucket_tls, bucket_owner])
def test_a_bare_bucket_fails(rule: Rule) -> None:
    findings = told(rule, stack(aws_s3_bucket__tables={"bucket": "frazil-dev-tables"}))
    assert [address for address, _ in findings] == [ADDRESS]


@pytest.mark.parametrize("rule", [public_bucket, bucket_encryption, bucket_tls, bucket_owner])
def test_what_another_bucket_has_is_not_this_ones(rule: Rule) -> None:
    two = bucket()
    two["resource"]["aws_s3_bucket"]["other"] = {"bucket": "other"}
    assert [address for address, _ in told(rule, two)] == ["aws_s3_bucket.other"]


def test_one_way_left_open_is_told() -> None:
    block = {"bucket": REF, **CLOSED, "block_public_policy": False}
    assert told(public_bucket, bucket(aws_s3_bucket_public_access_block__x=block)) == [
        (ADDRESS, "it is not closed to the public: block_public_policy")
    ]


def test_a_public_acl_is_told() -> None:
    findings = told(public_bucket, bucket(aws_s3_bucket_acl__x={"bucket": REF, "acl": "public-read"}))
    assert findings == [("aws_s3_bucket_acl.x", "its ACL is public-read")]


@pytest.mark.parametrize(
    "default",
    [{"sse_algorithm": "AES256"}, {"sse_algorithm": "aws:kms"}],
    ids=["S3's own keys", "AWS's own KMS key"],
)
def test_a_key_that_is_not_ours_is_told(default: dict[str, str]) -> None:
    rule = {"bucket": REF, "rule": [{"apply_server_side_encryption_by_default": [default]}]}
    findings = told(bucket_encryption, bucket(aws_s3_bucket_server_side_encryption_configuration__x=rule))
    assert findings == [(ADDRESS, "it does not encrypt with a customer-managed KMS key")]


def tls_policy(**others: Any) -> str:
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::t", "arn:aws:s3:::t/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        **others,
    }
    return json.dumps({"Version": "2012-10-17", "Statement": statement})


def test_a_policy_that_refuses_plain_http_passes() -> None:
    assert told(bucket_tls, bucket(aws_s3_bucket_policy__x={"bucket": REF, "policy": tls_policy()})) == []


@pytest.mark.parametrize(
    "weaker",
    [
        {"Effect": "Allow"},
        {"Principal": {"AWS": "arn:aws:iam::123456789012:role/x"}},
        {"Action": "s3:GetObject"},
        {"Resource": "arn:aws:s3:::t/*"},
        {"Condition": {"Bool": {"aws:SecureTransport": "true"}}},
        {"Condition": {"Bool": {"aws:SecureTransport": "false"}, "StringEquals": {"aws:PrincipalAccount": "1"}}},
    ],
    ids=str,
)
def test_a_policy_that_refuses_less_is_told(weaker: dict[str, Any]) -> None:
    policy_values = {"bucket": REF, "policy": tls_policy(**weaker)}
    assert told(bucket_tls, bucket(aws_s3_bucket_policy__x=policy_values)) == [
        (ADDRESS, "its policy does not refuse requests without TLS")
    ]


def test_a_policy_that_is_not_known_yet_is_told() -> None:
    unknown = {"bucket": REF, "policy": "${data.aws_iam_policy_document.x.json}"}
    assert told(bucket_tls, bucket(aws_s3_bucket_policy__x=unknown)) == [
        (ADDRESS, "whether its policy refuses requests without TLS is not known before it is applied")
    ]


def test_objects_that_writers_own_are_told() -> None:
    rule = {"bucket": REF, "rule": {"object_ownership": "ObjectWriter"}}
    assert told(bucket_owner, bucket(aws_s3_bucket_ownership_controls__x=rule)) == [
        (ADDRESS, "objects are owned by ObjectWriter")
    ]


def test_a_plan_is_read_like_a_stack() -> None:
    """Before the bucket is made, a plan knows its id by the configuration's reference only."""
    planned = {
        "planned_values": {
            "root_module": {
                "resources": [
                    {"address": ADDRESS, "type": "aws_s3_bucket", "mode": "managed", "values": {"bucket": "t"}},
                    {
                        "address": "aws_s3_bucket_public_access_block.x",
                        "type": "aws_s3_bucket_public_access_block",
                        "mode": "managed",
                        "values": CLOSED,
                    },
                ]
            }
        },
        "configuration": {
            "root_module": {
                "resources": [
                    {
                        "address": "aws_s3_bucket_public_access_block.x",
                        "expressions": {"bucket": {"references": ["aws_s3_bucket.tables.id", "aws_s3_bucket.tables"]}},
                    }
                ]
            }
        },
    }
    assert told(public_bucket, planned) == []
    del planned["configuration"]
    assert len(told(public_bucket, planned)) == 1
