"""Names and ARNs of all resources, made in one place, so that a policy can be written in full
before the thing that it names exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frazil.declaration.checks.validation import FrozenMap

_BY_PREFIX = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}
_UNSUPPORTED = ("us-iso", "eu-iso", "eusc-")


def partition_of(region: str) -> str:
    """Return the partition of a region: `aws`, `aws-cn` or `aws-us-gov`."""
    return next((name for prefix, name in _BY_PREFIX.items() if region.startswith(prefix)), "aws")


def is_supported(region: str) -> bool:
    """Return whether the region is in one of the partitions that Frazil knows."""
    return not region.startswith(_UNSUPPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of one environment. All begin with `frazil-<environment>`, but for those that are given.

    `path` is that of roles and policies in IAM. `given_boundary` is the name or ARN of an existing policy, `given_buckets` are
    existing buckets by what they hold.
    """

    environment: str
    account: str
    region: str
    path: str = "/"
    given_boundary: str | None = None
    given_buckets: Mapping[str, str] = FrozenMap()

    @property
    def partition(self) -> str:
        """The partition of the region, which begins every ARN."""
        return partition_of(self.region)

    @property
    def prefix(self) -> str:
        """The beginning of every name."""
        return f"frazil-{self.environment}"

    def bucket(self, what: str) -> str:
        """Return a bucket's name: the given one, or one that is unique in all of AWS by account and region."""
        return self.given_buckets.get(what) or f"{self.prefix}-{what}-{self.account}-{self.region}"

    def application(self, label: str, architecture: str, name: str) -> str:
        """Return the name of an EMR Serverless application. `name` is empty for the first one."""
        parts = (self.prefix, label.replace(".", "-"), architecture.lower().replace("_", "-"), name)
        return "-".join(filter(None, parts))

    def role(self, what: str) -> str:
        """Return a role's name, without its path."""
        return f"{self.prefix}-{what}"

    def role_arn(self, what: str) -> str:
        """Return the ARN of one of the environment's roles, known before the role is made."""
        return self.iam_arn("role", self.role(what))

    def iam_arn(self, kind: str, name: str) -> str:
        """Return the ARN of a role or policy of this environment's path. `kind` is `role` or `policy`."""
        return f"arn:{self.partition}:iam::{self.account}:{kind}{self.path}{name}"

    @property
    def boundary(self) -> str:
        """The name of the policy that bounds all roles. Deployers may change what begins with `prefix`, so this does not."""
        return self.boundary_arn.rpartition("/")[2]

    @property
    def boundary_arn(self) -> str:
        """The ARN of that policy, known before it is made."""
        given = self.given_boundary
        if given is not None:
            return given if given.startswith("arn:") else f"arn:{self.partition}:iam::{self.account}:policy/{given}"
        return self.iam_arn("policy", f"boundary-{self.prefix}")

    @property
    def deployer(self) -> str:
        """The role of whoever deploys; it may not change itself, so this does not begin with `prefix` either."""
        return f"deployer-{self.prefix}"

    @property
    def reviewer(self) -> str:
        """The role of workflows that review; deployers may not change it, so this does not begin with `prefix` either."""
        return f"reviewer-{self.prefix}"

    @property
    def state_key(self) -> str:
        """The alias of the key of Terraform's states, without `alias/`; deployers may not change it."""
        return f"state-{self.prefix}"

    def arn(self, service: str, resource: str) -> str:
        """Return an ARN in this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    def secret(self, what: str) -> str:
        """Return a secret's name in Secrets Manager."""
        return f"frazil/{self.environment}/{what}"

    def log_group(self, job: str) -> str:
        """Return the log group of a job's runs."""
        return f"/frazil/{self.environment}/{job}"

    @property
    def schedule_group(self) -> str:
        """The group of all schedules."""
        return self.prefix

    @property
    def metrics_namespace(self) -> str:
        """The CloudWatch namespace of the jobs' metrics: environments may share an account."""
        return f"Frazil/{self.environment}"
