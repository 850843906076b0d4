"""The bucket where tables keep their files. No lifecycle rule ever removes a file that a table may name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.private_bucket import PrivateBucket
from infra.protection import Protection
from infra.tf import Construct

_ABORT_UPLOADS_DAYS = 7  # far longer than any batch is staged
_OLD_VERSIONS_DAYS = 30


class TableBucket(PrivateBucket):
    """Files that expiry and compaction deleted can be restored for 30 days; then they no longer exist, as an erasure needs."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        bucket: str,
        key_arn: str,
        policy: Mapping[str, Any],
        protection: Protection,
    ) -> None:
        super().__init__(
            scope,
            name,
            bucket=bucket,
            key_arn=key_arn,
            policy=policy,
            protection=protection,
            abort_uploads_days=_ABORT_UPLOADS_DAYS,
            old_versions_days=_OLD_VERSIONS_DAYS,
        )
