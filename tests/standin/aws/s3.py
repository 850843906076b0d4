"""Patches of moto's S3: statements with conditions in bucket policies are ignored, and delete markers can be removed.

moto treats every condition as true. A bucket whose policy refuses unencrypted or repeated writes would refuse all writes. The
tests of `policies` evaluate these statements instead. Also, moto fails to remove a key with a delete marker from a bucket
whose versioning is suspended, which Terraform does when it empties a bucket.
"""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket, FakeDeleteMarker


def patch_s3() -> None:
    """Patch moto in this process. Idempotent."""
    FakeBucket.get_permission = _permission  # type: ignore[method-assign,assignment]
    # The removal of a key disposes of each of its versions; a marker has no content.
    FakeDeleteMarker.dispose = lambda marker: None  # type: ignore[attr-defined]


def _permission(bucket: FakeBucket, action: str, resource: str) -> PermissionResult:
    policy: dict[str, Any] = json.loads(bucket.policy) if bucket.policy else {"Statement": []}
    statements = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
    kept = [statement for statement in statements if "Condition" not in statement]
    if not kept:
        return PermissionResult.NEUTRAL
    return IAMPolicy(json.dumps({**policy, "Statement": kept})).is_action_permitted(action, resource)
