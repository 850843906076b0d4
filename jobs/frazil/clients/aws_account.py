"""An AWS account before its first deployment: the bucket of Terraform's states with its key, and service-linked roles.

Each method can be repeated. What exists is left as it is, except settings that protect the states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frazil.clients.aws_session import LOGIN, aws_client, aws_session, unanswered
from frazil.errors import AccountUnavailable

EMR_SERVERLESS = "ops.emr-serverless.amazonaws.com"
"""The service whose role CreateApplication needs: https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-service-linked-roles.html"""
_TAG = "frazil:state"
_ABSENT = {
    "404",
    "NotFound",
    "NotFoundException",
    "ResourceNotFound",
    "ResourceNotFoundException",
    "EntityNotFoundException",
}
_OLD_REGIONS = {None: "us-east-1", "EU": "eu-west-1"}
"""https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html"""
_PRIVATE = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}


def account_clients(
    region: str | None, *, endpoint: str | None = None, keys: Sequence[str] | None = None
) -> Callable[[str], Any]:
    """Return a function that makes boto3's clients in a region, with short timeouts.

    `keys` are an access key with its secret, and the token of a session. AWS's default chain decides what is None.
    """
    session = aws_session(*(keys or ()), region=region)
    return lambda service: aws_client(service, session, endpoint_url=endpoint)


class Account:
    """An account and region. Every method raises `AccountUnavailable` if AWS refuses or does not answer."""

    def __init__(self, client: Callable[[str], Any], region: str) -> None:
        self._client, self._region = client, region

    def number(self) -> str:
        """Return the number of the account that the credentials belong to."""
        with _translated("sts"):
            return str(self._client("sts").get_caller_identity()["Account"])

    def key(self, alias: str) -> str | None:
        """Return the ARN of the key behind an alias; None if there is none."""
        with _translated("kms"):
            found = _or_none(lambda: self._client("kms").describe_key(KeyId=alias)["KeyMetadata"])
            return None if found is None else str(found["Arn"])

    def make_key(self, alias: str, policy: Mapping[str, Any], environment: str) -> None:
        """Make a key with a policy and an alias, or give the alias to a key that has none yet. It rotates each year."""
        with _translated("kms"):
            kms = self._client("kms")
            key = _key_without_alias(kms, environment)  # of an earlier attempt that was interrupted
            if key is None:
                tags = [{"TagKey": _TAG, "TagValue": environment}]
                made = kms.create_key(Description=f"States of {environment}", Policy=json.dumps(policy), Tags=tags)
                key = made["KeyMetadata"]["KeyId"]
            else:
                kms.put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(policy))
            kms.enable_key_rotation(KeyId=key)
            kms.create_alias(AliasName=alias, TargetKeyId=key)

    def has_bucket(self, bucket: str) -> bool:
        """Return whether a bucket exists. A bucket of another account is an error."""
        with _translated("s3"):
            return _or_none(lambda: self._client("s3").head_bucket(Bucket=bucket)) is not None

    def make_bucket(self, bucket: str) -> None:
        """Make a bucket without settings."""
        place = {"CreateBucketConfiguration": {"LocationConstraint": self._region}}
        with _translated("s3"):
            self._client("s3").create_bucket(Bucket=bucket, **(place if self._region != "us-east-1" else {}))

    def is_protected(self, bucket: str, key: str, policy: Mapping[str, Any]) -> bool:
        """Return whether a bucket has versions, no public access, this key and this policy."""
        s3 = self._client("s3")
        with _translated("s3"):
            versions = s3.get_bucket_versioning(Bucket=bucket).get("Status")
            blocked = _or_none(lambda: s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"])
            rules = _or_none(lambda: s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"])
            stored = _or_none(lambda: json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"]))
        used = [
            rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID") for rule in (rules or {}).get("Rules", ())
        ]
        return (versions, blocked, used, stored) == ("Enabled", _PRIVATE, [key], policy)

    def protect(self, bucket: str, key: str, policy: Mapping[str, Any]) -> None:
        """Give a bucket versions, no public access, this key and this policy."""
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
        rules = [{"ApplyServerSideEncryptionByDefault": default, "BucketKeyEnabled": True}]
        with _translated("s3"):
            s3 = self._client("s3")
            s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=_PRIVATE)
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
            s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})
            s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))

    def has_states(self, bucket: str, environment: str) -> bool:
        """Return whether the bucket holds states of an environment."""
        with _translated("s3"):
            listed = self._client("s3").list_objects_v2(Bucket=bucket, Prefix=f"{environment}/", MaxKeys=1)
            return bool(listed.get("KeyCount"))

    def has_service_role(self) -> bool:
        """Return whether the role of EMR Serverless itself exists."""
        with _translated("iam"):
            listed = self._client("iam").list_roles(PathPrefix=f"/aws-service-role/{EMR_SERVERLESS}/", MaxItems=1)
            return bool(listed["Roles"])

    def make_service_role(self) -> None:
        """Make the role of EMR Serverless itself."""
        with _translated("iam"):
            self._client("iam").create_service_linked_role(AWSServiceName=EMR_SERVERLESS)

    def has_policy(self, arn: str) -> bool:
        """Return whether a managed policy exists."""
        with _translated("iam"):
            return _or_none(lambda: self._client("iam").get_policy(PolicyArn=arn)) is not None

    def stored_at(self, secret: str) -> datetime | None:
        """Return when the current value of a secret was stored; None if there is no such secret. The value is not kept."""
        with _translated("secretsmanager"):
            found = _or_none(lambda: self._client("secretsmanager").get_secret_value(SecretId=secret)["CreatedDate"])
            return found if isinstance(found, datetime) else None

    def lake_formation_is_off(self) -> bool:
        """Return whether new databases are open to IAM's permissions, as in an account that never used Lake Formation."""
        with _translated("lakeformation"):
            settings = self._client("lakeformation").get_data_lake_settings()["DataLakeSettings"]
        given = settings.get("CreateDatabaseDefaultPermissions") or []
        principals = [each["Principal"]["DataLakePrincipalIdentifier"] for each in given]
        return "IAM_ALLOWED_PRINCIPALS" in principals

    def zones(self) -> int:
        """Return the number of availability zones of the region."""
        with _translated("ec2"):
            listed = self._client("ec2").describe_availability_zones(
                Filters=[{"Name": "zone-type", "Values": ["availability-zone"]}]
            )
            return len(listed["AvailabilityZones"])

    def cores(self) -> float | None:
        """Return the quota of EMR Serverless's concurrent vCPUs; None if the account does not report it."""
        try:
            with _translated("service-quotas"):
                pages = self._client("service-quotas").get_paginator("list_service_quotas")
                quotas = [each for page in pages.paginate(ServiceCode="emr-serverless") for each in page["Quotas"]]
        except AccountUnavailable:
            return None
        return next((float(each["Value"]) for each in quotas if "vCPU" in each["QuotaName"]), None)


