"""The providers and the state of every stack of an environment."""

from __future__ import annotations

from infra.confluent.resource import Provider
from infra.tf import (
    AwsProvider,
    AwsProviderDefaultTags,
    AwsProviderEndpoints,
    Construct,
    LocalBackend,
    S3Backend,
    TerraformStack,
)
from stacks.spec.deployments import Deployment
from stacks.spec.existing import FIXED_TAGS

_STATE_FOLDER = "../../../.frazil/terraform"  # seen from the stack's own folder, cdktf.out/stacks/<stack>
_LOCAL_SERVICES = (
    "athena", "cloudwatch", "ec2", "emrserverless", "events", "glue", "iam", "kms", "lakeformation", "lambda_", "logs",
    "s3", "scheduler", "secretsmanager", "sns", "sts",
)  # fmt: skip


class EnvironmentStack(TerraformStack):
    """One stack of one environment, named for both. The states of an environment are in one folder."""

    def __init__(
        self, scope: Construct, what: str, deployment: Deployment, *, has_confluent: bool, folder: str = ""
    ) -> None:
        """`folder`: the folder of the state, if it is not the environment's."""
        super().__init__(scope, f"{deployment.name}-{what}")
        names, key = deployment.names, f"{folder or deployment.name}/{what}.tfstate"
        fixed = dict(zip(FIXED_TAGS, (deployment.name, what), strict=True))
        if deployment.is_local:
            LocalBackend(self, path=f"{_STATE_FOLDER}/{key}")
        else:
            # `frazil deploy bootstrap` creates the bucket. Without `encrypt`, the bucket's own key encrypts the state.
            S3Backend(
                self,
                bucket=names.bucket("state"),
                key=key,
                region=deployment.region,
                allowed_account_ids=[deployment.account],
            )
            self.add_override("terraform.backend.s3.use_lockfile", True)
        endpoints = dict.fromkeys(_LOCAL_SERVICES, local_endpoint()) if deployment.is_local else {}
        local = [AwsProviderEndpoints(**endpoints)] if endpoints else None
        AwsProvider(
            self,
            "aws",
            region=deployment.region,
            allowed_account_ids=[deployment.account],
            default_tags=[AwsProviderDefaultTags(tags={**deployment.existing.tags, **fixed})],
            s3_use_path_style=True if deployment.is_local else None,
            endpoints=local,
        )
        if has_confluent:
            Provider(self)


def local_endpoint() -> str:
    """Return the one address of all stand-ins: AWS_ENDPOINT_URL, or LocalStack's default."""
    from localstack_client.config import get_service_endpoints

    return str(get_service_endpoints()["s3"])
