"""What AWS says of the existing objects that a deployment is given. It only reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frazil.clients.aws_account import translated

_DO = "Use the deployer's role as docs/policies.md lists it, and look whether the object is of this account"
_ABSENT = {"NoSuchBucket", "404", "NotFoundException", "EntityNotFoundException"}
_OLD_NAMES = {None: "us-east-1", "EU": "eu-west-1"}
"""https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A subnet: its VPC and its availability zone."""

    vpc: str
    zone: str


class GivenObjects:
    """Existing objects. Every method raises `AccountUnavailable` if AWS refuses, and returns None for what does not exist."""

    def __init__(self, client: Callable[[str], Any]) -> None:
        self._client = client

    def bucket_region(self, bucket: str) -> str | None:
        """Return the region of a bucket."""
        found = self._found("s3", "get_bucket_location", Bucket=bucket)
        if found is None:
            return None
        name = found.get("LocationConstraint")
        return str(_OLD_NAMES.get(name, name))

    def key(self, arn: str) -> Mapping[str, Any] | None:
        """Return the description of a KMS key."""
        found = self._found("kms", "describe_key", KeyId=arn)
        return None if found is None else dict(found["KeyMetadata"])

    def database_location(self, name: str) -> str | None:
        """Return the location of a Glue database; empty if it has none."""
        found = self._found("glue", "get_database", Name=name)
        return None if found is None else str(found["Database"].get("LocationUri") or "")

    def subnets(self, ids: Sequence[str]) -> dict[str, Subnet]:
        """Return the subnets that exist, by id."""
        with translated("ec2", _DO):
            found = self._client("ec2").describe_subnets(Filters=[{"Name": "subnet-id", "Values": list(ids)}])
        return {each["SubnetId"]: Subnet(vpc=each["VpcId"], zone=each["AvailabilityZone"]) for each in found["Subnets"]}

    def vpcs_of_groups(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the VPCs of the security groups that exist, by their ids."""
        with translated("ec2", _DO):
            found = self._client("ec2").describe_security_groups(Filters=[{"Name": "group-id", "Values": list(ids)}])
        return {each["GroupId"]: each["VpcId"] for each in found["SecurityGroups"]}

    def _found(self, service: str, operation: str, **request: Any) -> Any:
        from botocore.exceptions import ClientError

        with translated(service, _DO):
            try:
                return getattr(self._client(service), operation)(**request)
            except ClientError as error:
                if error.response["Error"]["Code"] in _ABSENT:
                    return None
                raise
