"""What buckets refuse, to whomever."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policies.example import ACCOUNT, INGEST, KEY, policy
from tests.support.iam_evaluation import Request, Verdict, evaluate

ALL_S3 = {"Version": "2012-10-17", "Statement": [{"Sid": "All", "Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
FINE = {
    "aws:SecureTransport": "true",
    "s3:TlsVersion": "1.3",
    "aws:PrincipalAccount": ACCOUNT,
    "aws:PrincipalIsAWSService": "false",
}
CREATING = {"s3:ObjectCreationOperation": "true"}
BUCKETS = {
    "table_bucket": "frazil-dev-tables",
    "artifact_bucket": "frazil-dev-artifacts",
    "log_bucket": "frazil-dev-logs",
    "state_bucket": "frazil-dev-state",
}


def decided(
    bucket: str, action: str, key: str, context: dict[str, Any], principal: str = INGEST
) -> tuple[Verdict, tuple[str, ...]]:
    """The decision for a principal whose own policies allow everything on S3."""
    request = Request(
        action=action, resource=f"arn:aws:s3:::{BUCKETS[bucket]}/{key}", principal=principal, context=context
    )
    decision = evaluate(request, [ALL_S3], policy(bucket))
    return decision.verdict, decision.by


def refused(*sids: str) -> tuple[Verdict, tuple[str, ...]]:
    return Verdict.EXPLICITLY_DENIED, sids


@pytest.mark.parametrize("bucket", sorted(BUCKETS))
class TestEveryBucket:
    def test_lets_ours_in(self, bucket: str) -> None:
        for more in (
            {},
            {"s3:x-amz-server-side-encryption": "aws:kms", "s3:x-amz-server-side-encryption-aws-kms-key-id": KEY},
        ):
            assert decided(bucket, "s3:PutObject", "reconcile/x", {**FINE, **more})[0] is Verdict.ALLOWED

    def test_refuses_requests_without_tls(self, bucket: str) -> None:
        context = {**FINE, "aws:SecureTransport": "false"}
        assert decided(bucket, "s3:GetObject", "x", context) == refused("RefuseWithoutTls")

    def test_refuses_old_tls(self, bucket: str) -> None:
        assert decided(bucket, "s3:GetObject", "x", {**FINE, "s3:TlsVersion": "1.1"}) == refused("RefuseOldTls")

    def test_refuses_other_accounts_and_nobody(self, bucket: str) -> None:
        other = {**FINE, "aws:PrincipalAccount": "999999999999"}
        assert decided(bucket, "s3:GetObject", "x", other) == refused("RefuseOtherAccounts")
        nobody = {key: value for key, value in FINE.items() if not key.startswith("aws:Principal")}
        assert decided(bucket, "s3:GetObject", "x", nobody, "anonymous") == refused("RefuseOtherAccounts")

    def test_refuses_other_encryption(self, bucket: str) -> None:
        plain = {**FINE, "s3:x-amz-server-side-encryption": "AES256"}
        assert decided(bucket, "s3:PutObject", "reconcile/x", plain) == refused("RefuseOtherEncryption")

    def test_refuses_other_keys(self, bucket: str) -> None:
        if bucket == "state_bucket":
            pytest.skip("it is made before its policy knows the key; whoever writes states names none")
        other = {**FINE, "s3:x-amz-server-side-encryption-aws-kms-key-id": KEY.replace("1111", "2222")}
        assert decided(bucket, "s3:PutObject", "reconcile/x", other) == refused("RefuseOtherKeys")


def test_an_artifact_is_written_once() -> None:
    again = decided("artifact_bucket", "s3:PutObject", "releases/1/wheel.zip", {**FINE, **CREATING})
    assert again == refused("RefuseToOverwrite")
    first = {**FINE, **CREATING, "s3:if-none-match": "*"}
    assert decided("artifact_bucket", "s3:PutObject", "releases/1/wheel.zip", first)[0] is Verdict.ALLOWED


def test_a_part_of_a_large_artifact_needs_no_condition_of_its_own() -> None:
    part = {**FINE, "s3:ObjectCreationOperation": "false"}
    assert decided("artifact_bucket", "s3:PutObject", "releases/1/large.zip", part)[0] is Verdict.ALLOWED


def test_an_artifact_is_never_deleted_and_state_is_free() -> None:
    for action in ("s3:DeleteObject", "s3:DeleteObjectVersion"):
        assert decided("artifact_bucket", action, "releases/1/wheel.zip", FINE) == refused("RefuseToDelete")
        assert decided("artifact_bucket", action, "reconcile/ingest.json", FINE)[0] is Verdict.ALLOWED
    assert (
        decided("artifact_bucket", "s3:PutObject", "reconcile/ingest.json", {**FINE, **CREATING})[0] is Verdict.ALLOWED
    )
