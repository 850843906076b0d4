"""An AWS account before its first deployment: the bucket of Terraform's states with its key, and service-linked roles.

Each method can be repeated. What exists is left as it is, except settings that protect the states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from frazil.clients.aws_session import aws_client, aws_session, unanswered
from frazil.errors import AccountUnavailable

EMR_SERVERLESS = "ops.emr-serverless.amazonaws.com"
"""The service whose role CreateApplication needs: https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-service-linked-roles.html"""
_TAG = "frazil:state"
_ABSENT = {
    "ServerSideEncryptionConfigurationNotFoundError",
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

    `keys` are an access key with its secret, and the token of a session. None uses AWS's default credential chain.
    """
    session = aws_session(*(keys or ()), region=region)
    return lambda service: aws_client(service, session, endpoint_url=endpoint)


class _Absent(AccountUnavailable):
    """There is no such object."""


class AwsCalls:
    """Calls of AWS's services, by boto3's names. Each raises `AccountUnavailable`; `do` is the remedy of a refusal."""

    def __init__(self, client: Callable[[str], Any], do: str) -> None:
        self._client, self._do = client, do

    def ask(self, service: str, operation: str, **request: Any) -> Any:
        """Return the answer of an operation."""
        with self._translated(service):
            return getattr(self._client(service), operation)(**request)

    def found(self, service: str, operation: str, **request: Any) -> Any:
        """Return the answer of an operation; None if its object does not exist."""
        try:
            return self.ask(service, operation, **request)
        except _Absent:
            return None

    def listed(self, service: str, operation: str, member: str, **request: Any) -> list[Any]:
        """Return a member of the answer, of all its pages."""
        with self._translated(service):
            pages = self._client(service).get_paginator(operation).paginate(**request)
            return [each for page in pages for each in page.get(member, ())]

    @contextmanager
    def _translated(self, service: str) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            code = error.response["Error"]["Code"]
            kind = _Absent if code in _ABSENT or code.startswith("NoSuch") else AccountUnavailable
            raise kind(f"AWS refused {error.operation_name}: {code}", where=service, do=self._do) from None
        except BotoCoreError as error:
            what, do = unanswered(service, error)
            raise AccountUnavailable(what, where=service, do=do) from None


