"""Execution role: who a job or a service is, and what it may do. Policies come filled, from `policies.documents`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from infra.tf import Construct, IamRole, IamRolePolicy


class ExecutionRole(Construct):
    """A role of one trust and one policy. Nothing else may be attached to it by us."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        role: str,
        trust: Mapping[str, Any],
        policy: Mapping[str, Any],
        description: str,
    ) -> None:
        super().__init__(scope, name)
        self._role = IamRole(self, "role", name=role, description=description, assume_role_policy=json.dumps(trust))
        self._rights = IamRolePolicy(self, "rights", name=role, role=self._role.id, policy=json.dumps(policy))

    @property
    def arn(self) -> str:
        """Its ARN, known when it stands."""
        return self._role.arn

    @property
    def ready(self) -> tuple[Construct, Construct]:
        """What whoever assumes it must wait for: a role without its rights fails at once."""
        return (self._role, self._rights)
