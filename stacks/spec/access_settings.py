"""Access to an environment: principals, external ids, workflows of GitHub, trusted keys. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from frazil.declaration.checks.constraints import Rule, below, between, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem, Refusal
from frazil.declaration.checks.validation import FrozenMap
from frazil.declaration.environment import PUBLIC_KEY
from policies.table_resources import Scope

PRINCIPAL = matching(
    r"arn:aws[a-z-]*:iam::[0-9]{12}:(?:role|user)/[A-Za-z0-9_+=,.@/-]+",
    "the ARN of a role or a user",
    "Write arn:aws:iam::<account>:role/<name>",
)
EXTERNAL_ID = matching(r"[A-Za-z0-9_+=,.@:/-]{2,1224}", "an external id", "Copy it from the engine's vendor")
_WORKGROUP_NAME = matching(r"[A-Za-z0-9._-]{1,128}", "a workgroup's name", "Use a-z, A-Z, 0-9, . _ -")
_SECRET = matching(
    r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9_/+=.@-]+",
    "the ARN of a secret",
    "Write it in full",
)


@declared
class Workgroup:
    """A workgroup of Athena that deployment creates, `frazil-<environment>`. It enforces place and encryption of results."""

    most_scanned_gb: Annotated[int | None, "The most that one query may read, in GiB.", between(1, 10**6)] = None


def _workgroup_refusal(value: str | Workgroup) -> Refusal | None:
    return _WORKGROUP_NAME.refusal(value) if isinstance(value, str) else None


@declared
class GitHub:
    """The repository whose workflows review and deploy, as the GitHub environments review-<env> and deploy-<env>."""

    repository: Annotated[
        str, "The repository.", matching(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+", "a repository", "Write OWNER/NAME")
    ]
    review_secrets: Annotated[
        tuple[Annotated[str, _SECRET], ...],
        "The secrets that reviews may read: the Confluent key with read permission.",
    ] = ()
    has_provider: Annotated[bool, "Whether the account has GitHub as an identity provider already."] = False


@declared
class Access:
    """The principals that may read, operate and deploy, the scope of policies, and the keys of releases."""

    readers: Annotated[
        tuple[Annotated[str, PRINCIPAL], ...],
        "Principals that may assume the reader role. If empty, the role is not created.",
    ] = ()
    external_ids: Annotated[
        Mapping[str, Annotated[str, EXTERNAL_ID]],
        "External ids that principals of `readers` must send, by their ARNs. Vendors of engines give them.",
    ] = FrozenMap()
    athena_workgroup: Annotated[
        str | Workgroup | None,
        "Athena's workgroup in which the reader role runs queries: an existing one, or a new one.",
        Rule(_workgroup_refusal),
    ] = None
    reconcilers: Annotated[
        tuple[Annotated[str, PRINCIPAL], ...],
        "Principals that may assume the reconciler role. If empty, the role is not created.",
    ] = ()
    deployers: Annotated[
        tuple[Annotated[str, PRINCIPAL], ...],
        "Principals that may assume the deployer role. Without them and `github`, the stack `owner` does not exist.",
    ] = ()
    github: Annotated[GitHub | None, "The repository whose workflows may assume the reviewer and deployer roles."] = (
        None
    )
    trusted_keys: Annotated[
        tuple[Annotated[str, PUBLIC_KEY], ...],
        "The Ed25519 public keys of which one must have signed a release. If empty, unsigned releases may run.",
    ] = ()
    scope: Annotated[Scope, "What the policies of jobs name: namespaces, or each table."] = Scope.NAMESPACE
    lake_formation: Annotated[bool, "Whether Lake Formation controls the databases: roles then get its grants."] = False

    def _contradictions(self) -> Iterator[Problem]:
        if self.athena_workgroup is not None and not self.readers:
            yield Problem("athena_workgroup", "no principal may assume the reader role", "Write readers")
        for principal in self.external_ids:
            if principal not in self.readers:
                yield Problem(below("external_ids", principal), "no principal has this ARN", "Add it to readers")

    @property
    def has_owner(self) -> bool:
        """True if a role deploys, so that the stack `owner` exists."""
        return bool(self.deployers or self.github)

    def foreign_principals(self, partition: str) -> Iterator[Problem]:
        """Find principals of another partition: AWS refuses them in trust policies."""
        for field in ("readers", "reconcilers", "deployers"):
            for index, arn in enumerate(getattr(self, field)):
                if arn.split(":")[1:2] != [partition]:
                    what = f"{arn} is not in the partition {partition} of the region"
                    yield Problem(f"access.{field}[{index}]", what, f"Begin it with arn:{partition}:")
