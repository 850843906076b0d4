"""What each role asks for and may have, and what it asks for and may not: the table that the roles are held against."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.policies.example import ACCOUNT, APPLICATION, INGEST, KEY, REGION, REVIEW_SECRET, SECRET, policy

TABLES, ARTIFACTS, LOGS = (
    "arn:aws:s3:::frazil-dev-tables",
    "arn:aws:s3:::frazil-dev-artifacts",
    "arn:aws:s3:::frazil-dev-logs",
)
ORDERS, LETTERS, PROBE = (
    f"{TABLES}/lake/shop.db/{name}" for name in ("orders", "orders__dead_letters", "frazil_probe_1f")
)
DATA, METADATA = f"{ORDERS}/data/day=1/1.parquet", f"{ORDERS}/metadata/1.metadata.json"
GLUE = f"arn:aws:glue:{REGION}:{ACCOUNT}"
RUNS = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications"
RUN = f"{RUNS}/{APPLICATION}/jobruns/00run"
LOG_GROUP = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/frazil/dev/ingest:log-stream:x"
FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:frazil-dev-reconcile-ingest"
FUNCTION_LOG = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/frazil/dev/reconcile-ingest:log-stream:x"
SCHEDULER, RECONCILER = (f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-{name}" for name in ("scheduler", "reconcile-ingest"))
ADMIN, DEPLOYER = (f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("admin", "deployer-frazil-dev"))
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/frazil-dev-reconcile-ingest"
ALARM = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:frazil-dev-not-started"
DASHBOARD = f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/frazil-dev"
S3 = {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}
VAULT = {"kms:ViaService": f"secretsmanager.{REGION}.amazonaws.com"}
EMR = {"iam:PassedToService": "emr-serverless.amazonaws.com"}
BOUNDARY, RIGHTS = (f"arn:aws:iam::{ACCOUNT}:policy/{name}" for name in ("boundary-frazil-dev", "frazil-dev-ingest-1"))
OWN_RIGHTS = BOUNDARY.replace("boundary-frazil-dev", "deployer-frazil-dev-1")
BOUNDED = {"iam:PermissionsBoundary": BOUNDARY}
NEW = {"s3:if-none-match": "*"}
OWN_TAG, NEW_TAG = ({f"aws:{which}/frazil:environment": "dev"} for which in ("ResourceTag", "RequestTag"))
NETWORK = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
WORKGROUP = f"arn:aws:athena:{REGION}:{ACCOUNT}:workgroup/analysts"
OWN_WORKGROUP, FLOW_LOG = f"arn:aws:athena:{REGION}:{ACCOUNT}:workgroup/frazil-dev", f"{NETWORK}:vpc-flow-log/fl-1"
FLOW_ROLE, TO_FLOW_LOGS = (
    f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-flow-logs",
    {"iam:PassedToService": "vpc-flow-logs.amazonaws.com"},
)
HERE, ELSEWHERE = ({"aws:RequestedRegion": region} for region in (REGION, "us-east-1"))
OTHER_SECRET = SECRET.replace("kafka", "postgres")


class Asked(NamedTuple):
    """One request of a role."""

    role: str
    action: str
    resource: str
    context: dict[str, str | list[str]]

    @property
    def resources_policy(self) -> dict[str, Any] | None:
        """A key has a policy of its own, and nobody may use it without."""
        return policy("lake_key") if ":key/" in self.resource else None

    def __str__(self) -> str:
        return (
            f"{self.role} {self.action} {self.resource.split(':', 5)[-1]} {' '.join(map(str, self.context.values()))}"
        )


def glue(table: str) -> str:
    return f"{GLUE}:table/{table}"


_MAY: dict[str, list[tuple[Any, ...]]] = {
    "ingest_job": [
        ("s3:GetObject s3:PutObject s3:AbortMultipartUpload", DATA),
        ("s3:GetObject s3:PutObject s3:DeleteObject", METADATA, f"{LETTERS}/metadata/1", f"{PROBE}/metadata/1"),
        ("s3:PutObject", f"{LETTERS}/data/1.parquet"),
        ("s3:ListBucket", TABLES, {"s3:prefix": "lake/shop.db/orders/metadata/"}),
        ("glue:GetDatabase", f"{GLUE}:catalog", f"{GLUE}:database/shop"),
        (
            "glue:GetTable glue:CreateTable glue:UpdateTable",
            glue("shop/orders__dead_letters"),
            glue("shop/frazil_probe_1f"),
        ),
        ("glue:DeleteTable", glue("shop/frazil_probe_1f"), f"{GLUE}:database/shop", f"{GLUE}:catalog"),
        ("s3:GetObject", f"{ARTIFACTS}/releases/1/wheel.zip"),
        ("s3:PutObject", f"{ARTIFACTS}/reconcile/ingest/proof/ingest-1-aaaaaaaa-0f.json"),
        ("secretsmanager:GetSecretValue", SECRET),
        ("kms:Decrypt kms:GenerateDataKey", KEY, S3),
        ("kms:Decrypt", KEY, {**VAULT, "kms:EncryptionContext:SecretARN": SECRET}),
        ("s3:PutObject", f"{LOGS}/runs/1/driver.gz"),
        ("logs:PutLogEvents", LOG_GROUP),
    ],
    "maintenance_job": [
        ("s3:GetObject s3:PutObject s3:DeleteObject", DATA, METADATA, f"{LETTERS}/data/1.parquet"),
        ("s3:ListBucket", TABLES, {"s3:prefix": "lake/shop.db/orders/"}),
        ("glue:GetTable glue:UpdateTable", glue("shop/orders"), f"{GLUE}:database/shop", f"{GLUE}:catalog"),
        ("s3:GetObject", f"{ARTIFACTS}/documents/1.json"),
        ("kms:Decrypt kms:GenerateDataKey", KEY, S3),
        ("s3:PutObject", f"{LOGS}/runs/1/driver.gz"),
        ("logs:PutLogEvents", LOG_GROUP),
    ],
    "reader": [
        ("s3:GetObject", DATA, METADATA),
        ("s3:ListBucket", TABLES, {"s3:prefix": "lake/shop.db/orders/"}),
        ("glue:GetTable", glue("shop/orders"), f"{GLUE}:database/shop", f"{GLUE}:catalog"),
        ("kms:Decrypt", KEY, S3),
    ],
    "athena_reader": [
        ("athena:StartQueryExecution athena:GetQueryResults athena:GetWorkGroup", WORKGROUP),
        ("glue:GetDatabases", f"{GLUE}:catalog", f"{GLUE}:database/shop"),
        ("glue:GetPartitions", glue("shop/orders"), f"{GLUE}:database/shop"),
        ("s3:PutObject s3:GetObject s3:AbortMultipartUpload", f"{LOGS}/athena/1.csv"),
        ("s3:GetBucketLocation", LOGS),
        ("s3:ListBucket", LOGS, {"s3:prefix": "athena/"}),
        ("kms:GenerateDataKey kms:Decrypt", KEY, S3),
    ],
    "scheduler": [
        ("emr-serverless:StartJobRun", f"{RUNS}/{APPLICATION}"),
        ("emr-serverless:TagResource", RUN),
        ("iam:PassRole", INGEST, EMR),
        ("lambda:InvokeFunction", FUNCTION),
    ],
    "reconciler": [
        ("emr-serverless:StartJobRun emr-serverless:ListJobRuns", f"{RUNS}/{APPLICATION}"),
        ("emr-serverless:GetJobRun emr-serverless:CancelJobRun emr-serverless:TagResource", RUN),
        ("iam:PassRole", INGEST, EMR),
        ("s3:GetObject s3:PutObject", f"{ARTIFACTS}/reconcile/ingest.json", f"{ARTIFACTS}/reconcile/kept/1.json"),
        ("s3:PutObject", f"{ARTIFACTS}/documents/1.json", NEW),
        ("s3:GetObject", f"{ARTIFACTS}/documents/1.json", f"{ARTIFACTS}/desired/ingest.json"),
        ("s3:GetObject", f"{ARTIFACTS}/reconcile/ingest/proof/1.json", f"{LOGS}/runs/1/driver.gz"),
        ("s3:ListBucket", ARTIFACTS, {"s3:prefix": "reconcile/ingest/proof/ingest-1-"}),
        ("s3:ListBucket", LOGS, {"s3:prefix": "runs/applications/1/jobs/2/"}),
        ("kms:Decrypt kms:GenerateDataKey", KEY, S3),
        ("logs:CreateLogStream logs:PutLogEvents", FUNCTION_LOG),
    ],
    "deployer": [
        ("s3:CreateBucket s3:PutBucketPolicy s3:PutEncryptionConfiguration", TABLES),
        ("s3:PutObject s3:DeleteObject", f"{ARTIFACTS}/desired/ingest.json"),
        ("s3:GetObject s3:PutObject", "arn:aws:s3:::frazil-dev-state/dev/foundation.tfstate"),
        ("s3:DeleteObject", "arn:aws:s3:::frazil-dev-state/dev/foundation.tfstate.tflock"),
        ("s3:ListBucket", "arn:aws:s3:::frazil-dev-state"),
        ("iam:CreateRole iam:PutRolePermissionsBoundary iam:UpdateAssumeRolePolicy iam:DeleteRole", INGEST, BOUNDED),
        ("iam:AttachRolePolicy", INGEST, {**BOUNDED, "iam:PolicyARN": RIGHTS}),
        ("iam:CreatePolicy iam:CreatePolicyVersion iam:DeletePolicy iam:DeletePolicyVersion", RIGHTS),
        ("iam:PassRole", SCHEDULER, {"iam:PassedToService": "scheduler.amazonaws.com"}),
        ("glue:CreateDatabase", f"{GLUE}:database/shop", f"{GLUE}:catalog"),
        ("secretsmanager:CreateSecret secretsmanager:PutSecretValue", SECRET),
        ("kms:CreateKey", "*", {"aws:RequestTag/frazil:environment": "dev"}),
        ("s3:DeleteObjectVersion", f"{LOGS}/runs/1/driver.gz"),
        ("lambda:CreateFunction lambda:UpdateFunctionCode lambda:AddPermission", FUNCTION),
        ("events:PutRule events:PutTargets", RULE),
        ("s3:GetObject", f"{ARTIFACTS}/artifacts/1/reconciler.zip"),
        ("s3:PutObject", f"{ARTIFACTS}/artifacts/1/reconciler.zip", f"{ARTIFACTS}/releases/1/1/manifest.json", NEW),
        ("s3:GetObject", f"{ARTIFACTS}/reconcile/ingest/proof/1.json", f"{ARTIFACTS}/releases/1/1/manifest.json"),
        ("emr-serverless:ListJobRuns", f"{RUNS}/{APPLICATION}", OWN_TAG),
        ("emr-serverless:GetJobRun", RUN),
        ("cloudwatch:GetMetricData", "*"),
        ("cloudwatch:SetAlarmState cloudwatch:DescribeAlarmHistory", ALARM),
        ("cloudwatch:PutDashboard cloudwatch:GetDashboard cloudwatch:DeleteDashboards", DASHBOARD),
        ("logs:DescribeLogStreams", f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/frazil/dev/ingest"),
        ("iam:PassRole", RECONCILER, {"iam:PassedToService": "lambda.amazonaws.com"}),
        ("ec2:CreateVpc", f"{NETWORK}:vpc/vpc-1", NEW_TAG),
        ("ec2:CreateSubnet ec2:DeleteVpc", f"{NETWORK}:vpc/vpc-1", OWN_TAG),
        ("ec2:CreateTags", f"{NETWORK}:subnet/subnet-1", {**NEW_TAG, "ec2:CreateAction": "CreateSubnet"}, OWN_TAG),
        ("ec2:AuthorizeSecurityGroupIngress", f"{NETWORK}:security-group/sg-1", OWN_TAG),
        ("ec2:AuthorizeSecurityGroupIngress", f"{NETWORK}:security-group-rule/sgr-1", NEW_TAG),
        ("ec2:CreateFlowLogs", FLOW_LOG, NEW_TAG),
        ("ec2:CreateFlowLogs", f"{NETWORK}:vpc/vpc-1", OWN_TAG),
        ("ec2:DeleteFlowLogs", FLOW_LOG, OWN_TAG),
        ("iam:PassRole", FLOW_ROLE, TO_FLOW_LOGS),
        ("athena:CreateWorkGroup athena:UpdateWorkGroup athena:DeleteWorkGroup", OWN_WORKGROUP),
        ("lakeformation:GrantPermissions lakeformation:RevokePermissions", "*", HERE),
    ],
    "reviewer": [
        ("s3:GetObject", "arn:aws:s3:::frazil-dev-state/dev/confluent.tfstate"),
        ("s3:ListBucket", "arn:aws:s3:::frazil-dev-state"),
        ("s3:GetBucketPolicy s3:GetEncryptionConfiguration", TABLES),
        ("s3:GetObject", f"{ARTIFACTS}/desired/ingest.json", f"{ARTIFACTS}/documents/1.json"),
        ("iam:GetRole", INGEST),
        ("iam:GetPolicyVersion", RIGHTS),
        ("glue:GetDatabase", f"{GLUE}:database/shop", f"{GLUE}:catalog"),
        ("emr-serverless:GetApplication", f"{RUNS}/{APPLICATION}", {"aws:ResourceTag/frazil:environment": "dev"}),
        ("secretsmanager:GetSecretValue", SECRET, REVIEW_SECRET),
        ("kms:DescribeKey", KEY, {"aws:ResourceTag/frazil:environment": "dev"}),
        ("kms:Decrypt", KEY, {**VAULT, "aws:ResourceTag/frazil:environment": "dev"}),
        ("scheduler:GetSchedule", f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/frazil-dev/ingest"),
        ("cloudwatch:DescribeAlarms", ALARM),
        ("cloudwatch:GetDashboard", DASHBOARD),
        ("lambda:GetFunction lambda:GetPolicy", FUNCTION),
        ("events:DescribeRule events:ListTargetsByRule", RULE),
        ("ec2:DescribeVpcs ec2:DescribeFlowLogs", "*"),
        ("athena:GetWorkGroup", OWN_WORKGROUP),
        ("lakeformation:ListPermissions", "*", HERE),
    ],
    "flow_logs": [
        ("logs:CreateLogStream logs:PutLogEvents", LOG_GROUP),
        ("logs:DescribeLogStreams", LOG_GROUP.removesuffix("log-stream:x")),
        ("logs:DescribeLogGroups", "*"),
    ],
    "confluent_provider": [
        ("s3:GetBucketLocation", TABLES, {"aws:ResourceAccount": ACCOUNT}),
        ("s3:GetObject s3:PutObject", DATA, {"aws:ResourceAccount": ACCOUNT}),
        ("glue:CreateTable glue:UpdateTable glue:DeleteTable", glue("shop/orders"), glue("shop/orders.v2")),
        ("kms:GenerateDataKey", KEY, S3),
    ],
}

_MAY_NOT: dict[str, list[tuple[Any, ...]]] = {
    "ingest_job": [
        ("s3:DeleteObject", DATA, f"{LETTERS}/data/1.parquet", f"{PROBE}/data/1.parquet"),
        ("s3:DeleteObjectVersion", METADATA),
        ("s3:GetObject s3:PutObject", f"{TABLES}/lake/shop.db/refunds/data/1.parquet", f"{TABLES}/other"),
        ("s3:ListBucket", TABLES, {"s3:prefix": "lake/shop.db/refunds/"}),
        ("glue:DeleteTable", glue("shop/orders"), glue("shop/orders__dead_letters")),
        ("glue:UpdateTable", glue("shop/refunds"), glue("hr/orders")),
        ("glue:CreateDatabase glue:DeleteDatabase", f"{GLUE}:database/shop"),
        ("s3:PutObject s3:DeleteObject", f"{ARTIFACTS}/releases/1/wheel.zip", f"{ARTIFACTS}/reconcile/ingest.json"),
        ("s3:PutObject", f"{ARTIFACTS}/reconcile/other/proof/1.json", f"{ARTIFACTS}/desired/ingest.json"),
        ("s3:DeleteObject s3:GetObject", f"{ARTIFACTS}/reconcile/ingest/proof/ingest-1-aaaaaaaa-0f.json"),
        ("s3:GetObject", f"{ARTIFACTS}/reconcile/ingest.json"),
        ("secretsmanager:GetSecretValue", OTHER_SECRET),
        ("secretsmanager:PutSecretValue", SECRET),
        ("kms:Decrypt", KEY, VAULT, {}),
        ("kms:Decrypt", KEY, {**VAULT, "kms:EncryptionContext:SecretARN": OTHER_SECRET}),
        ("kms:ScheduleKeyDeletion", KEY),
        ("emr-serverless:StartJobRun", f"{RUNS}/{APPLICATION}"),
        ("iam:PassRole", INGEST, EMR),
    ],
    "maintenance_job": [
        ("secretsmanager:GetSecretValue", SECRET),
        ("kms:Decrypt", KEY, {**VAULT, "kms:EncryptionContext:SecretARN": SECRET}),
        ("glue:CreateTable glue:DeleteTable", glue("shop/orders"), glue("shop/frazil_probe_1f")),
        ("s3:DeleteObject", f"{TABLES}/lake/shop.db/refunds/data/1.parquet", f"{ARTIFACTS}/releases/1/wheel.zip"),
        ("s3:DeleteObjectVersion", DATA),
        ("s3:ListBucket", TABLES, {"s3:prefix": "lake/"}, {"s3:prefix": ""}),
    ],
    "reader": [
        ("s3:PutObject s3:DeleteObject", DATA, METADATA),
        ("glue:UpdateTable glue:CreateTable glue:DeleteTable", glue("shop/orders")),
        ("glue:GetTable", glue("shop/refunds")),
        ("s3:GetObject", f"{ARTIFACTS}/documents/1.json", f"{LOGS}/runs/1/driver.gz"),
        ("secretsmanager:GetSecretValue", SECRET),
        ("kms:GenerateDataKey", KEY, S3),
    ],
    "athena_reader": [
        ("athena:StartQueryExecution", WORKGROUP.replace("analysts", "primary")),
        ("athena:UpdateWorkGroup athena:DeleteWorkGroup", WORKGROUP),
        ("s3:PutObject s3:DeleteObject", DATA, METADATA, f"{LOGS}/athena2/1.csv"),
        ("s3:GetObject s3:PutObject", f"{LOGS}/runs/1/driver.gz", f"{ARTIFACTS}/documents/1.json"),
        ("s3:ListBucket", LOGS, {"s3:prefix": "runs/"}, {}),
        ("s3:DeleteObject", f"{LOGS}/athena/1.csv"),
        ("glue:UpdateTable glue:CreateTable glue:DeleteTable", glue("shop/orders")),
        ("glue:GetPartitions", glue("hr/orders")),
        ("kms:GenerateDataKey", KEY, {}),
    ],
    "scheduler": [
        ("emr-serverless:StartJobRun", f"{RUNS}/another"),
        ("emr-serverless:CancelJobRun", RUN),
        ("lambda:InvokeFunction", FUNCTION.replace("-dev-", "-prod-"), f"{FUNCTION}-two"),
        ("lambda:UpdateFunctionCode", FUNCTION),
        ("iam:PassRole", INGEST, {"iam:PassedToService": "ec2.amazonaws.com"}, {}),
        ("iam:PassRole", ADMIN, EMR),
        ("s3:GetObject", DATA, f"{ARTIFACTS}/reconcile/ingest.json"),
    ],
    "reconciler": [
        ("s3:GetObject", DATA, METADATA),
        ("s3:PutObject s3:DeleteObject", METADATA, f"{ARTIFACTS}/releases/1/wheel.zip"),
        ("s3:PutObject s3:DeleteObject", f"{ARTIFACTS}/documents/1.json"),
        ("s3:PutObject", f"{ARTIFACTS}/artifacts/1/wheel.zip", f"{ARTIFACTS}/releases/1/manifest.json", NEW),
        ("s3:PutObject s3:DeleteObject", f"{ARTIFACTS}/desired/ingest.json", NEW, {}),
        ("glue:GetTable glue:UpdateTable", glue("shop/orders")),
        ("secretsmanager:GetSecretValue", SECRET),
        ("s3:DeleteObject", f"{ARTIFACTS}/reconcile/ingest.json"),
        ("emr-serverless:DeleteApplication emr-serverless:UpdateApplication", f"{RUNS}/{APPLICATION}"),
        ("emr-serverless:CancelJobRun", f"{RUNS}/another/jobruns/00run"),
        ("logs:PutLogEvents", LOG_GROUP),
        ("lambda:InvokeFunction lambda:UpdateFunctionCode", FUNCTION),
        ("iam:PassRole", ADMIN, EMR),
    ],
    "deployer": [
        ("s3:GetObject s3:PutObject s3:DeleteObject s3:DeleteObjectVersion", DATA, METADATA),
        ("s3:PutObject s3:DeleteObject", f"{ARTIFACTS}/releases/1/wheel.zip"),
        ("s3:PutObject", f"{ARTIFACTS}/reconcile/ingest.json", f"{ARTIFACTS}/reconcile/ingest/proof/1.json", NEW),
        ("emr-serverless:ListJobRuns", f"{RUNS}/{APPLICATION}", {"aws:ResourceTag/frazil:environment": "prod"}, {}),
        ("emr-serverless:CancelJobRun", RUN),
        ("cloudwatch:SetAlarmState", ALARM.replace("-dev-", "-prod-")),
        ("cloudwatch:PutDashboard cloudwatch:DeleteDashboards", f"{DASHBOARD}-two", DASHBOARD.replace("dev", "prod")),
        ("logs:DescribeLogStreams", f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/frazil/prod/ingest"),
        ("logs:GetLogEvents logs:FilterLogEvents", LOG_GROUP),
        ("s3:GetObject", f"{LOGS}/runs/1/driver.gz"),
        ("s3:CreateBucket s3:PutBucketPolicy", "arn:aws:s3:::frazil-prod-tables", "arn:aws:s3:::somebodys"),
        ("s3:GetObject", "arn:aws:s3:::frazil-dev-state/prod/foundation.tfstate"),
        ("s3:DeleteObject", "arn:aws:s3:::frazil-dev-state/dev/foundation.tfstate"),
        ("iam:CreateRole", ADMIN, f"arn:aws:iam::{ACCOUNT}:role/frazil-prod-ingest", BOUNDED),
        ("iam:CreateRole iam:PutRolePermissionsBoundary", INGEST, {}, {"iam:PermissionsBoundary": RIGHTS}),
        ("iam:PutRolePolicy iam:DeleteRolePermissionsBoundary", INGEST, BOUNDED),
        (
            "iam:AttachRolePolicy",
            INGEST,
            {"iam:PolicyARN": RIGHTS},
            {**BOUNDED, "iam:PolicyARN": "arn:aws:iam::aws:policy/AdministratorAccess"},
        ),
        ("iam:UpdateAssumeRolePolicy iam:DeleteRole", DEPLOYER, BOUNDED),
        ("iam:AttachRolePolicy", DEPLOYER, {**BOUNDED, "iam:PolicyARN": RIGHTS}),
        ("iam:CreatePolicyVersion iam:DeletePolicy iam:SetDefaultPolicyVersion", BOUNDARY, OWN_RIGHTS),
        ("iam:DeletePolicyVersion", BOUNDARY, OWN_RIGHTS),
        ("iam:PassRole", INGEST, EMR),
        ("iam:PassRole", SCHEDULER, {"iam:PassedToService": "lambda.amazonaws.com"}),
        ("iam:PassRole", INGEST, RECONCILER, {"iam:PassedToService": "ec2.amazonaws.com"}),
        ("iam:PassRole", INGEST, {"iam:PassedToService": "lambda.amazonaws.com"}),
        ("lambda:CreateFunction lambda:InvokeFunction", FUNCTION.replace("-dev-", "-prod-")),
        ("lambda:InvokeFunction", FUNCTION),
        ("events:PutRule", RULE.replace("-dev-", "-prod-")),
        ("glue:UpdateTable glue:DeleteTable", glue("shop/orders")),
        ("glue:DeleteDatabase", f"{GLUE}:database/hr"),
        ("secretsmanager:GetSecretValue", SECRET.replace("/dev/", "/prod/")),
        ("emr-serverless:StartJobRun", f"{RUNS}/{APPLICATION}"),
        ("kms:ScheduleKeyDeletion", KEY, {"aws:ResourceTag/frazil:environment": "prod"}, {}),
        ("ec2:CreateVpc", f"{NETWORK}:vpc/vpc-1", {"aws:RequestTag/frazil:environment": "prod"}, {}, OWN_TAG),
        ("ec2:DeleteVpc", f"{NETWORK}:vpc/vpc-1", {"aws:ResourceTag/frazil:environment": "prod"}, {}, NEW_TAG),
        ("ec2:CreateSubnet ec2:CreateVpcEndpoint", f"{NETWORK}:vpc/vpc-1", {}, NEW_TAG),
        ("ec2:AuthorizeSecurityGroupIngress", f"{NETWORK}:security-group/sg-1", {}, NEW_TAG),
        ("ec2:CreateTags", f"{NETWORK}:vpc/vpc-1", {}, NEW_TAG, {**NEW_TAG, "ec2:CreateAction": "RunInstances"}),
        ("ec2:DisassociateAddress", f"{NETWORK}:network-interface/eni-1", {}),
        ("ec2:CreateFlowLogs", f"{NETWORK}:vpc/vpc-1", {}, NEW_TAG),
        ("ec2:DeleteFlowLogs", FLOW_LOG, {}, NEW_TAG),
        ("iam:PassRole", INGEST, f"{FLOW_ROLE}-2", TO_FLOW_LOGS),
        ("iam:PassRole", FLOW_ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
        ("athena:UpdateWorkGroup athena:StartQueryExecution", WORKGROUP),
        ("athena:StartQueryExecution", OWN_WORKGROUP),
        ("lakeformation:GrantPermissions", "*", {}, ELSEWHERE),
        ("lakeformation:PutDataLakeSettings lakeformation:GetDataAccess", "*", HERE),
    ],
    "reviewer": [
        ("s3:PutObject s3:DeleteObject", "arn:aws:s3:::frazil-dev-state/dev/confluent.tfstate"),
        ("s3:PutObject s3:DeleteObject", "arn:aws:s3:::frazil-dev-state/dev/confluent.tfstate.tflock"),
        ("s3:GetObject", "arn:aws:s3:::frazil-dev-state/prod/confluent.tfstate"),
        ("s3:GetObject s3:PutObject s3:DeleteObject", DATA, METADATA, f"{LOGS}/runs/1/driver.gz"),
        ("s3:PutObject", f"{ARTIFACTS}/desired/ingest.json", f"{ARTIFACTS}/documents/1.json", NEW),
        ("s3:PutBucketPolicy s3:DeleteBucket", TABLES),
        ("secretsmanager:GetSecretValue", SECRET.replace("/dev/", "/prod/"), REVIEW_SECRET.replace("review", "admin")),
        ("secretsmanager:PutSecretValue secretsmanager:DeleteSecret", SECRET, REVIEW_SECRET),
        ("iam:PassRole", INGEST, EMR),
        ("iam:CreateRole iam:PutRolePolicy iam:AttachRolePolicy iam:UpdateAssumeRolePolicy", INGEST, BOUNDED),
        ("sts:AssumeRole", INGEST),
        ("glue:GetTable glue:UpdateTable glue:DeleteDatabase", glue("shop/orders"), f"{GLUE}:database/shop"),
        (
            "emr-serverless:StartJobRun emr-serverless:GetJobRun emr-serverless:UpdateApplication",
            f"{RUNS}/{APPLICATION}",
        ),
        ("kms:Decrypt", KEY, {}, VAULT, {"aws:ResourceTag/frazil:environment": "dev"}),
        ("kms:ScheduleKeyDeletion kms:PutKeyPolicy", KEY, {"aws:ResourceTag/frazil:environment": "dev"}),
        ("scheduler:UpdateSchedule", f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/frazil-dev/ingest"),
        ("lambda:InvokeFunction lambda:UpdateFunctionCode", FUNCTION),
        ("lambda:GetFunction", FUNCTION.replace("-dev-", "-prod-")),
        ("athena:UpdateWorkGroup athena:StartQueryExecution", OWN_WORKGROUP),
        ("lakeformation:GrantPermissions lakeformation:RevokePermissions", "*", HERE),
    ],
    "flow_logs": [
        ("logs:PutLogEvents", FUNCTION_LOG),
        ("logs:CreateLogGroup logs:DeleteLogGroup", LOG_GROUP.removesuffix(":log-stream:x")),
        ("s3:PutObject", f"{LOGS}/flow-logs/1"),
    ],
    "confluent_provider": [
        ("s3:GetObject", DATA, {"aws:ResourceAccount": "999999999999"}, {}),
        ("s3:DeleteObject", DATA),
        ("s3:PutBucketPolicy", TABLES),
        ("glue:CreateTable glue:UpdateTable", glue("shop/refunds"), glue("hr/orders")),
        ("glue:CreateDatabase glue:DeleteDatabase glue:UpdateDatabase", f"{GLUE}:database/shop"),
        ("s3:GetObject", f"{ARTIFACTS}/releases/1/wheel.zip", {"aws:ResourceAccount": ACCOUNT}),
        ("kms:Decrypt", KEY, {}),
    ],
}


def may() -> list[Asked]:
    """What is allowed."""
    return [one for role, rows in _MAY.items() for row in rows for one in _each(role, row)]


def may_not() -> list[Asked]:
    """What is denied."""
    return [one for role, rows in _MAY_NOT.items() for row in rows for one in _each(role, row)]


def cases() -> list[dict[str, Any]]:
    """All of it, for another evaluator; which does not know keys of a context whose name ends as one likes."""
    return [
        {
            "principal": INGEST,
            "account": ACCOUNT,
            "action": one.action,
            "resource": one.resource,
            "context": one.context,
            "identity": [policy(one.role)],
            "policy": one.resources_policy,
        }
        for one in (*may(), *may_not())
        if not any(key.startswith("kms:EncryptionContext:") for key in one.context)
    ]


def _each(role: str, row: tuple[Any, ...]) -> Iterator[Asked]:
    """A row is actions, resources, and contexts if there are any; all are combined."""
    actions, *rest = row
    contexts = [one for one in rest if isinstance(one, dict)] or [{}]
    for action in actions.split():
        for resource in rest:
            if isinstance(resource, str):
                yield from (Asked(role, action, resource, context) for context in contexts)
