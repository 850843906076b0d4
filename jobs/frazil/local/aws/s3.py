"""S3, mended: a statement of a bucket's policy that has a condition says nothing here, and deleted objects can be forgotten.

moto reads such a statement as if its condition always held, so that a bucket that refuses what is not encrypted, or not new,
refuses all; what they mean is evaluated by the tests of `policies`, not by this stand-in. And it fails to remove a key with the
marker of a deletion from a bucket whose versioning is suspended, which is how Terraform empties one.
"""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket, FakeDeleteMarker


def mend_s3() -> None:
    """Mend moto in this process; done twice, it is done once."""
    FakeBucket.get_permission = _permission  # type: ignore[method-assign,assignment]
    # A key that is removed has each of its versions disposed of; a marker has no content that could be.
    FakeDeleteMarker.dispose = lambda marker: None  # type: ignore[attr-defined]


def _permission(bucket: FakeBucket, action: str, resource: str) -> PermissionResult:
    policy: dict[str, Any] = json.loads(bucket.policy) if bucket.policy else {"Statement": []}
    statements = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
    kept = [statement for statement in statements if "Condition" not in statement]
    if not kept:
        return PermissionResult.NEUTRAL
    return IAMPolicy(json.dumps({**policy, "Statement": kept})).is_action_permitted(action, resource)
