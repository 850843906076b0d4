"""The IAM actions that Terraform's AWS provider needs, read from the provider's log.

An S3 operation needs an action of another name in these cases:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

LOGGED = {"TF_LOG_PROVIDER": "DEBUG"}
"""What makes Terraform log it, into the file that `TF_LOG_PATH` names."""
_BEGINNING = re.compile(r"\d{4}-\d\d-\d\dT")
_METHOD = re.compile(r"\brpc\.method=(\w+)")
_SERVICE = re.compile(r"Credential=[^/\s]+/\d+/[^/]+/([a-z0-9-]+)/aws4_request")  # a signature's scope
_SERVICES = {"monitoring": "cloudwatch"}
_S3 = {
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListObjectsV2": "ListBucket",
    "ListObjectVersions": "ListBucketVersions",
    "DeleteObjects": "DeleteObject",
    "GetBucketAccelerateConfiguration": "GetAccelerateConfiguration",
    "GetBucketCors": "GetBucketCORS",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "DeleteBucketEncryption": "PutEncryptionConfiguration",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "DeleteBucketLifecycle": "PutLifecycleConfiguration",
    "GetBucketReplication": "GetReplicationConfiguration",
    "GetObjectLockConfiguration": "GetBucketObjectLockConfiguration",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
    "DeletePublicAccessBlock": "PutBucketPublicAccessBlock",
    "DeleteBucketOwnershipControls": "PutBucketOwnershipControls",
    "DeleteBucketTagging": "PutBucketTagging",
}


def actions(log: Path) -> set[str]:
    """Return the actions that the requests in a log need."""
    found = set()
    for entry in _entries(log):
        if "HTTP Request Sent:" in entry.partition("\n")[0]:
            method, service = _METHOD.search(entry), _SERVICE.search(entry)
            assert method is not None, entry
            assert service is not None, entry
            name = _SERVICES.get(service[1], service[1])
            found.add(f"{name}:{_S3.get(method[1], method[1]) if name == 's3' else method[1]}")
    return found


def _entries(log: Path) -> Iterator[str]:
    """Yield a log's entries. Each begins with its time, and may have several lines."""
    entry: list[str] = []
    with log.open(errors="replace") as lines:
        for line in lines:
            if _BEGINNING.match(line):
                yield "".join(entry)
                entry = []
            entry.append(line)
    yield "".join(entry)
