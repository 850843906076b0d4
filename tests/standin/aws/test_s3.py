"""S3 on the stand-in: statements with a condition are not its to judge; what was deleted does not keep a bucket from being emptied."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket

from tests.standin.aws.s3 import patch_s3

ONLY_NEW = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:PutObject",
    "Resource": "arn:aws:s3:::b/*",
    "Condition": {"Null": {"s3:if-none-match": "true"}},
}
NEVER = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::b/*"}


@pytest.mark.parametrize(
    ("statements", "action", "wanted"),
    [
        (None, "s3:PutObject", PermissionResult.NEUTRAL),
        ([ONLY_NEW], "s3:PutObject", PermissionResult.NEUTRAL),
        ([ONLY_NEW, NEVER], "s3:PutObject", PermissionResult.NEUTRAL),
        ([ONLY_NEW, NEVER], "s3:DeleteObject", PermissionResult.DENIED),
        (NEVER, "s3:DeleteObject", PermissionResult.DENIED),
    ],
)
def test_a_statement_with_a_condition_refuses_nothing(statements: Any, action: str, wanted: PermissionResult) -> None:
    patch_s3()
    bucket = FakeBucket("b", "123456789012", "eu-central-1")
    if statements is not None:
        bucket.policy = json.dumps({"Version": "2012-10-17", "Statement": statements}).encode()
    assert bucket.get_permission(action, "arn:aws:s3:::b/key") is wanted


def test_what_was_deleted_does_not_keep_a_bucket_from_being_emptied() -> None:
    """Terraform suspends the versions of a bucket, and then deletes them one by one: objects, and markers of deleted ones."""
    patch_s3()
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        s3.create_bucket(Bucket="emptied")
        s3.put_bucket_versioning(Bucket="emptied", VersioningConfiguration={"Status": "Enabled"})
        s3.put_object(Bucket="emptied", Key="k")
        s3.delete_object(Bucket="emptied", Key="k")
        s3.put_bucket_versioning(Bucket="emptied", VersioningConfiguration={"Status": "DecisionRequired"})
        held = s3.list_object_versions(Bucket="emptied")
        names = [{"Key": "k", "VersionId": one["VersionId"]} for one in held["Versions"] + held["DeleteMarkers"]]
        assert len(names) == 2
        s3.delete_objects(Bucket="emptied", Delete={"Objects": names})
        s3.delete_bucket(Bucket="emptied")
