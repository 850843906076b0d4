"""The bucket of what Spark's drivers and executors wrote. No run depends on it, so it expires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.private_bucket import PrivateBucket
from infra.protection import Protection
from infra.tf import Construct


class LogBucket(PrivateBucket):
    """Logs of `keep_days`."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        bucket: str,
        key_arn: str,
        policy: Mapping[str, Any],
        protection: Protection,
        keep_days: int,
    ) -> None:
        super().__init__(
            scope,
            name,
            bucket=bucket,
            key_arn=key_arn,
            policy=policy,
            protection=protection,
            abort_uploads_days=1,
            old_versions_days=1,
            expire_days=keep_days,
        )
