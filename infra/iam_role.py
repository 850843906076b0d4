"""The role of a job, a service or an operator, and what it may do. Policies come filled, from `policies.documents`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from infra.names import Names
from infra.tf import Construct, IamPolicy, IamRole, IamRolePolicyAttachment, TerraformResource
from policies.documents import split

QUOTAS = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"
MOST_ATTACHED = 10
"""Managed policies that IAM lets a role have (`QUOTAS`)."""


class ExecutionRole(Construct):
    """A role of one trust and one policy, which is attached in as many parts as IAM's limits ask for."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        names: Names,
        role: str,
        trust: Mapping[str, Any],
        policy: Mapping[str, Any],
        description: str,
        is_bounded: bool = True,
    ) -> None:
        """`role`: its full name. A role that makes bounded ones is not bounded itself.

        Raises `InvalidDeclaration` when the policy has more parts than a role may have.
        """
        super().__init__(scope, name)
        parts = split(policy)
        if len(parts) > MOST_ATTACHED:
            what = (
                f"{role} would need {len(parts)} managed policies, and IAM lets a role have {MOST_ATTACHED} ({QUOTAS})"
            )
            do = "Write scope=Scope.NAMESPACE in the deployment, use fewer namespaces, or divide the pipelines into groups"
            raise InvalidDeclaration([Problem("pipelines", what, do)])
        self._path = names.path if names.path != "/" else None
        self._role = IamRole(
            self,
            "role",
            name=role,
            path=self._path,
            description=description,
            assume_role_policy=json.dumps(trust),
            permissions_boundary=names.boundary_arn if is_bounded else None,
        )
        self.arn: str = self._role.arn
        """The role's ARN, known when it exists."""
        rights = (self._attached(number, f"{role}-{number}", part) for number, part in enumerate(parts, 1))
        self.ready: tuple[TerraformResource, ...] = (self._role, *rights)
        """The resources that an assumer of the role must wait for: a role without its rights fails at once."""

    def _attached(self, number: int, name: str, part: Mapping[str, Any]) -> TerraformResource:
        managed = IamPolicy(self, f"rights-{number}", name=name, path=self._path, policy=json.dumps(part))
        return IamRolePolicyAttachment(self, f"attached-{number}", role=self._role.name, policy_arn=managed.arn)
