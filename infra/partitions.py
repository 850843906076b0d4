"""AWS's partitions: separate clouds with their own accounts, whose name begins every ARN. A region belongs to one of them.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
"""

from __future__ import annotations

_BY_PREFIX = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}
_UNSUPPORTED = ("us-iso", "eu-iso", "eusc-")


def partition_of(region: str) -> str:
    """Return the partition of a region: `aws`, `aws-cn` or `aws-us-gov`."""
    return next((name for prefix, name in _BY_PREFIX.items() if region.startswith(prefix)), "aws")


def is_supported(region: str) -> bool:
    """Return whether the region is in one of the partitions that Frazil knows."""
    return not region.startswith(_UNSUPPORTED)
