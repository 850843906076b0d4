"""The buckets of an environment: tables, releases and logs. They differ in how long they keep objects and old versions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from infra.protection import Protection
from infra.tf import (
    Construct,
    S3Bucket,
    S3BucketLifecycleConfiguration,
    S3BucketLifecycleConfigurationRule,
    S3BucketLifecycleConfigurationRuleAbortIncompleteMultipartUpload,
    S3BucketLifecycleConfigurationRuleExpiration,
    S3BucketLifecycleConfigurationRuleFilter,
    S3BucketLifecycleConfigurationRuleNoncurrentVersionExpiration,
    S3BucketOwnershipControls,
    S3BucketOwnershipControlsRule,
    S3BucketPolicy,
    S3BucketPublicAccessBlock,
    S3BucketServerSideEncryptionConfigurationA,
    S3BucketServerSideEncryptionConfigurationRuleA,
    S3BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultA,
    S3BucketVersioningA,
    S3BucketVersioningVersioningConfiguration,
)


class PrivateBucket(Construct):
    """Versioned, encrypted with the environment's key, closed to the public, owned by the account; aborts uploads left open."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        bucket: str,
        key_arn: str,
        policy: Mapping[str, Any],
        protection: Protection,
        abort_uploads_days: int,
        old_versions_days: int,
        expire_days: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`old_versions_days`: how long overwritten or deleted objects can be restored. `expire_days`: after how long
        objects with a prefix themselves go; others never do."""
        super().__init__(scope, name)
        which = S3Bucket(
            self, "bucket", bucket=bucket, force_destroy=not protection.is_kept, lifecycle=protection.lifecycle
        ).id
        closed = S3BucketPublicAccessBlock(
            self,
            "closed",
            bucket=which,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
        )
        S3BucketOwnershipControls(
            self, "owner", bucket=which, rule=S3BucketOwnershipControlsRule(object_ownership="BucketOwnerEnforced")
        )
        S3BucketServerSideEncryptionConfigurationA(self, "encryption", bucket=which, rule=[_encrypted_with(key_arn)])
        versions = S3BucketVersioningA(
            self,
            "versions",
            bucket=which,
            versioning_configuration=S3BucketVersioningVersioningConfiguration(status="Enabled"),
        )
        S3BucketLifecycleConfiguration(
            self,
            "lifecycle",
            bucket=which,
            rule=_rules(abort_uploads_days, old_versions_days, expire_days),
            depends_on=[versions],
        )
        S3BucketPolicy(self, "access", bucket=which, policy=json.dumps(policy), depends_on=[closed])


def _encrypted_with(key_arn: str) -> S3BucketServerSideEncryptionConfigurationRuleA:
    return S3BucketServerSideEncryptionConfigurationRuleA(
        apply_server_side_encryption_by_default=(
            S3BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultA(
                sse_algorithm="aws:kms", kms_master_key_id=key_arn
            )
        ),
        # One request to KMS for many objects: without it a table's commit pays for each of its files.
        bucket_key_enabled=True,
    )


_LONE_MARKERS = S3BucketLifecycleConfigurationRuleExpiration(expired_object_delete_marker=True)


def _rules(
    abort_uploads_days: int, old_versions_days: int, expire_days: Mapping[str, int]
) -> list[S3BucketLifecycleConfigurationRule]:
    everything = [S3BucketLifecycleConfigurationRuleFilter(prefix="")]
    rules = [
        S3BucketLifecycleConfigurationRule(
            id="abort-uploads",
            status="Enabled",
            filter=everything,
            abort_incomplete_multipart_upload=[
                S3BucketLifecycleConfigurationRuleAbortIncompleteMultipartUpload(
                    days_after_initiation=abort_uploads_days
                )
            ],
        ),
        S3BucketLifecycleConfigurationRule(
            id="drop-old-versions",
            status="Enabled",
            filter=everything,
            noncurrent_version_expiration=[
                S3BucketLifecycleConfigurationRuleNoncurrentVersionExpiration(noncurrent_days=old_versions_days)
            ],
            # A deleted object leaves a marker, which has no versions after it later, and slows listings. A rule that expires
            # all objects removes markers by itself.
            expiration=None if "" in expire_days else [_LONE_MARKERS],
        ),
    ]
    for prefix, days in sorted(expire_days.items()):
        rules.append(
            S3BucketLifecycleConfigurationRule(
                id=f"expire-{prefix}" if prefix else "expire",
                status="Enabled",
                filter=[S3BucketLifecycleConfigurationRuleFilter(prefix=prefix)],
                expiration=[S3BucketLifecycleConfigurationRuleExpiration(days=days)],
            )
        )
    return rules


WRITE_ONCE = ("artifacts", "releases")
"""Prefixes whose objects are never overwritten or deleted. Documents are named by their content too, but Terraform writes
them, which does not say `If-None-Match`."""

PROOF_DAYS = 90
"""The days for which proofs of runs are kept. The reconciler needs those of the newest generation until it is proven."""


class BucketSettings(TypedDict):
    """The settings of every bucket: its name, the key and policy of the environment, and whether it survives `destroy`."""

    bucket: str
    key_arn: str
    policy: Mapping[str, Any]
    protection: Protection


def table_bucket(scope: Construct, name: str, **settings: Unpack[BucketSettings]) -> PrivateBucket:
    """Make a bucket for the files of tables. No lifecycle rule removes a file that a table may name.

    Files that expiry and compaction deleted can be restored for 30 days; then they no longer exist, as an erasure needs.
    Uploads are aborted after 7 days, far longer than any batch is staged.
    """
    return PrivateBucket(scope, name, **settings, abort_uploads_days=7, old_versions_days=30)


def artifact_bucket(
    scope: Construct, name: str, *, proof_prefixes: Iterable[str], **settings: Unpack[BucketSettings]
) -> PrivateBucket:
    """Make the bucket of releases, documents and desired state. Runs cannot start or roll back without it: it is kept like data.

    Proofs of runs expire. A run that lasts writes its proof again each hour.
    """
    expire_days = dict.fromkeys(proof_prefixes, PROOF_DAYS)
    return PrivateBucket(scope, name, **settings, abort_uploads_days=1, old_versions_days=90, expire_days=expire_days)


def log_bucket(scope: Construct, name: str, *, keep_days: int, **settings: Unpack[BucketSettings]) -> PrivateBucket:
    """Make the bucket of the logs of Spark's drivers and executors. No run depends on it: logs expire after `keep_days`."""
    return PrivateBucket(
        scope, name, **settings, abort_uploads_days=1, old_versions_days=1, expire_days={"": keep_days}
    )