_DO_OF_GIVEN = "Use the deployer's role as docs/policies.md lists it, and look whether the object is of this account"


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
        return str(_OLD_REGIONS.get(name, name))

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
        with translated("ec2", _DO_OF_GIVEN):
            found = self._client("ec2").describe_subnets(Filters=[{"Name": "subnet-id", "Values": list(ids)}])
        return {each["SubnetId"]: Subnet(vpc=each["VpcId"], zone=each["AvailabilityZone"]) for each in found["Subnets"]}

    def vpcs_of_groups(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the VPCs of the security groups that exist, by their ids."""
        with translated("ec2", _DO_OF_GIVEN):
            found = self._client("ec2").describe_security_groups(Filters=[{"Name": "group-id", "Values": list(ids)}])
        return {each["GroupId"]: each["VpcId"] for each in found["SecurityGroups"]}

    def _found(self, service: str, operation: str, **request: Any) -> Any:
        return found_or_none(self._client, service, _DO_OF_GIVEN, operation, **request)


def _key_without_alias(kms: Any, environment: str) -> str | None:
    """Return the key of an environment's states that no alias names; None if there is none."""
    for page in kms.get_paginator("list_keys").paginate():
        for each in page["Keys"]:
            key = str(each["KeyId"])
            if {"TagKey": _TAG, "TagValue": environment} in _tags(kms, key):
                is_enabled = kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] == "Enabled"
                if is_enabled and not kms.list_aliases(KeyId=key)["Aliases"]:
                    return key
    return None


def _tags(kms: Any, key: str) -> Sequence[Mapping[str, str]]:
    """Return the tags of a key; none of a key whose policy keeps them from us."""
    from botocore.exceptions import ClientError

    try:
        tags: Sequence[Mapping[str, str]] = kms.list_resource_tags(KeyId=key)["Tags"]
    except ClientError:
        return ()
    return tags


def _or_none(call: Callable[[], Any]) -> Any:
    """Return the answer of a call; None if the service reports that the object does not exist."""
    from botocore.exceptions import ClientError

    try:
        return call()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in _ABSENT or code.startswith(("NoSuch", "ServerSideEncryptionConfigurationNotFound")):
            return None
        raise


def found_or_none(client: Any, service: str, do: str, operation: str, **request: Any) -> Any:
    """Return the answer of an operation; None if its object does not exist. `do` is the remedy of a refusal."""
    with translated(service, do):
        return _or_none(lambda: getattr(client(service), operation)(**request))


@contextmanager
def translated(service: str, do: str) -> Iterator[None]:
    """Translate the SDK's errors. `do` is the remedy of a refusal."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        refused, action = error.response["Error"], error.operation_name
        what = f"AWS refused {action}: {refused['Code']}"
        raise AccountUnavailable(what, where=service, do=do) from None
    except BotoCoreError as error:
        what, how = unanswered(service, error)
        raise AccountUnavailable(what, where=service, do=how or LOGIN) from None


def _translated(service: str) -> AbstractContextManager[None]:
    return translated(service, "Use credentials of the account's owner")
