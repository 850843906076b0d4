"""The buckets of an environment: tables, releases and logs. They differ in how long they keep objects and old versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, Unpack

from infra.private_bucket import PrivateBucket
from infra.protection import Protection
from infra.tf import Construct

WRITE_ONCE = ("artifacts", "releases")
"""Prefixes whose objects are never overwritten or deleted. Documents are named by their content too, but Terraform writes
them, which does not say `If-None-Match`."""

PROOF_DAYS = 90
"""How long proofs of runs are kept. The reconciler needs those of the newest generation until it is proven."""


class BucketSettings(TypedDict):
    """What every bucket needs: its name, the key and policy of the environment, and whether it survives `destroy`."""

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
