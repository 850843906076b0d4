"""S3, mended: a statement of a bucket's policy that has a condition says nothing here.

moto reads it as if its condition always held, so that a bucket that refuses what is not encrypted, or not new, refuses everything.
What such statements mean is evaluated by the tests of `policies`, not by this stand-in.
"""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket


def mend_s3() -> None:
    """Mend moto in this process; done twice, it is done once."""
    FakeBucket.get_permission = _permission  # type: ignore[method-assign,assignment]


def _permission(bucket: FakeBucket, action: str, resource: str) -> PermissionResult:
    policy: dict[str, Any] = json.loads(bucket.policy) if bucket.policy else {"Statement": []}
    statements = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
    kept = [statement for statement in statements if "Condition" not in statement]
    if not kept:
        return PermissionResult.NEUTRAL
    return IAMPolicy(json.dumps({**policy, "Statement": kept})).is_action_permitted(action, resource)
