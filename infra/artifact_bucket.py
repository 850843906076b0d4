"""The bucket of releases, documents and desired state. What is named by its content is written once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.private_bucket import PrivateBucket
from infra.protection import Protection
from infra.tf import Construct

WRITE_ONCE = ("artifacts", "releases")
"""Prefixes whose objects are never overwritten or deleted. Documents are named by their content too, but Terraform writes
them, which does not say `If-None-Match`."""


class ArtifactBucket(PrivateBucket):
    """Kept like data: runs cannot start, or go back to what ran before, without it."""

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
            abort_uploads_days=1,
            old_versions_days=90,
        )