class Account:
    """An account and region. Every method raises `AccountUnavailable` if AWS refuses or does not answer."""

    def __init__(self, client: Callable[[str], Any], region: str) -> None:
        self._aws, self._region = AwsCalls(client, "Use credentials of the account's owner"), region

    def number(self) -> str:
        """Return the number of the account that the credentials belong to."""
        return str(self._aws.ask("sts", "get_caller_identity")["Account"])

    def key(self, alias: str) -> str | None:
        """Return the ARN of the key that an alias names; None if it does not exist."""
        found = self._aws.found("kms", "describe_key", KeyId=alias)
        return None if found is None else str(found["KeyMetadata"]["Arn"])

    def make_key(self, alias: str, policy: Mapping[str, Any], environment: str) -> None:
        """Make a key with a policy and an alias, or give the alias to a key that has none yet. It rotates each year."""
        key = self._key_without_alias(environment)  # of an earlier attempt that was interrupted
        if key is None:
            tags = [{"TagKey": _TAG, "TagValue": environment}]
            described = {"Description": f"States of {environment}", "Policy": json.dumps(policy), "Tags": tags}
            key = self._aws.ask("kms", "create_key", **described)["KeyMetadata"]["KeyId"]
        else:
            self._aws.ask("kms", "put_key_policy", KeyId=key, PolicyName="default", Policy=json.dumps(policy))
        self._aws.ask("kms", "enable_key_rotation", KeyId=key)
        self._aws.ask("kms", "create_alias", AliasName=alias, TargetKeyId=key)

    def has_bucket(self, bucket: str) -> bool:
        """Return whether a bucket exists. A bucket of another account is an error."""
        return self._aws.found("s3", "head_bucket", Bucket=bucket) is not None

    def make_bucket(self, bucket: str) -> None:
        """Make a bucket without settings."""
        place = {"CreateBucketConfiguration": {"LocationConstraint": self._region}}
        self._aws.ask("s3", "create_bucket", Bucket=bucket, **(place if self._region != "us-east-1" else {}))

    def is_protected(self, bucket: str, key: str, policy: Mapping[str, Any]) -> bool:
        """Return whether a bucket has versions, no public access, this key and this policy."""

        def stated(operation: str, member: str) -> Any:
            return (self._aws.found("s3", operation, Bucket=bucket) or {}).get(member)

        rules = (stated("get_bucket_encryption", "ServerSideEncryptionConfiguration") or {}).get("Rules", ())
        used = [rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID") for rule in rules]
        return (
            stated("get_bucket_versioning", "Status") == "Enabled"
            and stated("get_public_access_block", "PublicAccessBlockConfiguration") == _PRIVATE
            and used == [key]
            and json.loads(stated("get_bucket_policy", "Policy") or "null") == policy
        )

    def protect(self, bucket: str, key: str, policy: Mapping[str, Any]) -> None:
        """Give a bucket versions, no public access, this key and this policy."""
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
        rules = [{"ApplyServerSideEncryptionByDefault": default, "BucketKeyEnabled": True}]
        settings: dict[str, dict[str, Any]] = {
            "put_public_access_block": {"PublicAccessBlockConfiguration": _PRIVATE},
            "put_bucket_versioning": {"VersioningConfiguration": {"Status": "Enabled"}},
            "put_bucket_encryption": {"ServerSideEncryptionConfiguration": {"Rules": rules}},
            "put_bucket_policy": {"Policy": json.dumps(policy)},
        }
        for operation, request in settings.items():
            self._aws.ask("s3", operation, Bucket=bucket, **request)

    def has_states(self, bucket: str, environment: str) -> bool:
        """Return whether the bucket holds states of an environment."""
        listed = self._aws.ask("s3", "list_objects_v2", Bucket=bucket, Prefix=f"{environment}/", MaxKeys=1)
        return bool(listed.get("KeyCount"))

    def has_service_role(self) -> bool:
        """Return whether the role of EMR Serverless itself exists."""
        listed = self._aws.ask("iam", "list_roles", PathPrefix=f"/aws-service-role/{EMR_SERVERLESS}/", MaxItems=1)
        return bool(listed["Roles"])

    def make_service_role(self) -> None:
        """Make the role of EMR Serverless itself."""
        self._aws.ask("iam", "create_service_linked_role", AWSServiceName=EMR_SERVERLESS)

    def has_policy(self, arn: str) -> bool:
        """Return whether a managed policy exists."""
        return self._aws.found("iam", "get_policy", PolicyArn=arn) is not None

    def stored_at(self, secret: str) -> datetime | None:
        """Return when the current value of a secret was stored; None if the secret does not exist. The value is not kept."""
        found = self._aws.found("secretsmanager", "get_secret_value", SecretId=secret)
        return None if found is None else found["CreatedDate"]

    def lake_formation_is_off(self) -> bool:
        """Return whether new databases are open to IAM's permissions, as in an account that never used Lake Formation."""
        settings = self._aws.ask("lakeformation", "get_data_lake_settings")["DataLakeSettings"]
        given = settings.get("CreateDatabaseDefaultPermissions") or []
        principals = [each["Principal"]["DataLakePrincipalIdentifier"] for each in given]
        return "IAM_ALLOWED_PRINCIPALS" in principals

    def zones(self) -> int:
        """Return the number of availability zones of the region."""
        of_region = [{"Name": "zone-type", "Values": ["availability-zone"]}]
        return len(self._aws.ask("ec2", "describe_availability_zones", Filters=of_region)["AvailabilityZones"])

    def cores(self) -> float | None:
        """Return the quota of EMR Serverless's concurrent vCPUs; None if the account does not report it."""
        try:
            quotas = self._aws.listed("service-quotas", "list_service_quotas", "Quotas", ServiceCode="emr-serverless")
        except AccountUnavailable:
            return None
        return next((float(each["Value"]) for each in quotas if "vCPU" in each["QuotaName"]), None)

    def _key_without_alias(self, environment: str) -> str | None:
        """Return the enabled key of an environment's states that no alias names; None if it does not exist."""
        for each in self._aws.listed("kms", "list_keys", "Keys"):
            key = str(each["KeyId"])
            try:
                tags = self._aws.ask("kms", "list_resource_tags", KeyId=key)["Tags"]
            except AccountUnavailable:
                continue  # its policy keeps them from us
            if {"TagKey": _TAG, "TagValue": environment} in tags:
                is_enabled = self._aws.ask("kms", "describe_key", KeyId=key)["KeyMetadata"]["KeyState"] == "Enabled"
                if is_enabled and not self._aws.ask("kms", "list_aliases", KeyId=key)["Aliases"]:
                    return key
        return None


class GivenObjects:
    """Existing objects. Every method raises `AccountUnavailable` if AWS refuses, and returns None for what does not exist."""

    def __init__(self, client: Callable[[str], Any]) -> None:
        do = "Use the deployer's role as docs/policies.md lists it, and look whether the object is of this account"
        self._aws = AwsCalls(client, do)

    def bucket_region(self, bucket: str) -> str | None:
        """Return the region of a bucket."""
        found = self._aws.found("s3", "get_bucket_location", Bucket=bucket)
        if found is None:
            return None
        name = found.get("LocationConstraint")
        return str(_OLD_REGIONS.get(name, name))

    def key(self, arn: str) -> Mapping[str, Any] | None:
        """Return the description of a KMS key."""
        found = self._aws.found("kms", "describe_key", KeyId=arn)
        return None if found is None else dict(found["KeyMetadata"])

    def database_location(self, name: str) -> str | None:
        """Return the location of a Glue database; empty if it has none."""
        found = self._aws.found("glue", "get_database", Name=name)
        return None if found is None else str(found["Database"].get("LocationUri") or "")

    def vpcs_of_subnets(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the VPCs of the subnets that exist, by their ids."""
        found = self._aws.ask("ec2", "describe_subnets", Filters=[{"Name": "subnet-id", "Values": list(ids)}])
        return {each["SubnetId"]: each["VpcId"] for each in found["Subnets"]}

    def vpcs_of_groups(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the VPCs of the security groups that exist, by their ids."""
        found = self._aws.ask("ec2", "describe_security_groups", Filters=[{"Name": "group-id", "Values": list(ids)}])
        return {each["GroupId"]: each["VpcId"] for each in found["SecurityGroups"]}
