"""Bucket policies on the stand-in: what has no condition holds, what has one is not this stand-in's to judge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket

from frazil.local.aws.s3 import mend_s3

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
    mend_s3()
    bucket = FakeBucket("b", "123456789012", "eu-central-1")
    if statements is not None:
        bucket.policy = json.dumps({"Version": "2012-10-17", "Statement": statements}).encode()
    assert bucket.get_permission(action, "arn:aws:s3:::b/key") is wanted
